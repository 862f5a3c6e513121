"""Truncation as readers see it: bounds by 64-bit clocks, at once and in all partitions; a stale prefix that costs nothing;
markers as record headers; the catalog's bounds; and random histories with crashes, against the raw journals."""
import importlib.util
import json
import random
import threading
import time
import urllib.parse

import pytest

import clients
from docs_util import read_all
from journals import ACK, Journal, clock_of, uuid_text
from kafka_raw import EARLIEST, FETCH, LATEST, METADATA, Conn, decode_batches, visible
from scale import LONG, QUICK, size
from sluice import META, ROOT, AdminError, run_cli, uuid_clock

SERVER_FLAGS = ('--journal-admin',)
TRUNCATED = 'estuary.dev/truncated-at'


def hex16(clock):
    return '%016x' % clock


def catalog(path, bindings, **sluice):
    """A catalog file with one task over these bindings."""
    names = sorted({b['source'] if isinstance(b['source'], str) else b['source']['name'] for b in bindings})
    path.write_text(json.dumps({
        'collections': {n: {'schema': {'type': 'object'}, 'key': ['/id']} for n in names},
        'materializations': {'test/task': {'endpoint': {'dekaf': {'variant': 'generic', 'config': {
            'sluice': {'value_format': 'json', **sluice}}}}, 'bindings': bindings}}}, indent=1))
    return path


def marker(clock, body, producer=b'\x01\x02\x03\x04\x05\x07'):
    return b'{"_meta":{"uuid":"%s"},%s,"is_ack":true}\n' % (uuid_text(clock, ACK, producer).encode(), body)


def begin(j, clock):
    return j.raw(marker(clock, b'"backfillBegin":true'))


def complete(j, clock, of):
    return j.raw(marker(clock, b'"backfillComplete":true,"truncatedAt":"%s"' % hex16(of).encode()))


def values(recs):
    return [r.value for r in recs]


def shown(j, bound=0, top=2 ** 64):
    return [v for _, _, c, v in j.docs if bound <= c < top]


def read_with_headers(port, topic, partition=0):
    return read_all(port, topic, partition)


def told(recs):
    return [(i, k.decode(), v.decode()) for i, r in enumerate(recs) for k, v in r.headers]


# --- bounds ---------------------------------------------------------------------------------------------------------

def test_a_bound_is_exact_to_one_counter_step(srv, topic):
    j = Journal(srv, topic)
    b = clock_of(1_780_000_000_000, 7)
    for c in (b - 17, b - 16, b - 1, b, b + 1, b + 16, b + 17):
        j.doc(200, clock=c)
    j.write().put(**{TRUNCATED: hex16(b)})
    assert values(read_all(srv.kafka, topic, 0)) == shown(j, b)
    j.put(**{TRUNCATED: hex16(b + 1)})
    assert values(read_all(srv.kafka, topic, 0)) == shown(j, b + 1)
    # back, malformed, gone: the last good one stays, and is counted
    before = srv.metrics()
    j.put(**{TRUNCATED: hex16(b)})
    j.put(**{TRUNCATED: '7'})
    j.labels.pop(TRUNCATED)
    j.put()
    assert values(read_all(srv.kafka, topic, 0)) == shown(j, b + 1)
    after = srv.metrics()
    assert after['sluice_labels_regressed_total'] == before['sluice_labels_regressed_total'] + 1
    assert after['sluice_labels_refused_total'] == before['sluice_labels_refused_total'] + 1


def test_one_journals_label_bounds_all_partitions(srv, topic):
    a = Journal(srv, topic, name=topic + '/a')
    b = Journal(srv, topic, name=topic + '/b')
    other = Journal(srv, topic + '-disk', name=topic + '-disk/a')
    bound = clock_of(1_780_000_000_000)
    for j in (a, b, other):
        j.doc(100, clock=bound - 1).doc(100, clock=bound).write()
    b.put(**{TRUNCATED: hex16(bound)})
    assert values(read_all(srv.kafka, topic, 0)) == shown(a, bound)
    assert values(read_all(srv.kafka, topic, 1)) == shown(b, bound)
    assert len(read_all(srv.kafka, topic + '-disk', 0)) == 2
    # a partition that comes later is bounded as well, label or not
    c = Journal(srv, topic, name=topic + '/c')
    c.doc(100, clock=bound - 1).doc(100, clock=bound).write()
    assert values(read_all(srv.kafka, topic, 2)) == shown(c, bound)


def test_clocks_five_minutes_ahead_and_behind(srv, topic):
    """Only the documents' own clocks count: not the order of offsets, not the time of their arrival."""
    j = Journal(srv, topic)
    now = clock_of(int(time.time() * 1000))
    minutes = 5 * 60 * 10_000_000 * 16
    p2 = b'\x03\x02\x03\x04\x05\x07'
    j.doc(200, clock=now + minutes, producer=p2)      # a producer ahead: of the current generation
    j.doc(200, clock=now - minutes)                   # one behind: stale
    begin(j, now)
    j.doc(200, clock=now + 1)
    j.doc(200, clock=now - minutes + 1, producer=p2)  # stale although it came after the marker
    j.doc(200, clock=now + minutes + 16, producer=p2)
    j.write().put(**{TRUNCATED: hex16(now)})
    recs = read_all(srv.kafka, topic, 0)
    assert values(recs) == shown(j, now) and len(recs) == 3


def test_a_waiting_poll_and_an_open_session_never_answer_what_a_raised_bound_hides(srv, topic):
    j = Journal(srv, topic)
    b = clock_of(1_780_000_000_000)
    for i in range(2000):
        j.doc(500, clock=b - 5000 + i)
    j.write()
    with Conn(srv.kafka) as c, Conn(srv.kafka) as w:
        def ask(conn, at, session=(0, -1), **kw):
            r = conn.finish(FETCH, 11, conn.fetch_start(topic, {0: at}, session_id=session[0], session_epoch=session[1], **kw))
            return r, [x for t in r['responses'] for p in t['partitions'] for x in decode_batches(p['records'] or b'')]
        # a session whose next batches are cached
        r, batches = ask(c, 0, (0, 0), max_bytes=100_000)
        sid, at = r['session_id'], batches[-1].last + 1
        assert sid and visible(batches, 0)
        # a poll that has collected stale documents and waits for more
        middle = j.docs[-10][0]
        asked = w.fetch_start(topic, {0: middle}, max_wait_ms=2500, min_bytes=1 << 20)
        time.sleep(0.3)
        j.put(**{TRUNCATED: hex16(b)})
        until(lambda: srv.topics()[topic]['truncated_at'] == hex16(b))
        _, batches = ask(c, at, (sid, 1), max_wait_ms=100)
        assert not visible(batches, at) and batches[-1].last + 1 == j.hw
        j.doc(300, clock=b).write()
        _, batches = ask(c, at, (sid, 2), max_wait_ms=2000)
        assert values(visible(batches, at)) == shown(j, b)
        r = w.finish(FETCH, 11, asked)
        batches = decode_batches(r['responses'][0]['partitions'][0]['records'])
        assert not [x for x in visible(batches, middle) if uuid_clock(x.value)[0] < b]


def until(f, seconds=10):
    end = time.monotonic() + seconds
    while not f():
        assert time.monotonic() < end, 'not in time'
        time.sleep(0.01)


def test_no_answer_after_the_view_shows_the_bound_holds_an_older_document(srv, topic):
    """Readers hammer a journal while its label rises again and again."""
    j = Journal(srv, topic)
    base = clock_of(1_780_000_000_000)
    for i in range(3000):
        j.doc(300, clock=base + i * 16)
    j.write()
    bad, stop = [], threading.Event()
    seen = [0]

    def reader():
        with Conn(srv.kafka) as c:
            at = 0
            while not stop.is_set():
                floor = seen[0]
                p = c.fetch(topic, 0, at, max_wait_ms=50, max_bytes=200_000)
                recs = visible(p['batches'], at)
                bad.extend(r for r in recs if uuid_clock(r.value)[0] < floor)
                at = p['batches'][-1].last + 1 if p['batches'] else 0
    threads = [threading.Thread(target=reader) for _ in range(3)]
    [t.start() for t in threads]
    for step in range(300, 3000, 300):
        bound = base + step * 16
        j.put(**{TRUNCATED: hex16(bound)})
        until(lambda: srv.topics()[topic]['truncated_at'] == hex16(bound))
        seen[0] = bound
    stop.set()
    [t.join() for t in threads]
    assert not bad
    assert values(read_all(srv.kafka, topic, 0)) == shown(j, base + 2700 * 16)


# --- cost -----------------------------------------------------------------------------------------------------------

def first_record_cost(srv, topic):
    m0 = srv.metrics()
    with Conn(srv.kafka) as c:
        at = c.list_offset(topic, 0, EARLIEST)['offset']
        t0 = time.monotonic()
        recs = visible(c.fetch(topic, 0, at, max_bytes=65536, max_wait_ms=5000)['batches'], at)
        spent = time.monotonic() - t0
    m1 = srv.metrics()
    assert recs
    return recs, m1['sluice_store_read_bytes_total'] - m0['sluice_store_read_bytes_total'], \
        m1['sluice_store_reads_total'] - m0['sluice_store_reads_total'], spent


def test_a_stale_prefix_costs_no_reads(make_server, topic, figures):
    mib = size(10240, 192, 48)
    srv = make_server('--journal-admin', '--fragment-bytes', '16MiB', '--cache-bytes', '1MiB')
    b = clock_of(1_780_000_000_000)
    plain, stale = Journal(srv, topic + '-plain', closes=True), Journal(srv, topic + '-stale', closes=True)
    chunk = 8 << 20
    for i in range(mib * (1 << 20) // chunk):
        for k in range(chunk // 65536):
            stale.doc(65536, clock=b - 1_000_000 + i * 200 + k)
        stale.write()
        stale.docs.clear()
    for j in (plain, stale):
        for i in range(50):
            j.doc(300, clock=b + i)
        j.write().put(**{TRUNCATED: hex16(b)})
    for j in (plain, stale):
        j.close_fragment()
    srv.restart()
    _, _, plain_reads, plain_s = first_record_cost(srv, plain.collection)
    recs, read, reads, spent = first_record_cost(srv, stale.collection)
    assert recs[0].value == stale.docs[0][3]
    figures('%d MiB stale: %d bytes in %d reads (%d without), %.1f ms (%.1f)' %
            (mib, read, reads, plain_reads, spent * 1000, plain_s * 1000))
    assert read < 1 << 20
    assert reads <= plain_reads


# --- catalog --------------------------------------------------------------------------------------------------------

def test_a_catalogs_bindings_are_topics_with_their_own_bounds(make_server, tmp_path):
    f = catalog(tmp_path / 'c.json', [
        {'source': 'acme/orders', 'resource': {'topic_name': 'all'}},
        {'source': {'name': 'acme/orders', 'notBefore': '2026-05-28T20:26:40.0000001Z'}, 'resource': {'topic_name': 'late'}, 'backfill': 2},
        {'source': {'name': 'acme/orders', 'notAfter': '2026-05-28T20:26:40.0000001+00:00'}, 'resource': {'topic_name': 'early'}},
        {'source': 'acme/none', 'resource': {'topic_name': 'none'}},
        {'source': 'acme/none', 'resource': {'topic_name': 'off'}, 'disable': True}])
    srv = make_server('--journal-admin', '--catalog', str(f))
    j = Journal(srv, 'acme/orders')
    b = clock_of(1_780_000_000_000, 16)
    for c in (b - 16, b - 1, b, b + 1, b + 15, b + 16, b + 17):
        j.doc(200, clock=c, id=1)
    j.write()
    until(lambda: srv.topics()['late']['partitions'])
    assert sorted(srv.topics()) == ['all', 'early', 'late', 'none']
    assert values(read_all(srv.kafka, 'all', 0)) == shown(j)
    assert values(read_all(srv.kafka, 'late', 0)) == shown(j, b)
    assert values(read_all(srv.kafka, 'early', 0)) == shown(j, 0, b + 16)
    assert [r.key for r in read_all(srv.kafka, 'all', 0)] == [b'1'] * 7
    assert srv.topics()['late']['epoch'] == 3
    with Conn(srv.kafka) as c:
        got = {t['name']: t for t in c.call(METADATA, 9, topics=None)['topics']}
        assert got['none']['error_code'] == 5 and got['all']['error_code'] == 0
    # what the catalog does not name is not created; what it names is, with its key
    with pytest.raises(AdminError) as e:
        srv.publish('acme/unknown', [{'id': 1}])
    assert e.value.status == 404
    srv.publish('acme/none', [{'id': 7}])
    until(lambda: srv.topics()['none']['partitions'])
    assert [r.key for r in read_all(srv.kafka, 'none', 0)] == [b'7']


def test_check_names_the_faults_of_a_catalog(tmp_path):
    f = tmp_path / 'c.yaml'
    f.write_text('collections:\n  a:\n    schema: {}\n    key: [id]\nmaterializations:\n  t:\n    endpoint: {dekaf: {variant: v, config: {'
                 'token: x, sluice: {value_format: xml}}}}\n    bindings:\n      - source: {name: a, notBefore: soon}\n')
    p = run_cli(['check', '--catalog', str(f), '--data-dir', str(tmp_path / 'none')], check=False)
    out = p.stdout.decode()
    assert p.returncode == 1
    for line, word in ((4, 'JSON pointer'), (7, 'json or avro'), (9, 'no time')):
        assert any(x.startswith('%s:%d: ' % (f, line)) and word in x for x in out.splitlines()), out
    f.write_text('materializations:\n  t:\n    endpoint: {dekaf: {variant: v, config: {token: x}}}\n    bindings: [{source: a}]\n')
    p = run_cli(['serve', '--catalog', str(f), '--data-dir', str(tmp_path / 'd')], check=False)
    assert p.returncode == 2 and b'--allow-anonymous' in p.stderr


# --- signals --------------------------------------------------------------------------------------------------------

BIG = 300_000    # longer than a block


@pytest.mark.parametrize('gap', [0, 1, 3])
def test_the_first_record_behind_a_boundary_carries_it(make_server, tmp_path, gap):
    """Whatever lies between the marker and the record, and whether the consumer was there before or comes later."""
    f = catalog(tmp_path / 'c.json', [{'source': 'c'}], truncation_signal='headers')
    srv = make_server('--journal-admin', '--catalog', str(f))
    j = Journal(srv, 'c')
    b = clock_of(1_780_000_000_000)
    for i in range(20):
        j.doc(100, clock=b - 1000 + i, id=i)
    j.write()
    until(lambda: srv.topics()['c']['partitions'])
    assert told(read_with_headers(srv.kafka, 'c')) == []
    at = j.hw
    begin(j, b)
    for i in range(gap):
        j.doc(BIG, clock=b - 500 + i, id=1)    # stale, behind the marker
        [j.ack(clock=b - 400) for _ in range(3000)]
    j.doc(100, clock=b + 1, id=1).doc(100, clock=b + 2, id=2)
    complete(j, b + 16, b)
    [j.ack(clock=b + 17) for _ in range(3000 * gap)]
    j.doc(100, clock=b + 18, id=3).doc(100, clock=b + 19, id=4)
    j.write().put(**{TRUNCATED: hex16(b)})
    until(lambda: srv.topics()['c']['truncated_at'] == hex16(b))
    t = srv.topics()['c']
    assert t['backfill_begin'] == hex16(b) and t['backfill_complete'] == hex16(b + 16) and t['backfill_completed'] == hex16(b)
    fresh = read_with_headers(srv.kafka, 'c')
    assert values(fresh) == shown(j, b)
    want = [(0, 'sluice.backfill-begin', hex16(b)), (0, 'sluice.backfill-complete', hex16(b + 16)),
            (2, 'sluice.backfill-complete', hex16(b + 16))]
    assert told(fresh) == want
    with Conn(srv.kafka) as c:    # a consumer in the middle: the same records, the same headers
        mid = []
        end = c.list_offset('c', 0, LATEST)['offset']
        while at < end:
            p = c.fetch('c', 0, at, max_wait_ms=1000)
            mid += visible(p['batches'], at)
            at = p['batches'][-1].last + 1
        assert told(mid) == want
    srv.restart()
    assert told(read_with_headers(srv.kafka, 'c')) == want
    assert srv.topics()['c']['backfill_complete'] == hex16(b + 16)
    m = srv.metrics()
    assert m['sluice_backfill_begin_milliseconds{task="test/task",topic="c"}'] == 1_780_000_000_000
    assert hex16(b) in srv.cli('topics').stdout.decode()


def test_a_table_stays_right_over_a_backfill(make_server, tmp_path):
    """examples/table_consumer.py, fed by raw fetches of all partitions in turn while the collection is back-filled."""
    spec = importlib.util.spec_from_file_location('table_consumer', ROOT / 'examples/table_consumer.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    f = catalog(tmp_path / 'c.json', [{'source': 'c'}], truncation_signal='headers')
    srv = make_server('--catalog', str(f))
    rng = random.Random(5)
    srv.publish('c', [{'id': 'k%d' % i, 'gen': 1} for i in range(200)], partitions=3)
    until(lambda: len(srv.topics()['c']['partitions']) == 3)
    table, at = module.Table('id'), [0, 0, 0]

    def drain(c):
        while True:
            more = False
            for p in rng.sample(range(3), 3):
                got = c.fetch('c', p, at[p], max_bytes=3000)
                for r in visible(got['batches'], at[p]):
                    table.apply(r.value, [(k.decode(), v) for k, v in r.headers])
                if got['batches']:
                    at[p], more = got['batches'][-1].last + 1, True
            if not more:
                return
    with Conn(srv.kafka) as c:
        drain(c)
        assert len(table.rows) == 200 and not table.is_complete
        for gen in range(2, 5):
            srv.request('POST', '/v1/collections/c/backfill/begin?wait=10000')
            keys = rng.sample(range(250), 120)
            for i in range(0, 120, 40):
                srv.publish('c', [{'id': 'k%d' % k, 'gen': gen} for k in keys[i:i + 40]])
                drain(c)
            srv.request('POST', '/v1/collections/c/backfill/complete?wait=10000')
            srv.publish('c', [{'id': 'late%d-%d' % (gen, i), 'gen': gen} for i in range(30)])
            drain(c)
            assert {k: d['gen'] for k, (_, d) in table.rows.items()} == \
                {**{'k%d' % k: gen for k in keys}, **{'late%d-%d' % (gen, i): gen for i in range(30)}}
            assert table.is_complete
    fresh, at = module.Table('id'), [0, 0, 0]    # one that begins now
    for p in range(3):
        for r in read_with_headers(srv.kafka, 'c', p):
            fresh.apply(r.value, [(k.decode(), v) for k, v in r.headers])
    assert fresh.rows == table.rows and fresh.begin == table.begin


# --- random histories -----------------------------------------------------------------------------------------------

class World:
    """A collection on a server that is killed now and then; what must be seen comes from the journals as they are."""

    def __init__(self, srv, collection, rng):
        self.srv, self.collection, self.rng, self.n = srv, collection, rng, 0
        self.extra = 0

    def journals(self):
        js = [j for j in self.srv.get_json('/v1/journals')['journals']
              if {'name': 'estuary.dev/collection', 'value': self.collection} in j['labels']]
        return sorted(js, key=lambda j: (j['create_revision'], j['name']))

    def bound(self):
        return max((int(x['value'], 16) for j in self.journals() for x in j['labels'] if x['name'] == TRUNCATED), default=0)

    def content(self, name):
        status, body, _ = self.srv.request('GET', '/v1/journals/%s/content' % urllib.parse.quote(name, safe=''))
        assert status == 200
        return [line.split(b'\t', 1)[1] for line in body.split(b'\n') if line]

    def expected(self):
        """Per partition: the current generation, in order."""
        bound = self.bound()
        out = []
        for j in self.journals():
            docs = []
            for line in self.content(j['name']):
                if not META.match(line):
                    continue    # an ACK
                clock, flags = uuid_clock(line)
                if flags & 3 != ACK and clock >= bound:
                    docs.append(line)
            out.append(docs)
        return out

    def publish(self):
        docs = [{'id': self.rng.randrange(1000), 'n': self.n + i, 'p': 'x' * self.rng.choice((0, 10, 400, 5000))}
                for i in range(self.rng.randrange(1, 40))]
        self.n += len(docs)
        self.srv.publish(self.collection, docs, key='/id') if self.n == len(docs) else self.srv.publish(self.collection, docs)

    def signal(self, verb, wait=True):
        status, body, _ = self.srv.request('POST', '/v1/collections/%s/backfill/%s%s' % (self.collection, verb, '?wait=10000' if wait else ''))
        assert status in (200, 503), (status, body)

    def add_partition(self):
        self.extra += 1
        name = '%s/extra%d' % (self.collection, self.extra)
        labels = {x['name']: x['value'] for x in self.journals()[0]['labels'] if x['name'] != TRUNCATED}
        status, body, _ = self.srv.request('PUT', '/v1/journals/' + urllib.parse.quote(name, safe=''), json.dumps({'labels': labels}),
                                           {'Content-Type': 'application/json'})
        assert status == 200, body

    def raise_label(self):
        j = self.rng.choice(self.journals())
        labels = {x['name']: x['value'] for x in j['labels']}
        labels[TRUNCATED] = hex16(max(self.bound(), clock_of(int(time.time() * 1000))) + self.rng.randrange(3))
        self.srv.request('PUT', '/v1/journals/' + urllib.parse.quote(j['name'], safe=''),
                         json.dumps({'labels': labels, 'expect_mod_revision': j['mod_revision']}), {'Content-Type': 'application/json'})

    def kill(self):
        self.srv.kill()
        self.srv.start()


@pytest.mark.parametrize('seed', range(size(60, 4, 2)))
def test_random_histories_with_crashes(make_server, topic, seed):
    rng = random.Random(seed)
    srv = make_server('--journal-admin', '--fragment-bytes', '256KiB', '--partitions', str(rng.randrange(1, 4)))
    w = World(srv, topic, rng)
    w.publish()
    middle = {}    # partition -> next offset of a consumer that reads along; what it got
    got = {}
    steps = {'publish': 10, 'begin': 3, 'complete': 3, 'quick': 2, 'label': 2, 'partition': 1, 'crash': 2, 'read': 8}

    def read_along(everything=False):
        floor = int(srv.topics()[topic]['truncated_at'], 16)
        assert floor >= w.bound() or not everything
        n = len(srv.topics()[topic]['partitions'])
        with Conn(srv.kafka) as c:
            for p in range(n):
                at = middle.setdefault(p, 0)
                end = c.list_offset(topic, p, LATEST)['offset']
                while at < end and (everything or rng.random() < 0.8):
                    a = c.fetch(topic, p, at, max_bytes=rng.choice((2000, 50_000, 1 << 20)), max_wait_ms=1000)
                    assert a['error_code'] == 0 and a['batches'], a
                    for r in visible(a['batches'], at):
                        assert uuid_clock(r.value)[0] >= floor, 'a document below the bound'
                        got.setdefault(p, []).append(r.value)
                    at = a['batches'][-1].last + 1
                middle[p] = at
    for _ in range(size(80, 40, 25)):
        step = rng.choices(list(steps), list(steps.values()))[0]
        if step == 'publish':
            w.publish()
        elif step in ('begin', 'complete'):
            w.signal(step)
        elif step == 'quick':    # answered before the labels are there, or never: the crash comes in between
            t = threading.Thread(target=lambda: quiet(lambda: w.signal(rng.choice(('begin', 'complete')), wait=False)))
            t.start()
            time.sleep(rng.random() * 0.02)
            if rng.random() < 0.6:
                w.kill()
            t.join()
        elif step == 'label':
            w.raise_label()
        elif step == 'partition' and w.extra < 3:
            w.add_partition()
            until(lambda: len(srv.topics()[topic]['partitions']) == len(w.journals()))
        elif step == 'crash':
            w.kill()
        elif step == 'read':
            read_along()
    w.publish()
    until(lambda: int(srv.topics()[topic]['truncated_at'], 16) >= w.bound())
    settle(w)
    read_along(everything=True)
    want = w.expected()
    bound = w.bound()
    for p, docs in enumerate(want):
        assert values(read_all(srv.kafka, topic, p)) == docs, 'partition %d' % p
        mine = [v for v in got.get(p, []) if uuid_clock(v)[0] >= bound]
        assert mine == docs, 'the consumer in the middle, partition %d' % p
    if seed == 0 or LONG:
        flat = sorted(v for docs in want for v in docs)
        for name in ('kcat', 'confluent-kafka') if QUICK else ('kcat', 'confluent-kafka', 'java-console', 'franz-go'):
            read = {'kcat': clients.read_kcat, 'confluent-kafka': clients.read_confluent, 'java-console': clients.read_java_console,
                    'franz-go': clients.read_franz}[name]
            recs = read(srv.bootstrap, topic)
            assert sorted(r.value for r in recs) == flat, name


def settle(w):
    """Labels that a crash left behind are applied again after the restart."""
    last = None
    for _ in range(200):
        b = w.bound()
        labels = {x['value'] for j in w.journals() for x in j['labels'] if x['name'] == TRUNCATED}
        if b == last and len(labels) <= 3 and int(w.srv.topics()[w.collection]['truncated_at'], 16) == b:
            return
        last = b
        time.sleep(0.1)


def quiet(f):
    try:
        f()
    except OSError:
        pass
    except Exception as e:    # the server was killed while it answered
        if 'Remote' not in type(e).__name__ and 'HTTP' not in type(e).__name__ and 'Incomplete' not in type(e).__name__:
            raise
