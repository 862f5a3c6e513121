"""The catalog as clients see it: names, strict names, topics without journals, partition selectors, journals by prefix,
tasks that were moved elsewhere. Names follow the tests of the existing gateway; 75 and 77 are field reports."""
import json
import os
import subprocess

import pytest

import clients
from groups_raw import OFFSET_COMMIT, OFFSET_DELETE
from kafka_raw import (DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS, EARLIEST, EPOCH_END, FETCH, FIND_COORDINATOR, LATEST, METADATA, OFFSET_FETCH, ZERO_ID,
                       Conn)
from journals import Journal
from sluice import run_cli

COLLECTION = {'schema': {'type': 'object', 'properties': {'id': {'type': 'integer'}}, 'required': ['id']}, 'key': ['/id']}


def task(bindings, config=None, sluice=None):
    """bindings: {topic: collection or binding}."""
    full = [dict(b if isinstance(b, dict) else {'source': b}, resource={'topic_name': t}) for t, b in bindings.items()]
    return {'endpoint': {'dekaf': {'variant': 'test', 'config': dict(config or {}, sluice=dict({'value_format': 'json'}, **(sluice or {})))}},
            'bindings': full}


def write(path, tasks, collections=None, **more):
    """Whole or not at all, as editors should."""
    names = {b['source'] if isinstance(b['source'], str) else b['source']['name'] for t in tasks.values() for b in t['bindings']}
    doc = dict(more, collections={**{c: COLLECTION for c in sorted(names)}, **(collections or {})}, materializations=tasks)
    tmp = '%s.tmp' % path
    with open(tmp, 'w') as f:
        json.dump(doc, f)
    os.rename(tmp, path)
    return str(path)


@pytest.fixture
def serve(make_server, tmp_path):
    """serve(tasks, *flags): a server with this catalog; its file is server.catalog."""
    def start(tasks, *flags, collections=None, **more):
        path = write(tmp_path / 'catalog.yaml', tasks, collections, **more)
        s = make_server('--catalog', path, *flags)
        s.catalog = path
        return s
    return start


def topics(c, version=9):
    return {t['name']: t for t in c.call(METADATA, version, topics=None)['topics']}


def values(records):
    return [json.loads(r.value)['id'] for r in records]


# --- names --------------------------------------------------------------------------------------------------------

PLAIN = ['orders.v1', 'foo.bar', 'a.2Fb', 'acme/orders', 'with space', 'x%2Fy', 'ünï', '.2', '..']


def test_plain_names_are_served_as_they_are(serve):
    """`orders.v1` and `foo.bar` look like escapes, and are none unless names are strict."""
    s = serve({'t': task({n: 'acme/c%d' % i for i, n in enumerate(PLAIN)})})
    for i in range(len(PLAIN)):
        s.publish('acme/c%d' % i, [{'id': i}])
    with Conn(s.kafka) as c:
        assert set(topics(c)) == set(PLAIN)
        for i, n in enumerate(PLAIN):
            assert c.metadata(n)['error_code'] == 0
            assert c.list_offset(n, 0, LATEST)['error_code'] == 0
            assert values(c.records_from(n, 0, 0)[0]) == [i], n
        assert c.metadata('orders%v1')['error_code'] in (3, 17)
        assert c.metadata('acme.2Forders')['error_code'] == 3


def test_strict_names_are_encoded_and_decoded_in_every_api(serve):
    s = serve({'t': task({'a/b-c': 'acme/one', 'orders.v1': 'acme/two', 'plain': 'acme/three'}, {'strict_topic_names': True})})
    for i, n in enumerate(['one', 'two', 'three']):
        s.publish('acme/' + n, [{'id': i}])
    with Conn(s.kafka) as c:
        assert set(topics(c)) == {'a.2Fb.2Dc', 'orders.2Ev1', 'plain'}
        # other ways to write one name are understood, and answered as they were asked
        for i, asked in [(0, 'a.2Fb.2Dc'), (0, 'a.2fb.2dc'), (0, 'a/b-c'), (0, '.61.2Fb.2Dc'), (1, 'orders.2Ev1'), (1, 'orders.2ev1'), (2, 'plain')]:
            m = c.metadata(asked)
            assert (m['error_code'], m['name']) == (0, asked)
            assert c.list_offset(asked, 0, LATEST)['error_code'] == 0
            e = c.call(EPOCH_END, 3, topics=[{'topic': asked, 'partitions': [{'partition': 0, 'leader_epoch': 1}]}])
            assert e['topics'][0]['partitions'][0]['error_code'] == 0
            recs, p = c.records_from(asked, 0, 0)
            assert p['error_code'] == 0 and values(recs) == [i], asked
        # commits are the served name's, whichever was asked
        for asked in ('a/b-c', 'a.2fb.2dc', 'a.2Fb.2Dc'):
            r = c.call(OFFSET_COMMIT, 8, group_id='g', topics=[{'name': asked, 'partitions': [{'partition_index': 0, 'committed_offset': 7}]}])
            assert r['topics'][0]['partitions'][0]['error_code'] == 0
            for other in ('a/b-c', 'a.2Fb.2Dc'):
                r = c.call(OFFSET_FETCH, 7, group_id='g', topics=[{'name': other, 'partition_indexes': [0]}])
                assert r['topics'][0]['partitions'][0]['committed_offset'] == 7
            r = json.loads(s.request('POST', '/v1/groups/g/reset?task=t&to=earliest&execute=true&topic=' + asked)[1])
            assert [(o['topic'], o['from'], o['to']) for o in r['offsets']] == [('a.2Fb.2Dc', 7, 0)]
            r = c.call(OFFSET_FETCH, 7, group_id='g', topics=None)
            assert [(t['name'], t['partitions'][0]['committed_offset']) for t in r['topics']] == [('a.2Fb.2Dc', 0)]
            r = c.call(OFFSET_DELETE, 0, group_id='g', topics=[{'name': asked, 'partitions': [{'partition_index': 0}]}])
            assert r['topics'][0]['partitions'][0]['error_code'] == 0
            r = c.call(OFFSET_FETCH, 7, group_id='g', topics=None)
            assert r['topics'] == []
        for wrong in ['orders.v1', 'a.b', 'a.2', '.', 'a.2Fb.2Dc.']:
            assert c.metadata(wrong)['error_code'] in (3, 17)
            assert c.fetch(wrong, 0, 0)['error_code'] == 3
    # two names of one topic in one request are both answered
    with Conn(s.kafka) as c:
        r = c.call(METADATA, 9, topics=[{'name': 'a/b-c'}, {'name': 'a.2Fb.2Dc'}, {'name': 'a.2Fb.2Dc'}])
        assert [t['name'] for t in r['topics']] == ['a/b-c', 'a.2Fb.2Dc']


@pytest.mark.parametrize('read', [clients.read_kcat, clients.read_confluent, clients.read_java_direct, clients.read_franz, clients.read_kafka_python],
                         ids=['kcat', 'librdkafka', 'java', 'franz-go', 'kafka-python'])
def test_77_real_clients_read_topics_with_odd_names(serve, read):
    """kafka-python refuses a slash by itself; strict names are for such clients."""
    s = serve({'t': task({'acme/orders': 'acme/one', 'orders.v1': 'acme/two'}, {'strict_topic_names': read is clients.read_kafka_python})})
    s.publish('acme/one', [{'id': 1}])
    s.publish('acme/two', [{'id': 2}])
    names = ['acme.2Forders', 'orders.2Ev1'] if read is clients.read_kafka_python else ['acme/orders', 'orders.v1']
    for i, n in enumerate(names):
        assert [json.loads(r.value)['id'] for r in read(s.bootstrap, n)] == [i + 1]


def test_75_null_asks_for_all_topics_and_empty_for_none(serve):
    s = serve({'t': task({'a': 'acme/a', 'b': 'acme/b', 'c': 'acme/c'}), 'other': task({'a': 'acme/a', 'hidden': 'acme/b'})}, '--anonymous-task', 't')
    for n in 'abc':
        s.publish('acme/' + n, [{'id': 1}])
    with Conn(s.kafka) as c:
        for v in range(14):
            def names(asked, v=v):
                r = c.call(METADATA, v, topics=asked)
                assert r['brokers']
                return sorted((t['name'], t['error_code']) for t in r['topics'])
            everything = [('a', 0), ('b', 0), ('c', 0)]
            assert names([]) == (everything if v == 0 else [])
            if v > 0:
                assert names(None) == everything
            # unknown and invisible look the same
            assert names([{'name': 'hidden'}, {'name': 'nope'}]) == [('hidden', 3), ('nope', 3)]
            assert len(names([{'name': 'n%d' % i} for i in range(5000)])) == 5000


# --- topics without journals --------------------------------------------------------------------------------------

def test_not_ready_is_leader_not_available_and_blocks_nobody(serve, until):
    s = serve({'t': task({'a': 'acme/a', 'b': 'acme/b'})})
    s.publish('acme/a', [{'id': 1}, {'id': 2}])
    with Conn(s.kafka) as c:
        t = topics(c)
        assert (t['a']['error_code'], len(t['a']['partitions'])) == (0, 1)
        assert (t['b']['error_code'], t['b']['partitions']) == (5, [])
        assert c.metadata('b')['error_code'] == 5
        assert c.list_offset('b', 0, LATEST)['error_code'] == 5
        e = c.call(EPOCH_END, 3, topics=[{'topic': 'b', 'partitions': [{'partition': 0, 'leader_epoch': 1}]}])
        assert e['topics'][0]['partitions'][0]['error_code'] == 5
        # Java's consumer dies of 5 in a Fetch, and looks at Metadata when it gets 6
        assert c.fetch('b', 0, 0)['error_code'] == 6
        both = c.call(FETCH, 11, max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[
            {'topic': n, 'partitions': [{'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': 1 << 20}]} for n in 'ab'])
        by_name = {r['topic']: r['partitions'][0] for r in both['responses']}
        assert by_name['a']['records'] and by_name['b']['error_code'] == 6
        assert values(c.records_from('a', 0, 0)[0]) == [1, 2]
        s.publish('acme/b', [{'id': 3}])
        assert c.metadata('b')['error_code'] == 0
        assert values(c.records_from('b', 0, 0)[0]) == [3]


def test_allow_empty_topics_serves_one_empty_partition(serve):
    s = serve({'t': task({'a': 'acme/a', 'b': 'acme/b'}, {'allow_empty_topics': True})})
    s.publish('acme/a', [{'id': 1}, {'id': 2}])
    with Conn(s.kafka) as c:
        b = topics(c)['b']
        assert (b['error_code'], len(b['partitions'])) == (0, 1)
        epoch = b['partitions'][0]['leader_epoch']
        assert [c.list_offset('b', 0, t)['offset'] for t in (EARLIEST, LATEST, 0, -3)] == [0, 0, -1, -1]
        p = c.fetch('b', 0, 0, max_wait_ms=50)
        assert (p['error_code'], p['high_watermark'], p['records'] or b'') == (0, 0, b'')
        assert c.fetch('b', 0, 1)['error_code'] == 1
        assert c.list_offset('b', 1, LATEST)['error_code'] == 3
        # who waits at the empty partition is woken by the first document
        waiting = c.fetch_start('b', {0: 0}, max_wait_ms=20000)
        s.publish('acme/b', [{'id': 3}])
        r = c.finish(FETCH, 11, waiting)
        p = r['responses'][0]['partitions'][0]
        if not p['records']:    # told of the change first
            recs, p = c.records_from('b', 0, 0)
            assert values(recs) == [3]
        assert c.metadata('b')['partitions'][0]['leader_epoch'] == epoch
    st, text, _ = s.request('GET', '/v1/topics')
    assert st == 200 and json.loads(text)
    assert s.request('GET', '/')[0] == 200


def test_an_empty_topic_is_read_to_its_end_at_once(serve):
    s = serve({'t': task({'b': 'acme/b'}, {'allow_empty_topics': True})})
    assert clients.read_kcat(s.bootstrap, 'b') == []


# --- journals -----------------------------------------------------------------------------------------------------

def test_a_selector_picks_partitions_by_their_fields(serve):
    col = {'acme/c': dict(COLLECTION, projections={'region': {'location': '/r', 'partition': True}, 'n': {'location': '/n', 'partition': True}})}
    sel = lambda **s: {'source': {'name': 'acme/c', 'partitions': s}}
    s = serve({'t': task({
        'all': 'acme/c', 'eu': sel(include={'region': ['eu']}), 'not-eu': sel(exclude={'region': ['eu']}),
        'slash': sel(include={'region': ['a/b']}), 'one': sel(include={'n': [1]}), 'text': sel(include={'n': ['1']}),
        'null': sel(include={'n': [None]}), 'both': sel(include={'region': ['eu', 'us'], 'n': [1, None]}),
        'none': sel(include={'region': []})})}, '--journal-admin', collections=col)
    label = lambda r, n: {'estuary.dev/collection': 'acme/c', 'estuary.dev/field/region': r, 'estuary.dev/field/n': n}
    made = [('eu', '%_1'), ('us', '%_null'), ('a%2Fb', '1'), ('eu', '%_2')]
    for i, (r, n) in enumerate(made):
        j = Journal(s, 'acme/c', label(r, n), name='acme/c/p%d' % i)
        j.doc(id=i)
        j.ack()
        j.write()
    want = {'all': [0, 1, 2, 3], 'eu': [0, 3], 'not-eu': [1, 2], 'slash': [2], 'one': [0], 'text': [2], 'null': [1], 'both': [0, 1], 'none': []}
    with Conn(s.kafka) as c:
        for name, ids in want.items():
            t = c.metadata(name)
            assert (t['error_code'] == 5) == (not ids), name
            got = [v for p in range(len(t['partitions'])) for v in values(c.records_from(name, p, 0)[0])]
            assert got == ids, name


def test_a_prefix_stands_for_labels_and_shuts_out_others(serve):
    col = {'acme/c': dict(COLLECTION, journals={'prefix': 'acme/c/gen2'})}
    s = serve({'t': task({'c': 'acme/c'})}, '--journal-admin', collections=col)
    for i, (name, labels) in enumerate([('acme/c/gen1/p0', {'estuary.dev/collection': 'acme/c'}), ('acme/c/gen2/p0', {'estuary.dev/collection': 'acme/c'}),
                                        ('acme/c/gen2/p1', {}), ('acme/c/gen22/p0', {}), ('acme/c/gen2/other', {'estuary.dev/collection': 'acme/d'})]):
        st, body, _ = s.request('PUT', '/v1/journals/' + name.replace('/', '%2F'), json.dumps({'labels': labels}))
        assert st == 200, body
        st, body, _ = s.request('POST', '/v1/journals/%s/content' % name.replace('/', '%2F'), json.dumps({'id': i}) + '\n')
        assert st == 200, body
    with Conn(s.kafka) as c:
        t = c.metadata('c')
        assert [values(c.records_from('c', p, 0)[0]) for p in range(len(t['partitions']))] == [[1], [2]]


def read_kafkajs_group(b, t):
    clients.need(clients.LAB / 'node/.locked', 'node-install.sh')
    return clients.dumped(['node', clients.LAB_DIR / 'node/consume.js', 'kafkajs', b, t, 'g'])


# --- tasks that are served elsewhere ------------------------------------------------------------------------------

def test_redirect_names_the_target_and_serves_nothing(serve):
    s = serve({'t': task({'a': 'acme/a', 'b': 'acme/b'}, sluice={'redirect': 'gw2.test:19092'}), 'here': task({'a': 'acme/a'})},
              '--anonymous-task', 't')
    s.publish('acme/a', [{'id': 1}], partitions=2)
    with Conn(s.kafka) as c:
        for v in (1, 9, 12, 13):
            r = c.call(METADATA, v, topics=None)
            node = r['brokers'][0]['node_id']
            assert [(b['host'], b['port']) for b in r['brokers']] == [('gw2.test', 19092)] and node != 1
            assert r['controller_id'] == node
            for t in r['topics']:
                assert t['error_code'] == 0 and len(t['partitions']) == (2 if t['name'] == 'a' else 1)
                assert t.get('topic_id', ZERO_ID) == ZERO_ID
                for p in t['partitions']:
                    assert (p['leader_id'], p['replica_nodes'], p.get('leader_epoch', -1)) == (node, [node], -1)
        assert c.metadata('nope')['error_code'] == 3
        for v in (0, 3):
            f = c.call(FIND_COORDINATOR, v, key='g')
            assert (f['error_code'], f['node_id'], f['host'], f['port']) == (0, node, 'gw2.test', 19092)
        f = c.call(FIND_COORDINATOR, 6, key_type=0, coordinator_keys=['g'])['coordinators'][0]
        assert (f['error_code'], f['node_id'], f['host'], f['port']) == (0, node, 'gw2.test', 19092)
        for p in (0, 1, 5):
            for v in (4, 11, 12):
                assert c.fetch('a', p, 0, version=v)['error_code'] == 6
            assert c.list_offset('a', p, LATEST)['error_code'] == 6
        assert c.fetch('nope', 0, 0)['error_code'] == 3
        e = c.call(EPOCH_END, 3, topics=[{'topic': 'a', 'partitions': [{'partition': 0, 'leader_epoch': 1}]}])
        assert e['topics'][0]['partitions'][0]['error_code'] == 6


@pytest.mark.parametrize('read', [clients.read_kcat, clients.read_confluent, clients.read_java_direct, clients.read_franz, clients.read_aiokafka, clients.node('kafkajs-direct'), read_kafkajs_group],
                         ids=['kcat', 'librdkafka', 'java', 'franz-go', 'aiokafka', 'kafkajs-direct', 'kafkajs'])
def test_clients_follow_a_redirect(make_server, tmp_path, read):
    target = make_server('--catalog', write(tmp_path / 'target.yaml', {'t': task({'a': 'acme/a'})}))
    target.publish('acme/a', [{'id': 1}, {'id': 2}])
    source = make_server('--catalog', write(tmp_path / 'source.yaml', {'t': task({'a': 'acme/a'}, sluice={'redirect': target.bootstrap})}))
    source.publish('acme/a', [{'id': 99}])
    assert [json.loads(r.value)['id'] for r in read(source.bootstrap, 'a')] == [1, 2]


# --- files and checks ---------------------------------------------------------------------------------------------

def test_check_prints_every_fault_with_file_and_line(tmp_path):
    (tmp_path / 'part.yaml').write_text('collections:\n  acme/c:\n    schema: schema.json\n    key: [id]\n    colour: red\n')
    (tmp_path / 'schema.json').write_text('{\n  "type": "object",\n  "properties": {"x": {"$ref": "gone.yaml#/y"}}\n}\n')
    main = tmp_path / 'main.yaml'
    main.write_text('import: [part.yaml, main.yaml, nowhere.yaml]\n'
                    'materializations:\n  t:\n    endpoint:\n      dekaf: {variant: v, config: {token: 3}}\n'
                    '    bindings:\n      - source: acme/c\n        backfill: many\n')
    p = run_cli(['check', '--data-dir', str(tmp_path / 'none'), '--catalog', str(main)], check=False)
    text = p.stdout.decode()
    assert p.returncode == 1
    for want in ['main.yaml:1: /import/2: ', 'nowhere.yaml cannot be read', 'part.yaml:4: /collections/acme~1c/key/0: "id" is no JSON pointer',
                 'part.yaml:5: warning: /collections/acme~1c/colour: unknown key', 'schema.json:3: /properties/x/$ref: ', 'gone.yaml cannot be read',
                 'main.yaml:5: /materializations/t/endpoint/dekaf/config/token: text belongs here, not a number',
                 'main.yaml:8: /materializations/t/bindings/0/backfill: a whole number', '5 faults']:
        assert want in text, '%s\n%s' % (want, text)


def test_several_tasks_need_to_know_whom_an_open_listener_serves(make_server, tmp_path):
    path = write(tmp_path / 'c.yaml', {'a': task({'x': 'acme/x'}), 'b': task({'y': 'acme/x'}, {'token': 's'})})
    def refused(*flags):
        s = make_server('--catalog', path, *flags, start=False)
        s.expect_dead = True
        s.spawn()
        assert s.proc.wait(30) == 2
        return s.tail()
    assert '--anonymous-task' in refused()
    assert 'no task' in refused('--anonymous-task', 'c')
    assert '--allow-anonymous' in refused('--anonymous-task', 'b')
    s = make_server('--catalog', path, '--anonymous-task', 'b', '--allow-anonymous')
    with Conn(s.kafka) as c:
        assert set(topics(c)) == {'y'}


def test_a_catalog_of_many_files_is_served(make_server, tmp_path):
    sub = tmp_path / 'sub'
    sub.mkdir()
    (tmp_path / 'main.yaml').write_text('import:\n  - sub/collections.flow.yaml\n  - {url: sub/tasks.json, contentType: CATALOG}\n')
    (sub / 'collections.flow.yaml').write_text('import: [../main.yaml]\ncollections:\n  acme/c:\n    schema: c.schema.yaml\n    key: [/id]\n')
    (sub / 'c.schema.yaml').write_text('type: object\nproperties: {id: {$ref: "types.json#/id"}}\n')
    (sub / 'types.json').write_text('{"id": {"type": "integer"}}')
    (sub / 'tasks.json').write_text('{"materializations": {"t": {"endpoint": {"dekaf": {"variant": "v", "config": "config.yaml"}},\n'
                                    '"bindings": [{"source": "acme/c", "resource": {"topic_name": "c"}}]}}}')
    (sub / 'config.yaml').write_text('strict_topic_names: false\nsluice: {value_format: json}\n')
    s = make_server('--catalog', str(tmp_path / 'main.yaml'))
    s.publish('acme/c', [{'id': 7}])
    with Conn(s.kafka) as c:
        assert values(c.records_from('c', 0, 0)[0]) == [7]
