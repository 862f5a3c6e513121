"""Real clients over TLS with every way to log in, and their renewed sessions (field reports 33 and 35)."""
import json
import os
import subprocess
import threading
import time

import pytest

import clients
from auth_lab import Certificates, jwt, write_catalog
from clients import CONSUME, JAVA, LAB, LAB_DIR, PY, dumped, kt, need, run
from test_auth import SECRET

DOCS = 300
LONG = os.environ.get('SLUICE_TEST_LONG')
MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER', 'certificate']
TASK, TOKEN = 'acme/task-1', 'p@ss/wörd%41: x '


@pytest.fixture(scope='module')
def certs(tmp_path_factory):
    c = Certificates(tmp_path_factory.mktemp('certs'))
    c.issue('server')
    c.issue('client', '/CN=acme\\/task-1', None)
    return c


@pytest.fixture(scope='module')
def place(tmp_path_factory, certs):
    """One server for all: (login -> port). A listener with logins and one for certificates."""
    from sluice import Server
    import re
    d = tmp_path_factory.mktemp('place')
    (d / 'secret').write_bytes(SECRET)
    catalog = write_catalog(d / 'catalog.yaml', {TASK: (TOKEN, {'orders': 'acme/orders'}), 'other': ('s', {'p': 'c'})})
    s = Server(d / 'data', d, ['--catalog', str(catalog), '--tls-cert', certs.pem('server'), '--tls-key', certs.key('server'), '--tls-client-ca',
                               certs.pem('ca'), '--tls-clients', 'optional', '--allow-anonymous', '--anonymous-task', 'other', '--oauth-key',
                               'hs256:%s' % (d / 'secret'), '--oauth-audience', 'sluice', '--kafka-listen', 'tls://127.0.0.1:0', '--kafka-listen',
                               'sasl://127.0.0.1:0'])
    s.listen = 'sasl-tls://127.0.0.1:0'
    s.start()
    s.ports = dict(zip(('login', 'certificate', 'plaintext'), re.findall(r'^Kafka on \S+:(\d+)$', s.log.read_text(), re.M)))
    s.publish('acme/orders', [{'id': i, 'text': 'ü' * (i % 50)} for i in range(DOCS)], partitions=2)
    yield s
    s.stop()


def how(certs, mechanism, password=TOKEN):
    w = {'ca': certs.pem('ca')}
    if mechanism == 'certificate':
        return dict(w, cert=certs.pem('client'), key=certs.key('client'))
    if mechanism == 'OAUTHBEARER':
        return dict(w, mechanism=mechanism, password=jwt(TASK, 'HS256', SECRET, 600))
    return dict(w, mechanism=mechanism, user=TASK, password=password)


def java_config(tmp_path, w):
    """A file of properties for w. OAUTHBEARER by a token in a file."""
    p = {'security.protocol': ('SASL_' if 'mechanism' in w else '') + ('SSL' if 'ca' in w else 'PLAINTEXT')}
    env = {}
    quoted = str(w.get('password')).replace('\\', '\\\\').replace('"', '\\"')
    if 'ca' in w:
        p.update({'ssl.truststore.type': 'PEM', 'ssl.truststore.location': w['ca']})
    if 'cert' in w:
        both = tmp_path / 'client-both.pem'
        both.write_text(open(w['key']).read() + open(w['cert']).read())
        p.update({'ssl.keystore.type': 'PEM', 'ssl.keystore.location': both})
    if w.get('mechanism') == 'OAUTHBEARER':
        token = tmp_path / 'token'
        token.write_text(w['password'])
        p.update({'sasl.mechanism': 'OAUTHBEARER', 'sasl.oauthbearer.token.endpoint.url': 'file://%s' % token,
                  'sasl.jaas.config': 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;',
                  'sasl.oauthbearer.jwt.retriever.class': 'org.apache.kafka.common.security.oauthbearer.FileJwtRetriever',
                  'sasl.login.callback.handler.class': 'org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler'})
        env['KAFKA_OPTS'] = env['JAVA_TOOL_OPTIONS'] = '-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=file://%s -Dorg.apache.kafka.sasl.oauthbearer.allowed.files=%s' % (token, token)
    elif 'mechanism' in w:
        module = 'plain.PlainLoginModule' if w['mechanism'] == 'PLAIN' else 'scram.ScramLoginModule'
        p.update({'sasl.mechanism': w['mechanism'],
                  'sasl.jaas.config': 'org.apache.kafka.common.security.%s required username="%s" password="%s";' % (module, w['user'], quoted)})
    f = tmp_path / 'client.properties'
    f.write_text(''.join('%s=%s\n' % (k, str(v).replace('\\', '\\\\')) for k, v in p.items()), encoding='utf-8')
    env['LAB_CONFIG'] = str(f)
    return env


def java(tmp_path, b, t, w):
    need(JAVA, 'kafka-install.sh')
    return dumped([LAB_DIR / 'kt', 'class', 'LabClient', 'direct', b, t], env=java_config(tmp_path, w))


def python(lib, venv='main'):
    def read(tmp_path, b, t, w):
        need(PY[venv], 'py-install.sh ' + venv)
        return dumped([PY[venv], CONSUME, lib, '-m', 'direct', '-b', b, '-t', t], env={'LAB_LOGIN': json.dumps(w)})
    return read


def franz(tmp_path, b, t, w):
    need(LAB / 'bin/lab-franz', 'go-install.sh')
    return dumped([LAB / 'bin/lab-franz', '-m', 'direct', '-b', b, '-t', t], env={'LAB_LOGIN': json.dumps(w)})


def kafkajs(tmp_path, b, t, w):
    need(LAB / 'node/.locked', 'node-install.sh')
    return dumped(['node', LAB_DIR / 'node/consume.js', 'kafkajs-direct', b, t], env={'LAB_LOGIN': json.dumps(w)})


def kcat(tmp_path, b, t, w):
    x = {'security.protocol': ('SASL_' if 'mechanism' in w else '') + ('SSL' if 'ca' in w else 'PLAINTEXT')}
    if 'ca' in w:
        x['ssl.ca.location'] = w['ca']
    if 'cert' in w:
        x.update({'ssl.certificate.location': w['cert'], 'ssl.key.location': w['key']})
    if 'mechanism' in w:
        x.update({'sasl.mechanism': w['mechanism'], 'sasl.username': w['user'], 'sasl.password': w['password']})
    return clients.kcat(b, t, '-o', 'beginning', '-e', *(a for k, v in x.items() for a in ('-X', '%s=%s' % (k, v))))


CLIENTS = {'java': java, 'confluent-kafka': python('confluent'), 'kcat': kcat, 'franz-go': franz, 'kafkajs': kafkajs,
           'kafka-python': python('kafka-python'), 'aiokafka': python('aiokafka')}


def whole(recs):
    ids = sorted(json.loads(r.value)['id'] for r in recs)
    assert ids == list(range(DOCS)), '%d records' % len(ids)


# kcat has no way to be given a bearer token.
@pytest.mark.parametrize('client,mechanism', [(c, m) for c in CLIENTS for m in MECHANISMS if (c, m) != ('kcat', 'OAUTHBEARER')])
def test_35_a_client_reads_over_tls(place, certs, tmp_path, client, mechanism):
    port = place.ports['certificate' if mechanism == 'certificate' else 'login']
    whole(CLIENTS[client](tmp_path, '127.0.0.1:' + port, 'orders', how(certs, mechanism)))


@pytest.mark.parametrize('client', [c for c in CLIENTS if c != 'java' or LONG])
def test_a_client_with_a_wrong_token_is_told(place, certs, tmp_path, client):
    """It gives up or goes on trying, but never reads a record."""
    failed = place.metrics()['sluice_logins_failed_total']
    w = how(certs, 'PLAIN', 'wrong')
    try:
        got = _short(CLIENTS[client], tmp_path, '127.0.0.1:' + place.ports['login'], 'orders', w)
    except (AssertionError, subprocess.TimeoutExpired, OSError):
        got = []
    assert got == []
    assert place.metrics()['sluice_logins_failed_total'] > failed


def _short(f, *args):
    old = clients.run
    clients.run = lambda cmd, timeout=4, *a, **k: old(cmd, 4, *a, **k)
    try:
        return f(*args)
    finally:
        clients.run = old


# --- renewed sessions (33) ----------------------------------------------------------------------------------------

READERS = [('java', 'SCRAM-SHA-256'), ('franz-go', 'PLAIN'), ('librdkafka', 'PLAIN')] + ([('java', 'PLAIN'), ('franz-go', 'SCRAM-SHA-256')] if LONG else [])


@pytest.mark.parametrize('client,mechanism', READERS)
def test_33_a_long_reader_outlives_its_sessions(make_server, certs, tmp_path, client, mechanism, figures):
    """Java and franz-go renew them on the connection; librdkafka (2.0.2) is cut off and comes again, without a loss."""
    life, seconds = 2, 300 if LONG else 9
    s = make_server('--catalog', str(write_catalog(tmp_path / 'c.yaml', {TASK: (TOKEN, {'orders': 'acme/orders'})})), '--session-lifetime', '%ds' % life,
                    start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    s.publish('acme/orders', [{'id': 0}])
    w = {'mechanism': mechanism, 'user': TASK, 'password': TOKEN}
    if client == 'java':
        need(JAVA, 'kafka-install.sh')
        cmd, env = [LAB_DIR / 'kt', 'class', 'LabClient', 'loop', s.bootstrap, 'orders', str(seconds)], java_config(tmp_path, w)
    elif client == 'franz-go':
        need(LAB / 'bin/lab-franz', 'go-install.sh')
        cmd, env = [LAB / 'bin/lab-franz', '-m', 'direct', '-b', s.bootstrap, '-t', 'orders'], {'LAB_LOGIN': json.dumps(w), 'LAB_IDLE_MS': '2500'}
    else:
        need('kcat', 'c-install.sh')
        cmd, env = ['timeout', str(seconds), 'kcat', '-C', '-q', '-u', '-E', '-b', s.bootstrap, '-t', 'orders', '-o', 'beginning', '-f', '%o\n', '-X', 'security.protocol=SASL_PLAINTEXT',
                    '-X', 'sasl.mechanism=PLAIN', '-X', 'sasl.username=' + TASK, '-X', 'sasl.password=' + TOKEN], {}
    out = []
    t = threading.Thread(target=lambda: out.append(run(cmd, seconds + 60, env, check=client != 'librdkafka')))
    t.start()
    sent, end = 1, time.monotonic() + seconds - (3 if client != 'franz-go' else 0.5)
    while time.monotonic() < end:
        s.publish('acme/orders', [{'id': sent}])
        sent += 1
        time.sleep(0.1)
    t.join()
    m = s.metrics()
    figures('%s: %d documents, %d logins, %d renewed, %d cut off' % (client, sent, m['sluice_logins_total'], m['sluice_logins_again_total'],
                                                                    m['sluice_sessions_expired_total']))
    text = out[0].stdout.decode()
    if client == 'librdkafka':
        assert m['sluice_sessions_expired_total'] >= 2
        offsets = [int(x) for x in text.split()]
        assert len(offsets) == sent and len(set(offsets)) == sent and offsets == sorted(offsets)
        return
    assert ('records %d' if client == 'java' else 'records=%d ') % sent in text, text
    assert m['sluice_sessions_expired_total'] == 0
    assert m['sluice_logins_again_total'] >= 3
