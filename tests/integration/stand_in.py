"""The stand-in for a Gazette broker (tests/gazette_stand_in) as a process, and its control socket.

SLUICE_TEST_STORE says over which store the servers of a test run: local (default), stand-in (a broker for each data
folder), or gazette://HOST:PORT (a real one, whose journals may be deleted)."""
import atexit
import json
import os
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORE = os.environ.get('SLUICE_TEST_STORE') or 'local'
PROGRAM = 'tests/gazette_stand_in/sluice_gazette_stand_in'


def program():
    for place in (os.environ.get('SLUICE_STAND_IN'), Path(os.environ.get('SLUICE_BIN', '/')).parent / PROGRAM, ROOT / 'build/dev' / PROGRAM):
        if place and os.access(place, os.X_OK):
            return str(place)
    raise AssertionError('no stand-in broker: build sluice_gazette_stand_in, or set SLUICE_STAND_IN')


class StandIn:
    """files: folder whose `fragments` is the root of file:// stores."""

    def __init__(self, files, *args):
        self.files = Path(files)
        self.root = self.files / 'fragments'
        self.root.mkdir(parents=True, exist_ok=True)
        self.log = self.files / 'stand-in.log'
        ports = self.files / 'stand-in.json'
        ports.unlink(missing_ok=True)
        env = {**os.environ, 'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99', 'UBSAN_OPTIONS': 'halt_on_error=1:exitcode=98'}
        with open(self.log, 'wb') as out:
            self.proc = subprocess.Popen([program(), '--port-file', str(ports), '--file-root', str(self.root), *args],
                                         stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env)
        end = time.monotonic() + 20
        while not ports.exists():
            assert self.proc.poll() is None and time.monotonic() < end, 'the stand-in did not start: %s' % self.tail()
            time.sleep(0.01)
        p = json.loads(ports.read_text())
        self.port, self.control_port = p['port'], p['control']
        self.sock = self.file = None

    @property
    def url(self):
        return 'gazette://127.0.0.1:%d' % self.port

    def flags(self, stored=True):
        """Of sluice serve; stored: journals made there get a file:// store, read where it lies."""
        return ['--store', self.url] + (['--fragment-store', 'file:///', '--fragment-root', str(self.root)] if stored else [])

    def tail(self):
        return self.log.read_text(errors='replace')[-2000:]

    def ask(self, *words):
        """One command of control.c; its answer's value, as text."""
        if self.sock is None:
            self.sock = socket.create_connection(('127.0.0.1', self.control_port), timeout=30)
            self.file = self.sock.makefile('rb')
        self.sock.sendall((' '.join(str(w) for w in words) + '\n').encode())
        answer = self.file.readline().decode().rstrip('\n')
        assert answer.split(' ', 1)[0] == 'ok', '%s: %s' % (' '.join(map(str, words)), answer)
        return answer[3:]

    def fault(self, kind, method, **options):
        self.ask('fault', kind, method, *('%s=%s' % (k, int(v) if isinstance(v, bool) else v) for k, v in options.items()))

    def end_calls(self, method, kind, value=0):
        self.ask('end', method, kind, 'value=%d' % value)

    def calm(self):
        self.ask('calm')

    def stats(self):
        return json.loads(self.ask('stats'))

    def content(self, journal):
        n = int(self.ask('content', journal))
        return self.file.read(n)

    def stop(self):
        """SIGTERM; its exit and any report of a sanitizer count."""
        if self.proc.poll() is None:
            self.proc.terminate()
            self.proc.wait(30)
        if self.sock is not None:
            self.file.close()
            self.sock.close()
            self.sock = None
        assert self.proc.returncode == 0, 'the stand-in ended with %d: %s' % (self.proc.returncode, self.tail())


_of = {}


def store_flags(data_dir):
    """What the servers over data_dir are started with for the store that the run asks for."""
    if STORE == 'local':
        return []
    if STORE != 'stand-in':
        return ['--store', STORE]
    key = str(data_dir)
    if key not in _of:
        _of[key] = StandIn(Path(data_dir).with_name(Path(data_dir).name + '-broker'))
    return _of[key].flags()


def broker_of(data_dir):
    return _of.get(str(data_dir))


@atexit.register
def stop_all():
    for s in _of.values():
        s.stop()
    _of.clear()
