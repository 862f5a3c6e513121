"""Leader epochs, topic ids and what clients may keep (rules O5, O11, O12), by raising the generation in each way there is; and
the rest of what a reader of a partition relies on: ranges shared out among readers, the end of a partition, steady watermarks."""
import random
import subprocess
import time

import pytest

import clients
import live
from docs_util import doc, read_all
from journals import Journal
from kafka_raw import EARLIEST, EPOCH_END, FETCH, LATEST, LIST_OFFSETS, Conn, decode_batches, visible
from scale import QUICK, size

FENCED, UNKNOWN_EPOCH, UNKNOWN_TOPIC = 74, 75, 3
SERVER_FLAGS = ('--journal-admin',)


def epoch_of(c, topic):
    m = c.metadata(topic, 12)
    return m['partitions'][0]['leader_epoch'] if m['error_code'] == 0 and m['partitions'] else None


def remake(srv, j, until, sizes=(150,)):
    """Deletes the journal and makes it anew: the generation rises."""
    with Conn(srv.kafka) as c:
        before = epoch_of(c, j.collection)
        j.call('DELETE', j.url())
        k = Journal(srv, j.collection, name=j.name)
        for n in sizes:
            k.doc(n)
        k.write()
        until(lambda: (epoch_of(c, j.collection) or 0) > before and c.list_offset(j.collection, 0, LATEST)['offset'] == k.hw, 10, 'a higher epoch')
        return k, before, epoch_of(c, j.collection)


def list_offset(c, topic, timestamp, epoch, version, partition=0):
    body = {'topics': [{'name': topic, 'partitions': [{'partition_index': partition, 'timestamp': timestamp, 'current_leader_epoch': epoch}]}]}
    return c.call(LIST_OFFSETS, version, **body)['topics'][0]['partitions'][0]


def epoch_end(c, topic, asked, version=4, current=-1, partition=0):
    r = c.call(EPOCH_END, version, topics=[{'topic': topic, 'partitions': [{'partition': partition, 'leader_epoch': asked, 'current_leader_epoch': current}]}])
    return r['topics'][0]['partitions'][0]


@pytest.fixture
def two_lives(srv, topic, until):
    """A topic whose journal was replaced: (journal, old epoch, new epoch)."""
    j = Journal(srv, topic)
    j.doc(100).doc(100).doc(100).write()
    with Conn(srv.kafka) as c:
        until(lambda: c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 300, 10)
    return remake(srv, j, until)


def test_an_epoch_is_at_least_1_and_the_same_in_every_answer(srv, topic):
    srv.publish(topic, [{'n': i} for i in range(3)])
    with Conn(srv.kafka) as c:
        e = epoch_of(c, topic)
        assert e >= 1
        for ts in (LATEST, EARLIEST):
            for v in range(4, 12):
                r = list_offset(c, topic, ts, e, v)
                assert (r['error_code'], r['leader_epoch']) == (0, e) and r['offset'] >= 0
        p = c.fetch(topic, 0, 0, 12, epoch=e)
        assert p['error_code'] == 0 and p['current_leader']['leader_epoch'] == e and p['high_watermark'] >= 0 and p['batches'][0].epoch == e


@pytest.mark.parametrize('version', range(9, 19))
def test_an_old_epoch_is_fenced_and_a_future_one_unknown_in_fetch(srv, two_lives, version):
    k, old, new = two_lives
    with Conn(srv.kafka) as c:
        tid = c.metadata(k.collection, 12)['topic_id']
        for asked, want in ((old, FENCED), (new + 1, UNKNOWN_EPOCH), (new + 100, UNKNOWN_EPOCH), (new, 0), (-1, 0)):
            t0 = time.monotonic()
            r = c.finish(FETCH, version, c.fetch_start(k.collection, {0: 0}, version, epoch=asked, topic_id=tid, max_wait_ms=4000))
            p = r['responses'][0]['partitions'][0]
            assert p['error_code'] == want, (asked, version)
            assert time.monotonic() - t0 < 2 * clients.busy(), 'an error is not waited out'
            if version >= 12:
                assert p['current_leader']['leader_epoch'] == new
            if version >= 16 and want == FENCED:
                assert [(n['host'], n['port']) for n in r['node_endpoints']] == [('127.0.0.1', srv.kafka)]
            if want == 0:
                assert visible(decode_batches(p['records']), 0)


@pytest.mark.parametrize('version', range(4, 12))
def test_an_old_epoch_is_fenced_and_a_future_one_unknown_in_list_offsets(srv, two_lives, version):
    k, old, new = two_lives
    with Conn(srv.kafka) as c:
        for ts in (LATEST, EARLIEST, 1):
            for asked, want in ((old, FENCED), (new + 1, UNKNOWN_EPOCH), (new + 100, UNKNOWN_EPOCH), (new, 0), (-1, 0)):
                assert list_offset(c, k.collection, ts, asked, version)['error_code'] == want, (ts, asked)


@pytest.mark.parametrize('version', [2, 3, 4])
def test_the_end_of_an_epoch_tells_a_reader_of_another_life_to_start_over(srv, two_lives, version):
    k, old, new = two_lives
    with Conn(srv.kafka) as c:
        start = c.list_offset(k.collection, 0, EARLIEST)['offset']
        assert start == 0, 'earliest after a reset'
        for asked, want in ((new, (0, new, k.hw)), (old, (0, old, start)), (new + 1, (0, -1, -1)), (new + 100, (0, -1, -1))):
            r = epoch_end(c, k.collection, asked, version)
            assert (r['error_code'], r['leader_epoch'], r['end_offset']) == want, asked
        assert epoch_end(c, k.collection, new, version, current=old)['error_code'] == FENCED
        assert epoch_end(c, k.collection, new, version, current=new + 1)['error_code'] == UNKNOWN_EPOCH
        assert epoch_end(c, k.collection, new, version, partition=9)['error_code'] == UNKNOWN_TOPIC
        assert epoch_end(c, 'no-such-topic', 1, version)['error_code'] == UNKNOWN_TOPIC


def test_only_appending_journals_keeps_epoch_and_id(make_server, topic, until):
    """O11, O12, O13: each change of the list, and a restart after each: what was told once stays."""
    s = make_server('--journal-admin')
    names = {n: Journal(s, topic, name='%s/%s' % (topic, n)) for n in 'mz'}
    for j in names.values():
        j.doc(100).write()

    def facts():
        with Conn(s.kafka) as c:
            m = c.metadata(topic, 12)
            return (len(m['partitions']), m['topic_id'], epoch_of(c, topic), [p['journal'][-1] for p in s.topics()[topic]['partitions']])

    until(lambda: facts()[0] == 2, 10)
    n, tid, epoch, order = facts()
    assert order == ['m', 'z']

    def step(change, want_order, same_epoch, same_id):
        nonlocal tid, epoch
        change()
        until(lambda: facts()[3] == want_order and (facts()[2] == epoch) == same_epoch, 10, 'partitions %s' % want_order)
        for _ in range(2):
            n, t, e, order = facts()
            assert (order, t == tid) == (want_order, same_id)
            assert e == epoch if same_epoch else e > epoch, 'epoch %d after %d' % (e, epoch)
            s.restart()
        tid, epoch = facts()[1:3]

    def add(name):
        def f():
            names[name] = Journal(s, topic, name='%s/%s' % (topic, name))
            names[name].doc(100).write()
        return f

    def drop(name):
        return lambda: names[name].call('DELETE', names[name].url())
    step(add('a'), ['m', 'z', 'a'], True, True)
    step(lambda: names['z'].put(**{'example.dev/colour': 'red'}), ['m', 'z', 'a'], True, True)
    step(drop('z'), ['m', 'a'], False, True)      # another partition than 0
    step(drop('m'), ['a'], False, False)
    step(add('m'), ['a', 'm'], True, True)


def test_a_raised_epoch_is_told_to_those_who_wait(srv, topic, until):
    """A long poll and a session must not sleep through the end of their topic's life."""
    j = Journal(srv, topic)
    j.doc(100).doc(100).write()
    with Conn(srv.kafka) as c, Conn(srv.kafka) as d:
        until(lambda: c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 200, 10)
        old = epoch_of(c, topic)
        r = d.finish(FETCH, 11, d.fetch_start(topic, {0: 200}, session_id=0, session_epoch=0, epoch=old))
        sid = r['session_id']
        n = c.fetch_start(topic, {0: 200}, max_wait_ms=15000, epoch=old)
        k = d.fetch_start(topic, {}, session_id=sid, session_epoch=1, max_wait_ms=15000)
        time.sleep(0.2)
        t0 = time.monotonic()
        remake(srv, j, until)
        for conn, corr in ((c, n), (d, k)):
            (p,) = conn.finish(FETCH, 11, corr)['responses'][0]['partitions']
            assert p['error_code'] in (FENCED, UNKNOWN_TOPIC, 6, 9), p['error_code']
        assert time.monotonic() - t0 < 5


def test_a_java_reader_goes_on_by_itself_when_partitions_are_added(srv, topic, until):
    if QUICK:
        pytest.skip('no Java in the quick profile')
    j = Journal(srv, topic, name=topic + '/m')
    j.doc(100).write()
    with Conn(srv.kafka) as c:
        until(lambda: c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 100, 10)
    r = live.java(srv.bootstrap, topic, **{'metadata.max.age.ms': 500})
    try:
        until(lambda: r.offsets() == [99], 20, 'the first document')
        Journal(srv, topic, name=topic + '/a').doc(200).write()
        time.sleep(1)
        j.doc(100).write()
        until(lambda: r.offsets() == [99, 199], 10, 'the next document of partition 0: %s' % r.error())
    finally:
        r.stop()


# --- an unknown partition, the head, steady watermarks -------------------------------------------------------------------

def test_an_unknown_partition_or_topic_is_named_so_everywhere(srv, topic):
    srv.publish(topic, [{'n': 1}])
    with Conn(srv.kafka) as c:
        e = epoch_of(c, topic)
        for v in range(1, 12):
            assert list_offset(c, topic, LATEST, e, v, partition=99)['error_code'] == UNKNOWN_TOPIC if v >= 4 else True
            assert c.list_offset(topic, 99, LATEST, v)['error_code'] == UNKNOWN_TOPIC
        m = c.metadata('nonexistent_topic')
        assert (m['error_code'], m['partitions']) == (UNKNOWN_TOPIC, [])


def test_what_was_read_is_not_read_again_and_what_comes_is(srv, topic):
    """Empty fetch: two documents, then nothing, then exactly the third."""
    srv.publish(topic, [{'n': 0}, {'n': 1}])
    with Conn(srv.kafka) as c:
        got, _ = c.records_from(topic, 0, 0)
        assert len(got) == 2
        at = got[-1].offset + 1
        for v in range(4, 13):
            assert c.records_from(topic, 0, at, v, max_wait_ms=0)[0] == []
        a = srv.publish(topic, [{'n': 2}])['partitions'][0]
        got, _ = c.records_from(topic, 0, at, max_wait_ms=1000)
        assert [r.offset for r in got] == [a['last_offset']]


def test_watermarks_stand_still_while_nothing_is_written_and_rise_when_something_is(srv, topic):
    srv.publish(topic, [{'n': i} for i in range(3)])
    seen = set()
    for _ in range(5):
        with Conn(srv.kafka) as c:
            for v in range(1, 12):
                seen.add((c.list_offset(topic, 0, EARLIEST, v)['offset'], c.list_offset(topic, 0, LATEST, v)['offset']))
    assert len(seen) == 1, seen
    (lo, hi), = seen
    assert 0 <= lo < hi
    a = srv.publish(topic, [{'n': 3}])['partitions'][0]
    with Conn(srv.kafka) as c:
        assert c.list_offset(topic, 0, LATEST)['offset'] == a['last_offset'] + 1 > hi


# --- ranges ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('cut', ['bytes', 'random'])
def test_readers_that_share_a_range_by_bytes_get_each_document_once(srv, topic, cut):
    """[low, high) cut anywhere, one connection a piece, what lies outside of the piece dropped: nothing is lost at the cuts."""
    rnd = random.Random(12)
    for i in range(12):
        srv.publish(topic, [doc(rnd.choice([90, 300, 5000]), n=i)])
    recs = read_all(srv.kafka, topic, 0)
    assert len(recs) == 12
    low, high = 0, recs[-1].offset + 1
    for _ in range(size(60, 20, 5)):
        n = 3 if cut == 'bytes' else rnd.randrange(1, 9)
        cuts = [low] + (sorted(low + (high - low) * k // n for k in range(1, n)) if cut == 'bytes' else sorted(rnd.randrange(low, high) for _ in range(n - 1))) + [high]
        got = []
        for a, b in zip(cuts, cuts[1:]):
            with Conn(srv.kafka) as c:
                at = a
                while at < b:
                    p = c.fetch(topic, 0, at, partition_max_bytes=rnd.choice([1, 1000, 1 << 20]))
                    got += [r.offset for r in visible(p['batches'], at) if r.offset < b]
                    at = p['batches'][-1].last + 1
        assert got == [r.offset for r in recs], cuts


# --- the end of a partition -------------------------------------------------------------------------------------------------

EOF_TWICE = '''
import sys, time, confluent_kafka as ck
b, t, head = sys.argv[1], sys.argv[2], int(sys.argv[3])
def until(c, what):
    end = time.time() + 20
    while time.time() < end:
        m = c.poll(0.1)
        if m is None: continue
        if m.error() is None: return 'record %d' % m.offset()
        if m.error().code() == ck.KafkaError._PARTITION_EOF: return 'eof %d' % m.offset()
        return 'error %s' % m.error()
    return 'nothing'
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x', 'enable.partition.eof': True, 'fetch.wait.max.ms': 100, 'enable.auto.commit': False})
tp = lambda: [ck.TopicPartition(t, 0, head)]
c.assign(tp()); print(until(c, 'eof'), flush=True)
time.sleep(0.5)
sys.stdin.readline()
end = time.time() + 20
while c.get_watermark_offsets(tp()[0])[1] <= head and time.time() < end: time.sleep(0.05)
c.unassign(); c.assign(tp()); print(until(c, 'record'), flush=True); print(until(c, 'eof'), flush=True)
import os; os._exit(0)
'''


@pytest.mark.parametrize('hidden', [0, 1, 2000])
def test_a_librdkafka_reader_at_the_end_gets_the_next_record_not_a_stale_end(srv, topic, until, hidden):
    """Field report 3153: an end of partition that was remembered while data had come."""
    clients.need(clients.PY['main'], 'py-install.sh main')
    j = Journal(srv, topic)
    j.doc(200).doc(200)
    [j.ack() for _ in range(hidden)]
    j.write()
    with Conn(srv.kafka) as c:
        until(lambda: c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 400, 10)
    p = subprocess.Popen([str(clients.PY['main']), '-c', EOF_TWICE, srv.bootstrap, topic, '400'], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert p.stdout.readline() == b'eof 400\n'
        j.ack().doc(150).write()
        out, _ = p.communicate(b'\n', 60)
        assert out.decode().split('\n')[:2] == ['record %d' % (j.hw - 1), 'eof %d' % j.hw]
    finally:
        p.kill()
        p.wait(20)


def test_data_preview_gets_the_last_document_however_long_the_hidden_tail(srv, topic, until):
    """Field case 3: on another connection each, with 250 ms to wait, a few bytes below latest."""
    j = Journal(srv, topic)
    j.doc(100).doc(5000)
    [j.ack() for _ in range(4000)]
    j.write()
    with Conn(srv.kafka) as c:
        until(lambda: c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 5100, 10)
    for minus in (1, 2, 10, 100, 4999, 5000):
        with Conn(srv.kafka) as a:
            latest = a.list_offset(topic, 0, LATEST)['offset']
        with Conn(srv.kafka) as b:
            t0 = time.monotonic()
            got, _ = b.records_from(topic, 0, latest - minus, max_wait_ms=250)
            assert time.monotonic() - t0 < 0.5 * clients.busy()
            assert [r.offset for r in got] == [5099], minus
    for minus in (1, 10):
        assert [x.offset for x in clients.kcat(srv.bootstrap, topic, '-o', str(-minus), '-c', '1', '-e')] == [5099]
