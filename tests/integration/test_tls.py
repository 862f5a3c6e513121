"""TLS listeners: what is spoken and what is not, certificates that change, certificates of clients, crowds of handshakes."""
import json
import os
import re
import signal
import ssl
import subprocess
import time

import pytest

import clients
from auth_lab import Certificates, login, write_catalog
from kafka_raw import METADATA, Closed, Conn
from test_auth import AT_ONCE, topics_of


@pytest.fixture(scope='module')
def certs(tmp_path_factory):
    c = Certificates(tmp_path_factory.mktemp('certs'))
    c.issue('server')
    c.issue('client', '/O=acme/CN=acme\\/task-1', None)
    c.issue('other', '/CN=nobody', 'URI:spiffe://acme.test/acme/task-2,DNS:x.test')
    stranger = Certificates(tmp_path_factory.mktemp('stranger'))
    stranger.issue('client', '/CN=acme\\/task-1', None)
    c.stranger = stranger
    return c


TASKS = {'acme/task-1': ('secret one', {'o': 'c'}), 'acme/task-2': ('secret two', {'p': 'c'})}


def serve(make_server, tmp_path, certs, *flags, listen='sasl-tls://127.0.0.1:0', admin='127.0.0.1:0', env=None, tasks=TASKS):
    usual = {'--tls-cert': certs.pem('server'), '--tls-key': certs.key('server'), '--login-failure-delay': '20ms'}
    s = make_server('--catalog', str(write_catalog(tmp_path / 'catalog.yaml', tasks)),
                    *(x for k, v in usual.items() if k not in flags for x in (k, v)), *flags, start=False, env=env)
    s.listen, s.admin_listen = listen, admin
    return s.start()


def context(certs, client=None, **kw):
    c = ssl.create_default_context(cafile=certs.pem('ca'))
    if client:
        whose = client if isinstance(client, tuple) else (certs, client)
        c.load_cert_chain(whose[0].pem(whose[1]), whose[0].key(whose[1]))
    for k, v in kw.items():
        setattr(c, k, v)
    return c


class TlsConn(Conn):
    def __init__(self, port, ctx, name='localhost', **kw):
        super().__init__(port, **kw)
        self.s = ctx.wrap_socket(self.s, server_hostname=name)

    def recv_exact(self, n):
        try:
            return super().recv_exact(n)
        except ssl.SSLError:
            raise Closed() from None

    def closed(self, within=5):
        try:
            return super().closed(within)
        except ssl.SSLError:
            return True


@pytest.fixture
def server(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs)
    s.publish('c', [{'id': i, 'text': 'x' * 2000} for i in range(2000)])
    return s


@pytest.mark.parametrize('version', [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_logins_and_data_over_tls(server, certs, version):
    with TlsConn(server.kafka, context(certs, maximum_version=version, minimum_version=version)) as c:
        assert c.s.version() == {ssl.TLSVersion.TLSv1_2: 'TLSv1.2', ssl.TLSVersion.TLSv1_3: 'TLSv1.3'}[version]
        for mechanism in ('PLAIN',):
            login(c, 'acme/task-1', 'secret one', mechanism)
        assert topics_of(c) == {'o'}
        at, n = 0, 0
        while n < 2000:
            recs, p = c.records_from('o', 0, at, partition_max_bytes=1 << 20)
            assert recs
            for r in recs:
                assert json.loads(r.value)['id'] == n
                n += 1
            at = recs[-1].offset + 1


def test_a_slow_reader_gets_every_byte(server, certs):
    """Many requests at once, answers taken slowly: writes are cut wherever the socket is full."""
    with TlsConn(server.kafka, context(certs), rcvbuf=8192) as c:
        login(c, 'acme/task-1', 'secret one', 'SCRAM-SHA-256')
        asked = [c.fetch_start('o', {0: 0}, version=11) for _ in range(12)]
        time.sleep(0.5)
        got = []
        for a in asked:
            r = c.finish(1, 11, a)
            got.append(r['responses'][0]['partitions'][0]['records'])
        whole = max(got, key=len)
        assert len(whole) > 300000 and all(g and whole.startswith(g) for g in got)    # some have less room


def test_requests_dribbled_byte_by_byte(server, certs):
    with TlsConn(server.kafka, context(certs)) as c:
        from kafka_raw import encode_request, framed, SASL_HANDSHAKE
        for b in framed(encode_request(SASL_HANDSHAKE, 1, {'mechanism': 'PLAIN'}, 1)):
            c.s.sendall(bytes([b]))
        assert c.finish(SASL_HANDSHAKE, 1, 1)['error_code'] == 0


def test_half_a_record_costs_nothing_but_waiting(server, certs):
    """In the handshake, and behind it."""
    proxy = ssl.MemoryBIO(), ssl.MemoryBIO()
    with Conn(server.kafka) as c, Conn(server.kafka) as d:
        c.s.sendall(b'\x16\x03\x01\x02\0half')
        tls = context(certs).wrap_bio(*proxy, server_hostname='localhost')
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                d.s.sendall(proxy[1].read())
                proxy[0].write(d.s.recv(65536))
        d.s.sendall(proxy[1].read())
        tls.write(b'\0' * 100)
        d.s.sendall(proxy[1].read()[:60])
        time.sleep(0.3)
        before = server.cpu()
        time.sleep(1)
        assert server.cpu() - before < 0.2


# --- what is not spoken -------------------------------------------------------------------------------------------

def s_client(port, *args):
    p = subprocess.run(['openssl', 's_client', '-connect', '127.0.0.1:%d' % port, '-servername', 'localhost', *args], stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=20)
    return p.returncode == 0 and b'BEGIN CERTIFICATE' in p.stdout, p.stdout.decode(errors='replace') + p.stderr.decode(errors='replace')


@pytest.mark.parametrize('port', ['kafka', 'admin'])
def test_nothing_below_tls_1_2_and_no_weak_cipher(make_server, tmp_path, certs, port):
    rsa = Certificates(tmp_path / 'rsa', 'rsa')
    rsa.issue('server')
    for c in (certs, rsa):
        s = serve(make_server, tmp_path, c, admin='tls://127.0.0.1:0')
        p = getattr(s, port)
        assert s_client(p, '-tls1_2')[0] and s_client(p, '-tls1_3')[0]
        for old in ('-tls1', '-tls1_1'):
            assert not s_client(p, old, '-cipher', 'ALL:@SECLEVEL=0')[0], old
        names = subprocess.run(['openssl', 'ciphers', '-tls1_2', 'ALL:eNULL:@SECLEVEL=0'], capture_output=True).stdout.decode().strip().split(':')
        spoken = set()
        while True:    # everything that was not chosen yet
            ok, text = s_client(p, '-tls1_2', '-cipher', ':'.join(n for n in names if n not in spoken) + ':@SECLEVEL=0')
            if not ok:
                break
            spoken.add(re.search(r'Cipher *(?:is|:) *(\S+)', text).group(1))
        good = re.compile(r'^(ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305)|TLS_\w+)$')
        assert spoken and all(good.match(n) for n in spoken), spoken
        ok, text = s_client(p, '-tls1_2')
        assert 'Secure Renegotiation IS supported' in text and 'Compression: NONE' in text
        assert not re.search(r'TLS session ticket:', text)
        # no renegotiation on the client's wish
        r = subprocess.run(['openssl', 's_client', '-connect', '127.0.0.1:%d' % p, '-tls1_2'], input=b'R\n', capture_output=True, timeout=20)
        assert b'no renegotiation' in r.stderr or r.returncode != 0
        s.stop()


def test_plain_text_on_a_tls_port_and_the_reverse_are_told(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs)
    with Conn(s.kafka) as c:
        c.s.sendall(b'\0\0\0\x10\0\x12\0\0\0\0\0\1\xff\xff' + b'\0' * 6)
        assert c.closed()
    with Conn(s.kafka) as c:
        c.s.sendall(b'GET / HTTP/1.1\r\n\r\n')
        assert c.closed()
    text = s.log.read_text()
    assert 'plain Kafka was spoken to a TLS listener' in text and 'HTTP was spoken to a TLS Kafka listener' in text
    plain = make_server()
    with pytest.raises((ssl.SSLError, OSError)):
        TlsConn(plain.kafka, context(certs))
    assert 'TLS was spoken to a listener without TLS' in plain.log.read_text()


def test_a_handshake_must_be_over_in_time(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, '--tls-handshake-timeout', '500ms', '--stall-timeout', '1s')
    for data in (b'', b'\x16\x03\x01'):
        with Conn(s.kafka) as c:
            c.s.sendall(data)
            t = time.monotonic()
            assert c.closed(6) and time.monotonic() - t > 0.4


def test_a_handshake_with_the_admin_listener_must_be_over_in_time(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, '--tls-handshake-timeout', '500ms', admin='tls://127.0.0.1:0')
    for data in (b'', b'\x16\x03\x01'):
        with Conn(s.admin) as c:
            c.s.sendall(data)
            t = time.monotonic()
            assert c.closed(6) and time.monotonic() - t > 0.4
    with Conn(s.admin) as c:    # one that is connected may idle
        tls = context(certs).wrap_socket(c.s, server_hostname='localhost')
        time.sleep(2)    # four times the handshake deadline
        tls.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
        assert tls.recv(100).startswith(b'HTTP/1.1 200 ')
        c.s = tls


def test_start_is_refused_when_the_certificate_does_not_fit(make_server, tmp_path, certs):
    for flags, says in ((('--tls-key', certs.key('client')), 'key values mismatch'), (('--tls-cert', '/no/file'), 'no such file|No such file'),
                        (('--tls-clients', 'required'), 'tls-client-ca'), (('--tls-principal', 'cn:x'), 'pattern'),
                        (('--tls-clients', 'some'), 'none, optional or required')):
        usual = {'--tls-cert': certs.pem('server'), '--tls-key': certs.key('server')}
        usual.update([flags])
        s = make_server(*(x for kv in usual.items() for x in kv), start=False)
        s.listen = 'tls://127.0.0.1:0'
        s.expect_dead = True
        s.spawn()
        assert s.proc.wait(20) != 0
        assert re.search(says, s.log.read_text()), s.log.read_text()


def test_commands_reach_the_admin_listener_over_tls(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, admin='tls://127.0.0.1:0')
    env = dict(os.environ, SLUICE_ADMIN='https://localhost:%d' % s.admin, SLUICE_ADMIN_CA=certs.pem('ca'))
    p = subprocess.run([s.binary, 'publish', 'c'], input=b'{"id":1}\n', capture_output=True, env=env)
    assert p.returncode == 0, p.stderr
    p = subprocess.run([s.binary, 'collections'], capture_output=True, env=dict(env, SLUICE_ADMIN_CA=certs.stranger.pem('ca')))
    assert p.returncode == 1 and b'certificate' in p.stderr


# --- the certificate changes --------------------------------------------------------------------------------------

def test_a_new_certificate_is_taken_and_a_bad_one_is_not(make_server, tmp_path, certs, until):
    d = tmp_path / 'live'
    d.mkdir()
    live = Certificates(d)
    live.issue('server')
    s = serve(make_server, tmp_path, live)

    def serial():
        return ssl.get_server_certificate(('127.0.0.1', s.kafka))
    old = serial()
    with TlsConn(s.kafka, context(live)) as c:
        login(c, 'acme/task-1', 'secret one')
        (d / 'server.pem').write_text('broken')
        until(lambda: s.metrics()['sluice_tls_reloads_failed_total'] >= 1, 10)
        assert serial() == old
        live.issue('server')    # another key as well
        until(lambda: serial() != old, 10)
        assert topics_of(c) == {'o'}    # the old connection lives on
    with TlsConn(s.kafka, context(live)) as c:
        login(c, 'acme/task-1', 'secret one')
    assert s.metrics()['sluice_tls_reloads_total'] >= 1
    assert s.metrics()['sluice_tls_certificate_expires_seconds'] > time.time()
    assert 'tls.reload_failed' in s.log.read_text()


def test_sighup_loads_the_certificate(make_server, tmp_path, certs, until):
    s = make_server('--tls-cert', certs.pem('server'), '--tls-key', certs.key('server'), start=False)
    s.listen = 'tls://127.0.0.1:0'
    s.start()
    s.proc.send_signal(signal.SIGHUP)
    until(lambda: s.metrics()['sluice_tls_reloads_total'] == 1, 10)


# --- certificates of clients --------------------------------------------------------------------------------------

def test_a_client_certificate_is_a_login(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, '--tls-client-ca', certs.pem('ca'), '--tls-clients', 'required', '--tls-principal', 'uri:spiffe://acme.test/*',
              '--tls-principal', 'cn', listen='tls://127.0.0.1:0')
    for client, topic in (('client', 'o'), ('other', 'p')):
        with TlsConn(s.kafka, context(certs, client)) as c:
            assert topics_of(c) == {topic}
    for bad in (None, (certs.stranger, 'client')):
        with pytest.raises((Closed, ssl.SSLError, OSError)):
            with TlsConn(s.kafka, context(certs, bad)) as c:
                topics_of(c)
    certs.issue('unknown', '/CN=no such task', None)
    with pytest.raises((Closed, ssl.SSLError, OSError)):
        with TlsConn(s.kafka, context(certs, 'unknown')) as c:
            topics_of(c)
    assert 'names no task' in s.log.read_text()


def test_where_clients_log_in_the_certificate_is_only_a_door(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, '--tls-client-ca', certs.pem('ca'), '--tls-clients', 'required')
    with TlsConn(s.kafka, context(certs, 'client')) as c:
        with pytest.raises(Closed):
            topics_of(c)
    with TlsConn(s.kafka, context(certs, 'client')) as c:
        login(c, 'acme/task-2', 'secret two')
        assert topics_of(c) == {'p'}


def test_several_listeners_tell_their_own_address(make_server, tmp_path, certs):
    s = serve(make_server, tmp_path, certs, '--kafka-listen', 'sasl://127.0.0.1:0=inner.test:19092', '--kafka-listen',
              'sasl-tls://127.0.0.1:0=outer.test:29093')
    ports = [int(p) for p in re.findall(r'^Kafka on \S+:(\d+)$', s.log.read_text(), re.M)]
    assert len(ports) == 3
    told = []
    for port, tls in zip(ports, (True, False, True)):
        with (TlsConn(port, context(certs)) if tls else Conn(port)) as c:
            login(c, 'acme/task-1', 'secret one')
            b = c.call(METADATA, 9, topics=[])['brokers'][0]
            told.append((b['host'], b['port']))
    assert told == [('127.0.0.1', ports[0]), ('inner.test', 19092), ('outer.test', 29093)]


# --- crowds -------------------------------------------------------------------------------------------------------

def test_many_failed_handshakes_leave_nothing_behind(make_server, tmp_path, certs, figures):
    n = 10000 if os.environ.get('SLUICE_TEST_LONG') else 600
    s = serve(make_server, tmp_path, certs, '--tls-client-ca', certs.pem('ca'), '--tls-clients', 'required', env=AT_ONCE)
    strange = context(certs, (certs.stranger, 'client'))

    def fds():
        return len(os.listdir('/proc/%d/fd' % s.proc.pid))

    def batch(count):
        for i in range(count):
            with Conn(s.kafka) as c:
                if i % 4 == 0:
                    c.s.sendall(b'\x16\x03\x01\0\5hello')
                elif i % 4 == 1:
                    c.s.sendall(b'GET / HTTP/1.1\r\n\r\n')
                elif i % 4 == 2:
                    continue    # says nothing and goes
                else:
                    try:
                        c.s = strange.wrap_socket(c.s, server_hostname='localhost')
                    except (ssl.SSLError, OSError):
                        continue
                try:
                    c.closed()
                except (ssl.SSLError, OSError):
                    pass
    batch(n // 4)
    time.sleep(0.3)
    before = s.rss(), fds()
    batch(n)
    end = time.monotonic() + 5
    while fds() > before[1] and time.monotonic() < end:
        time.sleep(0.05)
    after = s.rss(), fds()
    figures('%d handshakes: %d KiB more' % (n, (after[0] - before[0]) // 1024))
    assert after[1] <= before[1]
    assert after[0] - before[0] < 12 << 20
    with TlsConn(s.kafka, context(certs, 'client')) as c:
        login(c, 'acme/task-1', 'secret one')


def test_a_crowd_of_handshakes_does_not_starve_others(make_server, tmp_path, figures):
    """RSA, the dear kind; one worker."""
    import threading
    rsa = Certificates(tmp_path / 'rsa', 'rsa')
    rsa.issue('server')
    s = serve(make_server, tmp_path, rsa, '--workers', '1')
    stop, shaken = threading.Event(), [0]

    def crowd():
        ctx = context(rsa)
        while not stop.is_set():
            try:
                with TlsConn(s.kafka, ctx):
                    shaken[0] += 1
            except OSError:
                pass
    threads = [threading.Thread(target=crowd) for _ in range(16)]
    with TlsConn(s.kafka, context(rsa)) as c:
        login(c, 'acme/task-1', 'secret one')
        for t in threads:
            t.start()
        time.sleep(0.3)
        worst, n, end = 0, 0, time.monotonic() + 2
        while time.monotonic() < end:
            t = time.monotonic()
            c.api_versions()
            worst = max(worst, time.monotonic() - t)
            n += 1
        stop.set()
        for t in threads:
            t.join()
    figures('%d handshakes, %d requests beside them, the slowest %.0f ms' % (shaken[0], n, worst * 1e3))
    assert worst < clients.busy()
