"""A real Gazette cluster for a test: etcd and brokers, started by tests/lab/gazette-up.sh. Without a broker's binary (GAZETTE_BIN, LAB/bin,
PATH) the test is skipped, in one wording that tests/allowed_skips.txt knows."""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
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
        return self

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
