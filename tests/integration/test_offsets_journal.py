"""Rules O1-O13 on journals that hold everything that may stand in one: runs of hidden documents, blank and broken lines,
several producers, removed fragments, bounds, compressed topics. Every answer is compared with the oracle of the bytes that
the test wrote."""
import json
import random
import time

import pytest

import clients
from docs_util import read_all
from journals import ACK, CONTROL, CONTINUE, OUTSIDE, Journal, first_at_time, uuid_text
from kafka_raw import EARLIEST, FETCH, LATEST, MAX_TIME, Conn, decode_batches, visible
from scale import LONG, QUICK, size

SERVER_FLAGS = ('--journal-admin',)
OUT_OF_RANGE = 1


@pytest.fixture
def journal(srv, topic):
    return Journal(srv, topic)


def settled(srv, topic, hw, until):
    def look():
        with Conn(srv.kafka) as c:
            r = c.list_offset(topic, 0, LATEST)
            return r['error_code'] == 0 and r['offset'] == hw
    until(look, 10, 'high watermark %d' % hw)


def same(records, oracle):
    assert [(r.offset, r.value) for r in records] == [(r.offset, r.value) for r in oracle.records]
    assert [r.timestamp for r in records] == [r.timestamp for r in oracle.records]


def exact_fetches(srv, j, oracle, rnd, n, log_start=0):
    """Random fetches: the first visible record, and then no record left out, none twice, none hidden."""
    hw = j.hw
    with Conn(srv.kafka, timeout=30) as c:
        for _ in range(n):
            at = rnd.randrange(log_start, hw) if hw > log_start else hw
            if rnd.random() < 0.3 and oracle.records:
                r = rnd.choice(oracle.records)
                at = max(log_start, min(hw, r.offset + rnd.choice([-len(r.value), -len(r.value) - 1, -1, 0, 1, 2])))
            limits = dict(partition_max_bytes=rnd.choice([1, 100, 5000, 70000, 1 << 20, 50 << 20]), max_bytes=rnd.choice([1, 100000, 50 << 20]))
            p = c.fetch(j.collection, 0, at, rnd.choice([4, 5, 7, 9, 11, 12]), isolation=rnd.choice([0, 1]), max_wait_ms=0, **limits)
            assert p['error_code'] == 0 and p['high_watermark'] == hw, (at, p['error_code'], p['high_watermark'], hw)
            got = visible(p['batches'], at)
            first = oracle.first_from(at)
            if first is None:
                assert not got
                if at < hw:
                    assert [b.control for b in p['batches']] == [True] and p['batches'][0].last == hw - 1, 'O9 at %d' % at
                continue
            assert got, 'nothing at %d, want %d (%s)' % (at, first.offset, limits)
            i = oracle.offsets.index(first.offset)
            want = oracle.records[i:i + len(got)]
            assert [(r.offset, r.value, r.timestamp) for r in got] == [(r.offset, r.value, r.timestamp) for r in want], at
            for b in p['batches']:
                assert b.last >= at and not (b.control and got and b is p['batches'][0])


# --- shapes of hidden ranges ----------------------------------------------------------------------------------------

def shape_only_acks(j):
    j.ack().ack().ack()


def shape_ack_first(j):
    j.ack().ack().doc(200).doc(300)


def shape_acks_last(j):
    [j.doc(150) for _ in range(100)]
    j.ack().ack().ack()


def shape_acks_between(j):
    [j.doc(120).ack() for _ in range(50)]


def shape_long_runs(j):
    for n in (1, 30, 5000, 2):
        j.doc(100)
        [j.ack() for _ in range(n)]
    j.doc(90)


def shape_control_bits(j):
    j.doc(100).ack(flags=CONTROL).doc(100, flags=OUTSIDE).ack(flags=ACK | CONTROL).ack(flags=CONTROL | CONTINUE).doc(100, flags=0x101)


def shape_blank_lines(j):
    j.raw(b'\n').doc(100).raw(b'\n\n   \n\t\n').doc(80).raw(b'\r\n').doc(100).raw(b'\n' * 2000)


SHAPES = {k[6:]: v for k, v in list(globals().items()) if k.startswith('shape_')}


@pytest.mark.parametrize('shape', SHAPES)
def test_hidden_documents_never_surface_and_never_stall(srv, journal, until, shape):
    """Field cases 1, 9, 11, 17 for every shape of a hidden range."""
    SHAPES[shape](journal)
    journal.write()
    settled(srv, journal.collection, journal.hw, until)
    oracle = journal.oracle()
    same(read_all(srv.kafka, journal.collection, 0), oracle)
    exact_fetches(srv, journal, oracle, random.Random(4), size(500, 80, 20))
    with Conn(srv.kafka) as c:
        head = journal.at
        for at in {journal.hw, (journal.hw + head) // 2, head}:
            p = c.fetch(journal.collection, 0, at)
            assert (p['error_code'], p['batches']) == (0, []), at
        assert c.fetch(journal.collection, 0, head + 1)['error_code'] == OUT_OF_RANGE


CLIENTS = ['kcat', 'confluent-kafka', 'java-assign', 'franz-go', 'sarama', 'kafka-python', 'kafka-go', 'aiokafka', 'kafkajs-lowlevel', 'platformatic']
# every shape with every client in the long run; else kcat meets them all, the others the two hardest
PAIRS = [(shape, client) for shape in SHAPES if shape != 'only_acks' for client in CLIENTS
         if LONG or client == 'kcat' or (shape in ('long_runs', 'acks_last') and (not QUICK or client in ('confluent-kafka', 'kafka-python')))]


@pytest.mark.parametrize('shape,client', PAIRS)
def test_clients_get_every_visible_document_and_reach_the_end(srv, topic, until, figures, shape, client):
    j = Journal(srv, topic)
    SHAPES[shape](j)
    j.write()
    settled(srv, topic, j.hw, until)
    before = srv.metrics()
    got = clients.DIRECT[client](srv.bootstrap, topic)
    after = srv.metrics()
    same(sorted(got), j.oracle())
    n = after['sluice_requests_total'] - before['sluice_requests_total']
    assert n < 60, 'the client crawled: %d requests for %d documents' % (n, len(got))


def test_a_late_document_behind_a_hidden_run_arrives_at_once(srv, journal, until):
    journal.doc(100)
    [journal.ack() for _ in range(3000)]
    journal.write()
    settled(srv, journal.collection, 100, until)
    with Conn(srv.kafka) as c:
        for at in (100, 5000, journal.at):
            n = c.fetch_start(journal.collection, {0: at}, max_wait_ms=8000)
            time.sleep(0.05)
            journal.ack().doc(120).write()
            t0 = time.monotonic()
            r = c.finish(FETCH, 11, n)
            assert time.monotonic() - t0 < clients.busy()
            assert visible(decode_batches(r['responses'][0]['partitions'][0]['records']), at)


def test_hidden_documents_alone_do_not_wake_a_waiting_fetch(srv, journal, until, figures):
    """Field case 13: an ACK every 50 ms is no news."""
    journal.doc(100).write()
    settled(srv, journal.collection, 100, until)
    with Conn(srv.kafka) as c:
        t0, n = time.monotonic(), c.fetch_start(journal.collection, {0: 100}, max_wait_ms=1500)
        while time.monotonic() - t0 < 1.3:
            journal.ack().write()
            time.sleep(0.05)
        r = c.finish(FETCH, 11, n)
        assert 1.45 < time.monotonic() - t0 < 2.5 * clients.busy(), 'answered early'
        p = r['responses'][0]['partitions'][0]
        assert not p['records'] and p['high_watermark'] == 100


# --- lines that are no documents --------------------------------------------------------------------------------------

def test_what_is_not_a_document_of_ours_is_passed_on_as_it_is(srv, journal, until):
    """Field case 61: a bad line is served as is, alone, and the next one arrives. Documents without a UUID count as clock 0."""
    journal.doc(100).line(b'{"a":"\\u12"}').doc(90).line(b'not json at all').line(b'{"no":"uuid"}').line(b'{"_meta":{"uuid":"nonsense"},"x":1}')
    journal.line(b'[1,2]').line(b'{"a":"\x00"}').line(b'\xff\xfe').doc(100)
    journal.line(b'{"crlf":1}\r', shown=None)
    journal.doc(100).write()
    settled(srv, journal.collection, journal.hw, until)
    got = read_all(srv.kafka, journal.collection, 0)
    assert [r.offset for r in got] == journal.oracle().offsets
    for r, w in zip(got, journal.oracle().records):
        assert r.value.rstrip(b'\r') == w.value.rstrip(b'\r')
        assert r.timestamp == w.timestamp


def test_the_uuid_is_found_wherever_it_stands(srv, journal, until):
    """An ACK is hidden however its JSON is spelled; text that looks like one is not."""
    u = uuid_text(journal.tick(), ACK)
    for hidden in ('{ "_meta" : { "ack" : true , "uuid" : "%s" } }' % u, '{"a":{"_meta":1},"_meta":{"x":[{"uuid":"no"}],"uuid":"%s"}}' % u,
                   '{"\\u005fmeta":{"\\u0075uid":"%s"}}' % u, '{"_meta":{"uuid":"%s"}}' % u.upper()):
        journal.raw(hidden.encode() + b'\n')
        journal.doc(100)
    c = journal.tick()
    v = uuid_text(c, CONTINUE)
    for shown in ('{"text":"\\"_meta\\":{\\"uuid\\":\\"%s\\"}","_meta":{"uuid":"%s"}}' % (u, v), '{"x":{"_meta":{"uuid":"%s"}},"_meta":{"uuid":"%s"}}' % (u, v),
                  '{"long":"%s","_meta":{"uuid":"%s"}}' % ('y' * 300000, v)):
        journal.line(shown.encode(), c)
    journal.write()
    settled(srv, journal.collection, journal.hw, until)
    same(read_all(srv.kafka, journal.collection, 0), journal.oracle())


# --- model ------------------------------------------------------------------------------------------------------------

def random_journal(j, rnd, lines):
    """Documents of 1 byte to 5 MB, hidden runs, blank lines, several producers whose clocks are not in the order of offsets."""
    producers = [bytes([1, 0, 0, 0, 0, i]) for i in range(3)]
    clocks = [j.now + rnd.randrange(10**9) for _ in producers]
    for _ in range(lines):
        kind = rnd.random()
        k = rnd.randrange(3)
        clocks[k] += rnd.choice([1, 16, 160000, 1600000000])
        if kind < 0.68:
            size_ = rnd.choice([0, 0, 150, 150, 1000, 1000, 20000, 262144, 262143, 262145]) + rnd.randrange(40)
            if rnd.random() < 0.004:
                size_ = 5 << 20
            if size_ > 100000 and rnd.random() < 0.6:
                size_ = 500
            j.doc(size_, clock=clocks[k], producer=producers[k], n=len(j.docs), flags=rnd.choice([CONTINUE, OUTSIDE]))
        elif kind < 0.72:
            j.line(rnd.choice([b'7', b'{}', b'null', b'{"a":1}', b'x']))
        elif kind < 0.78:
            j.raw(rnd.choice([b'\n', b'  \n', b'\t\n']) * rnd.choice([1, 1, 1, 200]))
        else:
            for _ in range(rnd.choice([1, 1, 2, 3, 30, 400])):
                clocks[k] += 1
                j.ack(clock=clocks[k], producer=producers[k])
        if rnd.random() < 0.02:
            j.write()
    j.write()


@pytest.mark.parametrize('seed', range(size(40, 5, 2)))
def test_any_journal_is_served_as_its_bytes_say(srv, topic, until, seed):
    rnd = random.Random(seed)
    j = Journal(srv, topic, fragment_bytes=rnd.choice([65536, 1 << 20, 64 << 20]))
    random_journal(j, rnd, size(900, 350, 120))
    settled(srv, topic, j.hw, until)
    oracle = j.oracle()
    same(read_all(srv.kafka, topic, 0, partition_max_bytes=rnd.choice([1, 70000, 1 << 20]), max_bytes=50 << 20), oracle)
    exact_fetches(srv, j, oracle, rnd, size(1500, 150, 40))
    with Conn(srv.kafka) as c:
        times = sorted({r.timestamp for r in oracle.records})
        for _ in range(size(200, 40, 10)):
            ms = rnd.choice(times) + rnd.choice([-1, 0, 0, 1, 1000])
            if ms < 0:
                continue
            r, want = c.list_offset(topic, 0, ms), first_at_time(oracle.records, ms)
            assert (r['offset'], r['timestamp']) == ((want.offset, want.timestamp) if want else (-1, -1)), ms
        r = c.list_offset(topic, 0, MAX_TIME, 7)
        best = max(x.timestamp for x in oracle.records)
        want = next(x for x in oracle.records if x.timestamp == best)
        assert (r['offset'], r['timestamp']) == (want.offset, want.timestamp)
    if seed == 0:
        for client in ('kcat', 'confluent-kafka', 'java-assign', 'franz-go'):
            if not QUICK or client in ('kcat', 'confluent-kafka'):
                same(sorted(clients.DIRECT[client](srv.bootstrap, topic)), oracle)


def test_a_restart_serves_the_same_journal(make_server, topic, until):
    s = make_server('--journal-admin')
    rnd = random.Random(11)
    j = Journal(s, topic, fragment_bytes=100000)
    random_journal(j, rnd, 200)
    settled(s, topic, j.hw, until)
    s.restart()
    settled(s, topic, j.hw, until)
    same(read_all(s.kafka, topic, 0), j.oracle())
    exact_fetches(s, j, j.oracle(), rnd, 60)
    s.kill()
    s.start()
    exact_fetches(s, j, j.oracle(), rnd, 60)


# --- what was removed -------------------------------------------------------------------------------------------------

def fragments_journal(srv, topic, until, n=6):
    """n closed fragments of 20 documents and hidden ones behind; returns the ends of the fragments."""
    j = Journal(srv, topic, closes=True)
    ends = []
    for _ in range(n):
        for _ in range(20):
            j.doc(300)
        j.ack().ack().write()
        fr = j.close_fragment()
        ends.append(j.at)
        assert any(f['end'] == j.at and not f.get('open') for f in fr), fr
    settled(srv, topic, j.hw, until)
    return j, ends


def log_start_of(j, end):
    return max([o + 1 for _, o, _, _ in j.docs if o < end], default=0)


@pytest.mark.local_store    # with brokers the log starts at the first available byte
def test_the_log_starts_at_the_end_of_the_last_removed_document(srv, topic, until):
    j, ends = fragments_journal(srv, topic, until)
    rnd = random.Random(2)
    for end in ends[:3]:
        j.remove_until(end)
        start = log_start_of(j, end)

        def gone():
            with Conn(srv.kafka) as c:
                return c.list_offset(topic, 0, EARLIEST)['offset'] == start
        until(gone, 10, 'log start %d' % start)
        with Conn(srv.kafka) as c:
            p = c.fetch(topic, 0, start, max_wait_ms=200)
            assert p['error_code'] == 0 and p['log_start_offset'] == start and p['high_watermark'] == j.hw
            for at in (start - 1, 0):
                p = c.fetch(topic, 0, at)
                assert (p['error_code'], p['log_start_offset'], p['high_watermark']) == (OUT_OF_RANGE, start, j.hw)
            assert c.list_offset(topic, 0, 0)['offset'] == j.oracle(start=start).offsets[0]
        oracle = j.oracle(start=start)
        same(read_all(srv.kafka, topic, 0), oracle)
        exact_fetches(srv, j, oracle, rnd, size(200, 40, 10), log_start=start)


def test_with_everything_removed_start_and_end_are_the_last_high_watermark(make_server, topic, until):
    """Field case 5."""
    s = make_server('--journal-admin')
    j, ends = fragments_journal(s, topic, until, 2)
    j.remove_until(ends[-1])
    for again in range(2):
        def empty():
            with Conn(s.kafka) as c:
                return c.list_offset(topic, 0, EARLIEST)['offset'] == j.hw
        until(empty, 10, 'log start == high watermark')
        with Conn(s.kafka) as c:
            assert c.list_offset(topic, 0, LATEST)['offset'] == j.hw
            p = c.fetch(topic, 0, j.hw)
            assert (p['error_code'], p['batches'], p['log_start_offset']) == (0, [], j.hw)
            assert c.fetch(topic, 0, j.hw - 1)['error_code'] == OUT_OF_RANGE
            assert c.list_offset(topic, 0, 0)['offset'] == -1
        if again == 0:
            s.restart()
    j.srv = s
    j.doc(500).write()
    settled(s, topic, j.hw, until)
    (r,) = read_all(s.kafka, topic, 0)
    assert r.offset == j.hw - 1
    lines = clients.kt('class', 'LabClient', 'ends', s.bootstrap, topic).stdout.decode().split()
    assert lines[0] == '0' and int(lines[2]) == j.hw and lines[3] == '0'


# --- bounds -----------------------------------------------------------------------------------------------------------

def bounded(srv, topic, until, keep):
    """60 documents; the bound hides all but those that keep(i) shows (their clocks are set above it)."""
    j = Journal(srv, topic)
    low, bound = j.now, j.now + (10**6 << 4)
    for i in range(60):
        j.doc(2000, clock=(bound if keep(i) else low) + i * 16)
        if i % 10 == 9:
            j.ack()
    j.write()
    settled(srv, topic, j.hw, until)
    assert len(read_all(srv.kafka, topic, 0)) == 60
    j.put(**{'estuary.dev/truncated-at': '%016x' % bound})
    return j, bound


BOUNDS = {'nothing_left': lambda i: False, 'tail_left': lambda i: i >= 40, 'tail_hidden': lambda i: i < 15, 'middle_hidden': lambda i: not 20 <= i < 45,
          'scattered': lambda i: i % 7 == 0, 'all_left': lambda i: True}


@pytest.mark.parametrize('which', BOUNDS)
def test_a_bound_hides_by_clock_and_moves_readers_over_it(srv, topic, until, which):
    """O4, O7, O9: watermark and log start stay, positions reach the end, one control batch where nothing is left."""
    j, bound = bounded(srv, topic, until, BOUNDS[which])
    oracle = j.oracle(bound)
    with Conn(srv.kafka) as c:
        def applied():
            got = visible(c.fetch(topic, 0, 0, partition_max_bytes=1 << 20)['batches'], 0)
            return [r.offset for r in got[:1]] == oracle.offsets[:1]
        until(applied, 10, 'the bound is applied to an open connection')
        assert c.list_offset(topic, 0, LATEST)['offset'] == j.hw
        assert c.list_offset(topic, 0, EARLIEST)['offset'] == 0, 'a bound does not raise the log start'
        got = c.list_offset(topic, 0, 0)
        assert (got['offset'], got['timestamp']) == ((oracle.records[0].offset, oracle.records[0].timestamp) if oracle.records else (-1, -1))
    same(read_all(srv.kafka, topic, 0), oracle)
    exact_fetches(srv, j, oracle, random.Random(9), size(300, 60, 15))
    if which in ('all_left',):
        return
    for client in ('kcat', 'confluent-kafka') if QUICK else ('kcat', 'confluent-kafka', 'java-assign', 'sarama', 'franz-go', 'kafka-python', 'kafkajs-lowlevel'):
        if which == 'nothing_left' and client in ('sarama', 'franz-go', 'kafka-python', 'confluent-kafka'):
            continue    # these programs wait for a first record
        before = srv.metrics()['sluice_requests_total']
        same(sorted(clients.DIRECT[client](srv.bootstrap, topic)), oracle)
        assert srv.metrics()['sluice_requests_total'] - before < 60, client


def test_a_bound_never_goes_down(srv, topic, until):
    j, bound = bounded(srv, topic, until, lambda i: i >= 30)
    until(lambda: len(read_all(srv.kafka, topic, 0)) == 30, 10)
    for label in ('%016x' % (bound - 16000000), '0000000000000000', 'XYZ', '%016X' % bound):
        j.put(**{'estuary.dev/truncated-at': label})
        time.sleep(0.3)
        assert len(read_all(srv.kafka, topic, 0)) == 30, label


# --- compression ------------------------------------------------------------------------------------------------------

CODECS = {'none': 0, 'gzip': 1, 'snappy': 2, 'lz4': 3, 'zstd': 4}


@pytest.mark.parametrize('codec', CODECS)
def test_a_compressed_topic_is_read_by_every_client(srv, topic, until, codec):
    """Field case 21."""
    j = Journal(srv, topic, {'sluice.dev/compression': codec})
    for i in range(100):
        j.doc(1000, n=i)
    j.write()
    settled(srv, topic, j.hw, until)
    with Conn(srv.kafka) as c:
        tid = c.metadata(topic, 12)['topic_id']
        for v in range(4, 19):
            r = c.finish(FETCH, v, c.fetch_start(topic, {0: 0}, v, topic_id=tid))
            p = r['responses'][0]['partitions'][0]
            assert p['error_code'] == 0
            used = p['records'][22] & 7
            if v < 10:
                assert used != 4, 'zstd in Fetch v%d' % v
            elif codec == 'none':
                assert used == 0
            else:
                assert used == CODECS[codec] and len(p['records']) < 60000, 'not compressed'
    names = ['kcat', 'confluent-kafka', 'kafka-python', 'kafka-python-2.0', 'aiokafka', 'java-assign', 'franz-go', 'sarama', 'kafka-go']
    if codec != 'zstd':
        names.append('platformatic')    # has zstd from Node 22.15 on only
    if codec in ('none', 'gzip'):
        names.append('kafkajs-lowlevel')    # the other codecs are plug-ins there
    for client in names[:3] if QUICK else names:
        same(clients.DIRECT[client](srv.bootstrap, topic), j.oracle())


# --- partitions that come later ---------------------------------------------------------------------------------------

def test_a_new_journal_becomes_the_last_partition(srv, topic, until):
    """O12, O13."""
    a = Journal(srv, topic, name=topic + '/m')
    a.doc(100).write()
    settled(srv, topic, 100, until)
    with Conn(srv.kafka) as c:
        before = c.metadata(topic, 12)
        b = Journal(srv, topic, name=topic + '/a')
        b.doc(200).write()
        until(lambda: len(c.metadata(topic, 12)['partitions']) == 2, 10)
        after = c.metadata(topic, 12)
        assert after['topic_id'] == before['topic_id']
        assert [p['leader_epoch'] for p in after['partitions']] == [before['partitions'][0]['leader_epoch']] * 2
        until(lambda: c.list_offset(topic, 1, LATEST)['offset'] == 200, 10)
        assert c.list_offset(topic, 0, LATEST)['offset'] == 100
    assert [p['journal'] for p in srv.topics()[topic]['partitions']] == [topic + '/m', topic + '/a']


def test_a_journal_that_is_made_anew_is_another_topic_to_clients(make_server, topic, until):
    """O11, O12: the generation rises, the epoch with it, and the id changes."""
    s = make_server('--journal-admin')
    j = Journal(s, topic)
    j.doc(100).doc(100).write()
    settled(s, topic, 200, until)
    with Conn(s.kafka) as c:
        before = c.metadata(topic, 12)
        rev = json.loads(s.request('GET', j.url())[1])['mod_revision']
        j.call('DELETE', j.url(expect_mod_revision=rev))
        until(lambda: c.metadata(topic, 12)['error_code'] == 3, 10)
        k = Journal(s, topic)
        k.doc(150).write()
        until(lambda: c.metadata(topic, 12)['error_code'] == 0 and c.list_offset(topic, 0, LATEST)['offset'] == 150, 10)
        after = c.metadata(topic, 12)
        assert after['topic_id'] != before['topic_id']
        assert after['partitions'][0]['leader_epoch'] > before['partitions'][0]['leader_epoch']
        assert c.fetch(topic, 0, 0, 12, epoch=before['partitions'][0]['leader_epoch'])['error_code'] == 74
        assert c.fetch(topic, 0, 0, 13, topic_id=before['topic_id'])['error_code'] == 100
    s.restart()
    with Conn(s.kafka) as c:
        again = c.metadata(topic, 12)
        assert (again['topic_id'], again['partitions'][0]['leader_epoch']) == (after['topic_id'], after['partitions'][0]['leader_epoch'])


def test_operator_routes_are_closed_unless_asked_for(make_server):
    s = make_server()
    s.publish('t', [{'id': 1}])
    status, body, _ = s.request('POST', '/v1/journals/t%2Fpivot%3D00/content', b'{"x":1}\n')
    assert status in (403, 405), (status, body)
    assert len(read_all(s.kafka, 't', 0)) == 1
