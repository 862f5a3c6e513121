"""Logins over SASL, byte by byte: order of requests, mechanisms, refusals that tell nothing, sessions and their end, tokens
that are rotated. The numbers in names are those of the field reports (33, 35, 37)."""
import signal
import statistics
import time

import pytest

from auth_lab import REFUSED, Refused, bearer, handshake, jwt, login, plain, scram, token, write_catalog
from kafka_raw import (API_VERSIONS, FETCH, METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, Closed, Conn, encode_request)
from sluice import SANITIZER_ENV, run_cli

PASSWORDS = ['a:b:c', 'p@ss/wörd%41', 'x' * 4096, 'ends in a space ']
SECRET = b'0123456789abcdef0123456789abcdef'


@pytest.fixture
def catalog(tmp_path):
    """catalog(tasks): writes the file again."""
    path = tmp_path / 'catalog.yaml'
    return lambda tasks: write_catalog(path, tasks)


# What is freed is freed: AddressSanitizer else keeps it for a while.
AT_ONCE = {'ASAN_OPTIONS': SANITIZER_ENV['ASAN_OPTIONS'] + ':quarantine_size_mb=0:thread_local_quarantine_size_kb=0'}


def serve(make_server, path, *flags, listen='sasl://127.0.0.1:0', env=None):
    usual = {'--login-failure-delay': '20ms', '--login-failures': '0'}
    s = make_server('--catalog', str(path), *(x for k, v in usual.items() if k not in flags for x in (k, v)), *flags, start=False, env=env)
    s.listen = listen
    return s.start()


@pytest.fixture
def server(make_server, catalog):
    path = catalog({'acme/task-1': ('secret one', {'orders': 'acme/orders'}), 'acme/v1.2.3': ('secret two', {'others': 'acme/other'})})
    s = serve(make_server, path)
    s.publish('acme/orders', [{'id': 1}, {'id': 2}])
    s.publish('acme/other', [{'id': 3}])
    return s


def topics_of(conn):
    return {t['name'] for t in conn.call(METADATA, 9, topics=None)['topics']}


def refused(server, user, password, mechanism='PLAIN', version=2):
    with Conn(server.kafka) as c:
        with pytest.raises(Refused) as e:
            login(c, user, password, mechanism, version)
        assert c.closed()
        return e.value.error, e.value.text


# --- order (37) ---------------------------------------------------------------------------------------------------

def test_37_nothing_but_api_versions_and_sasl_is_served_before_the_login(server):
    with Conn(server.kafka) as c:
        assert SASL_HANDSHAKE in c.api_versions()
        c.start(METADATA, 9, topics=None)
        assert c.closed()
    with Conn(server.kafka) as c:    # behind a handshake as well
        handshake(c, 'PLAIN')
        c.api_versions()
        c.start(METADATA, 9, topics=None)
        with pytest.raises(Closed):
            c.recv()


def test_37_a_fetch_behind_a_wrong_password_is_never_executed(server):
    with Conn(server.kafka) as c:
        handshake(c, 'PLAIN')
        before = server.metrics().get('sluice_api_requests_total{api="Fetch"}', 0)
        c.start(SASL_AUTHENTICATE, 2, auth_bytes=b'\0acme/task-1\0wrong')
        c.fetch_start('orders', {0: 0})
        c.start(METADATA, 9, topics=None)
        r = c.finish(SASL_AUTHENTICATE, 2, 2)
        assert r['error_code'] == 58
        assert c.closed()
        assert server.metrics().get('sluice_api_requests_total{api="Fetch"}', 0) == before


def test_37_requests_behind_a_good_login_wait_for_it(server):
    with Conn(server.kafka) as c:
        handshake(c, 'PLAIN')
        a = c.start(SASL_AUTHENTICATE, 2, auth_bytes=b'\0acme/task-1\0secret one')
        b = c.fetch_start('orders', {0: 0}, version=11)
        assert c.finish(SASL_AUTHENTICATE, 2, a)['error_code'] == 0
        assert c.finish(FETCH, 11, b)['responses'][0]['partitions'][0]['records']


def test_37_a_token_without_a_handshake_is_an_illegal_state(server):
    with Conn(server.kafka) as c:
        r = c.call(SASL_AUTHENTICATE, 2, auth_bytes=b'\0acme/task-1\0secret one')
        assert r['error_code'] == 34
        assert c.closed()
    with Conn(server.kafka) as c:
        login(c, 'acme/task-1', 'secret one')
        assert c.call(SASL_AUTHENTICATE, 1, auth_bytes=b'\0acme/task-1\0secret one')['error_code'] == 34
        assert topics_of(c) == {'orders'}


def test_37_an_unknown_mechanism_is_answered_with_the_list(make_server, catalog):
    path = catalog({'t': ('s', {'o': 'c'})})
    s = serve(make_server, path, '--sasl-mechanisms', 'PLAIN')
    for name in ('SCRAM-SHA-256', 'plain', 'GSSAPI', '', 'OAUTHBEARER'):
        for version in (0, 1):
            with Conn(s.kafka) as c:
                with pytest.raises(Refused) as e:
                    handshake(c, name, version)
                assert (e.value.error, e.value.mechanisms) == (33, ['PLAIN'])
                assert c.closed()


def test_37_a_listener_without_logins_says_illegal_state(make_server):
    s = make_server()
    s.publish('c', [{'id': 1}])
    with Conn(s.kafka) as c:
        for version in (0, 1):
            assert c.call(SASL_HANDSHAKE, version, mechanism='PLAIN')['error_code'] == 34
        assert c.call(SASL_AUTHENTICATE, 2, auth_bytes=b'\0a\0b')['error_code'] == 34
        assert topics_of(c) == {'c'}


def test_two_handshakes_in_a_row_are_an_illegal_state(server):
    with Conn(server.kafka) as c:
        handshake(c, 'PLAIN')
        with pytest.raises(Refused) as e:
            handshake(c, 'PLAIN')
        assert e.value.error == 34 and c.closed()


# --- mechanisms ---------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('version', [None, 0, 1, 2])
@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
def test_a_login_shows_the_topics_of_its_task(server, mechanism, version):
    for user, password, topic, value in (('acme/task-1', 'secret one', 'orders', b'"id":1}'),
                                         ('acme/v1.2.3', 'secret two', 'others', b'"id":3}')):
        with Conn(server.kafka) as c:
            lifetime = login(c, user, password, mechanism, version)
            assert lifetime == (3600000 if version and version >= 1 else 0)
            assert topics_of(c) == {topic}
            recs, _ = c.records_from(topic, 0, 0)
            assert recs[0].value.endswith(value)


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
def test_35_any_password_works(make_server, catalog, mechanism):
    tasks = {'acme/task-%d' % i: (p, {'o': 'c'}) for i, p in enumerate(PASSWORDS)}
    s = serve(make_server, catalog(tasks))
    for i, p in enumerate(PASSWORDS):
        with Conn(s.kafka) as c:
            login(c, 'acme/task-%d' % i, p, mechanism)
        assert refused(s, 'acme/task-%d' % i, p[:-1], mechanism)[0] == 58
    text = s.log.read_text()
    assert not any(p in text for p in PASSWORDS)


def test_35_malformed_plain_is_refused_like_a_wrong_password(server):
    bad = [b'', b'x', b'\0', b'\0\0', b'acme/task-1', b'\0acme/task-1', b'\0acme/task-1\0', b'\0\0secret one', b'\0acme/task-1\0secret one\0',
           b'\0acme/task-1\0secret one\0x', b'other\0acme/task-1\0secret one', b'\xff\0\xfe\0\xfd', b'\0' + b'a' * 10000 + b'\0x']
    for data in bad:
        with Conn(server.kafka) as c:
            handshake(c, 'PLAIN')
            with pytest.raises(Refused) as e:
                token(c, data)
            assert (e.value.error, e.value.text) == (58, REFUSED), data
            assert c.closed()
    with Conn(server.kafka) as c:
        handshake(c, 'PLAIN')
        plain(c, 'acme/task-1', 'secret one', authzid='acme/task-1')


def test_malformed_scram_is_refused_like_a_wrong_password(server):
    for data in (b'', b'n', b'n,,', b'p=tls-unique,,n=acme/task-1,r=x', b'n,,n=acme/task-1,r=', b'n,a=other,n=acme/task-1,r=x', b'\0' * 100):
        with Conn(server.kafka) as c:
            handshake(c, 'SCRAM-SHA-256')
            with pytest.raises(Refused) as e:
                token(c, data)
            assert (e.value.error, e.value.text) == (58, REFUSED), data
            assert c.closed()
    for data in (b'', b'c=biws', b'c=biws,r=x,p=AAAA', b'x' * 5000):
        with Conn(server.kafka) as c:
            handshake(c, 'SCRAM-SHA-256')
            token(c, b'n,,n=acme/task-1,r=abc')
            with pytest.raises(Refused) as e:
                token(c, data)
            assert (e.value.error, e.value.text) == (58, REFUSED), data
            assert c.closed()


@pytest.mark.parametrize('alg', ['HS256', 'RS256', 'ES256'])
def test_a_json_web_token_is_a_login_and_ends_with_it(make_server, catalog, tmp_path, alg):
    from auth_lab import openssl
    if alg == 'HS256':
        key = SECRET
        (tmp_path / 'k').write_bytes(SECRET + b'\n')
    else:
        key = tmp_path / 'private.pem'
        openssl('genpkey', *(('-algorithm', 'RSA') if alg == 'RS256' else ('-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256')), '-out', key)
        (tmp_path / 'k').write_bytes(openssl('pkey', '-in', key, '-pubout'))
    s = serve(make_server, catalog({'acme/task-1': ('s', {'o': 'c'})}), '--oauth-key', '%s:%s' % (alg.lower(), tmp_path / 'k'),
              '--oauth-audience', 'sluice', '--oauth-leeway', '0')
    with Conn(s.kafka) as c:
        lifetime = login(c, None, jwt('acme/task-1', alg, key, 30), 'OAUTHBEARER')
        assert 20000 < lifetime <= 30000
        assert topics_of(c) == {'o'}
        handshake(c, 'OAUTHBEARER')    # a new one in time
        assert 50000 < bearer(c, jwt('acme/task-1', alg, key, 60)) <= 60000
    good = jwt('acme/task-1', alg, key)
    bad = [jwt('other', alg, key), jwt('acme/task-1', alg, key, -1), jwt('acme/task-1', alg, key, aud='x'), jwt('acme/task-1', 'none'),
           jwt('acme/task-1', 'HS256', b'another secret of 32 bytes......'), jwt('acme/task-1', 'HS256', (tmp_path / 'k').read_bytes()),
           good[:-2], good + 'A', '', 'a.b.c', 'x' * 100000]
    for t in bad:
        assert refused(s, None, t, 'OAUTHBEARER') == (58, REFUSED)
    with Conn(s.kafka) as c:
        handshake(c, 'OAUTHBEARER')
        with pytest.raises(Refused):
            bearer(c, good, authzid='other')
    assert good not in s.log.read_text()


def test_a_token_within_the_leeway_has_a_session_within_the_leeway(make_server, catalog, tmp_path):
    (tmp_path / 'k').write_bytes(SECRET)
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--oauth-key', 'hs256:%s' % (tmp_path / 'k'),
              '--oauth-audience', 'sluice', '--oauth-leeway', '60s')
    with Conn(s.kafka) as c:
        assert 20000 < login(c, None, jwt('t', 'HS256', SECRET, -30), 'OAUTHBEARER') <= 30000
        assert topics_of(c) == {'o'}
    assert refused(s, None, jwt('t', 'HS256', SECRET, -61), 'OAUTHBEARER') == (58, REFUSED)


def test_keys_of_bearer_tokens_are_followed_and_a_broken_one_changes_nothing(make_server, catalog, tmp_path, until):
    key, other = tmp_path / 'k', b'another secret, of 33 bytes......'
    key.write_bytes(SECRET)
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--oauth-key', 'hs256:%s' % key, '--oauth-audience', 'sluice')
    old, new = jwt('t', 'HS256', SECRET), jwt('t', 'HS256', other)

    def takes(token):
        try:
            with Conn(s.kafka) as c:
                login(c, None, token, 'OAUTHBEARER')
            return True
        except Refused:
            return False

    assert takes(old) and not takes(new)
    with Conn(s.kafka) as c:
        login(c, None, old, 'OAUTHBEARER')
        key.write_bytes(other)
        until(lambda: s.metrics()['sluice_login_keys_reloads_total'] >= 1, 30)
        assert takes(new) and not takes(old)
        assert topics_of(c) == {'o'}, 'a session lasts to its end'
    key.write_bytes(b'short')
    until(lambda: s.metrics()['sluice_login_keys_reloads_failed_total'] >= 1, 30)
    assert takes(new)
    failed = s.metrics()['sluice_login_keys_reloads_failed_total']
    s.proc.send_signal(signal.SIGHUP)
    until(lambda: s.metrics()['sluice_login_keys_reloads_failed_total'] > failed, 30)
    assert takes(new)
    text = s.log.read_text()
    assert 'login.keys_not_reloaded' in text and 'needs 32 bytes or more' in text
    assert other.decode() not in text


def test_a_token_hash_serves_plain_and_scram_and_is_no_password(make_server, catalog):
    for hash_name, mechanism, other in (('sha-256', 'SCRAM-SHA-256', 'SCRAM-SHA-512'), ('sha-512', 'SCRAM-SHA-512', 'SCRAM-SHA-256')):
        text = run_cli(['token', 'hash', '--hash', hash_name], stdin='tökén: one\n'.encode()).stdout.decode().strip()
        assert text.startswith('scram-%s$4096$' % hash_name)
        s = serve(make_server, catalog({'t': (text, {'o': 'c'})}))
        for m in ('PLAIN', mechanism):
            with Conn(s.kafka) as c:
                login(c, 't', 'tökén: one', m)
        for m in ('PLAIN', mechanism, other):
            assert refused(s, 't', text, m) == (58, REFUSED)
            assert refused(s, 't', 'tökén: one ', m) == (58, REFUSED)
        assert refused(s, 't', 'tökén: one', other) == (58, REFUSED)
        s.stop()


# --- failures -----------------------------------------------------------------------------------------------------

def test_failures_look_alike(server):
    seen = set()
    for mechanism in ('PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'):
        for user in ('acme/task-1', 'acme/task-2', 'acme/task', '{}', 'acme', '/', 'ACME/TASK-1', 'acme/task-1 ', 'acme/task%2D1', 'acme.2Ftask-1',
                     '../x', 'ü', "' or 1=1", 'a' * 500):
            seen.add(refused(server, user, 'wrong', mechanism))
    assert seen == {(58, REFUSED)}


def test_an_unknown_user_of_scram_keeps_its_salt(server):
    def first(user):
        with Conn(server.kafka) as c:
            handshake(c, 'SCRAM-SHA-256')
            text = token(c, b'n,,n=%s,r=abc' % user)[0].decode()
        f = dict(x.split('=', 1) for x in text.split(','))
        return f['s'], f['i']
    assert first(b'nobody') == first(b'nobody')
    assert first(b'nobody') != first(b'somebody')
    assert first(b'acme/task-1') == first(b'acme/task-1')
    assert {i for _, i in (first(b'nobody'), first(b'acme/task-1'))} == {'4096'}
    assert len(first(b'nobody')[0]) == len(first(b'acme/task-1')[0])


@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_failures_take_the_same_time(make_server, catalog, mechanism, figures):
    """Without the delay that would hide it."""
    h = run_cli(['token', 'hash'], stdin=b'one').stdout.decode().strip()
    s = serve(make_server, catalog({'acme/task-1': (h, {'o': 'c'})}), '--login-failure-delay', '0')

    def one(user):
        with Conn(s.kafka) as c:
            handshake(c, mechanism)
            t = time.perf_counter()
            with pytest.raises(Refused):
                plain(c, user, 'wrong') if mechanism == 'PLAIN' else scram(c, mechanism, user, 'wrong')
            return time.perf_counter() - t
    known, unknown = [], []
    for i in range(40):
        known.append(one('acme/task-1'))
        unknown.append(one('acme/task-9'))
    ratio = statistics.median(known) / statistics.median(unknown)
    figures('%s: wrong token %.2f ms, unknown task %.2f ms' % (mechanism, statistics.median(known) * 1e3, statistics.median(unknown) * 1e3))
    assert 0.7 < ratio < 1.4, ratio


def test_a_failure_is_answered_late(make_server, catalog):
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--login-failure-delay', '300ms')
    with Conn(s.kafka) as c:
        handshake(c, 'PLAIN')
        t = time.monotonic()
        with pytest.raises(Refused):
            plain(c, 't', 'wrong')
        assert 0.29 < time.monotonic() - t < 3


def test_an_address_that_fails_too_often_has_to_wait(make_server, catalog):
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--login-failures', '5', '--login-failure-delay', '0')
    for _ in range(5):
        refused(s, 't', 'wrong')
    took = []
    for _ in range(4):
        t = time.monotonic()
        refused(s, 't', 'wrong')
        took.append(time.monotonic() - t)
    assert took[1] > 0.09 and took[3] > 0.35, took    # the first may have got back what leaked meanwhile
    with Conn(s.kafka) as c:    # whoever knows the token still comes in
        t = time.monotonic()
        login(c, 't', 's')
        assert time.monotonic() - t > 0.7
    assert s.metrics()['sluice_logins_throttled_total'] >= 4


def test_many_failed_logins_leave_nothing_behind(make_server, catalog, figures):
    import os
    n = 10000 if os.environ.get('SLUICE_TEST_LONG') else 600
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--login-failure-delay', '0', env=AT_ONCE)

    def fds():
        return len(os.listdir('/proc/%d/fd' % s.proc.pid))

    def batch(count):
        for i in range(count):
            with Conn(s.kafka) as c:
                if i % 3 == 2:
                    c.send(b'\0' * 20)
                    assert c.closed()
                    continue
                handshake(c, 'PLAIN' if i % 3 else 'SCRAM-SHA-256')
                with pytest.raises(Refused):
                    plain(c, 'u%d' % i, 'wrong') if i % 3 else scram(c, 'SCRAM-SHA-256', 'u%d' % i, 'wrong')
    batch(n // 4)
    time.sleep(0.3)
    before = s.rss(), fds()
    batch(n)
    end = time.monotonic() + 5
    while fds() > before[1] and time.monotonic() < end:
        time.sleep(0.05)
    after = s.rss(), fds()
    figures('%d failures: %d KiB more' % (n, (after[0] - before[0]) // 1024))
    assert after[1] <= before[1]
    assert after[0] - before[0] < 12 << 20    # of which AddressSanitizer's own, which levels off


def test_a_connection_must_log_in_in_time_and_with_small_requests(make_server, catalog):
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--login-timeout', '500ms', '--max-login-bytes', '4KiB')
    with Conn(s.kafka) as c:
        t = time.monotonic()
        assert c.closed(5) and time.monotonic() - t > 0.4
    with Conn(s.kafka) as c:
        c.s.sendall(b'\0\0\x10\x01')
        assert c.closed()
    with Conn(s.kafka) as c:
        login(c, 't', 's')
        time.sleep(1.2)
        assert topics_of(c) == {'o'}
        c.api_versions()
        r = c.call(METADATA, 9, topics=[{'name': 'x' * 200 + str(i)} for i in range(50)])
        assert len(r['topics']) == 50


# --- sessions (33) ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('mechanism', ['PLAIN', 'SCRAM-SHA-256'])
def test_33_a_session_is_renewed_on_the_same_connection(make_server, catalog, mechanism):
    s = serve(make_server, catalog({'a/b': ('s', {'o': 'c'}), 'x': ('s', {'p': 'c'})}), '--session-lifetime', '1s')
    with Conn(s.kafka) as c:
        assert login(c, 'a/b', 's', mechanism) == 1000
        for _ in range(4):
            time.sleep(0.5)
            assert topics_of(c) == {'o'}
            assert login(c, 'a/b', 's', mechanism) == 1000
        time.sleep(1.2)    # over: only a login may come now
        assert login(c, 'a/b', 's', mechanism) == 1000
        assert topics_of(c) == {'o'}
        time.sleep(1.2)
        c.start(METADATA, 9, topics=None)
        assert c.closed()
    assert s.metrics()['sluice_sessions_expired_total'] == 1
    assert s.metrics()['sluice_logins_again_total'] == 5


def test_33_another_task_or_mechanism_is_no_renewal(make_server, catalog):
    s = serve(make_server, catalog({'a/b': ('s', {'o': 'c'}), 'x': ('s', {'p': 'c'})}))
    with Conn(s.kafka) as c:
        login(c, 'a/b', 's')
        handshake(c, 'PLAIN')
        with pytest.raises(Refused) as e:
            plain(c, 'x', 's')
        assert e.value.error == 58 and c.closed()
    with Conn(s.kafka) as c:
        login(c, 'a/b', 's')
        with pytest.raises(Refused) as e:
            handshake(c, 'SCRAM-SHA-256')
        assert (e.value.error, e.value.mechanisms) == (33, ['PLAIN'])
        assert c.closed()
    with Conn(s.kafka) as c:
        login(c, 'a/b', 's')
        handshake(c, 'PLAIN')
        with pytest.raises(Refused):
            plain(c, 'a/b', 'wrong')
        assert c.closed()
    with Conn(s.kafka) as c:    # in the middle of a renewal nothing else has a place
        login(c, 'a/b', 's')
        handshake(c, 'PLAIN')
        c.start(METADATA, 9, topics=None)
        assert c.closed()


def test_an_operator_sees_who_is_there(server):
    with Conn(server.kafka) as a, Conn(server.kafka) as b:
        login(a, 'acme/task-1', 'secret one', 'SCRAM-SHA-256')
        b.api_versions()
        rows = server.get_json('/v1/connections')['connections']
        assert sorted((r['task'], r['login']) for r in rows) == [('', ''), ('acme/task-1', 'SCRAM-SHA-256')]
        lines = server.cli('connections').stdout.decode().splitlines()
        assert lines[0].split()[:4] == ['PEER', 'CLIENT', 'TASK', 'WORKER'] and any('acme/task-1' in x for x in lines[1:])


# --- tokens that are rotated --------------------------------------------------------------------------------------

def works(server, user, password, mechanism='PLAIN'):
    with Conn(server.kafka) as c:
        try:
            login(c, user, password, mechanism)
            return True
        except Refused as e:
            assert (e.error, e.text) == (58, REFUSED)
            return False


@pytest.mark.parametrize('hashed', [False, True])
def test_a_token_is_rotated_without_an_interruption(make_server, catalog, until, hashed):
    def stored(text, like=None):
        if not hashed:
            return text
        return run_cli(['token', 'hash'] + (['--like', like] if like else []), stdin=text.encode()).stdout.decode().strip()
    old = stored('old')
    new = stored('new', old if hashed else None)
    s = serve(make_server, catalog({'t': (old, {'o': 'c'}), 'x': ('s', {'p': 'c'})}))
    for m in ('PLAIN', 'SCRAM-SHA-256'):
        assert works(s, 't', 'old', m) and not works(s, 't', 'new', m)
    with Conn(s.kafka) as live:
        login(live, 't', 'old')
        catalog({'t': ([new, old], {'o': 'c'}), 'x': ('s', {'p': 'c'})})    # both
        until(lambda: works(s, 't', 'new'), 15)
        for m in ('PLAIN', 'SCRAM-SHA-256'):
            assert works(s, 't', 'old', m) and works(s, 't', 'new', m), m
        catalog({'t': (new, {'o': 'c'}), 'x': ('s', {'p': 'c'})})
        s.proc.send_signal(signal.SIGHUP)
        until(lambda: not works(s, 't', 'old'), 15)
        for m in ('PLAIN', 'SCRAM-SHA-256'):
            assert works(s, 't', 'new', m) and not works(s, 't', 'old', m)
        assert topics_of(live) == {'o'}    # until its lifetime is over
        handshake(live, 'PLAIN')
        with pytest.raises(Refused):    # and is not renewed by what is gone
            plain(live, 't', 'old')
        assert live.closed()
    with Conn(s.kafka) as live:
        login(live, 't', 'new')
        catalog({'x': ('s', {'p': 'c'})})    # the task goes, and its connections
        assert live.closed(15)
    assert works(s, 'x', 's') and not works(s, 't', 'new')


# --- limits -------------------------------------------------------------------------------------------------------

def test_a_task_that_fetches_too_fast_is_throttled_and_others_are_not(make_server, catalog):
    s = serve(make_server, catalog({'fast': ('s', {'o': 'c'}), 'calm': ('s', {'p': 'c'})}), '--task-fetch-rate', '200KiB')
    s.publish('c', [{'id': i, 'text': 'x' * 1000} for i in range(500)])
    with Conn(s.kafka) as a, Conn(s.kafka) as b, Conn(s.kafka) as c:
        for conn in (a, b):
            login(conn, 'fast', 's')
        login(c, 'calm', 's')
        asked = a.fetch_start('o', {0: 0}, version=11, partition_max_bytes=300 << 10)
        r = a.finish(FETCH, 11, asked)
        took = len(r['responses'][0]['partitions'][0]['records'])
        owed = r['throttle_time_ms']
        assert took > 200 << 10 and abs(owed - (took - (200 << 10)) * 1000 / (200 << 10)) < 60
        t = time.monotonic()
        a.api_versions()    # muted: read only then
        assert abs(time.monotonic() - t - owed / 1000) < 0.4
        r = b.finish(FETCH, 11, b.fetch_start('o', {0: 0}, version=11, partition_max_bytes=100 << 10))
        assert r['throttle_time_ms'] > 0    # one rate for all its connections
        t = time.monotonic()
        assert c.finish(FETCH, 11, c.fetch_start('p', {0: 0}, version=11, partition_max_bytes=100 << 10))['throttle_time_ms'] == 0
        assert time.monotonic() - t < 0.5
    assert s.metrics()['sluice_fetch_throttled_total'] == 2


def test_an_address_has_only_so_many_connections(make_server, catalog):
    s = serve(make_server, catalog({'t': ('s', {'o': 'c'})}), '--max-connections-per-address', '3')
    conns = [Conn(s.kafka) for _ in range(3)]
    for c in conns:
        c.api_versions()
    with Conn(s.kafka) as c:
        assert c.closed()
    conns.pop().close()
    end = time.monotonic() + 5
    while True:    # the place is free once the server saw the end
        try:
            with Conn(s.kafka) as c:
                c.api_versions()
            break
        except (Closed, OSError):
            assert time.monotonic() < end
    for c in conns:
        c.close()
    assert 'listener.address_full' in s.log.read_text()
