"""Field cases of the kinds offsets, fetch and ops that need a client's own behaviour to show: each named after what it protects.
What raw requests show already is in offsets_basic, offsets_journal, hidden_ranges, offset_model, epochs and bad_input."""
import json
import random
import socket
import threading
import time
import zlib

import pytest

import clients
import live
from docs_util import read_all
from groups_raw import Raw
from journals import Journal
from kafka_raw import EARLIEST, FETCH, FIND_COORDINATOR, LATEST, METADATA, Conn, decode_batches, decode_response, visible
from scale import QUICK, size
from sluice import Server
from stand_in import LOCAL
from tap import Tap

OUT_OF_RANGE = 1
SERVER_FLAGS = ('--journal-admin',)


def ready(srv, topic, hw, until):
    def look():
        with Conn(srv.kafka) as c:
            return c.metadata(topic)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == hw
    until(look, 10, 'high watermark %d' % hw)


@pytest.fixture(scope='module')
def tapped(tmp_path_factory):
    tap = Tap()
    work = tmp_path_factory.mktemp('tapped')
    s = Server(work / 'data', work, ('--journal-admin', '--kafka-advertise', tap.address)).start()
    tap.target = s.kafka
    yield s, tap
    s.stop()
    tap.stop()


# --- case 11 --------------------------------------------------------------------------------------------------------------

def test_kafkajs_with_manual_offsets_is_not_trapped_by_hidden_documents(tapped, topic, until, figures):
    """Field case 11: eachBatchAutoResolve false, commits by hand, a hidden document behind each visible one."""
    s, tap = tapped
    j = Journal(s, topic)
    for _ in range(50):
        j.doc(150).ack()
    j.write()
    ready(s, topic, j.hw, until)
    tap.clear()
    r = live.kafkajs(tap.address, topic, 'manual', 500)
    try:
        want = j.oracle().offsets
        until(lambda: r.offsets() == want, 20, '50 documents: %s' % r.error())
        assert len([f for f in tap.fetches if f.offsets.get(0, j.hw) < j.hw]) <= 6
        j.ack().write()
        n = len(tap.fetches)
        time.sleep(3)
        assert (len(tap.fetches) - n) / 3 <= 3, 'fetches at one offset while nothing comes'
        j.doc(100).write()
        t0 = time.monotonic()
        until(lambda: r.offsets() == want + [j.hw - 1], 5, 'the late document')
        assert time.monotonic() - t0 < 2 * clients.busy()
        until(lambda: Raw(s.kafka, 'g-' + topic).committed(topic, 0)['committed_offset'] == j.hw, 5, 'the commit stands at the watermark')
    finally:
        r.stop()


# --- case 13 --------------------------------------------------------------------------------------------------------------

def test_a_stream_of_hidden_documents_wakes_none_of_many_consumers(srv, topic, until, figures):
    """Field case 13: an ACK every 100 ms, 200 consumers that wait 500 ms, then one document for all."""
    j = Journal(srv, topic)
    j.doc(200).write()
    ready(srv, topic, 200, until)
    conns = [Conn(srv.kafka) for _ in range(size(200, 100, 30))]
    stop = threading.Event()

    def acks():
        while not stop.is_set():
            j.ack().write()
            time.sleep(0.1)
    t = threading.Thread(target=acks)
    try:
        before, t0 = srv.metrics()['sluice_requests_total'], time.monotonic()
        t.start()
        for _ in range(4):
            ns = [c.fetch_start(topic, {0: 200}, max_wait_ms=500) for c in conns]
            for c, n in zip(conns, ns):
                (p,) = c.finish(FETCH, 11, n)['responses'][0]['partitions']
                assert p['records'] == b'' and p['high_watermark'] == 200
        took = time.monotonic() - t0
        rate = (srv.metrics()['sluice_requests_total'] - before) / took / len(conns)
        figures('%d consumers under a stream of hidden documents: %.2f fetches/s each' % (len(conns), rate))
        assert rate <= 2.5
        ns = [c.fetch_start(topic, {0: 200}, max_wait_ms=8000) for c in conns]
        stop.set()
        t.join()
        time.sleep(0.2)
        t0 = time.monotonic()
        j.doc(1000).write()
        waits = []
        for c, n in zip(conns, ns):
            (p,) = c.finish(FETCH, 11, n)['responses'][0]['partitions']
            waits.append(time.monotonic() - t0)
            assert [r.offset for r in visible(decode_batches(p['records']), 200)] == [j.hw - 1]
        figures('a document of 1000 bytes to all of them: %.0f ms' % (waits[-1] * 1e3))
        assert waits[-1] < 2 * clients.busy()
    finally:
        stop.set()
        t.join()
        [c.close() for c in conns]


# --- cases 15 and 23 --------------------------------------------------------------------------------------------------------

def test_kafkas_own_parser_reads_every_byte_of_every_fetch_version(srv, topic, until):
    """Field cases 15 and 23: data beside an empty partition, one out of range and an unknown one; a session's answers; control
    batches; null keys, no headers, values of one byte."""
    if QUICK:
        pytest.skip('no Java in the quick profile')
    js = [Journal(srv, topic, name='%s/p%d' % (topic, k)) for k in range(3)]
    for i in range(30):
        js[0].doc(130, n=i).line(b'1').ack()
    js[0].write()
    js[2].doc(100, clock=js[2].now).doc(100, clock=js[2].now).write()
    with Conn(srv.kafka) as c:
        until(lambda: len(c.metadata(topic)['partitions']) == 3 and c.list_offset(topic, 2, LATEST)['offset'] == 200 and c.list_offset(topic, 0, LATEST)['offset'] == js[0].hw, 10)
        m = c.metadata(topic, 12)
        tid, epoch = m['topic_id'], m['partitions'][0]['leader_epoch']
        frames = []
        for v in range(4, 19):
            kw = dict(topic_id=tid)
            if v >= 7:
                kw.update(session_id=0, session_epoch=0)
            c.fetch_start(topic, {0: 0, 1: 0, 2: 10 ** 9, 7: 0}, v, isolation=v % 2, **kw)
            frames.append((v, c.recv()))
            if v >= 9:
                c.fetch_start(topic, {0: 0, 1: 5}, v, epoch=epoch + 3, topic_id=tid)
                frames.append((v, c.recv()))
    with live.Asker(live.java_probe('parse')) as a:
        out = a.ask_all(['%d %s' % (v, f.hex()) for v, f in frames], 90)
    assert len(out) == len(frames)
    full = js[0].oracle().records
    for (v, f), line in zip(frames, out):
        head, *parts = line.split(' | ')
        assert head == '0 left, error 0', (v, line[:200])
        rows = {p.split(' ')[0]: p for p in parts}
        if rows['0'].split(' ')[1] == '75':
            continue
        got = rows['0'].split('[', 1)[1]
        recs = [x.split(',') for x in ' '.join(rows['0'].split('[')[1:]).replace(']', '').split(' ') if ',' in x]
        assert [int(r[0]) for r in recs] == [r.offset for r in full], v
        assert all(r[2] == 'null' and len(r) == 4 for r in recs), 'keys are null, no headers'
        assert '1:%d' % zlib.crc32(b'1') in got
        assert rows['0'].split(' ')[1:3] == ['0', str(js[0].hw)] and rows['0'].split(' ')[6] == '-1'
        assert rows['1'].split(' ')[1:3] == ['0', '0'] and '[' not in rows['1']
        assert rows['2'].split(' ')[1] == '1' and rows['7'].split(' ')[1] == '3'
        assert not any(p.endswith(' null') for p in parts), 'record sets are empty, never null'


# --- case 19 --------------------------------------------------------------------------------------------------------------

def test_a_java_consumer_outlives_the_eviction_of_its_session(make_server, topic, until):
    """Field case 19: error 70 in the middle of reading, and nothing is lost or read twice."""
    if QUICK:
        pytest.skip('no Java in the quick profile')
    s = make_server('--journal-admin', '--max-fetch-sessions', '4', '--workers', '1')
    j = Journal(s, topic)
    j.doc(200).write()
    ready(s, topic, 200, until)
    r = live.java(s.bootstrap, topic, **{'fetch.max.wait.ms': 200})
    try:
        until(lambda: r.offsets() == [199], 20, 'the first document')
        evicted = s.metrics()['sluice_fetch_sessions_evicted_total']
        with Conn(s.kafka) as flood:
            for i in range(40):
                for _ in range(12):
                    flood.finish(FETCH, 11, flood.fetch_start(topic, {0: 200}, session_id=0, session_epoch=0))
                j.doc(150).write()
                time.sleep(0.03)
        assert s.metrics()['sluice_fetch_sessions_evicted_total'] > evicted + 400
        until(lambda: len(r.offsets()) == 41, 15, 'all documents: %d, %s' % (len(r.offsets()), r.error()))
        assert r.offsets() == j.oracle().offsets
    finally:
        r.stop()


# --- case 5 ---------------------------------------------------------------------------------------------------------------

def test_a_reader_whose_place_was_removed_starts_at_the_first_document_left(srv, topic, until):
    """Field case 5's kind: everything or a part expired. auto.offset.reset decides, and position, end and lag agree."""
    j = Journal(srv, topic, closes=True)
    for _ in range(3):
        [j.doc(300) for _ in range(10)]
        j.ack().write()
        j.close_fragment()
    ready(srv, topic, j.hw, until)
    starts = []
    for end in (j.docs[9][1] + 60, j.docs[19][1] + 120, j.at):
        fr = [f['end'] for f in json.loads(srv.request('GET', j.url())[1])['fragments'] if f['end'] <= max(end, 0) + 4000]
        j.remove_until(fr[0])
        with Conn(srv.kafka) as c:
            # with brokers the log starts at the first available byte
            want = max([o + 1 for _, o, _, _ in j.docs if o < fr[0]], default=0) if LOCAL else min(fr[0], j.hw)
            until(lambda: c.list_offset(topic, 0, EARLIEST)['offset'] == want, 10)
            starts.append(want)
            first = next((o for _, o, _, _ in j.docs if o >= want), None)
            p = c.fetch(topic, 0, max(0, want - 1))
            assert (p['error_code'], p['log_start_offset']) == (OUT_OF_RANGE, want)
        got = clients.kcat(srv.bootstrap, topic, '-p', '0', '-o', '0', '-c', '1', '-e', '-X', 'topic.auto.offset.reset=earliest', timeout=20)
        assert [r.offset for r in got] == ([first] if first is not None else [])
    assert starts == sorted(set(starts)) and starts[-1] == j.hw


# --- case 71 --------------------------------------------------------------------------------------------------------------

def test_only_the_advertised_address_is_told(make_server, topic):
    """Field case 71: another host and port than the bound ones, the same in every place that names a broker."""
    s = make_server('--kafka-advertise', 'gw.test:19092')
    s.publish(topic, [{'n': 1}])
    with Conn(s.kafka) as c:
        for v in range(0, 14):
            r = c.call(METADATA, v, topics=[{'name': topic}])
            assert [(b['host'], b['port']) for b in r['brokers']] == [('gw.test', 19092)], v
        lo, hi = c.api_versions()[FIND_COORDINATOR]
        for v in range(lo, hi + 1):
            r = c.call(FIND_COORDINATOR, v, **({'key': 'g'} if v < 4 else {'coordinator_keys': ['g']}))
            r = r if v < 4 else r['coordinators'][0]
            assert (r['host'], r['port']) in (('gw.test', 19092), ('', -1)), v
        e = c.metadata(topic, 12)
        for v in (16, 17, 18):
            r = c.finish(FETCH, v, c.fetch_start(topic, {0: 0}, v, topic_id=e['topic_id'], epoch=0))
            assert [(n['host'], n['port']) for n in r.get('node_endpoints', [])] in ([], [('gw.test', 19092)]), v
    out = clients.run(['kcat', '-L', '-b', s.bootstrap]).stdout
    assert b'gw.test:19092' in out and str(s.kafka).encode() not in out.split(b'brokers:', 1)[1]


def test_an_ipv6_listener_is_told_as_such(make_server, topic):
    """Field case 71."""
    try:
        socket.socket(socket.AF_INET6).bind(('::1', 0))
    except OSError:
        pytest.skip('no IPv6 on this machine')
    s = make_server('--kafka-listen', '[::1]:0')
    s.publish(topic, [{'n': 1}])
    with Conn(s.kafka) as c:
        (b,) = c.call(METADATA, 9, topics=[])['brokers']
        assert (b['host'], b['port']) == ('127.0.0.1', s.kafka), 'told by the listener that the client came in by'


# --- case 73 --------------------------------------------------------------------------------------------------------------

def test_slow_readers_get_right_bytes_and_healthy_ones_are_quick(make_server, figures):
    """Field case 73: thin links that take 10 KB/s from answers of megabytes, dead ones that take nothing, healthy ones beside."""
    s = make_server('--conn-output-bytes', '1MiB', '--cache-bytes', '16MiB', '--stall-timeout', '5s')
    pad = 'x' * 1000
    for i in range(size(20, 6, 3)):
        s.publish('big', [{'n': i * 3000 + k, 'pad': pad} for k in range(3000)])
    want = read_all(s.kafka, 'big', 0, partition_max_bytes=1 << 20)
    before = s.rss()
    slow = [Conn(s.kafka, rcvbuf=4096) for _ in range(size(200, 60, 20))]
    dead = [Conn(s.kafka, rcvbuf=4096) for _ in range(20)]
    at = [random.Random(i).randrange(want[-1].offset - 4000000) for i in range(len(slow))]
    for c in dead:    # more than the kernel's buffers take
        [c.fetch_start('big', {0: 0}, max_bytes=50 << 20, partition_max_bytes=50 << 20) for _ in range(10)]
    ns = [c.fetch_start('big', {0: at[i]}, max_bytes=50 << 20, partition_max_bytes=300000) for i, c in enumerate(slow)]
    taken, stop, waits = [bytearray() for _ in slow], time.monotonic() + size(60, 6, 3), []
    while time.monotonic() < stop:
        for i, c in enumerate(slow):
            c.s.setblocking(False)
            try:
                taken[i] += c.s.recv(1000)
            except BlockingIOError:
                pass
        with Conn(s.kafka) as h:
            t0 = time.monotonic()
            o = random.choice(want[:-10]).offset
            got, _ = h.records_from('big', 0, o)
            waits.append(time.monotonic() - t0)
            assert got[0].offset == o
    grown = s.rss() - before
    waits.sort()
    figures('%d slow and %d dead readers: %.1f MB; a healthy fetch beside them: median %.0f ms, p99 %.0f ms' % (
        len(slow), len(dead), grown / 1e6, waits[len(waits) // 2] * 1e3, waits[int(len(waits) * 0.99)] * 1e3))
    assert waits[len(waits) // 2] < 1 and waits[int(len(waits) * 0.99)] < clients.busy()
    assert grown < len(slow) * 600000 + len(dead) * (2 << 20) + (64 << 20)
    offsets = [r.offset for r in want]
    for i, c in enumerate(slow):
        c.s.settimeout(30)
        while len(taken[i]) < 4 or len(taken[i]) < 4 + int.from_bytes(taken[i][:4], 'big'):
            b = c.s.recv(1 << 20)
            assert b, 'a reader that takes something is not closed'
            taken[i] += b
        corr, r = decode_response(FETCH, 11, bytes(taken[i][4:]))
        got = visible(decode_batches(r['responses'][0]['partitions'][0]['records'], check_crc=i == 0), at[i])
        k = next(x for x, o in enumerate(offsets) if o >= at[i])
        assert corr == ns[i] and [(x.offset, x.value) for x in got] == [(x.offset, x.value) for x in want[k:k + len(got)]]
        c.close()
    end = time.monotonic() + 15
    while s.metrics()['sluice_connections_open'] > 0:
        assert time.monotonic() < end, 'readers that take nothing are closed'
        time.sleep(0.1)


# --- case 77 --------------------------------------------------------------------------------------------------------------

ILLEGAL_CONFLUENT = '''
import sys, time, confluent_kafka as ck
b = sys.argv[1]
for name in sys.argv[2:]:
    c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x'})
    t0 = time.time()
    try:
        m = c.list_topics(name, timeout=5).topics
        e = [t.error.code() for t in m.values() if t.error]
        print(name, e[0] if e else 'served %d' % len(m), flush=True)
    except ck.KafkaException as e:
        print(name, 'exception', e.args[0].code(), flush=True)
    assert time.time() - t0 < 5
import os; os._exit(0)
'''


def test_an_illegal_or_unknown_topic_is_named_to_the_user_at_once(srv, topic):
    """Field case 77, through librdkafka: no time-out without a reason."""
    srv.publish(topic, [{'n': 1}])
    clients.need(clients.PY['main'], 'py-install.sh main')
    out = clients.run([clients.PY['main'], '-c', ILLEGAL_CONFLUENT, srv.bootstrap, 'nope', '..', 'a b', topic], 40).stdout.decode().split('\n')
    assert out[0] == 'nope 3' and out[1] == '.. 17' and out[2] == 'a b 17' and out[3] == topic + ' served 1', out


# --- what a reader may not do ----------------------------------------------------------------------------------------------

REFUSED = '''
import sys, confluent_kafka as ck
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic
b, t = sys.argv[1:3]
a = AdminClient({'bootstrap.servers': b})
def show(what, fs):
    for f in fs.values():
        try: f.result(15); print(what, 'done', flush=True)
        except ck.KafkaException as e: print(what, e.args[0].name(), flush=True)
show('create', a.create_topics([NewTopic('zz', 1, 1)]))
show('delete', a.delete_topics([t]))
show('grow', a.create_partitions([NewPartitions(t, 9)]))
show('alter', a.alter_configs([ConfigResource('topic', t, {'retention.ms': '5'})]))
show('records', a.delete_records([ck.TopicPartition(t, 0, 10)]))
p = ck.Producer({'bootstrap.servers': b, 'message.timeout.ms': 15000, 'retries': 0})
p.produce(t, b'x', on_delivery=lambda e, m: print('produce', e.name() if e else 'done', flush=True))
p.flush(20)
import os; os._exit(0)
'''


def test_writes_and_admin_requests_are_refused_by_name_and_change_nothing(srv, topic):
    """An operator must read 'not allowed', not a time-out, a closed connection or a false success."""
    clients.need(clients.PY['main'], 'py-install.sh main')
    srv.publish(topic, [{'n': i} for i in range(5)])
    before = srv.topics()[topic], sorted(srv.topics())
    t0 = time.monotonic()
    out = clients.run([clients.PY['main'], '-c', REFUSED, srv.bootstrap, topic], 60).stdout.decode().split('\n')[:-1]
    got = dict(x.split(' ') for x in out)
    assert set(got) == {'create', 'delete', 'grow', 'alter', 'records', 'produce'}
    assert set(got.values()) <= {'TOPIC_AUTHORIZATION_FAILED', 'CLUSTER_AUTHORIZATION_FAILED', 'INVALID_REQUEST'}, got
    assert time.monotonic() - t0 < 15
    assert (srv.topics()[topic], sorted(srv.topics())) == before
    assert len(read_all(srv.kafka, topic, 0)) == 5
