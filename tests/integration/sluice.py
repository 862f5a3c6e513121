"""A real server for a test: starts the binary on free ports, talks to its admin listener, stops it and looks at how it
ended. A sanitizer report or an exit code other than 0 is a failure of the test that caused it."""
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import time
import urllib.parse
from pathlib import Path

from stand_in import store_flags

ROOT = Path(__file__).resolve().parents[2]
BIN = os.environ.get('SLUICE_BIN') or str(ROOT / 'build/dev/sluice')
REPORT = re.compile(r'(ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error:|assertion failed|ASSERT)', re.I)
START_S = 30
STOP_S = 40    # a drain has its own deadline, sanitizers are slow to leave

SANITIZER_ENV = {
    'ASAN_OPTIONS': 'detect_leaks=1:exitcode=99:allocator_may_return_null=1:detect_stack_use_after_return=1',
    'UBSAN_OPTIONS': 'print_stacktrace=1:halt_on_error=1:exitcode=98',
    'TSAN_OPTIONS': 'halt_on_error=1:exitcode=97',
}


class AdminError(Exception):
    def __init__(self, status, body):
        super().__init__('%d %s' % (status, body[:300]))
        self.status, self.body = status, body


class Server:
    def __init__(self, data_dir, workdir, args=(), binary=None, env=None):
        self.binary, self.args = binary or BIN, list(args)
        self.data_dir, self.workdir = Path(data_dir), Path(workdir)
        self.env = {**os.environ, **SANITIZER_ENV, **(env or {})}
        self.proc = None
        self.starts = 0
        self.kafka = self.admin = None
        self.listen = self.admin_listen = '127.0.0.1:0'    # with prefixes, where they have any

    # --- life -------------------------------------------------------------------------------------------------
    def spawn(self):
        """Starts the process without waiting for it."""
        self.starts += 1
        self.ports_file = self.workdir / ('ports-%d.json' % self.starts)
        self.log = self.workdir / ('server-%d.log' % self.starts)
        cmd = [self.binary, 'serve', '--data-dir', str(self.data_dir), '--kafka-listen', self.listen,
               '--admin-listen', self.admin_listen, '--ports-file', str(self.ports_file)]
        if '--store' not in self.args:
            cmd += store_flags(self.data_dir)
        with open(self.log, 'wb') as out:
            self.proc = subprocess.Popen(cmd + self.args, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env)
        return self

    def start(self):
        self.spawn()
        end = time.monotonic() + START_S
        while time.monotonic() < end:
            if self.proc.poll() is not None:
                raise AssertionError('the server ended at start, exit %d: %s' % (self.proc.returncode, self.tail()))
            try:
                ports = json.loads(self.ports_file.read_text())
                self.kafka, self.admin = ports['kafka'], ports['admin']
                if self.request('GET', '/readyz')[0] == 200:
                    return self
            except (OSError, ValueError, KeyError, http.client.HTTPException):
                pass
            time.sleep(0.03)
        self.kill()
        raise AssertionError('the server was not ready after %d s: %s' % (START_S, self.tail()))

    def alive(self):
        return self.proc is not None and self.proc.poll() is None

    def tail(self, lines=12):
        text = self.log.read_text(errors='replace')
        m = REPORT.search(text)
        return text[m.start():m.start() + 3000] if m else '\n'.join(text.splitlines()[-lines:])

    def verdict(self):
        """None, or what is wrong with a server that has ended or still runs."""
        text = self.log.read_text(errors='replace')
        if REPORT.search(text):
            return 'report in %s: %s' % (self.log, self.tail())
        if not self.alive() and self.proc.returncode != 0:
            return 'the server ended with %s: %s' % (self.proc.returncode, self.tail())
        return None

    def stop(self, within=STOP_S):
        """SIGTERM; returns the seconds it took."""
        t0 = time.monotonic()
        if self.alive():
            self.proc.send_signal(signal.SIGTERM)
            try:
                self.proc.wait(within)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError('no exit within %d s of SIGTERM: %s' % (within, self.tail())) from None
        bad = self.verdict()
        assert bad is None, bad
        return time.monotonic() - t0

    def kill(self):
        if self.alive():
            self.proc.kill()
        self.proc.wait(30)

    def restart(self):
        self.stop()
        return self.start()

    def rss(self):
        for line in open('/proc/%d/status' % self.proc.pid):
            if line.startswith('VmRSS'):
                return int(line.split()[1]) * 1024
        return 0

    def cpu(self):
        """Seconds of CPU so far."""
        f = open('/proc/%d/stat' % self.proc.pid).read().rsplit(') ', 1)[1].split()
        return (int(f[11]) + int(f[12])) / os.sysconf('SC_CLK_TCK')

    @property
    def bootstrap(self):
        return '127.0.0.1:%d' % self.kafka

    @property
    def admin_url(self):
        return 'http://127.0.0.1:%d' % self.admin

    # --- admin listener ---------------------------------------------------------------------------------------
    def request(self, method, path, body=None, headers=None, timeout=60):
        if self.admin_listen.startswith('tls://'):
            c = http.client.HTTPSConnection('127.0.0.1', self.admin, timeout=timeout, context=ssl._create_unverified_context())
        else:
            c = http.client.HTTPConnection('127.0.0.1', self.admin, timeout=timeout)
        try:
            c.request(method, path, body=body, headers=headers or {})
            r = c.getresponse()
            return r.status, r.read(), r.headers
        finally:
            c.close()

    def get_json(self, path):
        status, body, _ = self.request('GET', path)
        if status != 200:
            raise AdminError(status, body.decode(errors='replace'))
        return json.loads(body)

    def publish(self, collection, docs, partitions=None, key=None, idem=None, content_type='application/x-ndjson', timeout=60):
        """docs: bytes as they are, or a list of JSON texts / objects (NDJSON). Returns the answer; AdminError otherwise."""
        q = []
        if partitions:
            q.append('partitions=%d' % partitions)
        for k in [key] if isinstance(key, str) else key or []:
            q.append('key=' + urllib.parse.quote(k, safe=''))
        path = '/v1/collections/%s/documents%s' % (urllib.parse.quote(collection, safe=''), '?' + '&'.join(q) if q else '')
        headers = {'Content-Type': content_type}
        if idem:
            headers['Idempotency-Key'] = idem
        body = docs if isinstance(docs, bytes) else ndjson(docs)
        status, answer, _ = self.request('POST', path, body, headers, timeout)
        if status != 200:
            raise AdminError(status, answer.decode(errors='replace'))
        return json.loads(answer)

    def topics(self):
        t = self.get_json('/v1/topics')
        return {x['name']: x for x in (t['topics'] if isinstance(t, dict) else t)}

    def metrics(self):
        """Prometheus text -> {name{labels}: value}; every line must be well formed."""
        status, body, headers = self.request('GET', '/metrics')
        assert status == 200
        return parse_metrics(body.decode())

    # --- command line -----------------------------------------------------------------------------------------
    def cli(self, *args, stdin=None, check=True, timeout=120, offline=False):
        where = [] if offline else ['--admin', self.admin_url]
        return run_cli([*args, *where], stdin, check, timeout, self.binary)


def run_cli(args, stdin=None, check=True, timeout=120, binary=None):
    p = subprocess.run([binary or BIN, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       timeout=timeout, env=dict(os.environ, **SANITIZER_ENV))
    text = p.stderr.decode(errors='replace')
    assert not REPORT.search(text), 'sluice %s: %s' % (' '.join(args), text[:3000])
    if check:
        assert p.returncode == 0, 'sluice %s: exit %d: %s %s' % (' '.join(args), p.returncode, text[:600],
                                                               p.stdout[:300].decode(errors='replace'))
    return p


def ndjson(docs):
    return b''.join((d if isinstance(d, bytes) else (d if isinstance(d, str) else dumps(d)).encode()) + b'\n' for d in docs)


def dumps(doc):
    return json.dumps(doc, separators=(',', ':'), ensure_ascii=False)


META = re.compile(rb'^\{"_meta":\{"uuid":"([0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12})"\}(,|\})')


def strip_meta(value):
    """The document as it was published: the leading _meta member that publishing adds, cut out as text. What is left
    is compared byte by byte: member order, number spelling, escapes and white space are the publisher's."""
    m = META.match(value)
    assert m, 'no leading _meta with a UUID: %r' % value[:120]
    rest = value[m.end():]
    return b'{' + rest if m.group(2) == b',' else b'{}' + rest


def uuid_clock(value):
    """(clock, flags) of a document's UUID; the clock counts 100 ns since 1582-10-15, times 16."""
    h = META.match(value).group(1).decode().replace('-', '')
    b = bytes.fromhex(h)
    low, mid, hi = int.from_bytes(b[0:4], 'big'), int.from_bytes(b[4:6], 'big'), int.from_bytes(b[6:8], 'big')
    clock = (hi & 0xfff) << 52 | mid << 36 | low << 4 | (b[8] >> 2 & 15)
    return clock, (b[8] & 3) << 8 | b[9]


def clock_ms(clock):
    return ((clock >> 4) - 122192928000000000) // 10000


SAMPLE = re.compile(r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^{}]*\})? (NaN|[+-]?Inf|[-+0-9.eE]+)( [0-9]+)?$')


def parse_metrics(text):
    out, typed = {}, {}
    for line in text.splitlines():
        if line.startswith('# TYPE '):
            _, _, name, kind = line.split(' ', 3)
            assert name not in typed, 'two TYPE lines for %s' % name
            assert kind in ('counter', 'gauge', 'histogram', 'summary', 'untyped'), line
            typed[name] = kind
        elif line and not line.startswith('#'):
            m = SAMPLE.match(line)
            assert m, 'not a sample: %r' % line
            name = m.group(1)
            assert name in typed or re.sub('_(bucket|sum|count|total)$', '', name) in typed, 'no TYPE line for %s' % name
            key = name + (m.group(2) or '')
            assert key not in out, 'twice: %s' % key
            out[key] = float(m.group(3))
    assert text.endswith('\n')
    return out
