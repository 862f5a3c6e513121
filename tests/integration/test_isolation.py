"""A task sees nothing of another one: no names, offsets, groups or members, through any API. What belongs to the other task
must look, byte for byte, like what does not exist. The walk is over what the server itself advertises: an API that has no
row here fails the test, so whoever adds one adds its row."""
import json
import re

import pytest

from auth_lab import login
from groups_raw import (DELETE_GROUPS, DESCRIBE_GROUPS, HEARTBEAT, LEAVE_GROUP, LIST_GROUPS, OFFSET_COMMIT, OFFSET_DELETE, SYNC_GROUP)
from kafka_raw import (A, AN, API_VERSIONS, APIS, CREATE_TOPICS, DESCRIBE_CLUSTER, DESCRIBE_CONFIGS, DESCRIBE_TOPIC_PARTITIONS, EPOCH_END, FETCH,
                       FIND_COORDINATOR, JOIN_GROUP, LATEST, LIST_OFFSETS, METADATA, OFFSET_FETCH, PRODUCE, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api,
                       Conn, F, ZERO_ID, encode_request)
from test_catalog import task, topics, values, write

DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID, DESCRIBE_ACLS, ALTER_CONFIGS = 20, 21, 22, 29, 33
DESCRIBE_LOG_DIRS, CREATE_PARTITIONS, INCREMENTAL_ALTER_CONFIGS = 35, 37, 44
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE, LIST_CONFIG_RESOURCES = 68, 69, 74

# Requests that no other test needs; answers are compared as bytes.
MORE = {
    CREATE_TOPICS: Api(CREATE_TOPICS, 2, 2, 5, [F('topics', A([F('name', 'string'), F('n', 'int32', default=1), F('r', 'int16', default=1),
                                                               F('a', A('int32')), F('c', A('int32'))])), F('timeout', 'int32'), F('only', 'bool')], []),
    DELETE_TOPICS: Api(DELETE_TOPICS, 1, 1, 4, [F('names', A('string')), F('timeout', 'int32')], []),
    DELETE_RECORDS: Api(DELETE_RECORDS, 0, 0, 2, [F('topics', A([F('name', 'string'), F('p', A([F('i', 'int32'), F('o', 'int64')]))])), F('timeout', 'int32')], []),
    INIT_PRODUCER_ID: Api(INIT_PRODUCER_ID, 0, 0, 2, [F('id', 'string?'), F('timeout', 'int32')], []),
    DESCRIBE_ACLS: Api(DESCRIBE_ACLS, 1, 1, 2, [F('type', 'int8'), F('name', 'string?'), F('pattern', 'int8', default=3), F('who', 'string?'), F('host', 'string?'),
                                                F('op', 'int8', default=1), F('perm', 'int8', default=1)], []),
    ALTER_CONFIGS: Api(ALTER_CONFIGS, 0, 0, 2, [F('r', A([F('type', 'int8'), F('name', 'string'), F('c', A('int32'))])), F('only', 'bool')], []),
    CREATE_PARTITIONS: Api(CREATE_PARTITIONS, 0, 0, 2, [F('topics', A([F('name', 'string'), F('n', 'int32', default=9), F('a', AN('int32'))])), F('timeout', 'int32'),
                                                        F('only', 'bool')], []),
    INCREMENTAL_ALTER_CONFIGS: Api(INCREMENTAL_ALTER_CONFIGS, 0, 0, 1, [F('r', A([F('type', 'int8'), F('name', 'string'), F('c', A('int32'))])), F('only', 'bool')], []),
    DESCRIBE_LOG_DIRS: Api(DESCRIBE_LOG_DIRS, 1, 1, 2, [F('topics', AN([F('name', 'string'), F('p', A('int32'))]))], []),
    CONSUMER_GROUP_HEARTBEAT: Api(CONSUMER_GROUP_HEARTBEAT, 0, 0, 0, [F('group', 'string'), F('member', 'string'), F('epoch', 'int32'), F('instance', 'string?'),
                                                                      F('rack', 'string?'), F('rebalance', 'int32', default=-1), F('topics', AN('string')),
                                                                      F('assignor', 'string?'), F('parts', AN('int32'))], []),
    CONSUMER_GROUP_DESCRIBE: Api(CONSUMER_GROUP_DESCRIBE, 0, 0, 0, [F('groups', A('string')), F('ops', 'bool')], []),
    LIST_CONFIG_RESOURCES: Api(LIST_CONFIG_RESOURCES, 0, 1, 0, [F('types', A('int8'), 1)], []),
    DESCRIBE_CLUSTER: Api(DESCRIBE_CLUSTER, 0, 0, 0, [F('ops', 'bool')], []),
    DESCRIBE_TOPIC_PARTITIONS: Api(DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0, [F('topics', A([F('name', 'string')])), F('limit', 'int32', default=100), F('cursor', 'int8', default=-1)], []),
}


@pytest.fixture(autouse=True)
def more_apis():
    added = {k: v for k, v in MORE.items() if k not in APIS}
    APIS.update(added)
    yield
    for k in added:
        del APIS[k]


def ids_of(t, g, i):
    """One request a row: (API, version, body). t: a topic, g: a group, i: a topic's id."""
    part = {'partition_index': 0}
    fetch = {'partitions': [{'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': 1 << 20}]}
    member = {'group_id': g, 'generation_id': 1, 'member_id': 'nobody'}
    return [
        (PRODUCE, 9, {'acks': 1, 'topics': [{'name': t, 'partitions': [{'index': 0, 'records': b''}]}]}),
        (FETCH, 12, {'max_bytes': 1 << 20, 'topics': [dict(fetch, topic=t)]}),
        (FETCH, 18, {'max_bytes': 1 << 20, 'topics': [dict(fetch, topic_id=i)]}),
        (LIST_OFFSETS, 11, {'topics': [{'name': t, 'partitions': [dict(part, timestamp=LATEST)]}]}),
        (METADATA, 9, {'topics': [{'name': t}]}),
        (METADATA, 13, {'topics': [{'name': None, 'topic_id': i}]}),
        (OFFSET_COMMIT, 9, {'group_id': g, 'topics': [{'name': t, 'partitions': [dict(part, committed_offset=1)]}]}),
        (OFFSET_COMMIT, 10, {'group_id': g, 'topics': [{'topic_id': i, 'partitions': [dict(part, committed_offset=1)]}]}),
        (OFFSET_FETCH, 7, {'group_id': g, 'topics': None}),
        (OFFSET_FETCH, 9, {'groups': [{'group_id': g, 'topics': [{'name': t, 'partition_indexes': [0]}]}]}),
        (OFFSET_FETCH, 10, {'groups': [{'group_id': g, 'topics': [{'topic_id': i, 'partition_indexes': [0]}]}]}),
        (FIND_COORDINATOR, 6, {'key_type': 0, 'coordinator_keys': [g]}),
        (HEARTBEAT, 4, member),
        (SYNC_GROUP, 5, dict(member, protocol_type='consumer', protocol_name='range', assignments=[])),
        (LEAVE_GROUP, 5, {'group_id': g, 'members': [{'member_id': 'nobody'}]}),
        (DESCRIBE_GROUPS, 6, {'groups': [g]}),
        (DELETE_GROUPS, 2, {'groups_names': [g]}),
        (OFFSET_DELETE, 0, {'group_id': g, 'topics': [{'name': t, 'partitions': [{'partition_index': 0}]}]}),
        (CONSUMER_GROUP_DESCRIBE, 0, {'groups': [g]}),
        (CREATE_TOPICS, 2, {'topics': [{'name': t}]}),
        (DELETE_TOPICS, 1, {'names': [t]}),
        (DELETE_RECORDS, 0, {'topics': [{'name': t, 'p': [{'i': 0, 'o': 1}]}]}),
        (INIT_PRODUCER_ID, 0, {'id': g}),
        (DESCRIBE_ACLS, 1, {'type': 2, 'name': t}),
        (ALTER_CONFIGS, 0, {'r': [{'type': 2, 'name': t}]}),
        (INCREMENTAL_ALTER_CONFIGS, 0, {'r': [{'type': 2, 'name': t}]}),
        (CREATE_PARTITIONS, 0, {'topics': [{'name': t, 'a': None}]}),
        (EPOCH_END, 4, {'topics': [{'topic': t, 'partitions': [{'partition': 0, 'leader_epoch': 1}]}]}),
        (DESCRIBE_CONFIGS, 4, {'resources': [{'resource_type': 2, 'resource_name': t, 'configuration_keys': None}]}),
        (DESCRIBE_LOG_DIRS, 1, {'topics': [{'name': t, 'p': [0]}]}),
        (DESCRIBE_TOPIC_PARTITIONS, 0, {'topics': [{'name': t}]}),
        # these make a group of the asker's own: last, so that nothing above meets it
        (JOIN_GROUP, 9, {'group_id': g, 'session_timeout_ms': 6000, 'rebalance_timeout_ms': 1000, 'member_id': '', 'protocol_type': 'consumer',
                         'protocols': [{'name': 'range', 'metadata': b''}]}),
        (CONSUMER_GROUP_HEARTBEAT, 0, {'group': g + '8', 'member': '', 'topics': [t], 'parts': [], 'rebalance': 1000}),
    ]


# What lists things without being given a name.
ALL_OF_IT = [(METADATA, 0, {'topics': []}), (METADATA, 13, {'topics': None}), (LIST_GROUPS, 5, {}), (DESCRIBE_LOG_DIRS, 1, {'topics': None}),
             (LIST_CONFIG_RESOURCES, 1, {'types': []}), (LIST_CONFIG_RESOURCES, 1, {'types': [2, 32]}), (DESCRIBE_CLUSTER, 0, {}), (API_VERSIONS, 4, {}),
             (DESCRIBE_TOPIC_PARTITIONS, 0, {'topics': []}), (OFFSET_FETCH, 7, {'group_id': 'same', 'topics': None}), (DESCRIBE_GROUPS, 6, {'groups': ['same']}),
             (DESCRIBE_ACLS, 1, {'type': 1}), (DESCRIBE_CONFIGS, 4, {'resources': [{'resource_type': 4, 'resource_name': '1', 'configuration_keys': None}]}),
             (FETCH, 12, {'max_bytes': 1 << 20, 'topics': [{'topic': 'same', 'partitions': [{'partition': 0, 'fetch_offset': 0, 'partition_max_bytes': 1 << 20}]}]})]
LOGIN = {SASL_HANDSHAKE, SASL_AUTHENTICATE}    # test_auth.py


def raw(c, key, version, body):
    """The answer's bytes behind the correlation id."""
    c.correlation += 1
    c.send(encode_request(key, version, body, c.correlation, 'isolation'))
    return c.recv()[4:]


def asked(port, user, secret, rows):
    with Conn(port) as c:
        login(c, user, secret)
        return [raw(c, *row) for row in rows]


def like(answer, t, g, i):
    """Names as such, so that answers to different ones can be compared; what is drawn by lot is no difference."""
    for what, mark in ((t.encode(), b'<topic>'), (g.encode(), b'<group>'), (i.bytes, b'<id>')):
        answer = answer.replace(what, mark)
    answer = re.sub(rb'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', b'<uuid>', answer)
    return re.sub(rb'isolation-[-A-Za-z0-9_]{16,60}', b'<member>', answer)


@pytest.fixture
def server(make_server, tmp_path):
    path = write(tmp_path / 'c.yaml', {
        'acme/alpha': task({'same': 'acme/alpha-docs', 'alpha-only': 'acme/alpha-docs'}, {'token': 'alpha'}),
        'acme/bravo': task({'same': 'acme/bravo-docs', 'bravo-only': 'acme/bravo-docs'}, {'token': 'bravo'})})
    s = make_server('--catalog', path, start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    for n in ('alpha', 'bravo'):
        s.publish('acme/%s-docs' % n, [{'id': i, 'mark': n} for i in range(3 if n == 'alpha' else 30)])
    # what the other task has: commits and members, in a group of an equal name and in one of its own
    with Conn(s.kafka) as c:
        login(c, 'acme/bravo', 'bravo')
        for g in ('same', 'bravo-group'):
            r = c.call(OFFSET_COMMIT, 9, group_id=g, topics=[{'name': t, 'partitions': [{'partition_index': 0, 'committed_offset': 7777, 'committed_metadata': 'bravo'}]}
                                                             for t in ('same', 'bravo-only')])
            assert not [p for t in r['topics'] for p in t['partitions'] if p['error_code']]
    return s


def test_every_api_that_is_advertised_has_a_row(server):
    with Conn(server.kafka) as c:
        login(c, 'acme/alpha', 'alpha')
        advertised = set(c.api_versions())
    rows = {k for k, _, _ in ids_of('t', 'g', ZERO_ID) + ALL_OF_IT} | LOGIN
    assert advertised == rows, 'without a row: %s; not served: %s' % (advertised - rows, rows - advertised)
    assert json.loads(server.ports_file.read_text()).get('registry') is None, 'the registry listens: walk over its routes here too'


def test_what_belongs_to_another_task_looks_like_what_does_not_exist(server):
    with Conn(server.kafka) as c:
        login(c, 'acme/bravo', 'bravo')
        other = ('bravo-only', 'bravo-group', c.call(METADATA, 12, topics=[{'name': 'bravo-only'}])['topics'][0]['topic_id'])
    nobody = ('zzzzz-zzzz', 'yyyyy-yyyyy', type(ZERO_ID)(bytes=bytes(b ^ 0x55 if n < 4 else b for n, b in enumerate(other[2].bytes))))
    rows = ids_of(*other)
    got = asked(server.kafka, 'acme/alpha', 'alpha', rows)
    want = asked(server.kafka, 'acme/alpha', 'alpha', ids_of(*nobody))
    for (key, version, _), a, b in zip(rows, got, want):
        assert like(a, *other) == like(b, *nobody), 'API %d v%d tells the two apart' % (key, version)
    # and nothing of it had an effect on the other
    with Conn(server.kafka) as c:
        login(c, 'acme/bravo', 'bravo')
        r = c.call(OFFSET_FETCH, 7, group_id='bravo-group', topics=None)
        assert {t['name']: t['partitions'][0]['committed_offset'] for t in r['topics']} == {'same': 7777, 'bravo-only': 7777}
        g = c.call(DESCRIBE_GROUPS, 4, groups=['bravo-group'])['groups'][0]
        assert g['error_code'] == 0 and not g['members']


def test_lists_and_equal_names_show_the_own_task_alone(server):
    for (key, version, _), answer in zip(ALL_OF_IT, asked(server.kafka, 'acme/alpha', 'alpha', ALL_OF_IT)):
        assert b'bravo' not in answer, 'API %d v%d' % (key, version)
    with Conn(server.kafka) as a, Conn(server.kafka) as b:
        login(a, 'acme/alpha', 'alpha')
        login(b, 'acme/bravo', 'bravo')
        ta, tb = topics(a, 12), topics(b, 12)
        assert set(ta) == {'same', 'alpha-only'} and set(tb) == {'same', 'bravo-only'}
        assert ta['same']['topic_id'] != tb['same']['topic_id']
        assert values(a.records_from('same', 0, 0)[0]) == [0, 1, 2]
        assert a.list_offset('same', 0, LATEST)['offset'] != b.list_offset('same', 0, LATEST)['offset']
        # by the other's id there is nothing
        p = a.fetch('same', 0, 0, version=13, topic_id=tb['same']['topic_id'])
        assert p['error_code'] == 100
        # a session of the other is none of ours
        r = b.finish(FETCH, 12, b.fetch_start('same', {0: 0}, 12, session_epoch=0))
        stolen = a.finish(FETCH, 12, a.fetch_start('same', {}, 12, session_id=r['session_id'], session_epoch=1))
        assert stolen['error_code'] == 70 and not stolen['responses']
        # commits of one group id are two
        at = a.call(OFFSET_FETCH, 7, group_id='same', topics=[{'name': 'same', 'partition_indexes': [0]}])['topics'][0]['partitions'][0]
        assert at['committed_offset'] == -1
        a.call(OFFSET_COMMIT, 9, group_id='same', topics=[{'name': 'same', 'partitions': [{'partition_index': 0, 'committed_offset': 5}]}])
        for c, want in ((a, 5), (b, 7777)):
            at = c.call(OFFSET_FETCH, 7, group_id='same', topics=[{'name': 'same', 'partition_indexes': [0]}])['topics'][0]['partitions'][0]
            assert at['committed_offset'] == want
        names = lambda c: {g['group_id'] for g in c.call(LIST_GROUPS, 4)['groups']}
        assert names(a) == {'same'} and names(b) == {'same', 'bravo-group'}
        assert a.call(DELETE_GROUPS, 2, groups_names=['same'])['results'][0]['error_code'] == 0
        assert names(a) == set() and names(b) == {'same', 'bravo-group'}
