"""Groups by KIP-848, and what operators see of groups: raw heartbeats, every client that speaks the protocol, two members side by
side, kill -9 of the server, Kafka's tools, the command line, the lag. Field case 29."""
import json
import re
import subprocess
import time

import clients
from clients import CONSUME, LAB, LAB_DIR, PY, kt, need, patience
from groups_raw import DESCRIBE_GROUPS, LIST_GROUPS, OFFSET_COMMIT, OFFSET_FETCH, Raw
from kafka_raw import A, AN, APIS, Api, Conn, F
from sluice import BIN

HEARTBEAT848, DESCRIBE848, LOG_DIRS, CONFIG_RESOURCES = 68, 69, 35, 74
PARTS = A([F('topic_id', 'uuid'), F('partitions', A('int32'))])
NAMED = A([F('topic_id', 'uuid'), F('topic_name', 'string'), F('partitions', A('int32'))])

APIS.update({
    LOG_DIRS: Api(LOG_DIRS, 1, 5, 2,
        [F('topics', AN([F('topic', 'string'), F('partitions', A('int32'))]))],
        [F('throttle_time_ms', 'int32'), F('error_code', 'int16', 3),
         F('results', A([F('error_code', 'int16'), F('log_dir', 'string'),
                         F('topics', A([F('name', 'string'),
                                        F('partitions', A([F('partition_index', 'int32'), F('partition_size', 'int64'),
                                                           F('offset_lag', 'int64'), F('is_future_key', 'bool')]))])),
                         F('total_bytes', 'int64', 4), F('usable_bytes', 'int64', 4), F('is_cordoned', 'bool', 5)]))]),
    CONFIG_RESOURCES: Api(CONFIG_RESOURCES, 0, 1, 0,
        [F('resource_types', A('int8'), 1)],
        [F('throttle_time_ms', 'int32'), F('error_code', 'int16'),
         F('config_resources', A([F('resource_name', 'string'), F('resource_type', 'int8', 1)]))]),
})


def fill(s, topic, n=60, partitions=4):
    s.publish(topic, [{'id': 'k%d' % i, 'n': i} for i in range(n)], partitions=partitions, key='/id')
    return n


def groups(s, path='', method='GET', expect=200):
    status, body, _ = s.request(method, '/v1/groups' + path)
    assert status == expect, (status, body)
    return json.loads(body)


def cli(s, *args, check=True):
    p = subprocess.run([BIN, 'groups', *args, '--admin', s.admin_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    if check:
        assert p.returncode == 0, p.stderr
    return p


def consume(s, topic, group, cmd, n):
    """Runs one of the lab's programs to its end; it read n records and committed them."""
    p = clients.run(cmd, 90)
    got = re.findall(r'records=(\d+)', p.stdout.decode())
    assert got and int(got[-1]) == n, p.stdout[-300:]
    g = groups(s, '/' + group)
    assert (g['type'], g['lag']) == ('Consumer', 0), g
    return g


# --- clients --------------------------------------------------------------------------------------------------------

def test_librdkafka_reads_and_commits(srv, topic):
    need(PY['main'], 'py-install.sh')
    n = fill(srv, topic)
    g = consume(srv, topic, topic, [PY['main'], CONSUME, 'confluent', '-m', 'next', '-b', srv.bootstrap, '-t', topic, '-g', topic], n)
    assert g['state'] == 'Empty' and len(g['offsets']) == 4
    # A second one goes on where the first ended: with what came since, once.
    fill(srv, topic, 15)
    consume(srv, topic, topic, [PY['main'], CONSUME, 'confluent', '-m', 'next', '-b', srv.bootstrap, '-t', topic, '-g', topic], 15)


def test_franz_go_reads_and_commits(srv, topic):
    need(LAB / 'bin/lab-franz', 'go-install.sh')
    consume(srv, topic, topic, [LAB / 'bin/lab-franz', '-m', 'next', '-b', srv.bootstrap, '-t', topic, '-g', topic], fill(srv, topic))


def test_java_reads_and_commits(srv, topic):
    n = fill(srv, topic)
    p = kt('console-consumer', '--bootstrap-server', srv.bootstrap, '--topic', topic, '--from-beginning', '--timeout-ms', patience(5000),
           '--group', topic, '--command-property', 'group.protocol=consumer')
    assert len(p.stdout.splitlines()) == n
    assert groups(srv, '/' + topic)['type'] == 'Consumer'


CONSUMER = '''
import sys, time
from confluent_kafka import Consumer
topic, group, boot, stop, proto = sys.argv[1:6]
c = Consumer({'bootstrap.servers': boot, 'group.id': group, 'group.protocol': proto, 'auto.offset.reset': 'earliest',
              'enable.auto.commit': False})
def note(kind):
    return lambda _, parts: print(kind, ','.join(sorted(str(p.partition) for p in parts)), flush=True)
c.subscribe([topic], on_assign=note('assigned'), on_revoke=note('revoked'), on_lost=note('lost'))
end = time.time() + float(stop)
while time.time() < end:
    m = c.poll(0.2)
    if m is not None and m.error() is None:
        print('got', m.value().decode(), flush=True)
        c.commit(m, asynchronous=True)
    print('now', ','.join(sorted(str(p.partition) for p in c.assignment())), flush=True)
c.close()
'''


def member(s, topic, seconds, proto='consumer'):
    need(PY['main'], 'py-install.sh')
    return subprocess.Popen([str(PY['main']), '-c', CONSUMER, topic, topic, s.bootstrap, str(seconds), proto], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def test_two_members_share_and_the_survivor_takes_over(make_server, topic):
    """The assignments that both have at one time never overlap; when one leaves, the other gets all. Commits survive kill -9."""
    s = make_server('--group-consumer-heartbeat', '500ms')
    n = fill(s, topic)
    a = member(s, topic, 14)
    time.sleep(3)
    b = member(s, topic, 6)
    time.sleep(3.5)
    status, body, _ = s.request('GET', '/v1/groups/' + topic)
    g = json.loads(body)
    assert status == 200 and g['members'] == 2 and g['state'] in ('Stable', 'Reconciling'), g
    out_b = b.communicate(timeout=30)[0].decode()
    out_a = a.communicate(timeout=40)[0].decode()
    last = [line.split(' ', 1)[1].strip() for line in out_a.splitlines() if line.startswith('now')]
    assert '0,1,2,3' in last[0:30] and last[-1] == '0,1,2,3', last[-3:]
    shared_b = [line.split(' ', 1)[1].strip() for line in out_b.splitlines() if line.startswith('now') and len(line) > 5]
    assert shared_b and all(len(x.split(',')) == 2 for x in shared_b), shared_b
    seen = {json.loads(line[4:])['n'] for line in (out_a + out_b).splitlines() if line.startswith('got')}
    assert seen == set(range(n))
    before = {(o['topic'], o['partition']): o['committed'] for o in groups(s, '/' + topic)['offsets']}
    generation = groups(s, '/' + topic)['generation']
    s.proc.kill()
    s.proc.wait(30)
    s.start()
    after = groups(s, '/' + topic)
    assert {(o['topic'], o['partition']): o['committed'] for o in after['offsets']} == before
    assert after['generation'] == generation and after['lag'] == 0


def test_a_group_of_one_protocol_refuses_members_of_the_other(srv, topic):
    """Also: an empty group changes its kind."""
    fill(srv, topic)
    a = member(srv, topic, 7)
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        status, body, _ = srv.request('GET', '/v1/groups/' + topic)
        if status == 200 and json.loads(body)['members'] == 1:
            break
        time.sleep(0.1)
    raw = Raw(srv.kafka, topic)
    assert raw.join(topic, version=5)['error_code'] == 23
    r = raw.c.call(DESCRIBE_GROUPS, 6, groups=[topic])['groups'][0]
    assert (r['error_code'], r['group_state']) == (69, 'Dead')
    r = raw.c.call(LIST_GROUPS, 5, types_filter=['consumer'])
    mine = [g for g in r['groups'] if g['group_id'] == topic]
    assert mine and (mine[0]['group_type'], mine[0]['protocol_type']) == ('Consumer', 'consumer')
    a.communicate(timeout=30)
    r = raw.c.call(DESCRIBE_GROUPS, 5, groups=[topic])['groups'][0]    # empty, but no classic group
    assert (r['error_code'], r['group_state']) == (0, 'Dead')
    j = raw.join(topic, version=5)
    assert j['error_code'] == 79
    assert groups(srv, '/' + topic)['type'] == 'Classic'
    raw.c.close()


# --- tools ----------------------------------------------------------------------------------------------------------

def test_kafka_consumer_groups_case_29(srv, topic):
    """g1 with commits and members, g2 with commits only, g3 unknown; then reset and delete."""
    n = fill(srv, topic)
    need(PY['main'], 'py-install.sh')
    clients.run([PY['main'], CONSUME, 'confluent', '-m', 'next', '-b', srv.bootstrap, '-t', topic, '-g', topic + '-g2'], 60)
    a = subprocess.Popen([str(PY['main']), '-c', CONSUMER, topic, topic + '-g1', srv.bootstrap, '60', 'consumer'], stdout=subprocess.PIPE)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            status, body, _ = srv.request('GET', '/v1/groups/' + topic + '-g1')
            if status == 200 and json.loads(body).get('lag') == 0 and len(json.loads(body)['offsets']) == 4:
                break
            time.sleep(0.2)
        tool = ('consumer-groups', '--bootstrap-server', srv.bootstrap)
        names = kt(*tool, '--list').stdout.decode().split()
        assert topic + '-g1' in names and topic + '-g2' in names and topic + '-g3' not in names
        text = kt(*tool, '--describe', '--group', topic + '-g1').stdout.decode()
        rows = [r.split() for r in text.splitlines() if topic + '-g1' in r]
        assert len(rows) == 4 and all(r[5] == '0' and r[6] != '-' for r in rows), text    # lag 0, a member each
        text = kt(*tool, '--describe', '--group', topic + '-g1', '--members', '--verbose').stdout.decode()
        assert 'confluent' in text or 'rdkafka' in text, text
        text = kt(*tool, '--describe', '--group', topic + '-g1', '--state').stdout.decode()
        assert 'uniform' in text and 'Stable' in text, text
        text = kt(*tool, '--describe', '--group', topic + '-g3', check=False)
        assert b'GroupIdNotFoundException' in text.stdout + text.stderr
        p = kt(*tool, '--delete', '--group', topic + '-g1', check=False)
        assert b'not empty' in (p.stdout + p.stderr).lower() or b'nonempty' in (p.stdout + p.stderr).lower()
    finally:
        a.terminate()
        a.wait(30)
    text = kt(*tool, '--reset-offsets', '--to-earliest', '--topic', topic, '--group', topic + '-g2', '--execute').stdout.decode()
    assert text.count(topic + '-g2') == 4
    assert groups(srv, '/' + topic + '-g2')['lag'] > 0
    kt(*tool, '--reset-offsets', '--to-datetime', '2100-01-01T00:00:00.000', '--topic', topic, '--group', topic + '-g2', '--execute')
    assert groups(srv, '/' + topic + '-g2')['lag'] == 0
    kt(*tool, '--delete', '--group', topic + '-g2')
    groups(srv, '/' + topic + '-g2', expect=404)
    assert n


def test_the_calls_of_a_lag_exporter_read_the_right_numbers(srv, topic):
    """Committed offsets and latest offsets by an admin client; the metric agrees."""
    need(PY['main'], 'py-install.sh')
    n = fill(srv, topic)
    clients.run([PY['main'], CONSUME, 'confluent', '-m', 'next', '-b', srv.bootstrap, '-t', topic, '-g', topic], 60)
    code = '''
import sys
from confluent_kafka import TopicPartition, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient, OffsetSpec
boot, topic = sys.argv[1:3]
a = AdminClient({'bootstrap.servers': boot})
assert topic in [g.group_id for g in a.list_consumer_groups().result().valid]
o = list(a.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)]).values())[0].result().topic_partitions
ends = a.list_offsets({TopicPartition(topic, p.partition): OffsetSpec.latest() for p in o})
print(len(o), sum(ends[TopicPartition(topic, p.partition)].result().offset - p.offset for p in o))
'''
    assert clients.run([PY['main'], '-c', code, srv.bootstrap, topic]).stdout.split() == [b'4', b'0']

    def metric():
        text = srv.request('GET', '/metrics')[1].decode()
        return int(re.search(r'sluice_group_lag\{group="%s",topic="%s"\} (\d+)' % (topic, topic), text)[1])
    assert metric() == 0
    fill(srv, topic, 10)
    parts, lag = clients.run([PY['main'], '-c', code, srv.bootstrap, topic]).stdout.split()
    assert int(lag) == metric() == groups(srv, '/' + topic)['lag'] > 0
    assert n and parts == b'4'


def commit(s, group, topic, offsets):
    with Conn(s.kafka) as c:
        r = c.call(OFFSET_COMMIT, 8, group_id=group, topics=[{'name': topic, 'partitions': [
            {'partition_index': p, 'committed_offset': o, 'committed_metadata': ''} for p, o in offsets.items()]}])
        assert all(p['error_code'] == 0 for p in r['topics'][0]['partitions'])


def test_the_command_line_shows_resets_and_deletes(srv, topic):
    fill(srv, topic)
    commit(srv, topic, topic, {0: 100, 2: 200})
    assert topic in cli(srv).stdout.decode()
    g = json.loads(cli(srv, 'describe', topic, '--json').stdout)
    hwm = {o['partition']: o['high_watermark'] for o in g['offsets']}
    assert {o['partition']: o['committed'] for o in g['offsets']} == {0: 100, 2: 200}
    assert g['lag'] == hwm[0] - 100 + hwm[2] - 200
    text = cli(srv, 'reset', topic, '--to', 'latest').stdout.decode()
    assert 'nothing was changed' in text
    assert groups(srv, '/' + topic)['lag'] == g['lag']
    cli(srv, 'reset', topic, '--to', 'latest', '--execute')
    assert groups(srv, '/' + topic)['lag'] == 0
    r = json.loads(cli(srv, 'reset', topic, '--to', '150', '--topic', topic, '--partition', '2', '--execute', '--json').stdout)
    assert r == {'executed': True, 'offsets': [{'topic': topic, 'partition': 2, 'from': hwm[2], 'to': 150}]}
    with Conn(srv.kafka) as c:
        r = c.call(OFFSET_FETCH, 8, groups=[{'group_id': topic, 'topics': [{'name': topic, 'partition_indexes': [0, 2]}]}])
        got = [p['committed_offset'] for p in r['groups'][0]['topics'][0]['partitions']]
    assert got == [hwm[0], 150]
    for args, code in ((('reset', topic), 1), (('reset', topic, '--to', 'noon'), 1), (('reset', 'no-such', '--to', 'latest'), 1),
                       (('shake', topic), 2), (('describe',), 2), (('delete', 'no-such'), 1)):
        p = cli(srv, *args, check=False)
        assert p.returncode == code and p.stderr, args
    cli(srv, 'delete', topic)
    groups(srv, '/' + topic, expect=404)


def test_a_reset_to_a_time_finds_what_list_offsets_finds(srv, topic):
    """Between two publishes, before all, after all; dry by default; RFC 3339 and milliseconds; refusals."""
    fill(srv, topic, 40)
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    fill(srv, topic, 40)
    iso = time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(between // 1000)) + '.%03dZ' % (between % 1000)
    raw = Raw(srv.kafka, topic)
    for p in range(4):
        assert raw.commit(topic, p, 1) == 0

    def reset(at, *more):
        r = json.loads(cli(srv, 'reset', topic, '--to-time', at, '--json', *more).stdout)
        return {o['partition']: o['to'] for o in r['offsets']}, r['executed']

    def listed(ms):
        return {p: raw.c.call(2, 4, replica_id=-1, isolation_level=0, topics=[{'name': topic, 'partitions': [
            {'partition_index': p, 'current_leader_epoch': -1, 'timestamp': ms}]}])['topics'][0]['partitions'][0]['offset'] for p in range(4)}

    want, first, end = listed(between), listed(0), listed(-1)
    assert all(first[p] < want[p] < end[p] for p in range(4)), (first, want, end)
    assert reset(iso) == reset(str(between)) == (want, False)
    assert {o['committed'] for o in groups(srv, '/' + topic)['offsets']} == {1}
    assert reset(iso, '--execute') == (want, True)
    assert {o['partition']: o['committed'] for o in groups(srv, '/' + topic)['offsets']} == want
    assert reset('0')[0] == first and reset('1970-01-01T01:00:00+01:00')[0] == first
    assert reset('2100-01-01T00:00:00Z')[0] == end
    assert reset(iso, '--topic', topic, '--partition', '2')[0] == {2: want[2]}
    for args in (('--to-time', 'noon'), ('--to-time', '-5'), ('--to-time', iso, '--to', 'latest'), ('--to-time', iso, '--topic', 'no-such')):
        p = cli(srv, 'reset', topic, *args, check=False)
        assert p.returncode == 1 and p.stderr, args
    assert cli(srv, 'reset', topic + '-no', '--to-time', iso, check=False).returncode == 1
    raw.c.close()


def test_a_group_with_members_is_not_reset(srv, topic):
    fill(srv, topic)
    a = member(srv, topic, 5)
    time.sleep(3)
    groups(srv, '/%s/reset?to=earliest&execute=true' % topic, method='POST', expect=409)
    groups(srv, '/' + topic, method='DELETE', expect=409)
    a.communicate(timeout=30)


def test_log_dirs_and_config_resources_tell_what_is_true(srv, topic):
    fill(srv, topic, partitions=2)
    with Conn(srv.kafka) as c:
        offered = c.api_versions()
        for v in range(offered[LOG_DIRS][0], offered[LOG_DIRS][1] + 1):
            for ask in (None, [{'topic': topic, 'partitions': [0, 1, 7]}, {'topic': 'no-such', 'partitions': [0]}]):
                r = c.call(LOG_DIRS, v, topics=ask)['results']
                mine = [t for t in r[0]['topics'] if t['name'] == topic][0]
                assert len(r) == 1 and sorted(p['partition_index'] for p in mine['partitions']) == [0, 1]
                assert all(p['partition_size'] > 0 and p['offset_lag'] == 0 for p in mine['partitions'])
        r = c.call(CONFIG_RESOURCES, 1, resource_types=[])
        assert {'resource_name': topic, 'resource_type': 2} in r['config_resources']
        assert {'resource_name': '1', 'resource_type': 4} in r['config_resources']
        assert c.call(CONFIG_RESOURCES, 1, resource_types=[16])['config_resources'] == []
        assert c.call(CONFIG_RESOURCES, 1, resource_types=[99])['error_code'] == 35
        assert c.call(CONFIG_RESOURCES, 0)['config_resources'] == []
    text = kt('log-dirs', '--bootstrap-server', srv.bootstrap, '--describe', '--topic-list', topic).stdout.decode()
    assert topic in text


def test_a_member_that_commits_in_an_old_version_is_told_so(srv, topic):
    """OffsetCommit below 9 cannot say KIP-848's errors: 35 for a member, whatever its epoch; OffsetFetch below 9 names no member."""
    fill(srv, topic)
    a = member(srv, topic, 6)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        status, body, _ = srv.request('GET', '/v1/groups/' + topic)
        if status == 200 and json.loads(body).get('lag') == 0 and json.loads(body)['members'] == 1:
            break
        time.sleep(0.1)
    m = json.loads(body)['member_list'][0]
    raw = Raw(srv.kafka, topic)
    before = raw.committed(topic, 0)
    for version in (2, 5, 8):
        assert raw.commit(topic, 0, 5, m['epoch'], m['member'], version=version) == 35
        assert raw.commit(topic, 0, 5, m['epoch'] + 1, m['member'], version=version) == 35
        assert raw.commit(topic, 0, 5, m['epoch'], 'nobody', version=version) == 25
    assert raw.committed(topic, 0) == before and raw.committed(topic, 0, version=5) == before
    assert raw.commit(topic, 0, 5, m['epoch'] + 1, m['member'], version=9) == 113
    assert raw.commit(topic, 0, 5, m['epoch'], m['member'], version=9) == 0
    raw.c.close()
    a.communicate(timeout=30)
