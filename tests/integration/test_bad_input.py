"""Hostile and broken peers: each gets a clear answer or a clean close, memory stays bounded, everybody else is served."""
import os
import random
import resource
import socket
import struct
import time

import pytest

import clients
from docs_util import read_all
from kafka_raw import (API_VERSIONS, APIS, EPOCH_END, FETCH, LATEST, LIST_OFFSETS, METADATA, Closed, Conn, ProtocolError, Reader,
                       encode_request, framed, request_header)
from scale import size
from sluice import SANITIZER_ENV

MB = 1 << 20
# AddressSanitizer keeps freed memory for a while; where memory is measured it must not
EXACT_MEMORY = {'ASAN_OPTIONS': SANITIZER_ENV['ASAN_OPTIONS'] + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'}


@pytest.fixture(autouse=True)
def _others_are_served(srv):
    """After each test a new client reads as ever."""
    if 'canary' not in srv.topics():
        srv.publish('canary', [{'n': i} for i in range(10)])
    yield
    if srv.alive():
        assert len(read_all(srv.kafka, 'canary', 0)) == 10


def valid_requests(topic):
    part = {'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': 1000}
    yield API_VERSIONS, 3, {'client_software_name': 'raw', 'client_software_version': '1'}
    yield API_VERSIONS, 0, {}
    for v in (0, 5, 9, 12):
        yield METADATA, v, {'topics': [{'name': topic}]}
    for v in (1, 5, 7):
        yield LIST_OFFSETS, v, {'topics': [{'name': topic, 'partitions': [{'partition_index': 0, 'timestamp': -1}]}]}
    for v in (4, 11, 12):
        yield FETCH, v, {'max_wait_ms': 0, 'min_bytes': 1, 'max_bytes': 1000, 'topics': [{'topic': topic, 'partitions': [part]}]}


# --- frames -------------------------------------------------------------------------------------------------------

def test_random_bytes_end_in_a_close(srv):
    rnd = random.Random(1)
    for _ in range(size(2000, 250, 50)):
        with Conn(srv.kafka, timeout=5) as c:
            try:
                c.s.sendall(rnd.randbytes(rnd.choice([1, 3, 4, 5, 8, 64, 1000, 70000])))
                c.s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            assert c.closed(10)


def test_random_bodies_behind_a_good_header_are_answered_or_closed(srv):
    rnd = random.Random(2)
    keys = sorted(set(range(-1, 93)) | {32767, -32768})
    for key in keys:
        for _ in range(size(60, 6, 2)):
            with Conn(srv.kafka, timeout=8) as c:
                version = rnd.choice([0, 1, 3, 4, 8, 9, 11, 12, 13, 17, 99, -1])
                body = rnd.randbytes(rnd.choice([0, 1, 7, 40, 400]))
                c.send(request_header(key, version, 77, flex=rnd.random() < 0.5) + body)
                c.s.shutdown(socket.SHUT_WR)
                assert c.closed(10), 'key %d version %d hangs' % (key, version)


def test_every_valid_request_with_one_byte_changed_does_no_harm(srv):
    rnd = random.Random(3)
    for key, v, body in valid_requests('canary'):
        whole = bytearray(encode_request(key, v, body))
        with_each = range(8, len(whole)) if size(1, 0, 0) == 1 else rnd.sample(range(8, len(whole)), min(24, len(whole) - 8))
        for i in with_each:
            bad = bytearray(whole)
            bad[i] ^= rnd.choice([1, 128, 255])
            with Conn(srv.kafka, timeout=8) as c:
                c.send(bytes(bad))
                c.s.shutdown(socket.SHUT_WR)
                assert c.closed(10), 'api %d v%d byte %d' % (key, v, i)


def test_a_frame_cut_anywhere_and_half_closed_is_let_go(srv):
    for key, v, body in valid_requests('canary'):
        whole = framed(encode_request(key, v, body))
        for cut in sorted({1, 3, 4, 5, 11, len(whole) // 2, len(whole) - 1}):
            with Conn(srv.kafka, timeout=8) as c:
                c.s.sendall(whole[:cut])
                c.s.shutdown(socket.SHUT_WR)
                assert c.closed(8), 'api %d v%d cut at %d' % (key, v, cut)


def test_a_body_that_ends_inside_a_field_is_not_answered_as_if_it_were_whole(srv):
    for key, v, body in valid_requests('canary'):
        if key == API_VERSIONS:
            continue
        whole = encode_request(key, v, body)
        for cut in range(9, len(whole) - 1, 3):
            with Conn(srv.kafka, timeout=8) as c:
                c.send(whole[:cut])
                c.s.shutdown(socket.SHUT_WR)
                try:
                    c.recv()
                    pytest.fail('api %d v%d, %d of %d bytes: answered' % (key, v, cut, len(whole)))
                except (Closed, ProtocolError):
                    pass


@pytest.mark.parametrize('length', [0x7fffffff, 0x40000000, 0x10000000, -1, -2147483648, 0, 1, 7])
def test_an_impossible_length_prefix_closes_at_once(srv, length):
    before, errors = srv.rss(), srv.metrics()['sluice_protocol_errors_total']
    conns = [Conn(srv.kafka) for _ in range(30)]
    try:
        for c in conns:
            c.s.sendall(struct.pack('>i', length) + b'\0' * (length if 0 < length < 8 else 4))
        for c in conns:
            c.s.shutdown(socket.SHUT_WR)
            assert c.closed(5)
    finally:
        [c.close() for c in conns]
    assert srv.rss() - before < 24 * MB, 'memory was taken for a length that nobody sent'
    assert srv.metrics()['sluice_protocol_errors_total'] >= errors + 30


@pytest.mark.parametrize('length', [0x7fffffff, -1])
def test_an_impossible_length_is_not_waited_out(srv, length):
    with Conn(srv.kafka) as c:
        c.s.sendall(struct.pack('>i', length))
        assert c.closed(3)


@pytest.mark.parametrize('key,version,tail', [
    (METADATA, 1, struct.pack('>i', 0x7fffffff)), (METADATA, 1, struct.pack('>i', -2)), (METADATA, 9, b'\0\xff\xff\xff\xff\x0f'),
    (LIST_OFFSETS, 1, struct.pack('>ii', -1, 0x7fffffff)), (FETCH, 4, struct.pack('>iiiibi', -1, 0, 1, 1, 0, 0x7fffffff)),
    (FETCH, 12, b'\0' + struct.pack('>iiiibii', -1, 0, 1, 1, 0, 0, -1) + b'\xff\xff\xff\xff\x0f'),
    (METADATA, 9, b'\0\x02\xff\xff\xff\xff\x0f'), (METADATA, 9, b'\xff\xff\xff\xff\x0f'), (METADATA, 9, b'\x01\x00\xff\xff\xff\xff\x0f'),
    (METADATA, 9, b'\x80' * 20), (METADATA, 1, struct.pack('>ih', 1, 32767)), (METADATA, 1, struct.pack('>ih', 1, -5))])
def test_counts_and_lengths_that_lie_take_no_memory(srv, key, version, tail):
    before = srv.rss()
    for _ in range(20):
        with Conn(srv.kafka) as c:
            c.send(request_header(key, version, 1) + tail)
            c.s.shutdown(socket.SHUT_WR)
            assert c.closed(5)
    assert srv.rss() - before < 24 * MB


def test_a_request_above_the_limit_is_closed_before_it_is_read(srv):
    with Conn(srv.kafka) as c:
        c.s.sendall(struct.pack('>i', 200 * MB))
        sent = 0
        try:
            while sent < 20 * MB:
                c.s.sendall(b'\0' * 65536)
                sent += 65536
            assert c.closed(5)
        except OSError:
            pass
    assert sent < 20 * MB


# --- versions -----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('version', [5, 6, 99, 32767, -1])
@pytest.mark.parametrize('body', [b'', b'\0', b'\x05raw\x00\x021\x00', os.urandom(100)], ids=['empty', 'zero', 'software', 'random'])
def test_an_unknown_version_of_apiversions_is_answered_and_the_connection_goes_on(srv, version, body):
    """Field case 69."""
    with Conn(srv.kafka) as c:
        c.send(request_header(API_VERSIONS, version, 4711) + body)
        r = Reader(c.recv())
        assert r.int('i') == 4711
        assert r.int('h') == 35
        keys = {}
        for _ in range(r.int('i')):
            k, lo, hi = r.int('h'), r.int('h'), r.int('h')
            keys[k] = (lo, hi)
        assert r.at == len(r.b), 'the layout is that of version 0'
        assert keys[API_VERSIONS][0] == 0 and keys[API_VERSIONS][1] >= 3
        assert FETCH in c.api_versions(keys[API_VERSIONS][1])
        assert c.metadata('canary')['error_code'] == 0


@pytest.mark.parametrize('key,version', [(999, 0), (-1, 0), (32767, 3), (-32768, -32768), (4, 0), (56, 0), (FETCH, 3), (FETCH, 0), (FETCH, 99),
                                         (FETCH, -1), (METADATA, 14), (METADATA, 99), (LIST_OFFSETS, 0), (LIST_OFFSETS, 12), (EPOCH_END, 0)])
def test_an_unknown_api_or_version_gets_a_close_or_an_error_never_silence(srv, key, version):
    with Conn(srv.kafka) as other:
        other.api_versions()
        with Conn(srv.kafka) as c:
            c.send(request_header(key, version, 5) + b'\0' * 40)
            c.s.settimeout(5)
            try:
                frame = c.recv()
                assert frame[:4] == struct.pack('>i', 5)
            except (Closed, ProtocolError):
                pass
        assert other.metadata('canary')['error_code'] == 0, 'other connections are not touched'


# --- pace ---------------------------------------------------------------------------------------------------------

def test_a_client_that_sends_a_byte_a_second_is_closed(make_server):
    s = make_server('--stall-timeout', '1500ms')
    s.publish('t', [{'n': 1}])
    whole = framed(encode_request(METADATA, 5, {'topics': [{'name': 't'}]}))
    with Conn(s.kafka, timeout=1) as c, Conn(s.kafka) as quick:
        t0 = time.monotonic()
        ended = False
        for b in whole[:8]:
            try:
                c.s.sendall(bytes([b]))
                if c.s.recv(1) == b'':
                    ended = True
                    break
            except socket.timeout:
                pass
            except OSError:
                ended = True
                break
            assert quick.metadata('t')['error_code'] == 0
        assert ended, 'still open after %.1f s' % (time.monotonic() - t0)
        assert time.monotonic() - t0 < 8


def test_a_whole_request_is_not_stalled_by_the_silence_before_it(make_server):
    s = make_server('--stall-timeout', '500ms')
    s.publish('t', [{'n': 1}])
    with Conn(s.kafka) as c:
        time.sleep(1.5)
        assert c.metadata('t')['error_code'] == 0
        head = c.list_offset('t', 0, LATEST)['offset']
        p = c.fetch('t', 0, head, max_wait_ms=2500)    # waits longer than the stall limit
        assert p['error_code'] == 0
        assert c.metadata('t')['error_code'] == 0


def test_an_idle_connection_is_closed_after_its_time(make_server):
    s = make_server('--idle-timeout', '1s')
    with Conn(s.kafka) as c:
        c.api_versions()
        t0 = time.monotonic()
        assert c.closed(6)
        assert time.monotonic() - t0 > 0.7


def test_a_request_split_at_every_byte_is_the_same_request(srv):
    for key, v, body in valid_requests('canary'):
        whole = framed(encode_request(key, v, body, 9))
        want = None
        with Conn(srv.kafka) as c:
            for cut in range(1, len(whole)):
                c.s.sendall(whole[:cut])
                if cut % 4 == 0:
                    time.sleep(0.001)
                c.s.sendall(whole[cut:])
                got = c.recv()
                want = want or got
                assert got == want, 'api %d v%d cut at %d' % (key, v, cut)


def test_a_request_byte_by_byte_is_the_same_request(srv):
    with Conn(srv.kafka) as c:
        for b in framed(encode_request(METADATA, 9, {'topics': [{'name': 'canary'}]}, 3)):
            c.s.sendall(bytes([b]))
            time.sleep(0.0005)
        assert c.recv()[:4] == struct.pack('>i', 3)


def test_fifty_pipelined_requests_are_answered_in_order(srv):
    with Conn(srv.kafka) as c:
        head = c.list_offset('canary', 0, LATEST)['offset']
        kinds = []
        out = b''
        for i in range(50):
            key, v, body = list(valid_requests('canary'))[i % 12]
            if key == FETCH and i % 2:
                body = dict(body, max_wait_ms=30, topics=[{'topic': 'canary', 'partitions': [{'partition': 0, 'fetch_offset': head, 'partition_max_bytes': 100}]}])
            kinds.append((key, v))
            out += framed(encode_request(key, v, body, 1000 + i))
        c.s.sendall(out)
        for i, (key, v) in enumerate(kinds):
            c.finish(key, v, 1000 + i)


def test_a_flood_of_pipelined_requests_does_not_pile_up(srv):
    """20,000 requests sent without reading: the server stops reading, not growing."""
    before = srv.rss()
    one = framed(encode_request(FETCH, 11, {'max_wait_ms': 0, 'min_bytes': 1, 'max_bytes': MB, 'topics': [
        {'topic': 'canary', 'partitions': [{'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': MB}]}]}))
    with Conn(srv.kafka) as c:
        c.s.settimeout(1)
        sent = 0
        try:
            for _ in range(200):
                c.s.sendall(one * 100)
                sent += 100
        except socket.timeout:
            pass
        assert srv.rss() - before < 64 * MB
        c.s.settimeout(20)
        for _ in range(min(sent, 200)):
            c.recv()


@pytest.mark.parametrize('path', ['/metrics', '/healthz', '/nothing'])
def test_a_flood_of_http_requests_does_not_pile_up(make_server, path):
    """Requests sent without reading an answer: the listener stops reading, and goes on when the client does."""
    one = b'GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' % path.encode()
    srv = make_server(env=EXACT_MEMORY)
    before = srv.rss()
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(('127.0.0.1', srv.admin))
        s.settimeout(1)
        sent = 0
        try:
            while sent < 40 * MB:
                sent += s.send((one * 500)[sent % len(one):])
        except socket.timeout:
            pass
        assert sent < 40 * MB, 'the server never stopped reading'
        assert srv.rss() - before < 32 * MB
        assert srv.request('GET', '/healthz', timeout=5)[0] == 200
        s.settimeout(20)
        got = 0
        while got < 2000 and got < sent // len(one):    # more than the buffers on the way hold of the small ones
            got += s.recv(1 << 16).count(b'HTTP/1.1 ')


def test_pipelined_http_requests_are_all_answered_also_behind_large_unread_answers(srv):
    n = 60
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(('127.0.0.1', srv.admin))
        s.settimeout(20)
        s.sendall(b'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n' * n)
        s.shutdown(socket.SHUT_WR)
        time.sleep(0.5)    # not read for a while: the answers pile up as far as they may
        text = b''
        while piece := s.recv(1 << 16):
            text += piece
    assert text.count(b'HTTP/1.1 200 ') == n


def test_a_client_that_closes_its_sending_side_still_gets_its_answers(srv):
    with Conn(srv.kafka) as c:
        ns = [c.start(METADATA, 9, topics=[{'name': 'canary'}]) for _ in range(3)]
        c.s.shutdown(socket.SHUT_WR)
        for n in ns:
            assert c.finish(METADATA, 9, n)['topics'][0]['error_code'] == 0
        assert c.closed(5), 'then the server closes'


def test_a_waiting_fetch_of_a_client_that_left_is_dropped(srv, until):
    with Conn(srv.kafka) as c:
        head = c.list_offset('canary', 0, LATEST)['offset']
    for _ in range(100):
        c = Conn(srv.kafka)
        c.fetch_start('canary', {0: head}, max_wait_ms=60000)
        c.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        c.close()
    until(lambda: srv.metrics()['sluice_connections_open'] <= 1, 10, 'the connections are gone')


# --- numbers ------------------------------------------------------------------------------------------------------

def test_thousands_of_idle_connections_are_cheap(srv, figures, until):
    n = size(5000, 5000, 1000)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    room = min(hard, 1 << 20) - 200
    if room < n:
        pytest.skip('the limit of open files allows only %d connections' % room)
    until(lambda: srv.metrics()['sluice_connections_open'] == 0, 10)
    before = srv.rss()
    conns = []
    try:
        for i in range(n):
            c = Conn(srv.kafka)
            conns.append(c)
            if i % 2:
                c.start(API_VERSIONS, 0)
        for c in conns[1::2]:
            c.finish(API_VERSIONS, 0, 1)
        until(lambda: srv.metrics()['sluice_connections_open'] == n, 20, '%d open connections' % n)
        each = (srv.rss() - before) / n
        t0 = time.monotonic()
        assert len(read_all(srv.kafka, 'canary', 0)) == 10
        figures('%d idle connections: %.1f KiB each (sanitizers on), a read beside them %.0f ms' % (n, each / 1024, (time.monotonic() - t0) * 1e3))
        assert each < 48 * 1024
    finally:
        [c.close() for c in conns]
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    until(lambda: srv.metrics()['sluice_connections_open'] == 0, 20, 'all gone again')


def test_one_connection_more_than_the_limit_is_closed_at_accept(make_server):
    s = make_server('--max-connections', '50')
    conns = [Conn(s.kafka) for _ in range(50)]
    [c.api_versions() for c in conns]
    with Conn(s.kafka) as extra:
        assert extra.closed(5)
    assert s.metrics()['sluice_connections_refused_total'] >= 1
    conns.pop().close()
    time.sleep(0.3)
    with Conn(s.kafka) as c:
        assert c.api_versions()
    [c.close() for c in conns]


def test_readers_that_do_not_read_pin_bounded_memory(make_server, figures):
    """Field case 73 in small: each asks for 50 MB and takes nothing."""
    s = make_server('--stall-timeout', '4s', '--conn-output-bytes', '1MiB', '--cache-bytes', '16MiB', env=EXACT_MEMORY)
    pad = 'x' * 1000
    for _ in range(size(20, 8, 4)):
        s.publish('big', [{'n': i, 'pad': pad} for i in range(5000)])
    read_all(s.kafka, 'big', 0)
    before = s.rss()
    slow = []
    for _ in range(40):
        c = Conn(s.kafka, rcvbuf=4096)
        slow.append(c)
        for _ in range(10):
            c.fetch_start('big', {0: 0}, max_bytes=50 * MB, partition_max_bytes=50 * MB)
    time.sleep(1)
    grown = s.rss() - before
    t0 = time.monotonic()
    with Conn(s.kafka) as c:
        got, _ = c.records_from('big', 0, 0)
        assert got
    figures('40 readers that do not read: %.1f MB; a healthy fetch beside them %.0f ms' % (grown / MB, (time.monotonic() - t0) * 1e3))
    assert grown < 40 * 2.5 * MB + 32 * MB
    assert time.monotonic() - t0 < 2 * clients.busy()
    time.sleep(7)
    assert s.metrics()['sluice_connections_open'] == 0, 'a reader that takes nothing is closed in the end'
    [c.close() for c in slow]


def test_connections_that_come_and_go_leave_nothing_behind(make_server, until, figures):
    srv = make_server(env=EXACT_MEMORY)

    def churn(n):
        for i in range(n):
            with Conn(srv.kafka) as c:
                if i % 3:
                    c.start(API_VERSIONS, 0)
                if i % 3 == 2:
                    c.recv()
        until(lambda: srv.metrics()['sluice_connections_open'] == 0, 15)
        return srv.rss()
    a = churn(1000)
    b = churn(size(20000, 3000, 1000))
    figures('memory after more connections: %+.1f MB' % ((b - a) / MB))
    assert b - a < 24 * MB


def test_the_list_of_requests_here_names_every_api_of_the_reader():
    assert {API_VERSIONS, METADATA, LIST_OFFSETS, FETCH} <= set(APIS)
