"""The model test of the offset rules: journals drawn at random - documents of one byte to 5 MB, hidden runs, several producers
whose clocks do not rise with offsets, blank lines, CRLF, a bound, a removed prefix, a hole, a torn tail, all of it in one -
against the oracle of what was written; thousands of questions by raw requests of every version, hundreds by kcat, Java and
confluent-kafka. Each journal's seed is in the test's name; SLUICE_TEST_SEED moves the range of seeds.

What is checked of each answer is in check(): nothing of a Fetch answer is left unlooked at."""
import bisect
import ctypes
import os
import random
import threading
import time
import zlib

import pytest

import clients
import kafka_raw
import live
from docs_util import Oracle
from journals import ACK, CONTINUE, CONTROL, OUTSIDE, Journal, first_at_time
from kafka_raw import EARLIEST, EARLIEST_LOCAL, EPOCH_END, FETCH, LATEST, LATEST_TIERED, MAX_TIME, Conn, ProtocolError, decode_batches
from scale import QUICK, size
from stand_in import STORE

OUT_OF_RANGE = 1
BLOCK, LEAD = 256 << 10, 64 << 10
FIRST_SEED = int(os.environ.get('SLUICE_TEST_SEED') or 1)
ASK_S = 10    # no single question may take longer


def sized(b):
    """The batches of an answer, each with its size on the wire."""
    out, at = decode_batches(b), 0
    for x in out:
        x.size = 12 + int.from_bytes(b[at + 8:at + 12], 'big')
        at += x.size
    return out


def fast_crc():
    """ISA-L's CRC32C when it is there: the checksums of gigabytes, else the slow table of kafka_raw."""
    try:
        f = ctypes.CDLL('libisal.so.2').crc32_iscsi
    except (OSError, AttributeError):
        return kafka_raw.crc32c
    f.restype = ctypes.c_uint32
    f.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_uint32]

    def crc(b):
        return f(bytes(b), len(b), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return crc if crc(b'123456789') == 0xE3069283 else kafka_raw.crc32c


@pytest.fixture(autouse=True)
def _crc(monkeypatch):
    assert kafka_raw.crc32c(b'123456789') == 0xE3069283
    monkeypatch.setattr(kafka_raw, 'crc32c', fast_crc())


# --- random journals ----------------------------------------------------------------------------------------------------

class Model:
    """A journal and everything that the rules say about it. Owner: the test."""

    def __init__(self, srv, topic, rnd):
        self.srv, self.topic, self.rnd = srv, topic, rnd
        self.j = Journal(srv, topic, closes=True, fragment_bytes=rnd.choice([1 << 16, 1 << 18, 1 << 20, 64 << 20]))
        self.removed, self.bound, self.holes, self.closed = 0, 0, [], []
        self.clocks = [self.j.now + rnd.randrange(1 << 30) for _ in range(4)]

    def one(self, k):
        rnd, j = self.rnd, self.j
        self.clocks[k] += rnd.choice([1, 16, 160000, 1600000000])
        producer, kind = bytes([1, 9, 9, 9, 0, k]), rnd.random()
        if kind < 0.55:
            n = rnd.choice([0, 130, 130, 400, 1000, 3000]) + rnd.randrange(60)
            j.doc(n, clock=self.clocks[k], producer=producer, flags=rnd.choice([CONTINUE, OUTSIDE, 0x100]), n=len(j.docs))
        elif kind < 0.60:
            j.doc(rnd.choice([20000, LEAD - 1, LEAD, LEAD + 1, 100000, BLOCK - 1, BLOCK, BLOCK + 1]), clock=self.clocks[k], producer=producer)
        elif kind < 0.605:
            j.doc(rnd.choice([1 << 20, 5 << 20]), clock=self.clocks[k], producer=producer)
        elif kind < 0.66:
            [j.line(rnd.choice([b'1', b'7', b'{}', b'null', b'{"a":1}', b'x', b'not json'])) for _ in range(rnd.choice([1, 1, 5, 300]))]
        elif kind < 0.70:
            j.line(b'{"crlf":%d}\r' % len(j.docs))
        elif kind < 0.76:
            j.raw(rnd.choice([b'\n', b'  \n', b'\t\n', b'\r\n', b'   \r\n']) * rnd.choice([1, 1, 1, 200, 9000]))
        elif kind < 0.78:
            # a document that ends exactly at, just before or just behind a line of 256 KiB
            n = -j.at % BLOCK + rnd.choice([-1, 0, 1])
            if n > 150:
                j.doc(n, clock=self.clocks[k], producer=producer)
        else:
            for _ in range(rnd.choice([1, 1, 2, 3, 30, 400, 400, 5000])):
                self.clocks[k] += 1
                j.ack(clock=self.clocks[k], producer=producer, flags=rnd.choice([ACK, ACK, CONTROL, ACK | CONTROL, CONTROL | CONTINUE]))

    def grow(self, lines):
        for _ in range(lines):
            self.one(self.rnd.randrange(4))
            if self.rnd.random() < 0.04:
                self.j.write()
            if self.rnd.random() < 0.01:
                self.close()
        self.j.write()

    def close(self):
        self.j.write()
        self.closed = [(f['begin'], f['end']) for f in self.j.close_fragment() if not f.get('open')]

    def set_bound(self):
        """Above about a third of the clocks."""
        clocks = sorted(c for _, _, c, _ in self.j.docs if c)
        if clocks:
            self.bound = clocks[len(clocks) // 3]
            self.j.put(**{'estuary.dev/truncated-at': '%016x' % self.bound})

    def remove_prefix(self):
        self.close()
        ends = [e for _, e in self.closed if e < self.j.at]
        if ends:
            end = self.rnd.choice(ends[:max(1, len(ends) // 2)])
            self.j.remove_until(end)
            for begin, behind in sorted(self.holes):    # a hole at the front is a removed prefix, too
                end = behind if begin == end else end
            self.closed = [f for f in self.closed if f[0] >= end]
            self.removed = end

    def punch(self):
        """Takes the file of a fragment in the middle away; the server is stopped meanwhile."""
        self.close()
        middle = [f for f in self.closed if f[0] > self.log_start][1:-1]
        if not middle:
            return False
        begin, end = self.rnd.choice(middle)
        self.srv.stop()
        name = '%016x-%016x-' % (begin, end)
        (path,) = [p for p in self.srv.data_dir.rglob(name + '*') if p.suffix == '.raw']
        path.unlink()
        self.holes.append((begin, end))
        self.srv.start()
        return True

    # --- what the rules say --------------------------------------------------------------------------------------------
    @property
    def hw(self):
        return self.j.hw

    @property
    def log_start(self):
        """O7: the end of the last document that was removed; brokers know only which byte is the first one left."""
        if STORE != 'local':
            return min(self.removed, self.hw)
        return max([o + 1 for _, o, _, _ in self.j.docs if o < self.removed], default=0)

    def oracle(self, start=None):
        o = self.j.oracle(self.bound, self.log_start if start is None else start)
        return Oracle([r for r in o.records if not any(b <= r.offset < e for b, e in self.holes)])

    def settle(self, until):
        o = self.oracle()

        def look():
            with Conn(self.srv.kafka) as c:
                m = c.metadata(self.topic)
                if m['error_code']:
                    return False
                hw, start = c.list_offset(self.topic, 0, LATEST), c.list_offset(self.topic, 0, EARLIEST)
                first = c.list_offset(self.topic, 0, 0)
                got[:] = hw['offset'], start['offset'], first['offset']
                return got == want
        want, got = [self.hw, self.log_start, next((r.offset for r in o.records if r.timestamp >= 0), -1)], []
        try:
            until(look, 15)
        except pytest.fail.Exception:
            pytest.fail('high watermark, log start and first document are %s, not %s; holes %s' % (got, want, self.holes))


class Question:
    def __init__(self, m, rnd, oracle):
        hw, start, head = m.hw, m.log_start, m.j.at
        kind = rnd.random()
        if kind < 0.45 and oracle.records:
            r = rnd.choice(oracle.records)
            at = r.offset + rnd.choice([-len(r.value), -len(r.value) - 1, -1, 0, 0, 1, 2])
        elif kind < 0.55:
            at = rnd.randrange(max(1, head // BLOCK + 2)) * BLOCK + rnd.choice([-1, 0, 1])
        elif kind < 0.62:
            at = rnd.choice([hw - 1, hw, hw + 1, head - 1, head, head + 1, start - 1, start, start + 1, -1, 1 << 62])
        elif kind < 0.66 and m.holes:
            at = rnd.choice(rnd.choice(m.holes)) + rnd.choice([-1, 0, 1, 1000])
        else:
            at = rnd.randrange(start, max(head, start + 1))
        self.at = at
        self.version = rnd.randrange(4, 19)
        self.isolation = rnd.randrange(2)
        self.partition_max = rnd.choice([0, 1, 100, 5000, LEAD, 70000, BLOCK, 1 << 20, 1 << 20, 50 << 20])
        self.max_bytes = rnd.choice([0, 1, 100000, 1 << 20, 50 << 20, 50 << 20])

    def __repr__(self):
        return 'Fetch v%d at %d, partition_max_bytes %d, max_bytes %d, isolation %d' % (self.version, self.at, self.partition_max, self.max_bytes, self.isolation)


def check(m, q, p, oracle, epoch):
    """Everything that the rules say of one partition's answer."""
    hw, start, head = m.hw, m.log_start, m.j.at
    assert p['last_stable_offset'] == p['high_watermark'], 'LSO'
    assert p['records'] is not None, 'empty records are zero-length'
    assert (p['aborted_transactions'] or []) == []
    assert q.version < 11 or p['preferred_read_replica'] == -1
    assert 'diverging_epoch' not in p and 'snapshot_id' not in p
    if q.at < start or q.at > max(hw, head):
        assert p['error_code'] == OUT_OF_RANGE, 'O8'
        assert p['records'] == b'' and p['high_watermark'] == hw
        assert q.version < 5 or p['log_start_offset'] == start
        return
    assert p['error_code'] == 0
    assert p['high_watermark'] == hw, 'O4, O5'
    assert q.version < 5 or p['log_start_offset'] == start, 'O7'
    batches = sized(p['records'])    # checks sums, deltas, that none is empty
    total = sum(b.size for b in batches)
    assert total == len(p['records']), 'a batch is cut'
    if q.at >= hw:
        assert not batches, 'O8: nothing is served again at the head'
        return
    assert batches, 'nothing below the watermark'
    last = -1
    for b in batches:
        assert b.last >= q.at, 'O9: a batch that ends below the asked offset'
        assert b.base > last and b.records[0].offset == b.base, 'batches overlap'
        assert b.epoch == epoch and b.records[-1].offset - b.base < 1 << 31
        last = b.last
    shown = [r for b in batches if not b.control for r in b.records]
    lead = [r for r in shown if r.offset < q.at]
    got = shown[len(lead):]
    assert all(r.offset < q.at for r in lead) and {id(r) for r in lead} <= {id(r) for r in batches[0].records}, 'older records stand in the first batch only'
    assert not lead or sum(len(r.value) for r in lead) <= LEAD, 'a leading part of %d bytes' % sum(len(r.value) for r in lead)
    k = bisect.bisect_left(oracle.offsets, q.at)
    want = oracle.records[k:k + len(got)]
    if lead:    # a cached batch may still begin with documents that are removed by now: they lie below the asked offset
        older = [r for r in m.oracle(0).records if r.offset < q.at][-len(lead):]
        assert [(r.offset, r.value, r.timestamp) for r in lead] == [(r.offset, r.value, r.timestamp) for r in older], 'the leading part'
    assert [r.offset for r in got] == [r.offset for r in want], 'O2, O3: %s, not %s' % ([r.offset for r in got][:5], [r.offset for r in oracle.records[k:k + 5]])
    for r, w in zip(got, want):
        assert (r.value, r.timestamp, r.key, r.headers) == (w.value, w.timestamp, None, []), 'O10, the document at %d' % r.offset
    control = [b for b in batches if b.control]
    rest = oracle.records[k + len(got):]
    if control:
        (b,) = control
        assert b is batches[-1] and b.base == hw - 1 and b.last_delta == 0 and len(b.records) == 1 and b.codec == 0, 'O9: %s' % b.records
        assert b.records[0].key == b'\x00\x00\xff\xff' and b.records[0].value is None
        assert not rest and (not got or got[-1].offset < hw - 1), 'O9: a control batch where documents follow'
    else:
        assert got, 'neither a document nor a control batch'
    first = batches[0].size
    assert total <= max(q.partition_max, first), 'partition_max_bytes'
    assert total <= max(q.max_bytes, first), 'max_bytes'


def interrogate(m, n, until):
    m.settle(until)
    oracle, rnd = m.oracle(), m.rnd
    with Conn(m.srv.kafka, timeout=ASK_S) as c:
        md = c.metadata(m.topic, 12)
        tid, epoch = md['topic_id'], md['partitions'][0]['leader_epoch']
        for i in range(n):
            q = Question(m, rnd, oracle)
            t0 = time.monotonic()
            try:
                r = c.finish(FETCH, q.version, c.fetch_start(m.topic, {0: q.at}, q.version, max_wait_ms=0, max_bytes=q.max_bytes, topic_id=tid,
                                                             partition_max_bytes=q.partition_max, isolation=q.isolation, epoch=rnd.choice([-1, epoch])))
                assert r.get('error_code', 0) == 0
                check(m, q, r['responses'][0]['partitions'][0], oracle, epoch)
            except (AssertionError, ProtocolError, TimeoutError) as e:
                pytest.fail('%r: %s' % (q, ' '.join(str(e).split())[:600]))
            assert time.monotonic() - t0 < ASK_S, q
        times(m, c, oracle, max(10, n // 10), epoch)
    return oracle


def times(m, c, oracle, n, epoch):
    """O10 and the special values."""
    stamps = sorted({r.timestamp for r in oracle.records if r.timestamp >= 0})
    for _ in range(n):
        v, iso = m.rnd.randrange(1, 12), m.rnd.randrange(2)
        ms = m.rnd.choice(stamps) + m.rnd.choice([-1, 0, 0, 1, 1000]) if stamps else 5
        r, want = c.list_offset(m.topic, 0, ms, v, iso), first_at_time(oracle.records, ms)
        assert (r['error_code'], r['offset'], r['timestamp']) == ((0, want.offset, want.timestamp) if want else (0, -1, -1)), (ms, v)
        for asked, lo, w in ((LATEST, 1, m.hw), (EARLIEST, 1, m.log_start), (EARLIEST_LOCAL, 8, m.log_start), (LATEST_TIERED, 9, -1)):
            if v >= lo:
                r = c.list_offset(m.topic, 0, asked, v, iso)
                assert (r['error_code'], r['offset']) == (0, w), (asked, v)
        if v >= 7 and stamps:
            r, want = c.list_offset(m.topic, 0, MAX_TIME, v, iso), next(x for x in oracle.records if x.timestamp == stamps[-1])
            assert (r['offset'], r['timestamp']) == (want.offset, want.timestamp)
    for v in (2, 3, 4):
        for asked, want in ((epoch, (epoch, m.hw)), (epoch - 1, (epoch - 1, m.log_start)), (epoch + 1, (-1, -1))):
            if asked >= 0:
                r = c.call(EPOCH_END, v, topics=[{'topic': m.topic, 'partitions': [{'partition': 0, 'leader_epoch': asked}]}])
                r = r['topics'][0]['partitions'][0]
                assert (r['error_code'], r['leader_epoch'], r['end_offset']) == (0, *want)


SEEDS = range(FIRST_SEED, FIRST_SEED + size(12, 6, 2))


@pytest.mark.parametrize('seed', SEEDS)
def test_every_answer_is_the_oracles(make_server, topic, until, figures, seed):
    rnd = random.Random(seed)
    s = make_server('--journal-admin')
    m = Model(s, topic, rnd)
    n = size(1500, 250, 60)
    asked = 0
    for step in ['grow', 'bound', 'grow', 'prefix', 'hole', 'torn', 'grow', 'prefix', 'restart']:
        if step == 'grow':
            m.grow(size(400, 130, 60))
        elif step == 'bound':
            if rnd.random() < 0.6:
                continue
            m.set_bound()
        elif step == 'prefix':
            m.remove_prefix()
        elif STORE != 'local' and step in ('hole', 'torn'):
            continue    # what becomes of the local store's files
        elif step == 'hole':
            if not m.punch():
                continue
        elif step == 'torn':
            if rnd.random() < 0.5:
                continue
            tear(m)
        elif step == 'restart':
            s.restart()
        try:
            interrogate(m, n, until)
        except BaseException as e:
            if isinstance(e, (AssertionError, pytest.fail.Exception)):
                pytest.fail('seed %d after %s: %s' % (seed, step, e))
            raise
        asked += n
    figures('seed %d: %d documents in %.1f MB, %d fetches' % (seed, len(m.oracle().records), m.j.at / 1e6, asked))


def tear(m):
    """A crash in the middle of an append: the open file ends in bytes that no commit knows, one time within a line."""
    m.j.doc(200, clock=m.clocks[0] + 16).write()
    m.clocks[0] += 16
    m.srv.kill()
    m.srv.expect_dead = True
    files = [p for p in m.srv.data_dir.rglob('*') if p.is_file() and p.stat().st_size > 0 and ends_with(p, m.j.docs[-1][3] + b'\n')]
    assert files, 'no file ends with the last document'
    for p in files:
        with open(p, 'ab') as f:
            f.write(m.rnd.choice([b'{"torn":', b'x' * 100000, b'\x00' * 4096, b'{"_meta":{"uuid":"', b'{"whole":1}\n{"torn', b'\n\n{"a":1}\n']))
    m.srv.start()


def ends_with(path, tail):
    with open(path, 'rb') as f:
        f.seek(0, 2)
        if f.tell() < len(tail):
            return False
        f.seek(-len(tail), 2)
        return f.read() == tail


# --- real clients from anywhere ------------------------------------------------------------------------------------------

@pytest.fixture(scope='module')
def wild(_shared):
    return {}


SERVER_FLAGS = ('--journal-admin',)


@pytest.fixture
def drawn(srv, wild, until):
    """One random journal for the real clients, with a removed prefix and a bound."""
    if wild.get('pid') != srv.proc.pid:
        rnd = random.Random(FIRST_SEED + 1000)
        m = Model(srv, 'wild-%d' % srv.proc.pid, rnd)
        m.grow(size(800, 300, 100))
        m.set_bound()
        m.grow(size(400, 150, 50))
        m.remove_prefix()
        m.grow(30)
        for _ in range(300):
            m.j.ack()
        m.j.write()
        m.settle(until)
        wild.update(pid=srv.proc.pid, model=m)
    return wild['model']


def starts(m, rnd, n):
    oracle = m.oracle()
    out = [m.log_start, m.hw - 1, m.hw]
    while len(out) < n:
        if rnd.random() < 0.4:
            r = rnd.choice(oracle.records)
            out.append(max(m.log_start, r.offset + rnd.choice([-len(r.value), -1, 0, 1])))
        else:
            out.append(rnd.randrange(m.log_start, m.hw))
    return [x for x in out if m.log_start <= x <= m.hw]


def answers(m, asked):
    oracle = m.oracle()
    out = []
    for at in asked:
        r = oracle.first_from(at)
        out.append('%d none %d' % (at, m.hw) if r is None else '%d %d %d %d %d' % (at, r.offset, r.timestamp, len(r.value), zlib.crc32(r.value)))
    return out


def compare(got, want):
    assert len(got) == len(want), 'the client stopped after %d of %d' % (len(got), len(want))
    bad = [(g, w) for g, w in zip(got, want) if g != w]
    assert not bad, '%d of %d differ, first (got, want): %s' % (len(bad), len(want), bad[:3])


def test_kcat_gets_the_first_document_from_anywhere(drawn):
    """Field case 17."""
    m = drawn
    asked = starts(m, random.Random(5), size(500, 60, 15))
    oracle, got = m.oracle(), {}

    def work(part):
        for at in part:
            t0 = time.monotonic()
            r = clients.kcat(m.srv.bootstrap, m.topic, '-p', '0', '-o', str(at), '-c', '1', '-e', timeout=20)
            got[at] = ([(x.offset, x.value, x.timestamp) for x in r], time.monotonic() - t0)
    ts = [threading.Thread(target=work, args=(asked[i::3],)) for i in range(3)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    for at in asked:
        want = oracle.first_from(at)
        assert at in got, 'kcat hung or failed from %d' % at
        assert got[at][0] == ([(want.offset, want.value, want.timestamp)] if want else []), at
        assert got[at][1] < 10, 'from %d it took %.1f s' % (at, got[at][1])


@pytest.mark.parametrize('isolation', ['read_uncommitted', 'read_committed'])
def test_java_gets_the_first_document_from_anywhere(drawn, isolation):
    if QUICK:
        pytest.skip('no Java in the quick profile')
    asked = starts(drawn, random.Random(6), size(1000, 150))
    with live.java_seeks(drawn.srv.bootstrap, drawn.topic, 0, isolation) as a:
        compare(a.ask_all(asked, 60 + len(asked)), answers(drawn, asked))


@pytest.mark.parametrize('isolation', ['read_uncommitted', 'read_committed'])
def test_librdkafka_gets_the_first_document_from_anywhere(drawn, isolation):
    asked = starts(drawn, random.Random(7), size(1000, 150, 40))
    with live.confluent_seeks(drawn.srv.bootstrap, drawn.topic, 0, isolation) as a:
        compare(a.ask_all(asked, 60 + len(asked)), answers(drawn, asked))


def test_the_other_clients_read_the_same_documents(drawn):
    want = [(r.offset, r.value, r.timestamp) for r in drawn.oracle().records]
    names = ['confluent-kafka', 'kafka-python'] if QUICK else ['franz-go', 'sarama', 'kafkajs-lowlevel', 'kafka-python', 'kafka-python-2.0', 'aiokafka', 'platformatic', 'java-assign']
    for n in names:
        got = [(r.offset, r.value, r.timestamp) for r in clients.DIRECT[n](drawn.srv.bootstrap, drawn.topic)]
        if n == 'kafka-python-2.0':
            # It knows no control batches and hands their records to the program, also with a real Kafka (docs/protocol.md):
            # the one that moves it to the watermark may show, and nothing else.
            control = (drawn.hw - 1, None, -1)
            got = [r for r in got if r != control]
        assert got == want, n


# --- reading while it grows ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize('how', ['sessionless', 'session'])
@pytest.mark.parametrize('seed', range(FIRST_SEED, FIRST_SEED + size(20, 3, 1)))
def test_readers_of_growing_partitions_get_each_document_once(srv, topic, until, seed, how):
    """Three partitions, a writer that appends at random, a reader with random limits and pauses: every document once, in order,
    nothing twice, the watermark never goes back."""
    rnd = random.Random(seed * 31)
    models = [Journal(srv, topic, name='%s/p%d' % (topic, k)) for k in range(3)]
    models[0].doc(100).write()
    with Conn(srv.kafka) as c:
        until(lambda: len(c.metadata(topic)['partitions']) == 3 and c.list_offset(topic, 0, LATEST)['offset'] == 100, 10)
        tid = c.metadata(topic, 12)['topic_id']
    done = threading.Event()
    failed = []

    def writer():
        w = random.Random(seed)
        try:
            for _ in range(size(200, 60, 25)):
                j = w.choice(models)
                for _ in range(w.choice([1, 1, 3, 40])):
                    j.doc(w.choice([130, 130, 900, 30000, 300000 if w.random() < 0.1 else 200])) if w.random() < 0.6 else j.ack()
                j.write()
                time.sleep(w.choice([0, 0, 0.005, 0.03]))
        except Exception as e:
            failed.append(e)
        done.set()
    t = threading.Thread(target=writer)
    t.start()
    at, seen, marks = [0, 0, 0], [[], [], []], [0, 0, 0]
    version = rnd.choice([7, 9, 11, 12, 13, 16, 18]) if how == 'session' else rnd.randrange(4, 19)
    sid, epoch, told = 0, 0, {}
    end = time.monotonic() + 60
    with Conn(srv.kafka, timeout=ASK_S) as c:
        while time.monotonic() < end:
            if done.is_set() and all(at[k] >= models[k].hw for k in range(3)):
                break
            kw = dict(max_wait_ms=rnd.choice([0, 20, 300]), partition_max_bytes=rnd.choice([1, 3000, 70000, 1 << 20]), max_bytes=rnd.choice([1, 100000, 50 << 20]), topic_id=tid)
            if how == 'session':
                changed = {k: at[k] for k in range(3) if told.get(k) != at[k]} if epoch else dict(enumerate(at))
                r = c.finish(FETCH, version, c.fetch_start(topic, changed, version, session_id=sid, session_epoch=epoch, **kw))
                if r['error_code'] in (70, 71):
                    sid, epoch, told = 0, 0, {}
                    continue
                told.update(changed)
                sid, epoch = r['session_id'], epoch + 1
                assert sid, 'no session'
            else:
                r = c.finish(FETCH, version, c.fetch_start(topic, dict(enumerate(at)), version, **kw))
            for tp in r['responses']:
                for p in tp['partitions']:
                    k = p['partition_index']
                    assert p['error_code'] == 0 and p['high_watermark'] >= marks[k], 'the watermark went back'
                    marks[k] = p['high_watermark']
                    for b in decode_batches(p['records'] or b''):
                        assert b.last >= at[k], 'seed %d: a batch that ends at %d, asked %d' % (seed, b.last, at[k])
                        if not b.control:
                            seen[k] += [(x.offset, x.value) for x in b.records if x.offset >= at[k]]
                        at[k] = b.last + 1
            if rnd.random() < 0.05:
                time.sleep(0.03)
    t.join(60)
    assert not failed, failed
    for k in range(3):
        want = [(r.offset, r.value) for r in models[k].oracle().records]
        assert [o for o, _ in seen[k]] == [o for o, _ in want], 'seed %d, partition %d' % (seed, k)
        assert seen[k] == want


@pytest.mark.parametrize('how', ['stop', 'kill'])
def test_watermarks_do_not_go_back_over_restarts(make_server, topic, until, how):
    """O5, with hidden tails of any length and a removed prefix between the restarts."""
    rnd = random.Random(77)
    s = make_server('--journal-admin')
    m = Model(s, topic, rnd)
    before = (0, 0, 0)
    for _ in range(size(20, 5, 2)):
        m.grow(25)
        for _ in range(rnd.choice([0, 3, 4000])):
            m.j.ack()
        m.j.write()
        if rnd.random() < 0.5:
            m.remove_prefix()
        m.settle(until)
        with Conn(s.kafka) as c:
            epoch = c.metadata(topic)['partitions'][0]['leader_epoch']
        now = (epoch, m.log_start, m.hw)
        assert all(b <= a for b, a in zip(before, now))
        before = now
        if how == 'kill':
            s.kill()
            s.expect_dead = True
            s.start()
        else:
            s.restart()
        with Conn(s.kafka) as c:
            for _ in range(5):
                got = (c.metadata(topic)['partitions'][0]['leader_epoch'], c.list_offset(topic, 0, EARLIEST)['offset'], c.list_offset(topic, 0, LATEST)['offset'])
                assert got == now, 'after the restart'
                p = c.fetch(topic, 0, m.hw)
                assert (p['error_code'], p['high_watermark'], p['log_start_offset'], p['batches']) == (0, m.hw, m.log_start, [])
