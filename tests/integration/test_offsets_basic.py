"""Rules O1-O13 (docs/protocol.md) as far as a first reader meets them, by raw requests and by real clients, and the field cases
that they rest on."""
import json
import random
import re
import threading
import time

import pytest

import clients
from docs_util import Oracle, doc, read_all
from kafka_raw import (API_VERSIONS, DESCRIBE_CONFIGS, EARLIEST, EARLIEST_LOCAL, EPOCH_END, FETCH, FIND_COORDINATOR,
                       LATEST, LATEST_TIERED, LIST_OFFSETS, MAX_TIME, METADATA, PRODUCE, Conn, decode_batches, visible)
from scale import size
from sluice import clock_ms, uuid_clock

OUT_OF_RANGE, UNKNOWN_TOPIC, SESSION_NOT_FOUND = 1, 3, 70


def publish_sizes(srv, topic, *requests):
    """One request for each list of document sizes; returns the answers of partition 0."""
    n = 0
    out = []
    for sizes in requests:
        docs = []
        for s in sizes:
            docs.append(doc(s, n=n) if s > 90 else doc(s))
            n += 1
        out.append(srv.publish(topic, docs)['partitions'][0])
    return out


# --- O1, O2, O3 ---------------------------------------------------------------------------------------------------

def test_an_offset_is_the_last_byte_of_its_document(srv, topic):
    a, b = publish_sizes(srv, topic, [100, 5000, 77], [300])
    got = read_all(srv.kafka, topic, 0)
    assert [r.offset for r in got] == [99, 5099, 5176, b['begin'] + 299]
    assert [len(r.value) for r in got] == [99, 4999, 76, 299]
    assert (a['first_offset'], a['last_offset'], a['begin']) == (99, 5176, 0)
    assert b['begin'] == a['end'] > 5177, 'an ACK document closes the transaction'
    for x, y in zip(got, got[1:3]):
        assert Oracle.begin(y) == x.offset + 1


def test_a_fetch_anywhere_in_a_document_returns_it(srv, topic):
    publish_sizes(srv, topic, [100, 5000, 66, 400000, 90], [1200000], [80, 81])
    recs = read_all(srv.kafka, topic, 0)
    for r in recs:
        begin = Oracle.begin(r)
        for at in sorted({begin, begin + 1, (begin + r.offset) // 2, r.offset - 1, r.offset}):
            with Conn(srv.kafka) as c:
                got, p = c.records_from(topic, 0, at, max_wait_ms=250)
            assert got and got[0].offset == r.offset, 'asked %d of [%d, %d], got %s' % (at, begin, r.offset, got[:1])
            assert got[0].value == r.value
            assert p['batches'][0].records[0].offset >= 0


def test_a_fetch_between_documents_returns_the_next_one(srv, topic):
    answers = publish_sizes(srv, topic, [100], [100], [100])
    recs = read_all(srv.kafka, topic, 0)
    with Conn(srv.kafka) as c:
        for i, a in enumerate(answers[:2]):
            for at in (a['last_offset'] + 1, a['last_offset'] + 20, a['end'] - 1, a['end']):
                got, _ = c.records_from(topic, 0, at, max_wait_ms=250)
                assert got[0].offset == recs[i + 1].offset


@pytest.mark.parametrize('isolation', [0, 1])
def test_hidden_documents_are_never_shown(srv, topic, isolation):
    for i in range(30):
        srv.publish(topic, [{'n': i}])
    with Conn(srv.kafka) as c:
        end = c.list_offset(topic, 0, LATEST)['offset']
        at = seen = 0
        while at < end:
            p = c.fetch(topic, 0, at, isolation=isolation, max_wait_ms=500)
            for b in p['batches']:
                assert not b.control
                for r in b.records:
                    assert uuid_clock(r.value)[1] & 2 == 0 and b'"ack":true' not in r.value
                    seen += r.offset >= at
            at = p['batches'][-1].last + 1
    assert seen == 30


def test_record_batches_are_exact(srv, topic):
    """Sizes, deltas, checksums and times are verified by the decoder; here what it cannot know."""
    publish_sizes(srv, topic, [200] * 100, [70000] * 5, [66])
    with Conn(srv.kafka) as c:
        epoch = c.metadata(topic)['partitions'][0]['leader_epoch']
        p = c.fetch(topic, 0, 0, partition_max_bytes=50 << 20)
    last = -1
    for b in p['batches']:
        assert b.epoch == epoch and b.codec == 0 and b.base > last
        assert b.records[0].offset == b.base
        last = b.last
        for r in b.records:
            assert r.key is None and not r.headers
            clock, flags = uuid_clock(r.value)
            assert r.timestamp == clock_ms(clock), 'O10: the timestamp is the clock of the UUID'


# --- O4 -----------------------------------------------------------------------------------------------------------

def test_the_high_watermark_is_the_end_of_the_last_document(srv, topic):
    a = publish_sizes(srv, topic, [100], [5000])[-1]
    with Conn(srv.kafka) as c:
        hw = c.list_offset(topic, 0, LATEST)['offset']
        assert hw == a['last_offset'] + 1 < a['end']
        for iso in (0, 1):
            p = c.fetch(topic, 0, hw, isolation=iso)
            assert (p['error_code'], p['high_watermark'], p['last_stable_offset'], p['batches']) == (0, hw, hw, [])
        got, _ = c.records_from(topic, 0, hw - 1)
        assert got[0].offset == hw - 1


def test_data_preview_yields_the_last_document(srv, topic):
    """Field case 3: latest minus a few bytes, asked on another connection with a short wait."""
    publish_sizes(srv, topic, [100, 5000])
    with Conn(srv.kafka) as c:
        hw = c.list_offset(topic, 0, LATEST)['offset']
    assert hw == 5100
    for at in (5099, 5090, 5000, 101, 100):
        with Conn(srv.kafka) as c:
            t0 = time.monotonic()
            got, _ = c.records_from(topic, 0, at, max_wait_ms=250)
            assert time.monotonic() - t0 < 0.5 * clients.busy()
            assert [r.offset for r in got] == [5099] and len(got[0].value) == 4999
    r = clients.kcat(srv.bootstrap, topic, '-o', '-1', '-c', '1', '-e')
    assert [x.offset for x in r] == [5099]


def test_a_topic_of_other_partitions_only_is_empty_at_its_start(srv, topic):
    srv.publish(topic, [{'k': 'a'}], partitions=8, key='/k')
    with Conn(srv.kafka) as c:
        full = 0
        for p in range(8):
            lo, hi = c.list_offset(topic, p, EARLIEST)['offset'], c.list_offset(topic, p, LATEST)['offset']
            full += hi > 0
            assert lo == 0
            if hi == 0:
                f = c.fetch(topic, p, 0)
                assert (f['error_code'], f['high_watermark'], f['log_start_offset'], f['batches']) == (0, 0, 0, [])
    assert full == 1


EOF_PROGRAM = '''
import sys, time, confluent_kafka as ck
b, t, iso = sys.argv[1:4]
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x', 'enable.partition.eof': True, 'isolation.level': iso, 'enable.auto.commit': False})
c.assign([ck.TopicPartition(t, 0, ck.OFFSET_BEGINNING)])
n, t0 = 0, time.time()
while time.time() - t0 < 20:
    m = c.poll(0.2)
    if m is None: continue
    if m.error():
        assert m.error().code() == ck.KafkaError._PARTITION_EOF, m.error()
        lo, hi = c.get_watermark_offsets(ck.TopicPartition(t, 0), cached=True)
        print(n, m.offset(), c.position([ck.TopicPartition(t, 0)])[0].offset, hi)
        break
    n += 1
else: print('no EOF', n)
sys.stdout.flush()
import os; os._exit(0)
'''


@pytest.mark.parametrize('isolation', ['read_committed', 'read_uncommitted'])
def test_librdkafka_reaches_the_end_of_a_partition_whose_tail_is_hidden(srv, topic, isolation):
    """Field case 1."""
    publish_sizes(srv, topic, [200, 200, 200])
    clients.need(clients.PY['main'], 'py-install.sh main')
    out = clients.run([clients.PY['main'], '-c', EOF_PROGRAM, srv.bootstrap, topic, isolation]).stdout.split()
    assert out == [b'3', b'600', b'600', b'600']


def test_java_ends_with_lag_0_and_position_at_the_end(srv, topic):
    """Field case 9: a bounded reader that polls until position == end offset."""
    for i in range(100):
        srv.publish(topic, [{'n': i}], partitions=3, key='/n')
    lines = clients.kt('class', 'LabClient', 'ends', srv.bootstrap, topic).stdout.decode().split('\n')
    rows = [[int(x) for x in r.split()] for r in lines if r]
    assert len(rows) == 3
    with Conn(srv.kafka) as c:
        for p, begin, end, lag in rows:
            assert begin == 0 and end == c.list_offset(topic, p, LATEST)['offset'] and lag == 0


# --- O8 -----------------------------------------------------------------------------------------------------------

def test_out_of_range_carries_the_range_and_the_hidden_tail_is_no_error(srv, topic):
    a = publish_sizes(srv, topic, [100, 100])[0]
    hw = a['last_offset'] + 1
    with Conn(srv.kafka) as c:
        for v in range(4, 13):
            for at in (a['end'] + 1, a['end'] + 10**6, 2**62, -5):
                p = c.fetch(topic, 0, at, v)
                assert p['error_code'] == OUT_OF_RANGE, (v, at)
                assert p['high_watermark'] == hw
                assert not p['records']
                if v >= 5:
                    assert p['log_start_offset'] == 0
            for at in (hw, hw + 1, a['end'] - 1, a['end']):
                p = c.fetch(topic, 0, at, v)
                assert (p['error_code'], p['batches']) == (0, []), (v, at)


# --- O10 ----------------------------------------------------------------------------------------------------------

@pytest.fixture
def timed(srv, topic):
    """Three documents, each in a millisecond of its own, with hidden documents behind each."""
    for i in range(3):
        srv.publish(topic, [{'n': i}])
        time.sleep(0.05)
    return topic, read_all(srv.kafka, topic, 0)


def time_questions(recs):
    t = [r.timestamp for r in recs]
    hour = 3600 * 1000
    return [(t[0] - hour, recs[0]), (0, recs[0]), (t[0], recs[0]), (t[0] + 1, recs[1]), (t[1], recs[1]), (t[2], recs[2]),
            (t[2] + 1, None), (t[2] + hour, None)]


@pytest.mark.parametrize('version', range(1, 12))
def test_by_time_gives_the_first_document_at_or_after_it(srv, timed, version):
    """Field case 7, raw."""
    topic, recs = timed
    with Conn(srv.kafka) as c:
        for ts, want in time_questions(recs):
            r = c.list_offset(topic, 0, ts, version)
            assert r['error_code'] == 0
            assert (r['offset'], r['timestamp']) == ((want.offset, want.timestamp) if want else (-1, -1)), ts
        end = recs[-1].offset + 1
        assert c.list_offset(topic, 0, LATEST, version)['offset'] == end
        assert c.list_offset(topic, 0, EARLIEST, version)['offset'] == 0
        if version >= 7:
            r = c.list_offset(topic, 0, MAX_TIME, version)
            assert (r['offset'], r['timestamp']) == (recs[-1].offset, recs[-1].timestamp)
        if version >= 8:
            assert c.list_offset(topic, 0, EARLIEST_LOCAL, version)['offset'] == 0
        if version >= 9:
            r = c.list_offset(topic, 0, LATEST_TIERED, version)
            assert (r['error_code'], r['offset']) == (0, -1)


TIMES_CONFLUENT = '''
import sys, confluent_kafka as ck
b, t = sys.argv[1:3]
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x'})
for ts in sys.argv[3:]:
    r = c.offsets_for_times([ck.TopicPartition(t, 0, int(ts))], timeout=10)[0]
    assert r.error is None, r.error
    print(r.offset)
sys.stdout.flush()
import os; os._exit(0)
'''
TIMES_KAFKA_PYTHON = '''
import sys, kafka
b, t = sys.argv[1:3]
c = kafka.KafkaConsumer(bootstrap_servers=b)
tp = kafka.TopicPartition(t, 0)
for ts in sys.argv[3:]:
    r = c.offsets_for_times({tp: int(ts)})[tp]
    print('none' if r is None else '%d %d' % (r.offset, r.timestamp))
'''


@pytest.mark.parametrize('client', ['kafka-python', 'kafka-python-2.0', 'confluent', 'java'])
def test_clients_find_documents_by_time(srv, timed, client):
    """Field case 7."""
    topic, recs = timed
    asked = time_questions(recs)
    stamps = [str(ts) for ts, _ in asked]
    if client == 'java':
        out = clients.kt('class', 'LabClient', 'times', srv.bootstrap, topic, *stamps).stdout.decode()
        got = [x.split(' ', 2)[2] for x in out.split('\n') if x]
        want = ['%d %d' % (r.offset, r.timestamp) if r else 'none' for _, r in asked]
    else:
        py = clients.PY['old' if client.endswith('2.0') else 'main']
        clients.need(py, 'py-install.sh')
        program = TIMES_CONFLUENT if client == 'confluent' else TIMES_KAFKA_PYTHON
        got = clients.run([py, '-c', program, srv.bootstrap, topic, *stamps]).stdout.decode().split('\n')[:-1]
        end = str(recs[-1].offset + 1)
        if client == 'confluent':    # librdkafka turns "no such document" into the end
            want = [str(r.offset) if r else None for _, r in asked]
            assert all(g == w if w else g in ('-1', end) for g, w in zip(got, want)), (got, want)
            return
        want = ['%d %d' % (r.offset, r.timestamp) if r else 'none' for _, r in asked]
    assert got == want


def test_timestamps_rise_with_offsets_and_lie_in_the_time_of_publishing(srv, topic):
    t0 = int(time.time() * 1000) - 1
    for i in range(20):
        srv.publish(topic, [{'n': i, 'k': k} for k in range(40)])
    t1 = int(time.time() * 1000) + 1
    recs = read_all(srv.kafka, topic, 0)
    clocks = [uuid_clock(r.value)[0] for r in recs]
    assert clocks == sorted(set(clocks)), 'the clock rises with every document'
    assert t0 <= recs[0].timestamp <= recs[-1].timestamp <= t1 + 50


# --- O11, O12, O13 ------------------------------------------------------------------------------------------------

def test_partitions_are_numbered_by_the_rank_of_their_journals(srv, topic):
    a = srv.publish(topic, [{'id': i} for i in range(200)], partitions=7, key='/id')
    t = srv.topics()[topic]
    assert len(t['partitions']) == 7
    names = [p['journal'] for p in t['partitions']]
    assert names == sorted(names), 'journals that came in one step rank by name'
    for x in a['partitions']:
        assert names[x['partition']] == x['journal']
        got = read_all(srv.kafka, topic, x['partition'])
        assert len(got) == x['documents'] and got[0].offset == x['first_offset'] and got[-1].offset == x['last_offset']
    for v in range(0, 14):
        with Conn(srv.kafka) as c:
            m = c.metadata(topic, v)
            assert m['error_code'] == 0 and [p['partition_index'] for p in sorted(m['partitions'], key=lambda p: p['partition_index'])] == list(range(7))


def test_one_epoch_and_one_id_everywhere(srv, topic):
    srv.publish(topic, [{'id': 1}])
    with Conn(srv.kafka) as c:
        ids = {c.metadata(topic, v)['topic_id'] for v in (10, 11, 12, 13)}
        epochs = {c.metadata(topic, v)['partitions'][0]['leader_epoch'] for v in range(7, 14)}
        epochs |= {c.list_offset(topic, 0, LATEST, v)['leader_epoch'] for v in range(4, 12)}
        (tid,), (epoch,) = ids, epochs
        assert tid.int != 0 and epoch >= 0
        for v in range(13, 19):
            p = c.fetch(topic, 0, 0, v, topic_id=tid)
            assert p['error_code'] == 0 and p['batches'][0].epoch == epoch
        for asked, want in ((epoch, 0), (-1, 0), (epoch - 1, 74), (epoch + 1, 75)):
            if asked < -1:
                continue
            for v in (9, 11, 12, 13, 17):
                assert c.fetch(topic, 0, 0, v, topic_id=tid, epoch=asked)['error_code'] == want, (asked, v)
        hw = c.list_offset(topic, 0, LATEST)['offset']
        for v in (2, 3, 4):
            for asked, want in ((epoch, (0, epoch, hw)), (epoch + 1, (0, -1, -1))):
                r = c.call(EPOCH_END, v, topics=[{'topic': topic, 'partitions': [{'partition': 0, 'leader_epoch': asked}]}])
                r = r['topics'][0]['partitions'][0]
                assert (r['error_code'], r['leader_epoch'], r['end_offset']) == want


# --- Fetch: waiting and sizes -------------------------------------------------------------------------------------

def test_data_that_arrives_during_a_wait_is_answered_at_once(srv, topic, figures):
    srv.publish(topic, [{'n': 0}])
    waits = []
    with Conn(srv.kafka) as c:
        for i in range(15):
            head = c.list_offset(topic, 0, LATEST)['offset']
            n = c.fetch_start(topic, {0: head}, max_wait_ms=8000)
            time.sleep(0.05)
            srv.publish(topic, [{'n': i}])
            t0 = time.monotonic()
            r = c.finish(FETCH, 11, n)
            waits.append(time.monotonic() - t0)
            recs = decode_batches(r['responses'][0]['partitions'][0]['records'])
            assert visible(recs, head)
    waits.sort()
    figures('answer to a waiting fetch after the publish was answered: median %.1f ms, worst %.1f ms' % (waits[7] * 1e3, waits[-1] * 1e3))
    assert waits[7] < 0.1 * clients.busy() and waits[-1] < clients.busy()


def test_an_empty_wait_lasts_max_wait(srv, topic):
    srv.publish(topic, [{'n': 0}])
    with Conn(srv.kafka) as c:
        head = c.list_offset(topic, 0, LATEST)['offset']
        for wait in (0, 100, 500, 1000):
            t0 = time.monotonic()
            p = c.fetch(topic, 0, head, max_wait_ms=wait)
            took = (time.monotonic() - t0) * 1000
            assert p['error_code'] == 0 and not p['batches']
            assert wait - 5 <= took <= wait + 300, (wait, took)


def test_min_bytes_are_waited_for_over_all_partitions(srv, topic):
    srv.publish(topic, [{'id': i, 'pad': 'x' * 100} for i in range(8)], partitions=2, key='/id')
    with Conn(srv.kafka) as c:
        t0 = time.monotonic()
        n = c.fetch_start(topic, {0: 0, 1: 0}, min_bytes=100000, max_wait_ms=500)
        r = c.finish(FETCH, 11, n)
        assert 0.48 <= time.monotonic() - t0 < clients.busy()
        assert sum(len(visible(decode_batches(p['records'] or b''), 0)) for p in r['responses'][0]['partitions']) == 8
        n = c.fetch_start(topic, {0: 0, 1: 0}, min_bytes=60000, max_wait_ms=10000)
        threading.Timer(0.2, lambda: srv.publish(topic, [{'id': i, 'pad': 'x' * 10000} for i in range(20)])).start()
        t0 = time.monotonic()
        c.finish(FETCH, 11, n)
        assert time.monotonic() - t0 < 3, 'both partitions together have enough'


def test_an_error_is_answered_without_waiting(srv, topic):
    srv.publish(topic, [{'n': 0}])
    with Conn(srv.kafka) as c:
        t0 = time.monotonic()
        assert c.fetch(topic, 0, 10**9, max_wait_ms=5000)['error_code'] == OUT_OF_RANGE
        assert c.fetch(topic, 7, 0, max_wait_ms=5000)['error_code'] == UNKNOWN_TOPIC
        assert c.fetch('no-such-topic', 0, 0, max_wait_ms=5000)['error_code'] == UNKNOWN_TOPIC
        assert time.monotonic() - t0 < 2 * clients.busy()


@pytest.mark.parametrize('limits', [dict(partition_max_bytes=1), dict(max_bytes=1), dict(max_bytes=0, partition_max_bytes=0),
                                    dict(partition_max_bytes=1000, max_bytes=1000)])
def test_a_document_larger_than_the_limit_is_still_returned(srv, topic, limits):
    publish_sizes(srv, topic, [300000, 2000000, 100])
    at = seen = 0
    with Conn(srv.kafka) as c:
        end = c.list_offset(topic, 0, LATEST)['offset']
        while at < end:
            got, p = c.records_from(topic, 0, at, max_wait_ms=500, **limits)
            assert got, 'nothing at %d' % at
            seen += 1
            at = got[0].offset + 1
    assert seen == 3


def test_limits_of_size_are_honoured(srv, topic):
    srv.publish(topic, [{'id': i, 'pad': 'x' * 900} for i in range(4000)], partitions=4, key='/id')
    with Conn(srv.kafka) as c:
        n = c.fetch_start(topic, {p: 0 for p in range(4)}, max_bytes=100000, partition_max_bytes=1 << 20)
        r = c.finish(FETCH, 11, n)
        total = sum(len(p['records'] or b'') for p in r['responses'][0]['partitions'])
        assert 1000 < total <= 100000 + (1 << 16)
        n = c.fetch_start(topic, {p: 0 for p in range(4)}, partition_max_bytes=70000)
        for p in c.finish(FETCH, 11, n)['responses'][0]['partitions']:
            assert 1000 < len(p['records']) <= 70000 + (1 << 16)


def test_no_partition_starves_under_a_small_max_bytes(srv, topic):
    srv.publish(topic, [{'id': i, 'pad': 'x' * 900} for i in range(2000)], partitions=4, key='/id')
    at = {p: 0 for p in range(4)}
    served = dict.fromkeys(at, 0)
    with Conn(srv.kafka) as c:
        for _ in range(24):
            n = c.fetch_start(topic, at, max_bytes=50000, partition_max_bytes=50000)
            for p in c.finish(FETCH, 11, n)['responses'][0]['partitions']:
                got = visible(decode_batches(p['records'] or b''), at[p['partition_index']])
                if got:
                    served[p['partition_index']] += 1
                    at[p['partition_index']] = got[-1].offset + 1
            at = {p: at[p] for p in list(at)[1:] + list(at)[:1]}    # as clients do: the order rotates
    assert all(served.values()), served


def test_a_fetch_at_the_head_never_serves_anything_again(srv, topic):
    with Conn(srv.kafka) as c:
        for i in range(25):
            a = srv.publish(topic, [{'n': i}, {'n': i, 'x': 'y' * (i * 100)}])['partitions'][0]
            for at in (a['last_offset'] + 1, a['end'] - 1, a['end']):
                p = c.fetch(topic, 0, at, max_wait_ms=0)
                assert (p['error_code'], p['records'] or b'') == (0, b''), at


def test_no_batch_ends_below_the_asked_offset(srv, topic):
    rnd = random.Random(7)
    publish_sizes(srv, topic, *[[rnd.randint(70, 3000) for _ in range(rnd.randint(1, 60))] for _ in range(12)])
    recs = read_all(srv.kafka, topic, 0)
    oracle = Oracle(recs)
    with Conn(srv.kafka) as c:
        for _ in range(size(2000, 250, 60)):
            at = rnd.randrange(recs[-1].offset + 1)
            p = c.fetch(topic, 0, at, partition_max_bytes=rnd.choice([1, 3000, 70000, 1 << 20]))
            assert p['batches'], at
            assert all(b.last >= at for b in p['batches']), at
            assert visible(p['batches'], at)[0].offset == oracle.first_from(at).offset


def test_idle_consumers_are_held_and_cost_nothing(srv, topic, figures):
    """Field case 13: a long poll is a wait, not a loop."""
    srv.publish(topic, [{'n': 0}])
    conns = [Conn(srv.kafka) for _ in range(size(200, 100, 40))]
    try:
        head = conns[0].list_offset(topic, 0, LATEST)['offset']
        a, cpu, t0 = srv.metrics()['sluice_requests_total'], srv.cpu(), time.monotonic()
        for _ in range(4):
            ns = [c.fetch_start(topic, {0: head}, max_wait_ms=500) for c in conns]
            for c, n in zip(conns, ns):
                r = c.finish(FETCH, 11, n)
                assert not r['responses'][0]['partitions'][0]['records']
        took = time.monotonic() - t0
        rate = (srv.metrics()['sluice_requests_total'] - a) / took / len(conns)
        figures('%d idle consumers: %.2f fetches/s each, %.1f %% of a core (sanitizers on)' % (len(conns), rate, (srv.cpu() - cpu) / took * 100))
        assert took >= 1.95 and rate <= 2.5
        ns = [c.fetch_start(topic, {0: head}, max_wait_ms=5000) for c in conns]
        time.sleep(0.1)
        t0 = time.monotonic()
        srv.publish(topic, [{'n': 1}])
        for c, n in zip(conns, ns):
            r = c.finish(FETCH, 11, n)
            assert r['responses'][0]['partitions'][0]['records']
        assert time.monotonic() - t0 < 2 * clients.busy()
    finally:
        [c.close() for c in conns]


# --- Fetch: layout, sessions, starts ------------------------------------------------------------------------------

@pytest.mark.parametrize('version', range(4, 19))
def test_every_fetch_version_is_laid_out_exactly(srv, topic, version):
    """Field case 15: one partition with data, one empty, one out of range, one unknown, in one request."""
    srv.publish(topic, [{'k': 'a', 'n': i} for i in range(20)], partitions=3, key='/k')
    with Conn(srv.kafka) as c:
        tid = c.metadata(topic, 12)['topic_id']
        full = next(p for p in range(3) if c.list_offset(topic, p, LATEST)['offset'])
        empty, beyond = [p for p in range(3) if p != full]
        n = c.fetch_start(topic, {full: 0, empty: 0, beyond: 10**9, 99: 0}, version, topic_id=tid)
        r = c.finish(FETCH, version, n)    # refuses leftover bytes
        ps = {p['partition_index']: p for p in r['responses'][0]['partitions']}
        assert (ps[full]['error_code'], ps[empty]['error_code'], ps[beyond]['error_code'], ps[99]['error_code']) == (0, 0, OUT_OF_RANGE, UNKNOWN_TOPIC)
        assert len(visible(decode_batches(ps[full]['records']), 0)) == 20
        for p in ps.values():
            assert not p['aborted_transactions']
            assert version < 11 or p['preferred_read_replica'] == -1
        for p in (empty, beyond, 99):
            assert ps[p]['records'] in (b'', None) and ps[p]['records'] is not None, 'empty records are zero-length, never null'


def test_librdkafka_sees_no_protocol_error(srv, topic):
    """Field case 15, by the client's own debug log."""
    srv.publish(topic, [{'id': i} for i in range(300)], partitions=3, key='/id')
    clients.need('kcat', 'c-install.sh')
    p = clients.run(['kcat', '-C', '-q', '-b', srv.bootstrap, '-t', topic, '-o', 'beginning', '-e', '-X', 'debug=fetch,protocol'])
    assert p.stdout.count(b'\n') == 300
    assert not re.search(rb'PROTOERR|PROTOUFLOW|[Pp]referred replica', p.stderr), p.stderr[-2000:]


@pytest.fixture(scope='module')
def gaps(_shared, tmp_path_factory):
    """A journal with large and small documents and hidden ones between."""
    return {}


def gap_topic(srv, gaps):
    if gaps.get('pid') != srv.proc.pid:
        rnd = random.Random(3)
        for _ in range(size(60, 25, 10)):
            srv.publish('gaps', [doc(rnd.choice([66, 80, 500, 3000, 20000])) for _ in range(rnd.randint(1, 40))])
            for _ in range(rnd.randint(0, 5)):
                srv.publish('gaps', [doc(70)])
        gaps.update(pid=srv.proc.pid, recs=read_all(srv.kafka, 'gaps', 0))
    return gaps['recs']


def test_every_start_offset_resolves_at_once(srv, gaps):
    """Field case 17, raw: from 0 to the write head."""
    recs = gap_topic(srv, gaps)
    oracle, rnd = Oracle(recs), random.Random(5)
    hw = recs[-1].offset + 1
    with Conn(srv.kafka) as c:
        asked = [rnd.randrange(hw + 60) for _ in range(size(3000, 400, 100))] + [0, 1, hw - 1, hw]
        for at in asked:
            t0 = time.monotonic()
            got, p = c.records_from('gaps', 0, at, rnd.choice([4, 6, 9, 11, 12]), max_wait_ms=0)
            assert time.monotonic() - t0 < 2 * clients.busy()
            want = oracle.first_from(at)
            assert p['error_code'] == 0
            assert (got[0].offset, got[0].value) == (want.offset, want.value) if want else not got, at


def test_kcat_starts_anywhere(srv, gaps):
    recs = gap_topic(srv, gaps)
    oracle, rnd = Oracle(recs), random.Random(6)
    for at in [rnd.randrange(recs[-1].offset + 1) for _ in range(size(200, 20, 5))] + [recs[-1].offset, recs[-1].offset + 1]:
        got = clients.kcat(srv.bootstrap, 'gaps', '-p', '0', '-o', str(at), '-c', '1', '-e', timeout=10)
        want = oracle.first_from(at)
        assert [r.offset for r in got] == ([want.offset] if want else []), at


def test_java_seeks_anywhere(srv, gaps):
    recs = gap_topic(srv, gaps)
    oracle, rnd = Oracle(recs), random.Random(8)
    asked = [rnd.randrange(recs[-1].offset + 1) for _ in range(size(500, 60, 10))] + [recs[-1].offset + 1]
    out = clients.kt('class', 'LabClient', 'seek', srv.bootstrap, 'gaps', '0', *map(str, asked)).stdout.decode()
    want = ['%d %s' % (a, oracle.first_from(a).offset if oracle.first_from(a) else 'none') for a in asked]
    assert out.split('\n')[:-1] == want


@pytest.mark.parametrize('version', [7, 11, 12, 13, 17])
def test_a_fetch_session_sends_changes_only_and_forgets_what_it_is_told_to(srv, topic, version):
    """Field case 19."""
    srv.publish(topic, [{'id': i} for i in range(40)], partitions=2, key='/id')
    with Conn(srv.kafka) as c:
        tid = c.metadata(topic, 12)['topic_id']

        def fetch(offsets, sid, epoch, **kw):
            n = c.fetch_start(topic, offsets, version, session_id=sid, session_epoch=epoch, topic_id=tid, **kw)
            r = c.finish(FETCH, version, n)
            assert r['error_code'] == 0
            return r['session_id'], {p['partition_index']: p for t in r['responses'] for p in t['partitions']}
        sid, ps = fetch({0: 0, 1: 0}, 0, 0)
        assert sid != 0 and set(ps) == {0, 1} and all(p['records'] for p in ps.values())
        heads = {p: ps[p]['high_watermark'] for p in ps}
        same, ps = fetch(heads, sid, 1)
        assert same == sid
        assert all(not p['records'] for p in ps.values())
        _, ps = fetch({}, sid, 2, max_wait_ms=100)
        assert ps == {}, 'an unchanged partition is left out'
        _, ps = fetch({}, sid, 3, forget=[1])
        srv.publish(topic, [{'id': i} for i in range(100, 140)])
        _, ps = fetch({}, sid, 4, max_wait_ms=1000)
        assert set(ps) == {0}, 'partition 1 was forgotten'
        assert visible(decode_batches(ps[0]['records']), heads[0])
        _, ps = fetch({0: ps[0]['high_watermark'], 1: heads[1]}, sid, 5, max_wait_ms=1000)
        assert 1 in ps and visible(decode_batches(ps[1]['records']), heads[1]), 'back at its new offset'
        n = c.fetch_start(topic, {}, version, session_id=sid, session_epoch=99, topic_id=tid)
        assert c.finish(FETCH, version, n)['error_code'] == 71
        n = c.fetch_start(topic, {}, version, session_id=sid + 12345, session_epoch=1, topic_id=tid)
        assert c.finish(FETCH, version, n)['error_code'] == SESSION_NOT_FOUND
        n = c.fetch_start(topic, {0: 0}, version, session_id=sid, session_epoch=-1, topic_id=tid)
        r = c.finish(FETCH, version, n)
        assert r['error_code'] == 0 and r['session_id'] == 0, '-1 closes it'
        n = c.fetch_start(topic, {}, version, session_id=sid, session_epoch=6, topic_id=tid)
        assert c.finish(FETCH, version, n)['error_code'] == SESSION_NOT_FOUND


def test_a_flood_of_sessions_is_bounded_and_an_active_one_survives(make_server, topic, figures):
    """Field case 19, second part."""
    srv = make_server('--max-fetch-sessions', '300', '--workers', '1')
    srv.publish(topic, [{'n': 0}])
    with Conn(srv.kafka) as active, Conn(srv.kafka) as flood:
        head = active.list_offset(topic, 0, LATEST)['offset']
        sid = active.finish(FETCH, 11, active.fetch_start(topic, {0: head}, session_id=0, session_epoch=0))['session_id']
        if sid == 0:
            pytest.skip('the server offers no sessions')
        epoch, n, opened, before = 1, size(10000, 3000, 800), [], srv.rss()
        for i in range(n):
            r = flood.finish(FETCH, 11, flood.fetch_start(topic, {0: head}, session_id=0, session_epoch=0))
            opened.append(r['session_id'])
            if i % 100 == 0:
                r = active.finish(FETCH, 11, active.fetch_start(topic, {}, session_id=sid, session_epoch=epoch))
                assert r['error_code'] == 0, 'the active session was evicted after %d others' % i
                epoch += 1
        grown = srv.rss() - before
        figures('%d sessions opened and left: %.1f MB' % (n, grown / 1e6))
        assert grown < 64 << 20
        m = srv.metrics()
        assert m['sluice_fetch_sessions'] <= 300 and m['sluice_fetch_sessions_evicted_total'] >= n - 300
        evicted = flood.finish(FETCH, 11, flood.fetch_start(topic, {}, session_id=opened[0], session_epoch=1))
        assert evicted['error_code'] == SESSION_NOT_FOUND


# --- Metadata, names, refusals ------------------------------------------------------------------------------------

@pytest.mark.parametrize('version', range(0, 14))
def test_null_and_empty_topic_lists_differ(srv, topic, version):
    """Field case 75."""
    names = ['%s-%s' % (topic, x) for x in 'abc']
    for n in names:
        srv.publish(n, [{'id': 1}])
    with Conn(srv.kafka) as c:
        def ask(topics, **kw):
            r = c.call(METADATA, version, topics=topics, **kw)
            assert len(r['brokers']) == 1 and r['brokers'][0]['host'] == '127.0.0.1' and r['brokers'][0]['port'] == srv.kafka
            return r['topics']
        if version == 0:
            assert set(names) <= {t['name'] for t in ask([])}
        else:
            assert set(names) <= {t['name'] for t in ask(None)}
            assert ask([]) == []
        got = {t['name']: t['error_code'] for t in ask([{'name': names[0]}, {'name': 'nope'}], **({'allow_auto_topic_creation': True} if version >= 4 else {}))}
        assert got == {names[0]: 0, 'nope': UNKNOWN_TOPIC}
        many = ask([{'name': 'x%d' % i} for i in range(5000)])
        assert len(many) == 5000 and {t['error_code'] for t in many} == {UNKNOWN_TOPIC}
    assert 'nope' not in srv.topics()


def test_names_that_are_not_legal_are_told_at_once(srv):
    """Field case 77."""
    with Conn(srv.kafka) as c:
        for name, want in (('nope', (3,)), ('', (17,)), ('..', (17,)), ('.', (17,)), ('a b', (17,)), ('x' * 250, (17,)), ('ünï', (17,)), ('acme/nope', (3, 17))):
            assert c.metadata(name, 9)['error_code'] in want, name


def test_collections_do_not_share_a_topic(srv):
    """Field case 77: names that look alike."""
    docs = {}
    for name in ('acme/orders', 'acme.orders', 'acme/or-ders', 'acme_orders'):
        srv.publish(name, [{'from': name}])
        docs[name] = 1
    ts = srv.topics()
    mine = {n: t for n, t in ts.items() if 'acme' in n}
    assert len(mine) == 4
    seen = set()
    for n in mine:
        (r,) = read_all(srv.kafka, n, 0)
        seen.add(json.loads(r.value)['from'])
    assert seen == set(docs)


def test_produce_is_refused_for_each_partition_with_its_topic_named(srv, topic):
    srv.publish(topic, [{'id': 1}])
    with Conn(srv.kafka) as c:
        offered = c.api_versions()
        assert offered[PRODUCE][0] <= 3 and offered[PRODUCE][1] >= 7, 'librdkafka gates features on it'
        for v in range(3, offered[PRODUCE][1] + 1):
            r = c.call(PRODUCE, v, acks=1, timeout_ms=100, topics=[{'name': topic, 'partitions': [{'index': 0, 'records': b''}]}])
            t = r['topics'][0]
            assert t['name'] == topic and t['partitions'][0]['error_code'] not in (0, 5, 6, 7), t
    assert len(read_all(srv.kafka, topic, 0)) == 1


def test_what_is_advertised_can_be_decoded(srv, topic):
    """Every version between the ends that ApiVersions names."""
    srv.publish(topic, [{'id': 1}])
    with Conn(srv.kafka) as c:
        offered = c.api_versions()
        assert offered[FETCH] == (4, offered[FETCH][1]) and offered[FETCH][1] >= 17
        assert offered[LIST_OFFSETS][0] <= 1 and offered[METADATA][0] == 0 and offered[API_VERSIONS][0] == 0
        for v in range(offered[API_VERSIONS][0], offered[API_VERSIONS][1] + 1):
            assert c.api_versions(v) == offered
        for v in range(offered[FIND_COORDINATOR][0], offered[FIND_COORDINATOR][1] + 1):
            body = {'key': 'g'} if v < 4 else {'coordinator_keys': ['g']}
            r = c.call(FIND_COORDINATOR, v, **body)
            assert (r if v < 4 else r['coordinators'][0])['error_code'] in (0, 15)
        for v in range(offered[DESCRIBE_CONFIGS][0], offered[DESCRIBE_CONFIGS][1] + 1):
            r = c.call(DESCRIBE_CONFIGS, v, resources=[{'resource_type': 2, 'resource_name': topic, 'configuration_keys': None},
                                                       {'resource_type': 2, 'resource_name': 'nope', 'configuration_keys': None}])
            assert [x['error_code'] for x in r['results']] == [0, UNKNOWN_TOPIC]
            assert 'max.message.bytes' in {x['name'] for x in r['results'][0]['configs']}
