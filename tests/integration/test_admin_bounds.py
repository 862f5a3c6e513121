"""The admin listener under peers that mean harm: unfinished bodies, floods, other sites' pages, no descriptors left."""
import http.client
import json
import resource
import socket
import subprocess
import time

import pytest

from sluice import SANITIZER_ENV

MIB = 1 << 20
LEAN = {'ASAN_OPTIONS': SANITIZER_ENV['ASAN_OPTIONS'] + ':quarantine_size_mb=1:thread_local_quarantine_size_kb=64'
        ':allocator_release_to_os_interval_ms=100'}


def open_to(port, text=b''):
    s = socket.create_connection(('127.0.0.1', port), timeout=20)
    s.sendall(text)
    return s


def answer(s):
    """Status and JSON of the answer, and whether the server then closes."""
    r = http.client.HTTPResponse(s)
    r.begin()
    body = r.read()
    return r.status, json.loads(body), r.headers


def raw(port, text):
    with open_to(port, text) as s:
        return answer(s)


def head(path='/v1/collections/m/documents', more='', host='127.0.0.1', method='POST'):
    return ('%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n' % (method, path, host, more)).encode()


def test_unfinished_bodies_have_one_budget(make_server):
    s = make_server('--ingest-in-flight-bytes', '64MiB', env=LEAN)
    before = s.rss()
    socks, refused = [], 0
    for _ in range(12):
        c = open_to(s.admin, head(more='Content-Length: 20000000\r\n'))
        try:
            c.sendall(b'x' * 12000000)
        except OSError:
            pass    # refused: the rest is not wanted
        socks.append(c)
    time.sleep(1)
    assert s.rss() - before < 100 * MIB
    for c in socks[3:]:
        c.settimeout(5)
        status, body, headers = answer(c)
        refused += status == 503
        assert headers['Connection'] == 'close' and 'error' in body
    assert refused == 9
    assert s.request('GET', '/healthz')[0] == 200
    for c in socks:
        c.close()
    time.sleep(0.5)    # what they held is free again
    assert raw(s.admin, head(more='Content-Length: 8\r\n') + b'{"a":1}\n')[0] == 200


def test_chunked_bodies_are_under_the_same_budget(make_server):
    s = make_server('--ingest-in-flight-bytes', '64MiB')
    with open_to(s.admin, head(more='Content-Length: 50000000\r\n')):
        status, body, _ = raw(s.admin, head(more='Transfer-Encoding: chunked\r\n') + b'2000000\r\n')
        assert status == 503
        assert raw(s.admin, head(more='Transfer-Encoding: chunked\r\n') + b'8;a=b\r\n{"a":1}\n\r\n0\r\n\r\n')[0] == 200


def test_a_body_beyond_the_limit_is_refused_on_its_head_in_json(make_server):
    s = make_server('--max-ingest-bytes', '1MiB')
    status, body, headers = raw(s.admin, head(more='Content-Length: 99999999999\r\n'))
    assert status == 413 and 'the limit is 1048576' in body['error'] and headers['Content-Type'] == 'application/json'


@pytest.mark.parametrize('more,body,status', [
    ('Content-Length : 8\r\n', b'{"a":1}\n', 400),
    ('', b'{"a":1}\n', 411),
    ('Content-Length: 8\r\nContent-Length: 8\r\n', b'{"a":1}\n', 400),
    ('Transfer-Encoding: chunked\r\n', b'xyz\r\n', 400),
    ('Content-Length: 8\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n', b'{"a":1}\n', 400),
    ('Content-Length: 8\r\nHost: localhost\r\n', b'{"a":1}\n', 400),
])
def test_what_could_be_read_in_two_ways_is_refused(make_server, more, body, status):
    s = make_server()
    got, answered, _ = raw(s.admin, head(more=more) + body)
    assert got == status and answered['error']
    assert s.get_json('/v1/collections')['collections'] == []


def test_a_parameter_given_twice_is_refused(make_server):
    s = make_server()
    path = '/v1/collections/m/documents?partitions=1&partitions=2'
    assert raw(s.admin, head(path, 'Content-Length: 8\r\n') + b'{"a":1}\n')[0] == 400


@pytest.mark.parametrize('method', ['GET', 'POST'])
def test_a_name_that_points_here_by_dns_is_not_answered(make_server, method):
    """A page of evil.example whose name now resolves to 127.0.0.1 is same-origin with itself."""
    s = make_server('--admin-hosts', 'proxy.example')
    path, more, body = ('/v1/collections', '', b'') if method == 'GET' else \
        ('/v1/collections/m/documents', 'Content-Length: 8\r\n', b'{"a":1}\n')
    for host in ('evil.example', 'evil.example:%d' % s.admin, '127.0.0.1.evil.example', '10.0.0.1', '[::2]'):
        origin = 'Origin: http://%s\r\n' % host
        status, answered, _ = raw(s.admin, head(path, more + origin, host, method) + body)
        assert status == 421 and 'Host' in answered['error'], host
    for host in ('127.0.0.1:%d' % s.admin, 'localhost', 'LOCALHOST:1', '[::1]:80', '127.9.9.9', 'proxy.example:8080'):
        assert raw(s.admin, head(path, more, host, method) + body)[0] == 200, host


def test_more_connections_than_allowed_push_out_the_idle_and_never_the_busy(make_server):
    s = make_server('--max-admin-connections', '8')
    busy = [open_to(s.admin, head(more='Content-Length: 8\r\n')) for _ in range(4)]
    time.sleep(0.3)
    idle = [open_to(s.admin) for _ in range(50)]
    time.sleep(0.3)
    assert s.request('GET', '/healthz')[0] == 200
    for c in busy:
        c.sendall(b'{"a":1}\n')
        assert answer(c)[0] == 200
    for c in busy + idle:
        c.close()
    busy = [open_to(s.admin, head(more='Content-Length: 8\r\n')) for _ in range(8)]
    time.sleep(0.3)
    assert s.request('GET', '/healthz')[0] == 503
    for c in busy:
        c.close()


def test_without_descriptors_the_server_neither_spins_nor_floods_its_log(make_server, monkeypatch):
    s = make_server(start=False)
    real = subprocess.Popen
    monkeypatch.setattr(subprocess, 'Popen', lambda *a, **kw: real(
        *a, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)), **kw))
    s.start()
    monkeypatch.undo()
    conns = []
    for _ in range(300):
        try:
            conns.append(open_to(s.kafka))
        except OSError:
            break
    time.sleep(0.5)
    cpu, log = s.cpu(), s.log.stat().st_size
    assert s.request('GET', '/healthz', timeout=5)[0] == 200, 'Kafka connections took the last descriptor'
    time.sleep(2)
    assert s.cpu() - cpu < 1
    assert s.log.stat().st_size - log < 20000
    for c in conns:
        c.close()
