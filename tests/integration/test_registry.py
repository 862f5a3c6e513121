"""Avro topics and the schema registry with real clients: what confluent-kafka's deserializer reads, who sees what, and a
document that does not fit its schema, before and after the catalog is mended."""
import argparse
import base64
import concurrent.futures
import http.client
import json
import os
import re
import ssl
import time

import auth_lab
import pytest

import registry_lab
from clients import need, run
from kafka_raw import Conn

LAB = os.environ.get('LAB', '/opt/lab')
PY = os.path.join(LAB, 'py', 'bin', 'python')
READ = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'registry_read.py')
TOKEN = 'pw:with:colons'
STORAGE_ERROR = 56


def schema(name_type='string'):
    return {'type': 'object', 'required': ['id'],
            'properties': {'id': {'type': 'integer'}, 'name': {'type': name_type}, 'at': {'type': 'string', 'format': 'date-time'},
                           '_meta': {'type': 'object', 'properties': {'op': {'type': 'string'}, 'uuid': {'type': 'string'}}}}}


def write(path, name_type='string', **config):
    task = {'endpoint': {'dekaf': {'variant': 'test', 'config': {'token': TOKEN, **config}}},
            'bindings': [{'source': 'acme/a', 'resource': {'topic_name': 'a'}, 'fields': {'recommended': False, 'include': ['name', 'at']}}]}
    other = {'endpoint': {'dekaf': {'variant': 'test', 'config': {'token': 'other', 'sluice': {'value_format': 'json'}}}},
             'bindings': [{'source': 'acme/b', 'resource': {'topic_name': 'x/b'}}]}
    collections = {'acme/a': {'schema': schema(name_type), 'key': ['/id']}, 'acme/b': {'schema': schema(), 'key': ['/id']}}
    tmp = str(path) + '.tmp'
    with open(tmp, 'w') as f:
        json.dump({'collections': collections, 'materializations': {'t/a': task, 't/b': other}}, f)
    os.rename(tmp, path)
    return str(path)


@pytest.fixture
def serve(make_server, tmp_path):
    def start(*flags, **config):
        path = write(tmp_path / 'catalog.json', **config)
        s = make_server('--catalog', path, '--registry-listen', 'sasl://127.0.0.1:0', *flags, start=False)
        s.listen = 'sasl://127.0.0.1:0'
        s.start()
        s.catalog = path
        s.registry = json.loads(s.ports_file.read_text())['registry']
        return s
    return start


def ask(s, path, user='t/a', password=TOKEN, method='GET', body=None):
    """Status, body, headers."""
    headers = {} if user is None else {'Authorization': 'Basic ' + base64.b64encode(('%s:%s' % (user, password)).encode()).decode()}
    c = http.client.HTTPConnection('127.0.0.1', s.registry, timeout=30)
    try:
        c.request(method, path, body=body, headers=headers)
        r = c.getresponse()
        text = r.read()
        return r.status, json.loads(text) if text else None, r.headers
    finally:
        c.close()


def read(s, count):
    need(PY, 'py-install.sh main')
    out = run([PY, READ, s.bootstrap, 'http://127.0.0.1:%d' % s.registry, 't/a', TOKEN, 'a', str(count)])
    lines = [json.loads(x) for x in out.stdout.decode().splitlines() if x.startswith('{')]
    return lines[0], lines[1:]


def stopped_at(s):
    return s.get_json('/v1/topics/a')['partitions'][0].get('stopped')


def test_confluents_deserializer_reads_keys_values_and_tombstones(serve):
    s = serve()
    s.publish('acme/a', [{'id': 1, 'name': 'ünï', 'at': '2024-05-06T07:08:09.123456Z'}, {'id': 2},
                         {'id': 1, 'name': 'x', '_meta': {'op': 'd'}}])
    head, got = read(s, 3)
    assert head['subjects'] == ['a-key', 'a-value']
    assert [r['key'] for r in got] == [{'_flow_key': {'p1': n}} for n in (1, 2, 1)]
    assert got[0]['value'] == {'id': 1, 'name': 'ünï', 'at': '2024-05-06T07:08:09.123456+00:00'}
    assert got[1]['value'] == {'id': 2, 'name': None, 'at': None}
    assert got[2]['value'] is None
    assert got[0]['id'] == head['latest']
    ids = ask(s, '/schemas')[1]
    s.restart()
    s.registry = json.loads(s.ports_file.read_text())['registry']
    assert ask(s, '/schemas')[1] == ids


@pytest.mark.parametrize('mode', ['cdc', 'header'])
def test_deletions_by_field_or_header(serve, mode):
    s = serve(deletions=mode)
    s.publish('acme/a', [{'id': 1}, {'id': 1, '_meta': {'op': 'd'}}])
    _, got = read(s, 2)
    if mode == 'cdc':
        assert [r['value']['_is_deleted'] for r in got] == [0, 1]
    else:
        assert [r['headers'] for r in got] == [[['_is_deleted', '0']], [['_is_deleted', '1']]]


def test_each_task_sees_its_own_schemas(serve):
    s = serve()
    for user, password in ((None, None), ('t/a', 'wrong'), ('nobody', TOKEN), ('t/a', 'other'), ('t/a', 'pw')):
        status, body, headers = ask(s, '/subjects', user, password)
        assert (status, body['error_code']) == (401, 40101), user
        assert headers['WWW-Authenticate'].startswith('Basic ')
        assert headers['Content-Type'] == 'application/vnd.schemaregistry.v1+json'
    assert ask(s, '/subjects')[1] == ['a-key', 'a-value']
    assert ask(s, '/subjects', 't/b', 'other')[1] == ['x/b-value']
    assert ask(s, '/subjects/x%2Fb-value/versions/latest', 't/b', 'other')[1]['schemaType'] == 'JSON'
    mine = ask(s, '/subjects/a-value/versions/1')[1]['id']
    assert ask(s, '/schemas/ids/%d' % mine)[0] == 200
    status, body, _ = ask(s, '/schemas/ids/%d' % mine, 't/b', 'other')
    assert (status, body['error_code']) == (404, 40403)
    status, body, headers = ask(s, '/subjects', method='HEAD')
    assert (status, body) == (200, None) and int(headers['Content-Length']) > 2
    status, body, _ = ask(s, '/subjects/a-value/versions', method='POST', body='{"schema": "\\"string\\""}')
    assert (status, body['error_code']) == (422, 42205)


def timed(s, *args):
    t0 = time.monotonic()
    status, body, _ = ask(s, '/subjects', *args)
    return time.monotonic() - t0, status, body


def test_refusals_are_alike_and_addresses_that_fail_wait(serve):
    s = serve('--login-failures', '11', '--login-failure-delay', '300ms')
    who = [('t/a', 'wrong'), ('nobody-of-that-name', TOKEN), ('t/a', 'other')]
    answers = [timed(s, *w) for w in who] + [timed(s, 'no-colon-here', '')]
    assert len({json.dumps(a[1:]) for a in answers}) == 1 and answers[0][1] == 401
    assert all(0.3 <= a[0] < 2 for a in answers), answers
    # a malformed header is refused like a wrong token
    for header in ('Basic', 'Basic !!!', 'Basic ' + base64.b64encode(b'no colon').decode(), 'Bearer x', 'Negotiate', ''):
        c = http.client.HTTPConnection('127.0.0.1', s.registry, timeout=60)
        c.request('GET', '/subjects', headers={'Authorization': header})
        assert c.getresponse().status == 401, header
        c.close()
    assert timed(s)[0] < 0.3    # who is known waits for nothing
    for _ in range(4):
        timed(s, 't/a', 'wrong')
    took, status, _ = timed(s)    # the address waits, the right token gets in all the same
    assert status == 200 and took >= 0.1
    # more than 16 at once are not even looked at
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        got = list(pool.map(lambda n: ask(s, '/subjects', 't/a', 'wrong'), range(24)))
    assert {g[0] for g in got} == {401, 429}, [g[0] for g in got]
    refused = [g for g in got if g[0] == 429][0]
    assert refused[1]['error_code'] == 42901 and int(refused[2]['Retry-After']) > 0
    log = s.log.read_text(errors='replace')
    assert 'registry.login_failed' in log and 'peer=127.0.0.1' in log
    assert 'nobody-of-that-name' not in log and TOKEN not in log
    metrics = s.request('GET', '/metrics')[1].decode()
    value = lambda name: int(next(x.split()[1] for x in metrics.splitlines() if x.startswith(name + ' ')))
    assert value('sluice_logins_failed_total') >= 8 and value('sluice_logins_throttled_total') >= 1


def test_a_stop_does_not_wait_for_refusals(serve):
    s = serve('--login-failures', '1', '--login-failure-delay', '20s')
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        late = [pool.submit(lambda: ask(s, '/subjects', 't/a', 'wrong')) for _ in range(3)]
        time.sleep(0.5)    # the three refusals wait by now; nothing that the server shows says so
        t0 = time.monotonic()
        s.stop()
        assert time.monotonic() - t0 < 8
        assert {f.result()[0] for f in late} <= {401, 503}


def test_a_misfit_stops_its_partition_until_the_catalog_is_mended(serve):
    s = serve()
    s.publish('acme/a', [{'id': 1, 'name': 'x'}, {'id': 2, 'name': 7}, {'id': 3, 'name': 'z'}])
    with Conn(s.kafka) as c:
        auth_lab.login(c, 't/a', TOKEN, 'PLAIN')
        first, _ = c.records_from('a', 0, 0)
        assert len(first) == 1
        at = first[0].offset + 1
        assert c.fetch('a', 0, at)['error_code'] == STORAGE_ERROR
        stopped = stopped_at(s)
        assert stopped['pointer'] == '/name' and stopped['offset'] >= at
        behind, answer = c.records_from('a', 0, stopped['offset'] + 1)
        assert answer['error_code'] == 0 and len(behind) == 1
    assert b'sluice_schema_misfits_total 1' in s.request('GET', '/metrics')[1]
    assert 'schema.misfit' in s.log.read_text(errors='replace')
    assert b'stopped at' in s.request('GET', '/')[1]
    write(s.catalog, ['string', 'integer'])
    end = time.monotonic() + 30
    while ask(s, '/subjects/a-value/versions/latest')[1]['schema'].count('RawJSON') == 0:
        assert time.monotonic() < end
        time.sleep(0.2)
    _, got = read(s, 3)
    assert [r['offset'] for r in got][1] == stopped['offset']
    assert stopped_at(s) is None
    assert [json.loads(r['value']['name']['json']) for r in got] == ['x', 7, 'z']


def until(what):
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.1)


def versions_of(s, subject='a-value', query=''):
    return ask(s, '/subjects/%s/versions%s' % (subject, query))[1]


def restart(s):
    s.restart()
    s.registry = json.loads(s.ports_file.read_text())['registry']


def test_versions_are_the_history_of_the_catalog(serve):
    s = serve()
    s.publish('acme/a', [{'id': 1, 'name': 'x'}])
    first = ask(s, '/subjects/a-value/versions/latest')[1]
    assert versions_of(s) == [1] and first['version'] == 1
    write(s.catalog, ['string', 'integer'])
    until(lambda: versions_of(s) == [1, 2])
    second = ask(s, '/subjects/a-value/versions/-1')[1]
    assert second['version'] == 2 and second['id'] != first['id']
    # records are encoded as they are read, so all of them carry the id of now; what was cached before is still found
    head, got = read(s, 1)
    assert head['latest'] == got[0]['id'] == second['id']
    assert ask(s, '/subjects/a-value/versions/1')[1] == first
    assert ask(s, '/schemas/ids/%d' % first['id'])[1] == {'schema': first['schema']}
    assert ask(s, '/schemas/ids/%d/versions' % first['id'])[1] == [{'subject': 'a-value', 'version': 1}]
    look = lambda v: ask(s, '/subjects/a-value', method='POST', body=json.dumps({'schema': v['schema']}))[1]
    assert look(first) == first and look(second) == second
    assert versions_of(s, 'a-key') == [1]
    assert ask(s, '/schemas/ids/%d' % first['id'], 't/b', 'other')[0] == 404
    # a restart with yet another catalog goes on from there
    s.stop()
    write(s.catalog, ['string', 'integer', 'boolean'], deletions='cdc')
    s.start()
    s.registry = json.loads(s.ports_file.read_text())['registry']
    assert versions_of(s) == [1, 2, 3]
    assert [ask(s, '/subjects/a-value/versions/%d' % v['version'])[1] for v in (first, second)] == [first, second]
    # what comes back is found again, and is the latest, since it is what records carry
    write(s.catalog)
    until(lambda: ask(s, '/subjects/a-value/versions/latest')[1] == first)
    assert versions_of(s) == [1, 2, 3]
    restart(s)
    assert versions_of(s) == [1, 2, 3] and ask(s, '/subjects/a-value/versions/latest')[1] == first
    assert [x['version'] for x in ask(s, '/schemas?subjectPrefix=a-v')[1]] == [1, 2, 3]
    assert [x['version'] for x in ask(s, '/schemas?subjectPrefix=a-v&latestOnly=true')[1]] == [1]


def test_long_comparisons_hold_nobody_up_and_end_with_the_server(serve):
    """Versions of more than a megabyte are compared on the job pool, one request at a time."""
    s = serve()
    first = ask(s, '/subjects/a-value/versions/1')[1]

    def wide(n):
        props = {'f%d' % i: {'type': 'string'} for i in range(8000)}
        wide = {'type': 'object', 'required': ['id'], 'properties': {'id': {'type': 'integer'}, 'x%d' % n: {'type': 'null'}, **props}}
        wide['properties']['y%d' % n] = {'type': 'integer'}
        registry_lab.write_catalog(s.catalog, {'acme/a': {'schema': wide, 'key': ['/id']}}, {'t/a': (TOKEN, {'a': 'acme/a'}, {})})
        until(lambda: versions_of(s) == list(range(1, n + 1)))
    for n in (2, 3, 4):
        wide(n)
    odd = json.loads(ask(s, '/subjects/a-value/versions/3')[1]['schema'])
    odd['fields'][1]['doc'] = 'another one'
    bodies = [json.dumps({'schema': x}) for x in (first['schema'], json.dumps(odd, indent=1), '"long"')]
    look = lambda body: ask(s, '/subjects/a-value', method='POST', body=body)[:2]
    hold = lambda body: ask(s, '/compatibility/subjects/a-value/versions/3?verbose=true', method='POST', body=body)[:2]
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        looks, holds = [[pool.submit(f, b) for b in bodies * 3] for f in (look, hold)]
        n = 0
        while not all(x.done() for x in looks + holds):
            assert ask(s, '/mode')[0] == 200
            n += 1
        assert n > 3 * len(looks)
        assert [x.result() for x in looks] == [(200, first), (404, {'error_code': 40403, 'message': 'Schema not found'}),
                                               (404, {'error_code': 40403, 'message': 'Schema not found'})] * 3
        assert [x.result()[1]['is_compatible'] for x in holds] == [True, True, False] * 3
        looks = [pool.submit(look, bodies[1]) for _ in range(6)]
        time.sleep(0.05)
        s.stop()    # what has begun is answered
        assert {x.result()[0] for x in looks if x.exception() is None} == {404}


def test_a_binding_that_is_gone_is_a_deleted_subject(serve):
    s = serve()
    first = ask(s, '/subjects/a-value/versions/1')[1]
    with open(s.catalog) as f:
        catalog = json.load(f)
    catalog['materializations']['t/a']['bindings'][0]['resource']['topic_name'] = 'renamed'
    with open(s.catalog + '.tmp', 'w') as f:
        json.dump(catalog, f)
    os.rename(s.catalog + '.tmp', s.catalog)
    until(lambda: ask(s, '/subjects')[1] == ['renamed-key', 'renamed-value'])
    assert ask(s, '/subjects?deleted=true')[1] == ['a-key', 'a-value', 'renamed-key', 'renamed-value']
    assert ask(s, '/subjects?deletedOnly=true')[1] == ['a-key', 'a-value']
    assert ask(s, '/subjects/a-value/versions')[1]['error_code'] == 40401
    assert versions_of(s, query='?deleted=true') == [1] and versions_of(s, query='?deletedOnly=true') == [1]
    assert ask(s, '/subjects/a-value/versions/latest?deleted=true')[1] == first
    assert ask(s, '/schemas/ids/%d' % first['id'])[0] == 200
    assert ask(s, '/schemas/ids/%d/subjects' % first['id'])[1] == ['renamed-value']
    assert ask(s, '/schemas/ids/%d/subjects?deleted=true' % first['id'])[1] == ['a-value', 'renamed-value']


def test_policies_for_misfits(serve):
    s = serve(sluice={'on_schema_error': 'skip'})
    s.publish('acme/a', [{'id': 1, 'name': 'x'}, {'id': 2, 'name': 7}, {'id': 3, 'name': 'z'}])
    assert [r['value']['name'] for r in read(s, 2)[1]] == ['x', 'z']


def test_the_registry_by_tls_and_for_the_anonymous(make_server, tmp_path):
    certs = auth_lab.Certificates(tmp_path / 'certs')
    certs.issue('server')
    path = write(tmp_path / 'catalog.json')
    s = make_server('--catalog', path, '--registry-listen', 'sasl-tls://127.0.0.1:0', '--tls-cert', certs.pem('server'), '--tls-key',
                    certs.key('server'), start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    port = json.loads(s.ports_file.read_text())['registry']
    c = http.client.HTTPSConnection('127.0.0.1', port, timeout=30, context=ssl._create_unverified_context())
    c.request('GET', '/subjects', headers={'Authorization': 'Basic ' + base64.b64encode(b't/a:' + TOKEN.encode()).decode()})
    assert json.loads(c.getresponse().read()) == ['a-key', 'a-value']
    c.close()
    # a new certificate is taken while it runs; a broken one is not
    old = ssl.get_server_certificate(('127.0.0.1', port))
    (tmp_path / 'certs' / 'server.pem').write_text('broken')
    until(lambda: s.metrics()['sluice_tls_reloads_failed_total'] >= 1)
    assert ssl.get_server_certificate(('127.0.0.1', port)) == old
    certs.issue('server')
    until(lambda: ssl.get_server_certificate(('127.0.0.1', port)) != old)
    trusting = ssl.create_default_context(cafile=certs.pem('ca'))
    c = http.client.HTTPSConnection('127.0.0.1', port, timeout=30, context=trusting)
    c.request('GET', '/mode', headers={'Authorization': 'Basic ' + base64.b64encode(b't/a:' + TOKEN.encode()).decode()})
    assert json.loads(c.getresponse().read()) == {'mode': 'READONLY'}
    c.close()
    with pytest.raises((OSError, http.client.HTTPException)):    # plain text on that port is nobody's request
        ask(argparse.Namespace(registry=port), '/subjects')
    # an open registry shows nobody a task that has a token, unless that is asked for
    for flags, want in (((), 401), (('--allow-anonymous', '--anonymous-task', 't/a'), 200)):
        s = make_server('--catalog', path, '--registry-listen', '127.0.0.1:0', *flags, start=False)
        s.listen = 'sasl://127.0.0.1:0'
        s.start()
        s.registry = json.loads(s.ports_file.read_text())['registry']
        assert ask(s, '/subjects', None)[0] == want
        assert ask(s, '/subjects', 't/b', 'other')[1] == ['x/b-value']


# Every route of docs/registry.md with what it is asked about. {s}: a subject, {v}: a version, {id}: an id, {guid}.
BODY = json.dumps({'schema': '"string"'})
WALK = [
    ('POST', '/subjects/{s}'), ('POST', '/subjects/{s}?deleted=true'),
    ('GET', '/subjects/{s}/versions'), ('GET', '/subjects/{s}/versions?deleted=true'), ('GET', '/subjects/{s}/versions?deletedOnly=true'),
    ('GET', '/subjects/{s}/versions/{v}'), ('GET', '/subjects/{s}/versions/latest?deleted=true'), ('GET', '/subjects/{s}/versions/{v}/schema'),
    ('GET', '/subjects/{s}/versions/{v}/referencedby'), ('GET', '/subjects/{s}/metadata'), ('GET', '/subjects/{s}/metadata?deleted=true'),
    ('GET', '/schemas/ids/{id}'), ('GET', '/schemas/ids/{id}?fetchMaxId=true'), ('GET', '/schemas/ids/{id}/schema'),
    ('GET', '/schemas/ids/{id}/subjects?deleted=true'), ('GET', '/schemas/ids/{id}/versions?deleted=true'), ('GET', '/schemas/guids/{guid}'),
    ('GET', '/config/{s}'), ('GET', '/config/{s}?defaultToGlobal=true'), ('GET', '/mode/{s}'), ('GET', '/mode/{s}?defaultToGlobal=true'),
    ('POST', '/compatibility/subjects/{s}/versions'), ('POST', '/compatibility/subjects/{s}/versions/{v}?verbose=true'),
    ('POST', '/compatibility/subjects/{s}/versions/latest'), ('POST', '/subjects/{s}/versions'), ('DELETE', '/subjects/{s}'),
    ('DELETE', '/subjects/{s}/versions/{v}'), ('PUT', '/config/{s}'), ('DELETE', '/mode/{s}'), ('GET', '/subjects?subjectPrefix={s}'),
    ('GET', '/schemas?subjectPrefix={s}&deleted=true')]
LISTS = ['/', '/subjects', '/subjects?deleted=true', '/subjects?deletedOnly=true', '/schemas', '/schemas?deleted=true', '/schemas/types', '/config',
         '/mode', '/contexts', '/v1/metadata/id', '/v1/metadata/version']


def test_every_route_of_the_table_is_walked():
    with open(os.path.join(os.path.dirname(READ), '..', '..', 'docs', 'registry.md')) as f:
        text = f.read()
    rows = [r.split('|')[1] for r in text[text.index('## Requests'):text.index('| code | status |')].splitlines() if r.startswith('| ')]
    routes, base = set(), ''
    for row in rows:
        paths = re.findall(r'`(/[^`]*)`', row)
        if row.strip().startswith('...'):
            paths = [base + p for p in paths]
        elif paths:
            base = paths[0]
            paths = [base[:base.rindex('/')] + p if p == '/version' else p for p in paths]
        routes |= {q for p in paths for q in ([p.replace('[/{v}]', ''), p.replace('[/{v}]', '/{v}')] if '[' in p else [p])}
    walked = {p.split('?')[0] for _, p in WALK} | set(LISTS)
    assert len(routes) > 20 and routes <= walked, routes - walked


def test_another_tasks_schemas_look_like_what_does_not_exist(serve):
    s = serve()
    with open(s.catalog) as f:
        catalog = json.load(f)
    old = ask(s, '/schemas/ids/1')[1]['error_code']
    assert old == 40403
    # bravo has an Avro topic with two versions, and one that is gone
    bravo = json.loads(json.dumps(catalog['materializations']['t/a']))
    bravo['endpoint']['dekaf']['config']['token'] = 'bravo'
    bravo['bindings'] = [{'source': 'acme/c', 'resource': {'topic_name': t}} for t in ('bravo-one', 'bravo-two')]
    catalog['collections']['acme/c'] = {'schema': {'type': 'object', 'required': ['id'], 'properties': {'id': {'type': 'integer'}, 'b': {'type': 'string'}}},
                                        'key': ['/id']}
    catalog['materializations']['t/bravo'] = bravo
    b = lambda path: ask(s, path, 't/bravo', 'bravo')[1]

    def put():
        with open(s.catalog + '.tmp', 'w') as f:
            json.dump(catalog, f)
        os.rename(s.catalog + '.tmp', s.catalog)
    put()
    until(lambda: len(b('/subjects')) == 4)
    first = b('/subjects/bravo-one-value/versions/1')['id']
    catalog['collections']['acme/c']['schema']['properties']['more'] = {'type': 'number'}
    bravo['bindings'].pop()
    put()
    until(lambda: b('/subjects/bravo-one-value/versions') == [1, 2] and len(b('/subjects')) == 2)
    second = b('/subjects/bravo-one-value/versions/2')['id']

    def walk(subject, version, ident, guid):
        out = []
        for method, path in WALK:
            path = path.format(s=subject, v=version, id=ident, guid=guid)
            status, body, headers = ask(s, path, method=method, body=BODY if method in ('POST', 'PUT') else None)
            text = json.dumps(body).replace(subject, '<s>').replace(str(ident), '<id>').replace(guid, '<guid>')
            out.append((method, path.split('?')[0].count('/'), status, text, {k: v for k, v in headers.items() if k not in ('Date', 'Content-Length')}))
        return out
    nobody = walk('zzzzz-one-value', 1, 999999937, 'x')
    for subject, version, ident in (('bravo-one-value', 1, first), ('bravo-one-value', 2, second), ('bravo-two-value', 1, first), ('bravo-one-key', 1, second)):
        assert walk(subject, version, ident, 'x') == [n if version == 1 else (*n[:3], n[3].replace(' 1 ', ' %d ' % version), n[4]) for n in nobody]
    for path in LISTS:
        assert 'bravo' not in json.dumps(ask(s, path)[1]), path
    assert ask(s, '/subjects?deleted=true')[1] == ['a-key', 'a-value']
