"""Tokens and TLS between the gateway and a real broker: who is let in, who is refused and in which words, and reads that outlive their
token."""
import base64
import subprocess
import time

import pytest

from docs_util import read_all
from gazette_lab import cluster
from kafka_raw import LATEST, Conn

KEY, OTHER = (base64.b64encode(bytes([k]) * 32).decode() for k in (7, 9))


@pytest.fixture(scope='module')
def tokens(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp('tokens') / 'lab', AUTH_KEYS=KEY) as c:
        yield c


@pytest.fixture(scope='module')
def tls(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp('tls') / 'lab', TLS='mutual') as c:
        yield c


def flags(c, *more, scheme='gazette', brokers=None):
    return ['--store', '%s://%s' % (scheme, brokers or c.brokers), '--fragment-store', 'file:///', *more]


def said(s, until, event, *words):
    """A line of the server's log that names the event and holds the words."""
    def find():
        return [x for x in s.log.read_text(errors='replace').splitlines() if event in x and all(w in x for w in words)]
    return until(find, 20, '%s %s in %s' % (event, words, s.log))[0]


def test_a_signed_token_lists_writes_and_reads(tokens, make_server, topic):
    s = make_server(*flags(tokens, '--broker-auth-keys', KEY + ',' + OTHER))
    s.publish(topic, [{'n': k} for k in range(100)], partitions=2)
    assert sum(len(read_all(s.kafka, topic, p)) for p in range(2)) == 100
    assert KEY not in s.log.read_text()


@pytest.mark.parametrize('keys, words', [((), 'missing or empty Authorization'), (('--broker-auth-keys', OTHER), 'signature is invalid')],
                         ids=['none', 'wrong'])
def test_without_the_key_nothing_is_served_and_the_log_says_why(tokens, make_server, until, keys, words):
    s = make_server(*flags(tokens, *keys), start=False).spawn()
    line = said(s, until, 'gazette.list', 'message=', words)
    assert 'not permitted' in line, line


def test_a_token_is_limited_to_a_prefix(tokens, make_server, until, topic):
    everything = make_server(*flags(tokens, '--broker-auth-keys', KEY))
    everything.publish('mine/' + topic, [{'n': 1}])
    everything.publish('theirs/' + topic, [{'n': 2}])
    s = make_server(*flags(tokens, '--broker-auth-keys', KEY, '--broker-journals', 'mine/'))
    until(lambda: 'mine/' + topic in s.topics(), 10)
    assert not [t for t in s.topics() if not t.startswith('mine/')]
    s.publish('mine/' + topic, [{'n': 3}])
    assert len(read_all(s.kafka, 'mine/' + topic, 0)) == 2
    with pytest.raises(Exception):
        s.publish('theirs/' + topic, [{'n': 4}])
    assert len(read_all(everything.kafka, 'theirs/' + topic, 0)) == 1


def test_a_reader_at_the_head_outlives_its_tokens(tokens, make_server, topic):
    """A broker ends each stream with its token: here every ten seconds (the leeway is the broker's). Nothing is late, lost or doubled."""
    s = make_server(*flags(tokens, '--broker-auth-keys', KEY, '--broker-token-lifetime', '10s'))
    s.publish(topic, [{'n': 0}])
    seen, late, at = [], [], 0
    with Conn(s.kafka) as c:
        end = time.monotonic() + 27
        n = 1
        while time.monotonic() < end:
            s.publish(topic, [{'n': n}])
            t0 = time.monotonic()
            p = c.fetch(topic, 0, at, max_wait_ms=5000)
            late.append(time.monotonic() - t0)
            for b in p['batches']:
                seen += [r.value for r in b.records if r.offset >= at]
                at = b.last + 1
            n += 1
            time.sleep(0.1)
        while at < c.list_offset(topic, 0, LATEST)['offset']:
            for b in c.fetch(topic, 0, at, max_wait_ms=5000)['batches']:
                seen += [r.value for r in b.records if r.offset >= at]
                at = b.last + 1
    assert [int(v.rsplit(b'"n":', 1)[1][:-1]) for v in seen] == list(range(n))
    assert max(late) < 2, 'a document was %.1f s late' % max(late)


# --- TLS ---

def certs(c, *names):
    return [x for n in names for x in {'ca': ('--broker-ca-file', str(c.path / 'tls/ca.pem')),
                                       'cli': ('--broker-cert-file', str(c.path / 'tls/cli.pem'), '--broker-key-file', str(c.path / 'tls/cli.key'))}[n]]


@pytest.mark.parametrize('host', ['127.0.0.1', 'localhost'])
def test_both_sides_are_checked(tls, make_server, topic, host):
    s = make_server(*flags(tls, *certs(tls, 'ca', 'cli'), scheme='gazettes', brokers='%s:%d' % (host, tls.port)))
    s.publish(topic, [{'n': k} for k in range(50)])
    assert len(read_all(s.kafka, topic, 0)) == 50


def foreign_ca(path):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', str(path) + '.key', '-out',
                    str(path), '-days', '3', '-subj', '/CN=somebody'], check=True, stderr=subprocess.DEVNULL)
    return str(path)


def test_a_broker_of_another_authority_is_refused(tls, make_server, until, tmp_path):
    ca = foreign_ca(tmp_path / 'other.pem')
    s = make_server(*flags(tls, '--broker-ca-file', ca, *certs(tls, 'cli'), scheme='gazettes'), start=False).spawn()
    said(s, until, 'gazette.connect_failed', '127.0.0.1:%d' % tls.port, 'its certificate is refused: unable to get local issuer certificate')


def test_a_broker_of_another_name_is_refused(tls, make_server, until):
    s = make_server(*flags(tls, *certs(tls, 'ca', 'cli'), scheme='gazettes', brokers='127.0.0.2:%d' % tls.port), start=False).spawn()
    said(s, until, 'gazette.connect_failed', '127.0.0.2', 'its certificate is refused: IP address mismatch')


def test_a_gateway_without_a_certificate_is_told_so(tls, make_server, until):
    s = make_server(*flags(tls, *certs(tls, 'ca'), scheme='gazettes'), start=False).spawn()
    said(s, until, 'gazette.connect_failed', 'certificate required')


def test_plain_text_to_a_tls_port_is_refused(tls, make_server, until):
    s = make_server(*flags(tls), start=False).spawn()
    said(s, until, 'gazette.', '127.0.0.1:%d' % tls.port)
