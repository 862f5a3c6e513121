"""Field cases of operation: a gateway behind a TCP proxy (71), and slow readers beside healthy ones (73)."""
import json
import os
import shutil
import socket
import subprocess
import threading
import time

import pytest

import clients
from kafka_raw import DESCRIBE_CLUSTER, FETCH, FIND_COORDINATOR, METADATA, Conn, request_header
from scale import LONG, size
from sluice import SANITIZER_ENV

MB = 1 << 20
HAPROXY = shutil.which('haproxy') or '/usr/sbin/haproxy'
EXACT_MEMORY = {'ASAN_OPTIONS': SANITIZER_ENV['ASAN_OPTIONS'] + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'}


def free_port(host='127.0.0.1'):
    with socket.socket() as s:
        s.bind((host, 0))
        return s.getsockname()[1]


@pytest.fixture
def proxied(make_server, tmp_path):
    """A server on 127.0.0.2 that clients know as 127.0.0.1:PORT, where HAProxy listens; it comes to the server from 127.0.0.3."""
    clients.need(HAPROXY, 'haproxy-install.sh')
    front = free_port()
    s = make_server(start=False)
    s.listen = '127.0.0.2:0=127.0.0.1:%d' % front
    s.start()
    conf = tmp_path / 'haproxy.cfg'
    conf.write_text('defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n'
                    'frontend f\n bind 127.0.0.1:%d\n default_backend b\n'
                    'backend b\n source 127.0.0.3\n server s 127.0.0.2:%d\n' % (front, s.kafka))
    p = subprocess.Popen([HAPROXY, '-db', '-f', str(conf)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    for _ in range(100):
        try:
            socket.create_connection(('127.0.0.1', front), 1).close()
            break
        except OSError:
            assert p.poll() is None, p.stderr.read()
            time.sleep(0.05)
    s.front = front
    yield s
    p.terminate()
    p.wait(20)
    p.stderr.close()


def test_71_behind_a_proxy_only_the_advertised_address_appears(proxied):
    s, front = proxied, proxied.front
    s.publish('orders', [{'id': i} for i in range(500)])
    with Conn(front) as c:
        for v in (0, 1, 5, 9, 12):
            assert [(b['host'], b['port']) for b in c.call(METADATA, v, topics=[{'name': 'orders'}])['brokers']] == [('127.0.0.1', front)]
        r = c.call(FIND_COORDINATOR, 1, key='g')
        assert (r['host'], r['port']) == ('127.0.0.1', front)
        r = c.call(FIND_COORDINATOR, 4, coordinator_keys=['g'])['coordinators'][0]
        assert (r['host'], r['port']) == ('127.0.0.1', front)
        c.send(request_header(DESCRIBE_CLUSTER, 0, 77, flex=True) + b'\0\0')
        body = c.recv()
        assert b'\x0a127.0.0.1' + front.to_bytes(4, 'big') in body and b'127.0.0.2' not in body
    clients.need('kcat', 'c-install.sh')
    text = clients.run(['kcat', '-L', '-b', '127.0.0.1:%d' % front]).stdout.decode()
    assert '127.0.0.1:%d' % front in text and str(s.kafka) not in text and '127.0.0.2' not in text


def test_71_a_java_group_works_through_the_proxy_and_never_around_it(proxied):
    s, front = proxied, proxied.front
    s.publish('orders', [{'id': i} for i in range(500)])
    peers, done = set(), threading.Event()

    def watch():
        while not done.wait(0.05):
            peers.update(c['peer'].rsplit(':', 1)[0] for c in s.get_json('/v1/connections')['connections'])
    t = threading.Thread(target=watch)
    t.start()
    try:
        out = clients.kt('console-consumer', '--bootstrap-server', '127.0.0.1:%d' % front, '--topic', 'orders', '--group', 'g', '--from-beginning',
                         '--max-messages', '500', '--timeout-ms', '30000').stdout
    finally:
        done.set()
        t.join()
    assert sorted(json.loads(line)['id'] for line in out.splitlines()) == list(range(500))
    assert peers == {'127.0.0.3'}, 'somebody came around the proxy'
    assert s.get_json('/v1/groups/g')['lag'] == 0


class Slow(threading.Thread):
    """Takes a given number of bytes a second of answers to one fetch of everything after another; checks that they are what they should be."""

    def __init__(self, port, rate, stop):
        super().__init__(daemon=True)
        self.port, self.rate, self.stop, self.head, self.closed = port, rate, stop, b'', False

    def run(self):
        c = Conn(self.port, rcvbuf=4096)
        try:
            c.s.settimeout(1)
            c.fetch_start('big', {0: 0}, max_bytes=50 * MB, partition_max_bytes=50 * MB)
            while not self.stop.is_set():
                if self.rate == 0:    # asks and takes nothing: until the server has enough of it
                    time.sleep(0.5)
                    continue
                try:
                    piece = c.s.recv(max(1, self.rate // 4))
                except socket.timeout:
                    continue
                if not piece:
                    self.closed = True
                    return
                if len(self.head) < 200000:
                    self.head += piece
                time.sleep(len(piece) / self.rate)
        except OSError:
            self.closed = True
        finally:
            c.close()


def test_73_slow_readers_pin_bounded_memory_and_starve_nobody(make_server, figures, until):
    """1 GB, 200 readers at 10 KB/s, 20 that take nothing and 5 healthy ones for ten minutes; here a share of it, in full with
    SLUICE_TEST_LONG=1. The stall rule: a sixteenth of conn-output-bytes in each stall-timeout."""
    docs, slow_n, dead_n = size(1000000, 30000, 10000), size(200, 40, 20), 20 if LONG else 5
    seconds = float(os.environ.get('SLUICE_TEST_SLOW_S') or (600 if LONG else 15))
    s = make_server('--conn-output-bytes', '1MiB', '--cache-bytes', '64MiB', '--stall-timeout', '10s', env=EXACT_MEMORY)
    pad = 'x' * 980
    for i in range(0, docs, 5000):
        s.publish('big', [{'n': n, 'pad': pad} for n in range(i, i + 5000)])
    with Conn(s.kafka) as c:
        r = c.finish(FETCH, 11, c.fetch_start('big', {0: 0}, max_bytes=MB, partition_max_bytes=MB))
        want = bytes(r['responses'][0]['partitions'][0]['records'])
    idle, stop = s.rss(), threading.Event()
    slow = [Slow(s.kafka, 10000, stop) for _ in range(slow_n)]
    dead = [Slow(s.kafka, 0, stop) for _ in range(dead_n)]
    for t in slow + dead:
        t.start()
    times, peak, end = [], 0, time.monotonic() + seconds
    lock = threading.Lock()

    def healthy(k):
        with Conn(s.kafka, timeout=30) as c:
            at = 0
            while time.monotonic() < end:
                t0 = time.monotonic()
                recs, p = c.records_from('big', 0, at)
                with lock:
                    times.append(time.monotonic() - t0)
                at = recs[-1].offset + 1 if recs else 0
                time.sleep(0.02)
    good = [threading.Thread(target=healthy, args=(k,)) for k in range(5)]
    for t in good:
        t.start()
    while time.monotonic() < end:
        peak = max(peak, s.rss())
        time.sleep(0.25)
    for t in good:
        t.join()
    alive = sum(not t.closed for t in slow)
    stop.set()
    for t in slow + dead:
        t.join(10)
    times.sort()
    p99 = times[int(len(times) * 0.99)]
    figures('%d MB, %d slow, %d that take nothing, %.0f s: RSS %d MB idle, %d at most; healthy fetches %d, p99 %.0f ms, max %.0f ms; slow ones still served %d'
            % (docs // 1000, slow_n, dead_n, seconds, idle // MB, peak // MB, len(times), p99 * 1e3, times[-1] * 1e3, alive))
    assert peak < 512 * MB
    assert p99 < 1
    assert alive == slow_n, 'a slow reader that reads is served'
    for t in slow:
        at = t.head.find(want[:61])    # the first batch's head
        assert at > 0 and t.head[at:at + len(want)] == want[:len(t.head) - at], 'a slow reader got other bytes'
    assert s.metrics()['sluice_connections_open'] <= slow_n, 'who takes nothing was closed'
    until(lambda: s.metrics()['sluice_connections_open'] == 0, 15)
    until(lambda: s.rss() < idle + 64 * MB + 64 * MB, 20)
