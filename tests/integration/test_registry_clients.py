"""Registry clients that applications use, over TLS with Basic authentication: each reads random collections end to end, and
decodes keys and values to what the JSON source says; deletions as tombstones and by field; subjects with a slash; what they say of a
wrong password and of an id that is not there."""
import json
import re

import auth_lab
import pytest

import registry_lab
from registry_lab import CLIENTS, Reader
from scale import QUICK, size
from sluice import Server

TOKEN = 'pw:with:colons'
COLLECTIONS = size(40, 12, 4)
DOCS = size(60, 20, 5)
NAMES = ['acme/a.b'] + ['t%d' % i for i in range(1, COLLECTIONS)]    # the first: a subject that has to be escaped
FAILS = 'unable to fetch schema'    # all that python-schema-registry-client says
HAND = {'schema': {'type': 'object', 'required': ['id'], 'properties': {'id': {'type': 'integer'}, 'name': {'type': 'string'}}}, 'key': ['/id']}
HAND_DOCS = [{'id': 1, 'name': 'x'}, {'id': 2}, {'id': 1, '_meta': {'op': 'd'}}, {'id': 2, 'name': 'y'}]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """The server, its random collections, and what reads them: a client's process for each task."""
    work = tmp_path_factory.mktemp('registry')
    certs = auth_lab.Certificates(work / 'certs')
    certs.issue('server')
    made = dict(zip(NAMES, registry_lab.collections(5000, DOCS)))
    definitions = {'c/' + n: m.definition for n, m in made.items()}
    catalog = registry_lab.write_catalog(work / 'catalog.json', dict(definitions, **{'c/hand': HAND}), {
        't/values': (TOKEN, {n: 'c/' + n for n in NAMES}, {}),
        't/kafka': (TOKEN, {'hand': 'c/hand'}, {}),
        't/cdc': (TOKEN, {'hand': 'c/hand'}, {'deletions': 'cdc'})})
    s = Server(work / 'data', work, ['--catalog', catalog, '--registry-listen', 'sasl-tls://127.0.0.1:0', '--tls-cert', certs.pem('server'),
                                     '--tls-key', certs.key('server')])
    s.listen = 'sasl-tls://127.0.0.1:0'
    s.start()
    for n, m in made.items():
        s.publish('c/' + n, [d[0] for d in m.docs])
    s.publish('c/hand', HAND_DOCS)
    readers = {}

    def read(client, task):
        """The lines of a client that reads all topics of a task, as (head, {topic: [record]})."""
        if (client, task) not in readers:
            topics, count = (','.join(NAMES), COLLECTIONS * DOCS) if task == 't/values' else ('hand', len(HAND_DOCS))
            url = 'https://localhost:%d' % json.loads(s.ports_file.read_text())['registry']
            login = {'mechanism': 'PLAIN', 'user': task, 'password': TOKEN, 'ca': certs.pem('ca')}
            readers[client, task] = Reader(client, 'localhost:%d' % s.kafka, url, topics, count, login)
        return readers[client, task]
    s.login = {'mechanism': 'PLAIN', 'user': 't/values', 'password': TOKEN, 'ca': certs.pem('ca')}
    s.registry_url = 'https://localhost:%d' % json.loads(s.ports_file.read_text())['registry']
    yield s, made, read
    for r in readers.values():
        r.end()
    s.stop()


def chosen():
    return [c for c in CLIENTS if not QUICK or CLIENTS[c][0] == 'python']


def seen_by(client, v):
    """fastavro, which both Python clients decode with, makes objects of UUIDs, which print in lower case."""
    if CLIENTS[client][0] != 'python':
        return v
    return json.loads(re.sub('"s:(%s)"' % '-'.join('[0-9a-fA-F]{%d}' % n for n in (8, 4, 4, 4, 12)), lambda m: m.group().lower(), json.dumps(v)))


def lines(reader):
    head, *records = reader.all()
    by_topic = {}
    for r in records:
        by_topic.setdefault(r['topic'], []).append(r)
    for rs in by_topic.values():
        rs.sort(key=lambda r: (r['partition'], r['offset']))
    return head, by_topic


@pytest.mark.parametrize('client', chosen())
def test_a_client_decodes_what_the_json_source_says(world, client, figures):
    s, made, read = world
    for task in ('t/values', 't/kafka', 't/cdc'):    # at once; the next tests find them done
        read(client, task)
    head, got = lines(read(client, 't/values'))
    assert set(got) == set(NAMES)
    n = 0
    for name, m in made.items():
        assert len({r['id'] for r in got[name]}) == len({r['key_id'] for r in got[name]}) == 1
        for r, (text, value, key) in zip(got[name], m.docs, strict=True):
            assert r['value'] == seen_by(client, value), (name, m.definition, text)
            assert r['key'] == seen_by(client, key), (name, m.definition, text)
            n += 1
    assert head['latest'] == got[NAMES[0]][0]['id']
    if head['subjects'] is not None:
        assert sorted(head['subjects']) == sorted(x + y for x in NAMES for y in ('-key', '-value'))
    figures('%d records of %d collections equal' % (n, len(made)))


@pytest.mark.parametrize('client', chosen())
def test_a_client_sees_deletions_as_tombstones(world, client):
    _, got = lines(world[2](client, 't/kafka'))
    assert [r['key'] for r in got['hand']] == [{'_flow_key': {'p1': n}} for n in (1, 2, 1, 2)]
    assert [r['value'] for r in got['hand']] == [{'id': 1, 'name': 's:x'}, {'id': 2, 'name': None}, None, {'id': 2, 'name': 's:y'}]
    assert got['hand'][2]['id'] is None and got['hand'][2]['key_id'] is not None


@pytest.mark.parametrize('client', chosen())
def test_a_client_sees_deletions_by_field(world, client):
    _, got = lines(world[2](client, 't/cdc'))
    assert [r['value'] for r in got['hand']] == [{'id': d['id'], 'name': 's:' + d['name'] if 'name' in d else None,
                                                 '_is_deleted': int('_meta' in d)} for d in HAND_DOCS]


@pytest.mark.parametrize('client', chosen())
def test_a_client_says_what_is_wrong(world, client):
    """It ends with an error that names the reason: no retries without end, no answer that it cannot read."""
    s = world[0]
    for login, data, reasons in ((dict(s.login, password='wrong'), b'\0\0\0\0\x07\2', ('401', 'Unauthorized', 'unauthorized', FAILS)),
                                 (s.login, b'\0\0\0\0\x07\2', ('404', 'not found', 'Not Found', 'NotFound', 'Could not find schema', FAILS))):
        r = Reader(client, '-', s.registry_url, 't1', 0, login, data.hex().encode() + b'\n')
        assert r.proc.wait(60) != 0
        r.threads[1].join(10)
        text = r.errors.decode(errors='replace')
        assert any(x in text for x in reasons) and r.lines == [], (login['password'], text)
