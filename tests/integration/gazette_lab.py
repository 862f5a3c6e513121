"""A real Gazette cluster for a test: etcd and brokers, started by tests/lab/gazette-up.sh. Without a broker's binary (GAZETTE_BIN, LAB/bin,
PATH) the test is skipped, in one wording that tests/allowed_skips.txt knows."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from clients import LAB, LAB_DIR

NO_BROKER = 'needs a Gazette broker: GAZETTE_BIN names one'


def broker_bin():
    """The broker's binary, or the test is skipped."""
    for p in (os.environ.get('GAZETTE_BIN'), LAB / 'bin/gazette', shutil.which('gazette')):
        if p and os.access(p, os.X_OK):
            return str(p)
    pytest.skip(NO_BROKER)


def gazctl_bin():
    for p in (os.environ.get('GAZCTL_BIN'), Path(broker_bin()).parent / 'gazctl', LAB / 'bin/gazctl', shutil.which('gazctl')):
        if p and os.access(p, os.X_OK):
            return str(p)
    pytest.skip(NO_BROKER)


def free(port):
    with contextlib.closing(socket.socket()) as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return s.connect_ex(('127.0.0.1', port)) != 0


def free_block(n, span=1002):
    """A first port p with p..p+n-1, p+1000 and p+1001 free; below the range that the system gives out by itself."""
    base = 20000 + os.getpid() % 500 * 16
    for p in range(base, 31000, 16):
        if all(free(p + k) for k in range(n)) and free(p + 1000) and free(p + 1001):
            return p
    raise AssertionError('no free ports')


class Cluster:
    def __init__(self, path, brokers=1, **env):
        self.path, self.n = Path(path), brokers
        self.env = {**os.environ, 'LAB': str(LAB), 'BROKERS': str(brokers), 'GAZETTE_BIN': broker_bin(), 'GAZCTL_BIN': gazctl_bin(),
                    **{k: str(v) for k, v in env.items()}}
        self.port = free_block(brokers)
        self.store = self.path / 'store'
        self.argv = {}        # of each broker
        self.children = []    # brokers that `restarted` started

    @property
    def ports(self):
        return [self.port + k for k in range(self.n)]

    @property
    def brokers(self):
        return ','.join('127.0.0.1:%d' % p for p in self.ports)

    def start(self, **env):
        self.path.mkdir(parents=True, exist_ok=True)
        p = subprocess.run([str(LAB_DIR / 'gazette-up.sh'), str(self.path), str(self.port)], env={**self.env, **{k: str(v) for k, v in env.items()}},
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=400)
        if p.returncode == 77:
            pytest.skip(NO_BROKER)
        assert p.returncode == 0, 'gazette-up: %s' % p.stderr[-800:].decode(errors='replace')
        for k in range(self.n):
            self.argv[k] = Path('/proc/%d/cmdline' % self.pid('gazette%d' % k)).read_bytes().split(b'\0')[:-1]
        return self

    @contextlib.contextmanager
    def restarted(self):
        """What an orchestrator does: a broker that ended, for whatever reason, is started again. A broker whose lease is lost ends by itself, up
        to 15 s after it noticed. Leaves when all have been ready for 3 s."""
        stop, faults = threading.Event(), []

        def run():
            try:
                while not stop.wait(0.2):
                    for k in range(self.n):
                        if self.gone('gazette%d' % k):
                            self._revive(k)
            except Exception as e:    # noqa: BLE001: told by the test
                faults.append(e)
        t = threading.Thread(target=run)
        t.start()
        try:
            yield self
            end, since = time.monotonic() + 120, None
            while since is None or time.monotonic() - since < 3:
                assert not faults, faults[0]
                assert time.monotonic() < end, 'the brokers did not come back'
                ready = all(self.ready(k) for k in range(self.n))
                since = (since or time.monotonic()) if ready else None
                time.sleep(0.1)
        finally:
            stop.set()
            t.join()

    def _revive(self, k):
        with open(self.path / 'logs' / ('gazette%d.log' % k), 'ab') as log:
            p = subprocess.Popen(self.argv[k], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.children.append(p)
        (self.path / ('gazette%d.pid' % k)).write_text('%d\n' % p.pid)

    def ready(self, k):
        try:
            with urllib.request.urlopen('http://127.0.0.1:%d/debug/ready' % self.ports[k], timeout=2) as r:
                return r.status == 200
        except OSError:
            return False

    def left(self, pid, seconds):
        """Seconds until a broker's process has ended, None: it did not in time."""
        t0 = time.monotonic()
        while time.monotonic() - t0 < seconds:
            try:
                if Path('/proc/%d/stat' % pid).read_text().rsplit(') ', 1)[1][0] in 'ZX':
                    return time.monotonic() - t0
            except OSError:
                return time.monotonic() - t0
            time.sleep(0.05)
        return None

    def stop(self, *flags):
        subprocess.run([str(LAB_DIR / 'gazette-down.sh'), str(self.path), *flags], env={**self.env, 'GRACE': '10'}, timeout=90,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pid(self, what):
        """what: etcd, gazette0, gazette1, ..."""
        return int((self.path / (what + '.pid')).read_text())

    def signal(self, what, sig):
        os.kill(self.pid(what), sig)

    def gone(self, what):
        """Its process has ended (one that nobody has waited for counts)."""
        try:
            return Path('/proc/%d/stat' % self.pid(what)).read_text().rsplit(') ', 1)[1][0] in 'ZX'
        except OSError:
            return True

    def kill(self, what):
        os.kill(self.pid(what), signal.SIGKILL)
        end = time.monotonic() + 10
        while not self.gone(what) and time.monotonic() < end:
            time.sleep(0.02)

    def cpu(self, what):
        """Seconds of CPU of a process so far."""
        f = Path('/proc/%d/stat' % self.pid(what)).read_text().rsplit(') ', 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')

    # --- journals, by the broker's JSON gateway and gazctl -------------------------------------------------------
    def listing(self):
        """[{spec, modRevision, route, createRevision}]"""
        rq = urllib.request.Request('http://127.0.0.1:%d/v1/journals/list' % self.port, b'{}', {'Content-Type': 'application/json'})
        out = []
        with urllib.request.urlopen(rq, timeout=20) as r:
            for line in r:
                if line.strip():
                    out += json.loads(line)['result']['journals']
        return out

    def gazctl(self, *args, stdin=None, check=True):
        p = subprocess.run([gazctl_bin(), *args, '--broker.address=http://127.0.0.1:%d' % self.port], input=stdin, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, timeout=60)
        assert not check or p.returncode == 0, 'gazctl %s: %s' % (' '.join(args), p.stderr[-600:].decode(errors='replace'))
        return p.stdout

    def fragments(self, journal):
        """[{begin, end, mod_time, ...}] as brokers list them; zeros are left out: mod_time is there when the store was listed."""
        return sorted((json.loads(x)['spec'] for x in self.gazctl('journals', 'fragments', '-l', 'name=' + journal, '--format', 'json').splitlines()),
                      key=lambda f: int(f['end']))

    def append(self, journal, content):
        """One append by the broker's HTTP gateway, wherever the head is; b'' or what the broker says against it."""
        rq = urllib.request.Request('http://127.0.0.1:%d/%s' % (self.port, journal), content, method='PUT')
        try:
            with urllib.request.urlopen(rq, timeout=60):
                return b''
        except urllib.error.HTTPError as e:
            return e.read()

    def get(self, journal, offset=0):
        """Bytes of a journal through the broker's HTTP gateway, to its head."""
        with urllib.request.urlopen('http://127.0.0.1:%d/%s?offset=%d' % (self.port, journal, offset), timeout=60) as r:
            return r.read()


@contextlib.contextmanager
def cluster(path, brokers=1, **env):
    c = Cluster(path, brokers, **env)
    try:
        yield c.start()
    finally:
        c.stop('--crash', '--wipe')
