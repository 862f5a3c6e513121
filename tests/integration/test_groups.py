"""Consumer groups by the classic protocol: raw calls in every version, every real client, three kinds of client in one group,
commits over restarts, kill -9 and backfills, field cases 25, 27, 29 and 31."""
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

import auth_lab
import clients
from clients import CONSUME, LAB, LAB_DIR, PY, need
from groups_raw import (DELETE_GROUPS, DESCRIBE_GROUPS, HEARTBEAT, LEAVE_GROUP, LIST_GROUPS, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH,
                        SYNC_GROUP, GroupTap, Raw)
from kafka_raw import FIND_COORDINATOR, JOIN_GROUP, LATEST, Conn
from sluice import Server

SERVER_FLAGS = ('--group-min-session-timeout', '1s')
UNKNOWN_MEMBER, REBALANCE, ILLEGAL_GENERATION, MEMBER_ID_REQUIRED = 25, 27, 22, 79


def fill(s, topic, n=40, partitions=4):
    s.publish(topic, [{'id': 'k%d' % i, 'n': i} for i in range(n)], partitions=partitions, key='/id')
    return n


# --- raw ------------------------------------------------------------------------------------------------------------

def test_every_version_of_every_call_is_answered_in_its_layout(srv, topic):
    """kafka_raw decodes every byte by tables of its own."""
    fill(srv, topic)
    with Conn(srv.kafka) as c:
        offered = c.api_versions()
        tid = c.metadata(topic, 12)['topic_id']
    for v in range(offered[FIND_COORDINATOR][0], offered[FIND_COORDINATOR][1] + 1):
        with Conn(srv.kafka) as c:
            r = c.call(FIND_COORDINATOR, v, **({'key': 'g'} if v < 4 else {'coordinator_keys': ['g', 'h']}))
            for x in [r] if v < 4 else r['coordinators']:
                assert (x['error_code'], x['node_id'], x['port']) == (0, 1, srv.kafka)
            if v >= 1:    # transactions: no coordinator
                r = c.call(FIND_COORDINATOR, v, key_type=1, **({'key': 'g'} if v < 4 else {'coordinator_keys': ['g']}))
                assert (r if v < 4 else r['coordinators'][0])['error_code'] == 15
    for v in range(offered[JOIN_GROUP][0], offered[JOIN_GROUP][1] + 1):
        g = Raw(srv.kafka, '%s-%d' % (topic, v))
        j = g.join(topic, version=v)
        if v >= 4:
            assert (j['error_code'], j['generation_id']) == (MEMBER_ID_REQUIRED, -1)
            j = g.join(topic, version=v, member=j['member_id'])
        assert (j['error_code'], j['generation_id'], j['protocol_name'], len(j['members'])) == (0, 1, 'range', 1)
        assert j['leader'] == j['member_id'] and j.get('protocol_type', 'consumer') == 'consumer'
        sv = min(v, offered[SYNC_GROUP][1])
        assert g.sync(1, j['member_id'], [(j['member_id'], b'mine')], version=sv)['assignment'] == b'mine'
        assert g.heartbeat(1, j['member_id'], version=min(v, offered[HEARTBEAT][1])) == 0
        lv = min(v, offered[LEAVE_GROUP][1])
        body = {'member_id': j['member_id']} if lv < 3 else {'members': [{'member_id': j['member_id']}]}
        r = g.c.call(LEAVE_GROUP, lv, group_id=g.group, **body)
        assert r['error_code'] == 0 and all(m['error_code'] == 0 for m in r.get('members', []))
    for v in range(offered[OFFSET_COMMIT][0], offered[OFFSET_COMMIT][1] + 1):
        g = Raw(srv.kafka, topic + '-oc')
        t = {'partitions': [{'partition_index': 1, 'committed_offset': 100 + v, 'committed_metadata': 'm'}]}
        t.update({'topic_id': tid} if v >= 10 else {'name': topic})
        r = g.c.call(OFFSET_COMMIT, v, group_id=g.group, topics=[t])
        assert r['topics'][0]['partitions'] == [{'partition_index': 1, 'error_code': 0}]
        assert g.committed(topic, 1)['committed_offset'] == 100 + v
    for v in range(offered[OFFSET_FETCH][0], offered[OFFSET_FETCH][1] + 1):
        want = 100 + offered[OFFSET_COMMIT][1]
        t = {'partition_indexes': [1, 0]}
        t.update({'topic_id': tid} if v >= 10 else {'name': topic})
        if v < 8:
            r = g.c.call(OFFSET_FETCH, v, group_id=g.group, topics=[t])
        else:
            r = g.c.call(OFFSET_FETCH, v, groups=[{'group_id': g.group, 'topics': [t]}])['groups'][0]
        got = {p['partition_index']: (p['committed_offset'], p['metadata'], p['error_code']) for p in r['topics'][0]['partitions']}
        assert got == {1: (want, 'm', 0), 0: (-1, '', 0)}
    for key, body in ((DESCRIBE_GROUPS, {'groups': [topic + '-oc']}), (LIST_GROUPS, {}), (DELETE_GROUPS, {'groups_names': ['no-such']}),
                      (OFFSET_DELETE, {'group_id': 'no-such', 'topics': []})):
        for v in range(offered[key][0], offered[key][1] + 1):
            r = g.c.call(key, v, **body)
            if key == DESCRIBE_GROUPS:
                assert r['groups'][0]['group_state'] == 'Empty'
            elif key == LIST_GROUPS:
                assert topic + '-oc' in [x['group_id'] for x in r['groups']]
            elif key == DELETE_GROUPS:
                assert r['results'] == [{'group_id': 'no-such', 'error_code': 69}]
            else:
                assert r['error_code'] == 69


def test_case_25_a_join_without_a_rebalance_timeout_is_no_loop(srv, topic):
    fill(srv, topic)
    for version, rebalance in ((0, None), (1, -1), (3, 0)):
        group = '%s-%d' % (topic, version)
        a, b = Raw(srv.kafka, group, 'a'), Raw(srv.kafka, group, 'b')
        ja = a.join(topic, version=version, session=3000, rebalance=rebalance)
        a.sync(ja['generation_id'], ja['member_id'], [(ja['member_id'], b'x')])
        b.join_start(topic, version=version, session=3000, rebalance=rebalance)
        time.sleep(1)    # a hears of it by its next heartbeat only
        assert a.heartbeat(ja['generation_id'], ja['member_id']) == REBALANCE
        ja = a.join(topic, member=ja['member_id'], version=version, session=3000, rebalance=rebalance)
        jb = b.join_finish()
        assert ja['error_code'] == jb['error_code'] == 0
        assert ja['generation_id'] == jb['generation_id'] == 2
        a.sync(2, ja['member_id'], [(ja['member_id'], b'x'), (jb['member_id'], b'y')])
        assert b.sync(2, jb['member_id'])['assignment'] == b'y'
        for _ in range(3):
            time.sleep(0.5)
            assert a.heartbeat(2, ja['member_id']) == b.heartbeat(2, jb['member_id']) == 0


def test_case_29_all_offsets_none_and_unknown_groups(srv, topic):
    fill(srv, topic)
    g1, g2 = Raw(srv.kafka, topic + '1'), Raw(srv.kafka, topic + '2')
    assert g2.commit(topic, 0, 7) == 0
    j = g1.join(topic)
    g1.sync(1, j['member_id'], [(j['member_id'], b'')])
    assert g1.commit(topic, 1, 9, 1, j['member_id']) == 0
    for v in range(2, 8):
        r = g1.c.call(OFFSET_FETCH, v, group_id=g1.group, topics=None)
        assert [(t['name'], [p['committed_offset'] for p in t['partitions']]) for t in r['topics']] == [(topic, [9])]
        assert g1.c.call(OFFSET_FETCH, v, group_id=g1.group, topics=[])['topics'] == []
    for v in (8, 9):
        r = g1.c.call(OFFSET_FETCH, v, groups=[{'group_id': g.group, 'topics': None} for g in (g1, g2)] + [{'group_id': 'nix', 'topics': None}])
        assert [[p['committed_offset'] for t in g['topics'] for p in t['partitions']] for g in r['groups']] == [[9], [7], []]
        assert [g['error_code'] for g in r['groups']] == [0, 0, 0]
    d = g1.c.call(DESCRIBE_GROUPS, 5, groups=[g1.group, g2.group, 'nix'])['groups']
    assert [x['group_state'] for x in d] == ['Stable', 'Empty', 'Dead']
    assert [x['error_code'] for x in d] == [0, 0, 0]
    assert g1.c.call(DESCRIBE_GROUPS, 6, groups=['nix'])['groups'][0]['error_code'] == 69


def test_case_31_commits_expire_without_members_only_and_survive_a_restart(make_server):
    s = make_server('--group-offsets-retention', '3s', *SERVER_FLAGS)
    fill(s, 't')
    g = Raw(s.kafka, 'g')
    assert g.committed('t', 0)['committed_offset'] == -1
    j = g.join('t')
    g.sync(1, j['member_id'], [(j['member_id'], b'')])
    assert g.commit('t', 0, 1000, 1, j['member_id']) == 0
    for _ in range(10):
        time.sleep(0.5)
        assert g.heartbeat(1, j['member_id']) == 0
    assert g.committed('t', 0)['committed_offset'] == 1000
    s.restart()
    g = Raw(s.kafka, 'g')
    assert g.committed('t', 0)['committed_offset'] == 1000
    time.sleep(6)
    assert (g.committed('t', 0)['committed_offset'], g.committed('t', 0)['error_code']) == (-1, 0)


def test_static_members_come_back_without_a_rebalance_and_fence_their_predecessors(srv, topic):
    fill(srv, topic)
    g = Raw(srv.kafka, topic)
    j = g.join(topic, version=5, instance='i')
    assert j['error_code'] == 0
    g.sync(1, j['member_id'], [(j['member_id'], b'x')])
    again = Raw(srv.kafka, topic)
    k = again.join(topic, version=5, instance='i')
    assert (k['error_code'], k['generation_id']) == (0, 1) and k['member_id'] != j['member_id']
    assert again.sync(1, k['member_id'])['assignment'] == b'x'
    r = g.c.call(HEARTBEAT, 3, group_id=topic, generation_id=1, member_id=j['member_id'], group_instance_id='i')
    assert r['error_code'] == 82
    r = g.c.call(LEAVE_GROUP, 3, group_id=topic, members=[{'member_id': '', 'group_instance_id': 'i'}, {'member_id': 'ghost'}])
    assert [m['error_code'] for m in r['members']] == [0, UNKNOWN_MEMBER]


def test_commits_belong_to_the_epoch_of_their_topic(make_server, until):
    """Dekaf's 'offset isolation after reset' and its successor #2700: after a raise the old commit reads as none, the new one
    stays; a late one is harmless; members rebalance."""
    s = make_server('--journal-admin', *SERVER_FLAGS)
    fill(s, 't', partitions=1)
    g = Raw(s.kafka, 'g')
    j = g.join('t')
    g.sync(1, j['member_id'], [(j['member_id'], b'')])
    epoch = g.c.metadata('t')['partitions'][0]['leader_epoch']
    assert g.commit('t', 0, 50, 1, j['member_id'], epoch) == 0
    assert g.committed('t', 0)['committed_leader_epoch'] == epoch
    name = [x['name'] for x in s.get_json('/v1/journals')['journals']][0]
    assert s.request('DELETE', '/v1/journals/' + name)[0] in (200, 204)
    fill(s, 't', partitions=1)
    until(lambda: g.c.metadata('t')['partitions'] and g.c.metadata('t')['partitions'][0]['leader_epoch'] == epoch + 1, 10, 'a raised epoch')
    until(lambda: g.heartbeat(1, j['member_id']) == REBALANCE, 5, 'members hear of it')
    c = g.committed('t', 0)
    assert (c['committed_offset'], c['committed_leader_epoch'], c['error_code']) == (-1, -1, 0)
    assert g.commit('t', 0, 60, 1, j['member_id']) == ILLEGAL_GENERATION
    assert g.commit('t', 0, 60, 1, j['member_id'], epoch) == 0
    assert g.committed('t', 0)['committed_offset'] == -1
    j = g.join('t', member=j['member_id'])
    g.sync(2, j['member_id'], [(j['member_id'], b'')])
    assert g.commit('t', 0, 5, 2, j['member_id']) == 0
    assert (g.committed('t', 0)['committed_offset'], g.committed('t', 0)['committed_leader_epoch']) == (5, epoch + 1)
    s.restart()
    assert Raw(s.kafka, 'g').committed('t', 0)['committed_offset'] == 5


def test_an_answered_commit_survives_kill_9(make_server):
    s = make_server(*SERVER_FLAGS)
    fill(s, 't')
    last = {}
    for life in range(3):
        gs = [Raw(s.kafka, 'g%d' % i) for i in range(4)]
        for i, g in enumerate(gs):
            if i in last:
                assert g.committed('t', 1)['committed_offset'] == last[i]
        for n in range(20):
            for i, g in enumerate(gs):
                assert g.commit('t', 1, life * 1000 + n) == 0
                last[i] = life * 1000 + n
        s.kill()
        s.start()
    g = Raw(s.kafka, 'g0')
    j1 = g.join('t')['generation_id']
    s.kill()
    s.start()
    assert Raw(s.kafka, 'g0').join('t')['generation_id'] > j1


def test_a_stop_lets_waiting_members_go(make_server):
    """Who waits in a join is answered at once, and finds the group again after the restart."""
    s = make_server(*SERVER_FLAGS)
    fill(s, 't')
    a, b = Raw(s.kafka, 'g'), Raw(s.kafka, 'g')
    j = a.join('t')
    a.sync(1, j['member_id'], [(j['member_id'], b'')])
    b.join_start('t', rebalance=60000)
    time.sleep(0.3)
    took = s.stop()
    assert b.join_finish()['error_code'] == 15
    assert took < 5
    s.start()
    j = Raw(s.kafka, 'g').join('t')
    assert (j['error_code'], len(j['members'])) == (0, 1) and j['generation_id'] > 1


def test_a_connect_group_has_its_own_protocol(srv, topic):
    g = Raw(srv.kafka, topic)
    j = g.join(topic, kind='connect', protocol='sessioned')
    assert (j['error_code'], j['protocol_name']) == (0, 'sessioned')
    h = Raw(srv.kafka, topic)
    assert h.join(topic)['error_code'] == 23
    assert g.c.call(DESCRIBE_GROUPS, 4, groups=[topic])['groups'][0]['protocol_type'] == 'connect'


def test_a_topic_without_journals_never_blocks_the_rest_of_a_group(srv, topic):
    fill(srv, topic)
    g = Raw(srv.kafka, topic)
    r = g.c.call(OFFSET_COMMIT, 7, group_id=g.group, topics=[
        {'name': 'nix-' + topic, 'partitions': [{'partition_index': 0, 'committed_offset': 1, 'committed_metadata': ''}]},
        {'name': topic, 'partitions': [{'partition_index': 0, 'committed_offset': 5, 'committed_metadata': ''}]}])
    assert [t['partitions'][0]['error_code'] for t in r['topics']] == [3, 0]
    assert g.committed(topic, 0)['committed_offset'] == 5
    r = g.c.call(OFFSET_FETCH, 7, group_id=g.group, topics=[{'name': n, 'partition_indexes': [0]} for n in ('nix-' + topic, topic)])
    assert [(t['partitions'][0]['error_code'], t['partitions'][0]['committed_offset']) for t in r['topics']] == [(0, -1), (0, 5)]


# --- tasks ------------------------------------------------------------------------------------------------------------

def test_an_offset_that_is_deleted_many_times_in_one_request_is_deleted_once(srv, topic):
    """The operations are counted by what is stored, whatever the request repeats."""
    fill(srv, topic)
    g = Raw(srv.kafka, topic)
    assert g.commit(topic, 0, 7) == 0
    for times in (2, 1000):
        again = [{'name': topic, 'partitions': [{'partition_index': 0}] * times}] * 2
        r = g.c.call(OFFSET_DELETE, 0, group_id=g.group, topics=again)
        assert [len(t['partitions']) for t in r['topics']] == [times, times]
        assert {p['error_code'] for t in r['topics'] for p in t['partitions']} == {0}
        assert g.committed(topic, 0)['committed_offset'] == -1
        assert g.commit(topic, 0, 8) == 0


def test_names_that_are_no_text_are_refused_and_metrics_stay_readable(srv, topic):
    """One client's group must not make the metrics of all unreadable: they are UTF-8."""
    fill(srv, topic)
    for bad in (b'\xff\xfe', b'\xed\xa0\x80', b'a\0b'):
        g = Raw(srv.kafka, bad)
        assert g.commit(topic, 0, 2) == 24
        assert g.c.call(OFFSET_FETCH, 7, group_id=bad, topics=None)['error_code'] == 24
        assert g.join(topic, version=3)['error_code'] == 24
        g = Raw(srv.kafka, topic + '-i')
        assert g.join(topic, version=5, instance=bad)['error_code'] == 42
    assert Raw(srv.kafka, topic + '-i').join(topic, version=5, instance='')['error_code'] == 42    # one identity for all
    g = Raw(srv.kafka, topic + '-\u00fc')
    assert g.commit(topic, 0, 2) == 0
    assert g.group.encode() in urllib.request.urlopen('http://127.0.0.1:%d/metrics' % srv.admin).read()
    urllib.request.urlopen('http://127.0.0.1:%d/metrics' % srv.admin).read().decode()


def test_tasks_share_no_group(make_server, tmp_path):
    """Design: groups are named by task and id. The same id in two tasks is two groups (Dekaf's issue 2060)."""
    path = auth_lab.write_catalog(tmp_path / 'c.yaml', {'a': ('secret-a', {'t': 'acme/t'}), 'b': ('secret-b', {'t': 'acme/t'})})
    s = make_server('--catalog', str(path), start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    s.publish('acme/t', [{'id': 1}])
    a, b = Raw(s.kafka, 'g'), Raw(s.kafka, 'g')
    for g, task in ((a, 'a'), (b, 'b')):
        auth_lab.login(g.c, task, 'secret-' + task)
    j = a.join('t')
    a.sync(1, j['member_id'], [(j['member_id'], b'')])
    assert a.commit('t', 0, 5, 1, j['member_id']) == 0
    assert b.committed('t', 0)['committed_offset'] == -1
    assert b.heartbeat(1, j['member_id']) == UNKNOWN_MEMBER
    assert b.c.call(LIST_GROUPS, 4)['groups'] == []
    assert b.c.call(DELETE_GROUPS, 1, groups_names=['g'])['results'][0]['error_code'] == 69
    k = b.join('t')
    assert (k['error_code'], k['generation_id'], len(k['members'])) == (0, 1, 1)
    assert a.heartbeat(1, j['member_id']) == 0
    assert [x['group_id'] for x in a.c.call(LIST_GROUPS, 4)['groups']] == ['g']


def test_a_task_that_moved_has_no_groups_here(make_server, tmp_path, until):
    doc = auth_lab.write_catalog(tmp_path / 'c.yaml', {'a': ('x', {'t': 'acme/t'})})
    doc = json.loads(open(doc).read())
    del doc['materializations']['a']['endpoint']['dekaf']['config']['token']
    (tmp_path / 'c.yaml').write_text(json.dumps(doc))
    s = make_server('--catalog', str(tmp_path / 'c.yaml'))
    s.publish('acme/t', [{'id': 1}])
    g = Raw(s.kafka, 'g')
    j = g.join('t')
    g.sync(1, j['member_id'], [(j['member_id'], b'')])
    doc['materializations']['a']['endpoint']['dekaf']['config']['sluice']['redirect'] = 'elsewhere.test:9'
    (tmp_path / 'c.yaml').write_text(json.dumps(doc))
    until(lambda: g.heartbeat(1, j['member_id']) == 16, 10, 'the move')
    assert g.join('t')['error_code'] == 16
    assert g.sync(1, 'x')['error_code'] == 16
    assert g.leave('x') == 16
    assert g.commit('t', 0, 1) == 16
    r = g.c.call(OFFSET_FETCH, 1, group_id='g', topics=[{'name': 't', 'partition_indexes': [0]}])
    assert r['topics'][0]['partitions'][0] == {'partition_index': 0, 'committed_offset': -1, 'metadata': '', 'error_code': 16}
    r = g.c.call(FIND_COORDINATOR, 1, key='g')
    assert (r['error_code'], r['host'], r['port']) == (0, 'elsewhere.test', 9)


@pytest.mark.parametrize('kind', ['confluent', 'franz-go', 'franz-go-range', 'franz-go-next', 'kafka-python', 'sarama', 'kafkajs', 'java'])
def test_a_backfill_starts_a_running_group_over(make_server, tmp_path, until, kind):
    """The binding's counter rises: members rebalance, find no commit, and begin by their reset policy. What is loaded again is
    delivered again. The topic's id stays (O12): franz-go never goes on under another one."""
    doc = {'collections': {'acme/t': {'schema': {'type': 'object'}, 'key': ['/id']}},
           'materializations': {'a': {'endpoint': {'dekaf': {'variant': 'v', 'config': {'sluice': {'value_format': 'json'}}}},
                                      'bindings': [{'source': 'acme/t', 'resource': {'topic_name': 't'}, 'backfill': 0}]}}}
    path = tmp_path / 'c.yaml'
    path.write_text(json.dumps(doc))
    s = make_server('--catalog', str(path))
    s.publish('acme/t', [{'id': i} for i in range(20)], partitions=2, key='/id')
    m = Member(kind, s.bootstrap, 't', 'g', tmp_path)
    try:
        until(lambda: len(m.records()) >= 20, 20, 'the first life')
        g = Raw(s.kafka, 'g')
        until(lambda: sum(g.committed('t', p)['committed_offset'] > 0 for p in (0, 1)) == 2, 10, 'commits')
        doc['materializations']['a']['bindings'][0]['backfill'] = 1
        path.write_text(json.dumps(doc))
        until(lambda: g.c.metadata('t')['partitions'][0]['leader_epoch'] == 2, 10, 'the raise')
        until(lambda: len(m.records()) >= 40, 30, 'the second life: %s' % m.err.read_text()[-300:])
        assert len(set(m.records())) == 20
        until(lambda: sum(g.committed('t', p)['committed_leader_epoch'] == 2 for p in (0, 1)) == 2, 10, 'commits of the second life')
    finally:
        m.end()


# --- real clients -----------------------------------------------------------------------------------------------------

NODE = LAB_DIR / 'node/consume.js'
MEMBERS = {
    'confluent': (PY['main'], lambda b, t, g: [PY['main'], CONSUME, 'confluent', '-b', b, '-t', t, '-g', g, '-X', 'session.timeout.ms=6000',
                                              '-X', 'heartbeat.interval.ms=1000', '-X', 'auto.commit.interval.ms=500']),
    'confluent-coop': (PY['main'], lambda b, t, g: [PY['main'], CONSUME, 'confluent', '-b', b, '-t', t, '-g', g, '-X', 'session.timeout.ms=6000',
                                                   '-X', 'heartbeat.interval.ms=1000', '-X', 'partition.assignment.strategy=cooperative-sticky']),
    'kafka-python': (PY['main'], lambda b, t, g: [PY['main'], CONSUME, 'kafka-python', '-b', b, '-t', t, '-g', g, '-X', 'session_timeout_ms=6000',
                                                 '-X', 'heartbeat_interval_ms=1000', '-X', 'auto_commit_interval_ms=500']),
    'aiokafka': (PY['main'], lambda b, t, g: [PY['main'], CONSUME, 'aiokafka', '-b', b, '-t', t, '-g', g, '-X', 'session_timeout_ms=6000',
                                             '-X', 'heartbeat_interval_ms=1000', '-X', 'auto_commit_interval_ms=500']),
    'franz-go': (LAB / 'bin/lab-franz', lambda b, t, g: [LAB / 'bin/lab-franz', '-b', b, '-t', t, '-g', g, '-session', '6s']),
    'franz-go-range': (LAB / 'bin/lab-franz', lambda b, t, g: [LAB / 'bin/lab-franz', '-b', b, '-t', t, '-g', g, '-session', '6s', '-range']),
    'franz-go-next': (LAB / 'bin/lab-franz', lambda b, t, g: [LAB / 'bin/lab-franz', '-b', b, '-t', t, '-g', g, '-session', '6s', '-m', 'next']),
    'sarama': (LAB / 'bin/lab-sarama', lambda b, t, g: [LAB / 'bin/lab-sarama', '-b', b, '-t', t, '-g', g, '-session', '6s']),
    'kafka-go': (LAB / 'bin/lab-kafkago', lambda b, t, g: [LAB / 'bin/lab-kafkago', '-b', b, '-t', t, '-g', g]),
    'kafkajs': (LAB / 'node/.locked', lambda b, t, g: ['node', NODE, 'kafkajs', b, t, g]),
    'java': (clients.JAVA, lambda b, t, g: [LAB_DIR / 'kt', 'console-consumer', '--bootstrap-server', b, '--topic', t, '--group', g, '--from-beginning',
        *[x for kv in ('session.timeout.ms=6000', 'heartbeat.interval.ms=1000', 'auto.commit.interval.ms=500') for x in ('--command-property', kv)],
        '--formatter-property', 'print.partition=true', '--formatter-property', 'print.offset=true']),
    'platformatic': (LAB / 'node/.locked', lambda b, t, g: ['node', NODE, 'platformatic', b, t, g]),
}


def command(kind, b, t, g):
    path, make = MEMBERS[kind]
    need(path, 'lab')
    return [str(x) for x in make(b, t, g)]


@pytest.mark.parametrize('kind', sorted(set(MEMBERS) - {'java'}))
def test_a_client_reads_all_commits_and_goes_on_where_it_was(srv, topic, kind):
    """commit and resume: the second run of the group gets only what came since."""
    n = fill(srv, topic)
    cmd = command(kind, srv.bootstrap, topic, topic)
    got = clients.dumped(cmd, idle_ms=2500)
    assert len({(r.partition, r.offset) for r in got}) == n
    hw = {}
    with Conn(srv.kafka) as c:
        hw = {p: c.list_offset(topic, p, LATEST)['offset'] for p in range(4)}
    g = Raw(srv.kafka, topic)
    last = {}
    for r in got:
        last[r.partition] = max(last.get(r.partition, -1), r.offset)
    for p, o in last.items():
        committed = g.committed(topic, p)['committed_offset']
        assert committed == o + 1 == hw[p]    # lag 0
    fill(srv, topic, 8)
    if kind == 'platformatic':
        return    # the lab runs it with mode: earliest, which does not ask for commits
    again = clients.dumped(cmd, idle_ms=2500)
    assert len({(r.partition, r.offset) for r in again}) == 8
    assert all(r.offset > last[r.partition] for r in again)


def test_java_reads_by_a_group_and_its_tool_shows_lag_0(srv, topic):
    n = fill(srv, topic)
    out = clients.kt('console-consumer', '--bootstrap-server', srv.bootstrap, '--topic', topic, '--group', topic, '--from-beginning',
                     '--timeout-ms', clients.patience(4000)).stdout
    assert len([x for x in out.split(b'\n') if x.startswith(b'{')]) == n
    out = clients.kt('consumer-groups', '--bootstrap-server', srv.bootstrap, '--describe', '--group', topic).stdout.decode()
    rows = [x.split() for x in out.splitlines() if topic in x]
    assert len(rows) == 4 and all(r[5] == '0' for r in rows), out


def test_librdkafka_with_a_group_closes_at_once(srv, topic):
    fill(srv, topic)
    need(PY['main'], 'py-install.sh main')
    code = ('import sys, time, confluent_kafka as ck\n'
            'b, t = sys.argv[1:]\n'
            'c = ck.Consumer({"bootstrap.servers": b, "group.id": t + "-assign", "enable.auto.commit": False})\n'
            'c.assign([ck.TopicPartition(t, 0, 0)])\n'
            'assert c.poll(10) is not None\n'
            't0 = time.time(); c.close(); print(time.time() - t0)\n'
            'c = ck.Consumer({"bootstrap.servers": b, "group.id": t + "-sub", "auto.offset.reset": "earliest"})\n'
            'c.subscribe([t])\n'
            'assert c.poll(20) is not None\n'
            't0 = time.time(); c.close(); print(time.time() - t0)\n')
    out = clients.run([PY['main'], '-c', code, srv.bootstrap, topic]).stdout
    assert all(float(x) < 2 * clients.busy() for x in out.split()), out


class Member:
    """A client that stays; what it delivered lies in its dump, written record by record."""
    def __init__(self, kind, b, t, g, folder, tag=''):
        self.kind, self.file, self.err = kind, folder / ('%s%s.dump' % (kind, tag)), folder / ('%s%s.err' % (kind, tag))
        env = dict(os.environ, LAB=str(LAB), LAB_DUMP=str(self.file), LAB_IDLE_MS='100000000', LAB_FLUSH='1', LAB_SESSION_MS='6000')
        with open(self.err, 'wb') as out, open(self.file if kind == 'java' else self.err, 'ab') as text:
            self.p = subprocess.Popen(command(kind, b, t, g), stdout=text, stderr=out, stdin=subprocess.DEVNULL, env=env)

    def records(self):
        if not self.file.exists():
            return []
        out = []
        for line in self.file.read_bytes().split(b'\n')[:-1]:
            f = line.split(b'\t')
            if self.kind == 'java' and len(f) == 3:    # Partition:0 Offset:73 value
                out.append((int(f[0].split(b':')[1]), int(f[1].split(b':')[1])))
            elif len(f) == 5:
                out.append((int(f[0]), int(f[1])))
        return out

    def signal(self, sig):
        if self.p.poll() is None:
            self.p.send_signal(sig)

    def end(self):
        self.signal(signal.SIGCONT)
        if self.p.poll() is None:
            self.p.kill()
        self.p.wait(20)


@pytest.fixture
def tapped(tmp_path):
    """make(*flags): a server whose clients come through a tap that notes their group calls."""
    made = []

    def make(*flags):
        tap = GroupTap()
        work = tmp_path / ('tapped%d' % len(made))
        work.mkdir()
        s = Server(work / 'data', work, ('--kafka-advertise', tap.address, *SERVER_FLAGS, *flags)).start()
        tap.target = s.kafka
        made.append((s, tap))
        return s, tap
    yield make
    for s, tap in made:
        tap.stop()
        s.stop()


@pytest.mark.parametrize('kinds', [('confluent', 'franz-go-range', 'kafka-python'), ('sarama', 'java', 'kafka-python')], ids='+'.join)
def test_case_27_three_kinds_of_client_share_a_group(tapped, tmp_path, until, kinds):
    """A second and a third member get their share; one that is killed gives it back; one that leaves, at once. (kafka-go cannot
    lead a group with a current Java member: it does not understand that one's subscription, and leaves.)"""
    s, tap = tapped()
    n = fill(s, 't', 30, 3)
    tap.know('t')
    members, extra = [], []
    try:
        for k, kind in enumerate(kinds):
            members.append(Member(kind, tap.address, 't', 'g', tmp_path))
            until(lambda: sorted(len(o.partitions) for o in newest(tap)) == sorted([3 // (k + 1)] * (k + 1) if k != 1 else [1, 2]), 25,
                  'shares of %d members: %s' % (k + 1, newest(tap)))
        members[0].p.kill()
        until(lambda: sorted(len(o.partitions) for o in newest(tap)) == [1, 2], 25, 'two members after a death')
        members[1].signal(signal.SIGTERM)
        members[1].p.wait(20)
        until(lambda: [len(o.partitions) for o in newest(tap)] == [3], 25, 'one member after another one')
        n += fill(s, 't', 12, 3)
        until(lambda: len({r for m in members + extra for r in m.records()}) == n, 20, 'every document')
        tap.check_ownership()
        tap.check_commits()
        assert not tap.errors, tap.errors
    finally:
        for m in members + extra:
            m.end()


def newest(tap):
    """What the members of the newest generation own."""
    owned = list(tap.owned)
    top = max((o.generation for o in owned), default=0)
    return list({o.member: o for o in owned if o.generation == top}.values())


def test_a_commit_storm_is_fsynced_in_groups(srv, topic, figures):
    """Many committers: many commits an fsync."""
    fill(srv, topic)
    gs = [Raw(srv.kafka, '%s-%d' % (topic, i)) for i in range(32)]
    t0, n = time.monotonic(), 0
    while time.monotonic() - t0 < 1.5:
        at = [g.c.start(OFFSET_COMMIT, 7, group_id=g.group, topics=[{'name': topic, 'partitions': [
            {'partition_index': 0, 'committed_offset': n, 'committed_metadata': ''}]}]) for g in gs]
        for g, a in zip(gs, at):
            assert g.c.finish(OFFSET_COMMIT, 7, a)['topics'][0]['partitions'][0]['error_code'] == 0
            n += 1
    figures('%d commits a second' % (n / (time.monotonic() - t0)))
    assert all(g.committed(topic, 0)['committed_offset'] >= n - 64 for g in gs)
