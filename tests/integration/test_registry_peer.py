"""The registry beside a real one, Apicurio with its Confluent API: the same schemas are registered there, the same calls go to both.
Status, error code and body are equal except where PEER says what differs and why; docs/registry.md, "Beside Apicurio", has that list too."""
import base64
import http.client
import json
import shutil
import signal
import socket
import subprocess

import pytest

import registry_lab
from clients import LAB_DIR
from scale import QUICK
from sluice import Server

pytestmark = pytest.mark.skipif(QUICK, reason='a registry in Java: not in quick runs')
TOKEN = 'tok'
API = '/apis/ccompat/v7'
V1 = 'application/vnd.schemaregistry.v1+json'
CLIENT_ACCEPT = V1 + ', application/vnd.schemaregistry+json, application/json'
SCHEMA = {'type': 'object', 'required': ['id'], 'properties': {
    'id': {'type': 'integer'}, 'name': {'type': 'string'}, 'at': {'type': 'string', 'format': 'date-time'}}}

# name: (our answer, Apicurio's, why). An answer is its status and its error code, 0 where there is none.
PEER = {
    'GET /': ((200, 0), (200, 0), 'a page for people'),
    'GET /subjects?deletedOnly=true': ((200, 0), (200, 0), 'it ignores the parameter'),
    'GET /subjects/a-value': ((405, 405), (405, 0), 'its own errors have the code 0'),
    'GET /subjects/a-value/versions/0': ((422, 42202), (404, 40402), 'no version number; Confluent: 42202'),
    'GET /subjects/a-value/versions/-2': ((422, 42202), (404, 40401), 'no version number; Confluent: 42202'),
    'GET /subjects/a-value/versions/abc': ((422, 42202), (404, 40402), 'no version number; Confluent: 42202'),
    'GET /subjects/a-value/versions/99999999999': ((422, 42202), (404, 40402), 'no version number; Confluent: 42202'),
    'GET /subjects/a-value/versions/9/referencedby': ((404, 40402), (200, 0), 'it looks for no version'),
    'GET /subjects/none/versions/1/referencedby': ((404, 40401), (200, 0), 'it looks for no subject'),
    'GET /schemas': ((200, 0), (404, 0), 'it lacks the path'),
    'GET /schemas/types': ((200, 0), (200, 0), 'it has PROTOBUF too'),
    'GET /schemas/ids/abc': ((404, 404), (404, 0), 'its own errors have the code 0'),
    'GET /schemas/ids/99999999999': ((404, 404), (404, 0), 'its own errors have the code 0'),
    'GET /schemas/ids/{id}/schema': ((200, 0), (404, 0), 'it lacks the path'),
    'GET /schemas/ids/{id}/subjects': ((200, 0), (404, 0), 'it lacks the path'),
    'GET /schemas/ids/999999/schema': ((404, 40403), (404, 0), 'it lacks the path'),
    'GET /schemas/ids/999999/subjects': ((404, 40403), (404, 0), 'it lacks the path'),
    'GET /schemas/ids/{id}?fetchMaxId=true': ((200, 0), (200, 0), 'it ignores the parameter'),
    'GET /config/a-value': ((404, 40408), (200, 0), 'it gives the global level for a subject without one; Confluent: 40408'),
    'GET /config/none': ((404, 40408), (404, 40401), 'it looks for the subject; Confluent: 40408'),
    'GET /config/a-value?defaultToGlobal=true': ((200, 0), (200, 0), 'it gives a level of its own for each subject'),
    'GET /mode': ((200, 0), (404, 0), 'it lacks modes'),
    'GET /mode/a-value': ((404, 40409), (404, 0), 'it lacks modes'),
    'GET /mode/a-value?defaultToGlobal=true': ((200, 0), (404, 0), 'it lacks modes'),
    'GET /contexts': ((200, 0), (200, 0), '":.:"; Confluent: "."'),
    'GET /nope': ((404, 404), (404, 0), 'its own errors have the code 0'),
    'GET /v1/metadata/id': ((200, 0), (404, 0), 'it lacks the path'),
    'GET /associations/resources/x/a': ((404, 404), (404, 0), 'its own errors have the code 0'),
    'PUT /subjects': ((405, 405), (405, 0), 'its own errors have the code 0'),
    'POST /subjects/a-value invalid': ((422, 42201), (404, 40403), 'it looks for the text; Confluent: 42201'),
    'POST /subjects/a-value empty': ((422, 42201), (404, 40403), 'it looks for the text; Confluent: 42201'),
    'POST /subjects/a-value no-member': ((422, 42201), (500, 0), 'it fails'),
    'POST /subjects/a-value no-json': ((400, 400), (400, 0), 'not JSON; it answers a sentence that is no JSON'),
    'POST /subjects/a-value no-body': ((422, 42201), (500, 0), 'it fails'),
    'POST /subjects/a-value as-json-schema': ((404, 40403), (200, 0), 'it looks for the text, of any type'),
    'POST /subjects/a-value white-space': ((200, 0), (404, 40403), 'we compare schemas, not texts'),
    'POST /compatibility/subjects/a-value/versions/abc same': ((422, 42202), (404, 40402), 'no version number; Confluent: 42202'),
    'POST /compatibility/subjects/none/versions same': ((200, 0), (404, 40401), 'it looks for the subject; Confluent: nothing stands against it'),
    'POST /compatibility/subjects/none/versions/latest same': ((404, 40401), (404, 40402), 'it calls a subject that is not there a version'),
}
READS = ['/', '/subjects', '/subjects?deleted=true', '/subjects?deletedOnly=true', '/subjects/', '/subjects/a-value',
         '/subjects/a-value/versions', '/subjects/none/versions', '/subjects/x%2Fb-value/versions', '/subjects/x%2Fb-value/versions/latest',
         '/subjects/a-value/versions/1', '/subjects/a-key/versions/1', '/subjects/a-value/versions/latest', '/subjects/a-value/versions/-1',
         '/subjects/a-value/versions/99', '/subjects/a-value/versions/0', '/subjects/a-value/versions/-2', '/subjects/a-value/versions/abc',
         '/subjects/a-value/versions/99999999999', '/subjects/none/versions/1', '/subjects/none/versions/latest',
         '/subjects/a-value/versions/1/schema', '/subjects/a-value/versions/latest/schema', '/subjects/none/versions/1/schema',
         '/subjects/a-value/versions/9/schema', '/subjects/a-value/versions/1/referencedby', '/subjects/a-value/versions/9/referencedby',
         '/subjects/none/versions/1/referencedby', '/schemas', '/schemas/types', '/schemas/ids/{id}', '/schemas/ids/{id}?subject=a-value',
         '/schemas/ids/{id}?fetchMaxId=true', '/schemas/ids/{id}/schema', '/schemas/ids/{id}/subjects', '/schemas/ids/{id}/versions',
         '/schemas/ids/999999', '/schemas/ids/0', '/schemas/ids/abc', '/schemas/ids/99999999999', '/schemas/ids/999999/schema',
         '/schemas/ids/999999/subjects', '/schemas/ids/999999/versions', '/config', '/config/a-value', '/config/none',
         '/config/a-value?defaultToGlobal=true', '/mode', '/mode/a-value', '/mode/a-value?defaultToGlobal=true', '/contexts', '/nope',
         '/v1/metadata/id', '/associations/resources/x/a']
SAME = {'schema': '{text}'}
BODIES = [('/subjects/a-value', 'same', SAME), ('/subjects/a-value', 'same-typed', dict(SAME, schemaType='AVRO')),
          ('/subjects/a-value?normalize=true', 'same', SAME), ('/subjects/none', 'same', SAME), ('/subjects/x%2Fb-value', 'another', SAME),
          ('/subjects/a-value', 'string', {'schema': '"string"'}), ('/subjects/a-value', 'invalid', {'schema': '{nope'}),
          ('/subjects/a-value', 'empty', {'schema': ''}), ('/subjects/a-value', 'no-member', {}), ('/subjects/a-value', 'no-json', '{nope'),
          ('/subjects/a-value', 'no-body', ''), ('/subjects/a-value', 'as-json-schema', dict(SAME, schemaType='JSON')),
          ('/subjects/a-value', 'white-space', {'schema': '{spaced}'}),
          ('/compatibility/subjects/a-value/versions/latest', 'same', SAME), ('/compatibility/subjects/a-value/versions/1', 'same', SAME),
          ('/compatibility/subjects/a-value/versions', 'same', SAME), ('/compatibility/subjects/a-value/versions/99', 'same', SAME),
          ('/compatibility/subjects/a-value/versions/abc', 'same', SAME), ('/compatibility/subjects/none/versions/latest', 'same', SAME),
          ('/compatibility/subjects/a-value/versions/latest', 'string', {'schema': '"string"'}),
          ('/compatibility/subjects/a-value/versions/latest', 'invalid', {'schema': '{nope'}),
          ('/compatibility/subjects/a-value/versions/latest', 'no-fields', {'schema': '{"type":"record","name":"root","fields":[]}'}),
          ('/compatibility/subjects/a-value/versions/latest', 'a-field-more', {'schema': '{more}'}),
          ('/compatibility/subjects/a-value/versions', 'a-field-more', {'schema': '{more}'}),
          ('/compatibility/subjects/a-value/versions/latest', 'a-default-more', {'schema': '{more-default}'}),
          ('/compatibility/subjects/a-value/versions/latest', 'another-name', {'schema': '{"type":"record","name":"other","fields":[]}'}),
          ('/compatibility/subjects/none/versions', 'same', SAME)]


class Peer:
    """One registry: port, path in front, and what `{id}` and `{text}` of a call mean there."""

    def __init__(self, port, prefix, user=None):
        self.port, self.prefix, self.user, self.ids, self.texts = port, prefix, user, {}, {}

    def ask(self, method, path, body=None, headers=None):
        h = {'Accept': CLIENT_ACCEPT, **({'Content-Type': V1} if body is not None else {}), **(headers or {})}
        if self.user:
            h['Authorization'] = 'Basic ' + base64.b64encode(self.user.encode()).decode()
        c = http.client.HTTPConnection('127.0.0.1', self.port, timeout=30)
        try:
            path = path.replace('{id}', str(self.ids.get('a-value'))).replace('{new}', str(self.ids.get('a-value 2')))
            c.request(method, self.prefix + path, body=body, headers=h)
            r = c.getresponse()
            return r.status, r.headers.get('Content-Type', ''), r.read()
        finally:
            c.close()


def fill(body, text):
    if not isinstance(body, dict):
        return body
    spaced, more, default = json.dumps(json.loads(text), indent=2), json.loads(text), json.loads(text)
    more['fields'].append({'name': 'added', 'type': 'int'})
    default['fields'].append({'name': 'added', 'type': 'int', 'default': 1})
    for mark, value in (('{text}', text), ('{spaced}', spaced), ('{more}', json.dumps(more)), ('{more-default}', json.dumps(default))):
        body = {k: v.replace(mark, value) for k, v in body.items()}
    return json.dumps(body)


@pytest.fixture(scope='module')
def peers(tmp_path_factory):
    work = tmp_path_factory.mktemp('peer')

    def write(schema, topics):
        return registry_lab.write_catalog(work / 'catalog.json', {
            'c/a': {'schema': schema, 'key': ['/id']}, 'c/b': {'schema': dict(SCHEMA, required=[]), 'key': ['/id']}}, {'t': (TOKEN, topics, {})})
    catalog = write(SCHEMA, {'a': 'c/a', 'x/b': 'c/b'})
    s = Server(work / 'data', work, ['--catalog', catalog, '--registry-listen', 'sasl://127.0.0.1:0'])
    s.listen = 'sasl://127.0.0.1:0'
    with socket.socket() as free:
        free.bind(('127.0.0.1', 0))
        port = free.getsockname()[1]
    up = subprocess.run([LAB_DIR / 'registry-up.sh', work / 'apicurio', str(port)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    try:
        assert up.returncode == 0, up.stdout.decode()[-1000:]
        s.start()
        ours, theirs = Peer(json.loads(s.ports_file.read_text())['registry'], '', 't:' + TOKEN), Peer(port, API)

        def change(*args):
            write(*args)
            s.proc.send_signal(signal.SIGHUP)
        ours.change = change
        status, _, body = theirs.ask('PUT', '/config', json.dumps({'compatibility': 'BACKWARD'}))    # our default, and Confluent's
        assert status == 200, body
        for subject in json.loads(ours.ask('GET', '/subjects')[2]):
            q = subject.replace('/', '%2F')
            got = json.loads(ours.ask('GET', '/subjects/%s/versions/latest' % q)[2])
            status, _, body = theirs.ask('POST', '/subjects/%s/versions' % q, json.dumps({'schema': got['schema']}))
            assert status == 200, body
            ours.ids[subject], theirs.ids[subject] = got['id'], json.loads(body)['id']
            ours.texts[subject] = theirs.texts[subject] = got['schema']
        yield ours, theirs
    finally:
        subprocess.run([LAB_DIR / 'registry-down.sh', work / 'apicurio'], timeout=30)
        shutil.rmtree(work / 'apicurio', ignore_errors=True)
        if s.proc:
            s.stop()


def parsed(answer):
    """(status and code, body): the body without what always differs: texts of errors, our schemaType AVRO, its empty reason and references."""
    status, _, text = answer
    try:
        body = json.loads(text)
    except ValueError:
        return (status, 0), text
    if isinstance(body, dict):
        if 'error_code' in body:
            assert body['message']
            return (status, body['error_code']), None
        if body.get('schemaType') == 'AVRO':
            del body['schemaType']
        for extra, empty in (('reason', None), ('references', [])):
            if extra in body and body[extra] == empty:
                del body[extra]
    return (status, 0), body


def translated(body, ours, theirs):
    """A body of theirs with our ids."""
    ids = {theirs.ids[s]: ours.ids[s] for s in ours.ids}
    if isinstance(body, dict):
        return {k: ids.get(v, v) if k in ('id', 'maxId') else translated(v, ours, theirs) for k, v in body.items()}
    return [translated(x, ours, theirs) for x in body] if isinstance(body, list) else body


def compare(name, method, path, peers, body=None):
    """Whether both answered the same, and what is wrong about that: PEER must say what differs."""
    ours, theirs = peers
    text = fill(body, ours.texts['a-value'])
    a, b = ours.ask(method, path, text), theirs.ask(method, path, text)
    assert a[1] == V1, (name, a)
    (sa, ba), (sb, bb) = parsed(a), parsed(b)
    same = sa == sb and ba == translated(bb, ours, theirs)
    listed = PEER[name][:2] if name in PEER else None
    bad = None
    if listed is None and not same or listed is not None and (sa, sb) != listed:
        bad = (name, a, b)
    elif listed is not None and same:
        bad = (name, 'the answers are equal now: take it from the list')
    return same, bad


def test_each_call_is_answered_as_by_apicurio_or_listed(peers, figures):
    calls = [('GET ' + p, 'GET', p, None) for p in READS] + [('POST %s %s' % (p, n), 'POST', p, b) for p, n, b in BODIES]
    calls.append(('PUT /subjects', 'PUT', '/subjects', None))
    names = [c[0] for c in calls]
    assert len(names) == len(set(names)) and set(PEER) <= set(names), set(PEER) - set(names)
    results = [compare(*c[:3], peers, c[3]) for c in calls]
    wrong = [bad for _, bad in results if bad]
    assert not wrong, '\n'.join(map(str, wrong))
    equal = sum(same for same, _ in results)
    figures('%d of %d calls equal, %d differ as listed' % (equal, len(calls), len(calls) - equal))


def test_head_is_answered_as_get_without_a_body(peers):
    for path in ('/subjects', '/subjects/none/versions', '/schemas/types', '/schemas/ids/{id}', '/schemas/ids/999999'):
        a, b = (p.ask('HEAD', path) for p in peers)
        assert (a[0], a[2]) == (b[0], b[2]) == (peers[0].ask('GET', path)[0], b''), path


def test_the_content_type_is_what_clients_ask_for(peers):
    """Both give the asked one; by itself ours is Confluent's, Apicurio's application/json, which its errors have always."""
    for accept, mine, theirs in ((V1, V1, V1), ('application/json', 'application/json', 'application/json'), ('*/*', V1, 'application/json')):
        a, b = (p.ask('GET', '/subjects', headers={'Accept': accept}) for p in peers)
        assert (a[0], a[1], b[0], b[1]) == (200, mine, 200, theirs), accept
    a, b = (p.ask('GET', '/subjects/none/versions', headers={'Accept': V1}) for p in peers)
    assert (a[0], a[1], b[0], b[1]) == (404, V1, 404, 'application/json')
    a, b = (p.ask('GET', '/subjects', headers={'Accept': 'text/html'})[0] for p in peers)
    assert (a, b) == (406, 406)
    a, b = (p.ask('POST', '/subjects/a-value', fill(SAME, peers[0].texts['a-value']), {'Content-Type': 'text/plain'})[0] for p in peers)
    assert (a, b) == (415, 415)


HISTORY = ['/subjects', '/subjects/a-value/versions', '/subjects/a-value/versions/1', '/subjects/a-value/versions/2', '/subjects/a-value/versions/3',
           '/subjects/a-value/versions/latest', '/subjects/a-value/versions/-1', '/subjects/a-value/versions/1/schema', '/subjects/a-value/versions/2/schema',
           '/subjects/a-key/versions', '/schemas/ids/{id}', '/schemas/ids/{new}', '/schemas/ids/{id}/versions', '/schemas/ids/{new}/versions']


def same_at_both(peers, method, path, body=None):
    """Equal answers; Apicurio lists subjects by their last change."""
    ours, theirs = peers
    a, b = ours.ask(method, path, body), theirs.ask(method, path, body)
    (sa, ba), (sb, bb) = parsed(a), parsed(b)
    if path == '/subjects':
        ba, bb = sorted(ba), sorted(bb)
    assert (sa, ba) == (sb, translated(bb, ours, theirs)), (method, path, a, b)


def test_a_changed_schema_is_the_next_version_at_both(peers, until):
    ours, theirs = peers
    old = ours.texts['a-value']
    ours.change(dict(SCHEMA, properties=dict(SCHEMA['properties'], more={'type': 'number'})), {'a': 'c/a', 'x/b': 'c/b'})
    until(lambda: ours.ask('GET', '/subjects/a-value/versions/2')[0] == 200, 20)
    got = json.loads(ours.ask('GET', '/subjects/a-value/versions/2')[2])
    body = theirs.ask('POST', '/subjects/a-value/versions', json.dumps({'schema': got['schema']}))[2]
    ours.ids['a-value 2'], theirs.ids['a-value 2'] = got['id'], json.loads(body)['id']
    for path in HISTORY:
        same_at_both(peers, 'GET', path)
    for text in (old, got['schema']):
        same_at_both(peers, 'POST', '/subjects/a-value', json.dumps({'schema': text}))
    # a topic that is gone is a deleted subject
    ours.change(SCHEMA, {'a': 'c/a'})
    until(lambda: ours.ask('GET', '/subjects/x%2Fb-value/versions')[0] == 404, 20)
    for side in ('key', 'value'):
        assert theirs.ask('DELETE', '/subjects/x%2Fb-' + side)[0] == 200
    for path in ('/subjects', '/subjects/x%2Fb-value/versions', '/subjects/x%2Fb-value/versions/1', '/subjects/x%2Fb-value/versions/latest'):
        same_at_both(peers, 'GET', path)
