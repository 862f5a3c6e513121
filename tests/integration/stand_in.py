"""Over which store the servers of a test run, by SLUICE_TEST_STORE: local (default); stand-in, a process of
tests/gazette_stand_in for each data folder; real, etcd and a broker for each data folder (gazette_lab.py).
Tests of the local store alone carry the mark local_store and are left out over the others, with their number printed.
"""
import atexit
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STORE = os.environ.get('SLUICE_TEST_STORE') or 'local'
LOCAL = STORE == 'local'
PREFIX = {'local': 'integration', 'stand-in': 'stand_in', 'real': 'real_broker'}[STORE]    # of the tests' names
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

    # --- what operators and object stores do to journals ----------------------------------------------------------
    def prepare(self, journal):
        """Of one that is not there yet, whose fragments will be closed and removed."""

    def close(self, journal):
        self.ask('close', journal)

    def prune(self, journal, n):
        self.ask('prune', journal, n)

    def forget(self, journal):
        """The journal was deleted; its fragments go, too, so that one of the same name begins at 0."""
        self.ask('forget', journal)

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


class RealBroker:
    """etcd and one broker, in the same terms. A broker closes the open fragment of a journal that is suspended; fragments are
    removed where they lie, and known when it has listed its store again."""

    def __init__(self, files):
        from gazette_lab import Cluster    # knows pytest, which the benches have not
        self.cluster = Cluster(files)
        self.root = self.cluster.store
        self.cluster.start()

    def flags(self):
        return ['--store', 'gazette://127.0.0.1:%d' % self.cluster.port, '--fragment-store', 'file:///', '--fragment-root', str(self.root)]

    def prepare(self, journal):
        """Made with the shortest time between two listings: a broker asks for the next one when the one before was done."""
        spec = {'name': journal, 'replication': 1, 'fragment': {'length': 64 << 20, 'compression_codec': 'NONE', 'stores': ['file:///'],
                                                               'refresh_interval': '1s'}}
        self.cluster.gazctl('journals', 'apply', stdin=json.dumps(spec).encode())

    def close(self, journal):
        self._await(lambda: self.cluster.append(journal, b'') == b'', 'a primary of %s' % journal)
        self.cluster.gazctl('journals', 'suspend', '-l', 'name=' + journal, '--force')
        # Left so, the next append would resume it; it is to look as if nothing had been.
        self._await(lambda: self.cluster.append(journal, b'') == b'', '%s resumed' % journal)
        self._await(lambda: all(f.get('mod_time') for f in self.cluster.fragments(journal)), 'the fragments of %s stored and listed' % journal)

    def prune(self, journal, n):
        gone = self.cluster.fragments(journal)[:n]
        for f in gone:
            for path in (self.root / journal).glob('%016x-%016x-*' % (int(f.get('begin', 0)), int(f['end']))):
                path.unlink()
        begins = {f.get('begin') for f in gone}
        self._await(lambda: not any(f.get('begin') in begins for f in self.cluster.fragments(journal)), '%d fragments of %s gone' % (n, journal))

    def _await(self, f, what):
        end = time.monotonic() + 30
        while not f():
            assert time.monotonic() < end, 'not within 30 s: %s' % what
            time.sleep(0.05)

    def forget(self, journal):
        shutil.rmtree(self.root / journal, ignore_errors=True)

    def stop(self):
        self.cluster.stop('--crash', '--wipe')


_of = {}


def store_flags(data_dir):
    """What the servers over data_dir are started with for the store that the run asks for."""
    if LOCAL:
        return []
    key = str(data_dir)
    if key not in _of:
        _of[key] = (StandIn if STORE == 'stand-in' else RealBroker)(Path(data_dir).with_name(Path(data_dir).name + '-broker'))
    return _of[key].flags()


def broker_of(data_dir):
    return _of.get(str(data_dir))


def release(data_dir):
    """No server over data_dir comes any more."""
    broker = _of.pop(str(data_dir), None)
    if broker is not None:
        broker.stop()


@atexit.register
def stop_all():
    for key in list(_of):
        release(key)
