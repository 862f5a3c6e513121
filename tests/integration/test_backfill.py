"""Backfills end to end: begin, load, complete from a script and by HTTP, with real readers; the refusals; clocks five
minutes apart; and random histories with kill -9, racing label writers and partitions that come later. A reader must
never be shown a document below the bound that was in force before it asked, and nothing of the current generation
may be lost or doubled."""
import http.client
import json
import os
import random
import re
import threading
import time

import pytest

import clients
from docs_util import read_all
from journals import CONTINUE, Journal, clock_of, uuid_text
from kafka_raw import FETCH, LATEST, Closed, Conn, decode_batches, visible
from scale import size
from sluice import AdminError, strip_meta, uuid_clock
from stand_in import LOCAL

SERVER_FLAGS = ('--journal-admin',)
LABEL = 'estuary.dev/truncated-at'
UUID = re.compile(rb'"uuid":"([0-9a-f-]{36})"')


def backfill(s, collection, verb='', wait=None, timeout=60, **q):
    """GET without a verb. The answer; AdminError unless 200."""
    q = ['%s=%s' % kv for kv in dict(q, **({'wait': wait} if wait else {})).items()]
    path = '/v1/collections/%s/backfill%s%s' % (collection, '/' + verb if verb else '', '?' + '&'.join(q) if q else '')
    status, body, _ = s.request('POST' if verb else 'GET', path, b'' if verb else None, timeout=timeout)
    if status != 200:
        raise AdminError(status, body.decode(errors='replace'))
    return json.loads(body)


def labels_of(s, collection):
    """{journal: {label: value}}"""
    out = {}
    for j in s.get_json('/v1/journals')['journals']:
        labels = {x['name']: x['value'] for x in j['labels']}
        if labels.get('estuary.dev/collection') == collection:
            out[j['name']] = labels
    return out


def everything(s, topic):
    """All visible documents of all partitions, without their UUIDs, and their clocks."""
    n = len(s.topics()[topic]['partitions'])
    return [r for p in range(n) for r in read_all(s.kafka, topic, p)]


def ids(records):
    return sorted(json.loads(strip_meta(r.value))['id'] for r in records)


def docs(n, **more):
    return [dict({'id': i}, **more) for i in range(n)]


# --- one after the other ------------------------------------------------------------------------------------------

def test_begin_load_complete_from_a_script(srv, topic):
    srv.publish(topic, docs(50, g=1), 3, '/id')
    out = srv.cli('backfill', 'begin', topic, '--wait').stdout.decode()
    assert 'in 3 partitions, 3 labelled' in out
    assert len(set(x[LABEL] for x in labels_of(srv, topic).values())) == 1
    assert everything(srv, topic) == []
    srv.cli('publish', topic, stdin=b''.join(b'{"id":%d,"g":2}\n' % i for i in range(20)))
    srv.cli('backfill', 'complete', topic, '--wait')
    st = json.loads(srv.cli('backfill', 'status', topic, '--json').stdout)
    assert st['state'] == 'complete' and st['completes'] == st['begin'] == st['truncated_at'] and st['settled']
    assert st['complete'] > st['begin']
    got = everything(srv, topic)
    assert ids(got) == list(range(20))
    assert all(json.loads(r.value)['g'] == 2 for r in got)
    # twice is no harm: ignored, with a warning, and the script goes on
    again = srv.cli('backfill', 'complete', topic)
    assert again.returncode == 0 and b'warning' in again.stderr


@pytest.mark.parametrize('reader', ['read_kcat', 'read_confluent', 'read_kafka_python', 'read_franz', 'read_java_direct'])
def test_a_fresh_consumer_of_any_kind_sees_exactly_the_current_generation(srv, topic, reader):
    for g in range(3):
        if g:
            backfill(srv, topic, 'begin', wait='10s')
        srv.publish(topic, docs(400, g=g, pad='x' * 300), 4, '/id')
        if g:
            backfill(srv, topic, 'complete')
    want = everything(srv, topic)
    assert ids(want) == list(range(400))
    got = getattr(clients, reader)(srv.bootstrap, topic)
    assert sorted((r.partition, r.offset) for r in got) == sorted(
        (p, r.offset) for p in range(4) for r in read_all(srv.kafka, topic, p))
    assert all(json.loads(r.value)['g'] == 2 for r in got)


def test_the_next_request_after_the_answer_sees_the_boundary(srv, topic):
    """No record of the stale generation from any connection, open sessions included."""
    srv.publish(topic, docs(300, g=0), 2, '/id')
    with Conn(srv.kafka) as c:
        for g in range(1, 12):
            assert c.records_from(topic, 0, 0)[0]    # what there is, is in the cache
            b = int(backfill(srv, topic, 'begin', wait='10s')['clock'], 16)
            for p in range(2):
                assert c.records_from(topic, p, 0)[0] == []
            srv.publish(topic, docs(30, g=g))
            for p in range(2):
                recs, _ = c.records_from(topic, p, 0)
                assert recs and all(uuid_clock(r.value)[0] > b and json.loads(r.value)['g'] == g for r in recs)


def test_a_waiting_poll_is_not_woken_by_a_marker(srv, topic):
    srv.publish(topic, docs(3), 1)
    with Conn(srv.kafka) as c:
        end = c.list_offset(topic, 0, LATEST)['offset']
        corr = c.fetch_start(topic, {0: end}, max_wait_ms=15000)
        backfill(srv, topic, 'begin', wait='10s')
        t0 = time.monotonic()
        srv.publish(topic, [{'id': 'new'}])
        p = c.finish(FETCH, 11, corr)['responses'][0]['partitions'][0]
        assert time.monotonic() - t0 < 10
        got = visible(decode_batches(p['records'] or b''), end)
        assert ids(got) == ['new']


def test_answers_and_refusals(srv, topic):
    with pytest.raises(AdminError) as e:
        backfill(srv, topic, 'begin')
    assert e.value.status == 404
    srv.publish(topic, docs(3), 1)
    assert backfill(srv, topic)['state'] == 'none' and backfill(srv, topic)['settled']
    assert backfill(srv, topic, 'complete')['ignored']
    first = backfill(srv, topic, 'begin')
    second = backfill(srv, topic, 'begin')
    assert second['superseded'] == first['clock']
    with pytest.raises(AdminError) as e:
        backfill(srv, topic, 'complete', begin=first['clock'])
    assert e.value.status == 409
    assert backfill(srv, topic, 'complete', begin=second['clock'])['state'] == 'complete'
    for path in ('/begin?force=maybe', '/begin?wait=-1', '/begin?begin=1f1865219aa68871', '/complete?force=1', '/complete?begin=x', '?x=1'):
        status, body, _ = srv.request('GET' if path[0] == '?' else 'POST', '/v1/collections/%s/backfill%s' % (topic, path), b'')
        assert status == 400 and json.loads(body)['error'], path
    status, _, headers = srv.request('GET', '/v1/collections/%s/backfill/begin' % topic)
    assert status == 405 and headers['Allow'] == 'POST'
    assert srv.cli('backfill', 'begin', check=False).returncode == 2
    assert srv.cli('backfill', 'start', topic, check=False).returncode == 2
    assert srv.cli('backfill', 'status', 'no/such', check=False).returncode == 1


def test_another_producer_refuses_a_begin_and_is_named(srv, topic):
    srv.publish(topic, docs(2000, pad='y' * 300), 2, '/id')
    name = sorted(labels_of(srv, topic))[1]
    now = clock_of(int(time.time() * 1000))
    body = b'{"_meta":{"uuid":"%s"},"id":"foreign"}\n' % uuid_text(now, CONTINUE, b'\x0b\x0c\x0d\x0e\x0f\x10').encode()
    status, out, _ = srv.request('POST', '/v1/journals/%s/content' % name.replace('/', '%2F'), body)
    assert status == 200
    with pytest.raises(AdminError) as e:
        backfill(srv, topic, 'begin')
    assert e.value.status == 409
    answer = json.loads(e.value.body)
    assert answer['producer'] == '0b0c0d0e0f10' and answer['journal'] == name
    assert answer['offset'] == json.loads(out)['end'] - 1
    p = srv.cli('backfill', 'begin', topic, check=False)
    assert p.returncode == 1 and b'0b0c0d0e0f10' in p.stderr
    assert backfill(srv, topic)['state'] == 'none'
    srv.cli('backfill', 'begin', topic, '--force', '--wait')
    assert everything(srv, topic) == []
    srv.cli('backfill', 'begin', topic, '--wait')    # it is stale now


def test_labels_of_others_stay_and_new_partitions_inherit(srv, topic):
    j = Journal(srv, topic, labels={'zz.example/keep': 'me'}, fragment_bytes=123456, retention_bytes=1 << 30)
    begun = backfill(srv, topic, 'begin', wait='10s')['clock']
    Journal(srv, topic, name=topic + '/later')
    st = backfill(srv, topic, wait='10s')
    assert st['settled'] and st['partitions'] == 2
    labels = labels_of(srv, topic)
    assert labels[j.name] == dict(j.labels, **{LABEL: begun})
    assert labels[topic + '/later'][LABEL] == begun
    spec = srv.get_json('/v1/journals/' + j.name.replace('/', '%2F'))
    assert spec['fragment_bytes'] == 123456 and spec['retention_bytes'] == (1 << 30 if LOCAL else 0)


@pytest.mark.parametrize('minutes', [5, -5])
def test_a_publisher_whose_clock_is_minutes_off(srv, topic, minutes):
    """Its stale documents are hidden by a begin, and what is loaded after its label is seen."""
    there = clock_of(int(time.time() * 1000) + minutes * 60000)
    j = Journal(srv, topic)
    for i in range(20):
        j.doc(200, clock=there + i * 16, id=i)
    j.write()
    assert len(read_all(srv.kafka, topic, 0)) == 20
    backfill(srv, topic, 'begin', wait='10s', force='true')
    assert everything(srv, topic) == []
    srv.publish(topic, docs(5))
    assert ids(everything(srv, topic)) == list(range(5))
    # its own begin: only the label is there
    label = '%016x' % (int(backfill(srv, topic)['truncated_at'], 16) + 16 + max(minutes, 0) * 60 * 10000000 * 16)
    j.labels = labels_of(srv, topic)[j.name]
    j.put(**{LABEL: label})
    srv.publish(topic, [{'id': 'behind the label'}])
    got = everything(srv, topic)
    assert ids(got) == ['behind the label'] and uuid_clock(got[0].value)[0] > int(label, 16)
    b = backfill(srv, topic, 'begin', wait='10s')
    assert b['truncated_at'] > label and everything(srv, topic) == []


def test_a_restart_puts_the_labels_that_were_missing(make_server):
    s = make_server('--journal-admin')
    s.publish('t', docs(100), 8, '/id')
    for i in range(size(30, 10, 4)):
        begun = None
        try:
            begun = backfill(s, 't', 'begin')['clock']    # no wait: labels may be on their way
        finally:
            s.kill()
        s.start()
        st = backfill(s, 't', wait='10s')
        assert st['settled'] and st['truncated_at'] >= begun and st['begin'] == begun and st['state'] == 'active'
        assert everything(s, 't') == []
        s.publish('t', docs(10))
        assert ids(everything(s, 't')) == list(range(10))


# --- random histories ---------------------------------------------------------------------------------------------

class History:
    """What happened, told by who did it. Times are counted by one lock, so that "answered before it was sent" holds."""

    def __init__(self, server, seed):
        self.s, self.rnd, self.lock = server, random.Random(seed), threading.Lock()
        self.up, self.over, self.failed = threading.Event(), False, None
        self.up.set()
        self.moment = 0
        self.sent, self.answered = {}, {}    # batch -> moment
        self.begun = []    # (clock, sent, answered)
        self.bound = 0    # settled: in force for all that is asked from now on
        self.counts = {}

    def now(self):
        with self.lock:
            self.moment += 1
            return self.moment

    def fail(self, text):
        self.failed = self.failed or text

    def go(self):
        return not self.over and not self.failed


LOST = (OSError, http.client.HTTPException, ValueError)


LOCAL = os.environ.get('SLUICE_TEST_STORE', 'local') == 'local'


def publisher(h, n):
    """Batches whose answer is lost are retried under their key."""
    rnd, k = random.Random(n), 0
    while h.go():
        k += 1
        batch = '%d-%d' % (n, k)
        body = [{'id': '%s-%d' % (batch, i), 'batch': batch, 'pad': 'p' * rnd.choice([0, 100, 2000])} for i in range(rnd.choice([1, 3, 12]))]
        h.sent[batch] = h.now()
        while not h.failed:
            h.up.wait(60)
            try:
                h.s.publish('t', body, idem=batch, timeout=20)
                h.answered[batch] = h.now()
                break
            except AdminError as e:
                if e.status == 422 and 'partitions changed since' in str(e) and not LOCAL:
                    break    # torn by the kill, and a partition came: over brokers it stays in part (docs/gazette.md)
                if e.status != 503:
                    return h.fail('publish: %s' % e)
            except LOST:
                pass
            time.sleep(0.02)
        time.sleep(rnd.random() * 0.02)


def backfiller(h):
    """Begins, completes, interrupts and repeats."""
    rnd = random.Random(77)
    while h.go():
        h.up.wait(60)
        sent = h.now()
        try:
            verb = rnd.choice(['begin', 'begin', 'complete'])
            a = backfill(h.s, 't', verb, wait=rnd.choice([None, '20s', '20s']), timeout=30)
            if verb == 'begin':
                h.begun.append((int(a['clock'], 16), sent, h.now()))
            if a['settled'] and a['truncated_at']:
                h.bound = max(h.bound, int(a['truncated_at'], 16))
        except AdminError as e:
            if e.status != 503:
                return h.fail('backfill: %s' % e)
        except LOST:
            pass
        time.sleep(rnd.random() * 0.1)


def labeller(h, n):
    """Counts up a label of its own by compare-and-set, and now and then puts truncated-at back."""
    rnd, own = random.Random(n), 'w.example/%d' % n
    while h.go():
        h.up.wait(60)
        try:
            j = rnd.choice([x for x in h.s.get_json('/v1/journals')['journals'] if x['name'].startswith('t/pivot')])
            labels = {x['name']: x['value'] for x in j['labels']}
            count = int(labels.get(own, '0'))
            labels[own] = str(count + 1)
            if rnd.random() < 0.2 and LABEL in labels:
                labels[LABEL] = '%016x' % (int(labels[LABEL], 16) - rnd.choice([0, 1, 16, 10 ** 9]))
            body = json.dumps({'labels': labels, 'expect_mod_revision': j['mod_revision']}).encode()
            key = (own, j['name'])
            h.counts.setdefault(key, [0, 0])[1] += 1    # sent
            status, out, _ = h.s.request('PUT', '/v1/journals/' + j['name'].replace('/', '%2F'), body, timeout=20)
            if status == 200:
                h.counts[key][0] += 1
            elif status == 409:
                h.counts[key][1] -= 1
            elif status != 503:
                return h.fail('label: %d %s' % (status, out[:200]))
        except LOST:
            pass
        time.sleep(rnd.random() * 0.05)


def watcher(h, seen):
    """Follows all partitions from the beginning. Every record lies at or above the bound that was settled before it
    was asked for, and offsets rise."""
    at = {}
    while h.go():
        h.up.wait(60)
        try:
            with Conn(h.s.kafka, timeout=10) as c:
                while h.go():
                    for p in range(len(c.metadata('t')['partitions'])):
                        at.setdefault(p, 0)
                    bound = h.bound
                    r = c.finish(FETCH, 11, c.fetch_start('t', at, max_wait_ms=50))
                    for part in r['responses'][0]['partitions']:
                        p = part['partition_index']
                        if part['error_code'] not in (0, 3):
                            return h.fail('a consumer got error %d at %d' % (part['error_code'], at[p]))
                        batches = decode_batches(part['records'] or b'')
                        for x in visible(batches, at[p]):
                            clock = uuid_clock(x.value)[0]
                            if clock < bound:
                                return h.fail('a stale record at %d of partition %d: %016x below %016x' % (x.offset, p, clock, bound))
                            seen.append((p, x.offset, x.value))
                        if batches:
                            at[p] = max(at[p], batches[-1].last + 1)
        except (OSError, Closed):
            time.sleep(0.02)


def test_random_histories(make_server, figures):
    seed = int(os.environ.get('SLUICE_TEST_SEED') or time.time_ns() % 100000)
    figures('seed %d (SLUICE_TEST_SEED repeats it)' % seed)
    s = make_server('--journal-admin')
    s.publish('t', docs(50, batch='first'), 3, '/id')
    h, seen = History(s, seed), []
    threads = [threading.Thread(target=publisher, args=(h, i)) for i in range(2)] + \
        [threading.Thread(target=labeller, args=(h, i)) for i in range(4)] + \
        [threading.Thread(target=backfiller, args=(h,)), threading.Thread(target=watcher, args=(h, seen))]
    [t.start() for t in threads]
    kills = size(60, 12, 4)
    for k in range(kills):
        time.sleep(0.1 + h.rnd.random() * 0.6)
        if h.failed:
            break
        if k % 4 == 2:    # a partition that comes later, by hand
            body = json.dumps({'labels': {'estuary.dev/collection': 't', 'sluice.dev/key/0': '/id', 'estuary.dev/key-begin': '80000000', 'estuary.dev/key-end': 'ffffffff'}})
            s.request('PUT', '/v1/journals/t%%2Fextra-%d' % k, body.encode())
        h.up.clear()
        s.kill()
        s.start()
        h.up.set()
    time.sleep(0.5)
    h.over = True
    [t.join(60) for t in threads]
    assert not any(t.is_alive() for t in threads)
    assert h.failed is None, h.failed

    # quiescence: the last word is a begin of ours, then one more load
    final = backfill(s, 't', wait='20s')
    assert final['settled'], final
    bound = int(final['truncated_at'], 16)
    labels = labels_of(s, 't')
    assert set(x.get(LABEL) for x in labels.values()) == {final['truncated_at']}
    for (own, journal), (sure, most) in h.counts.items():
        assert sure <= int(labels[journal].get(own, 0)) <= most, (own, journal, labels[journal], sure, most)

    parts = len(s.topics()['t']['partitions'])
    recs = {p: read_all(s.kafka, 't', p) for p in range(parts)}
    got = {(p, r.offset): r.value for p, rs in recs.items() for r in rs}
    assert all(uuid_clock(v)[0] > bound for v in got.values())
    # the raw journals say what is there: exactly the content at or above the bound is visible, once
    raw = {}
    for p in s.topics()['t']['partitions']:
        for line in s.cli('read', p['journal']).stdout.splitlines():
            offset, text = line.split(b'\t', 1)
            clock, flags = uuid_clock(b'{"_meta":{"uuid":"%s"}}' % UUID.search(text).group(1))
            if flags & 3 != 2 and clock >= bound:
                raw[p['partition'], int(offset)] = text
    assert raw == got
    copies = {}
    for v in got.values():
        d = json.loads(v)
        copies[d['id']] = copies.get(d['id'], 0) + 1
    assert set(copies.values()) <= {1}
    batches = {json.loads(v)['batch'] for v in got.values()}
    last = [x for x in h.begun if x[0] == bound]
    for clock, sent, answered in last:    # unless its answer was lost
        assert {b for b, m in h.sent.items() if m > answered and b in h.answered} <= batches
        assert not {b for b, m in h.answered.items() if m < sent} & batches

    # who was in the middle saw every current document exactly once, in order
    mine = [x for x in seen if uuid_clock(x[2])[0] >= bound]
    assert len({x[:2] for x in mine}) == len(mine)
    assert {x[:2]: x[2] for x in mine}.items() <= got.items()
    for p in range(parts):
        offsets = [x[1] for x in seen if x[0] == p]
        assert offsets == sorted(offsets)
        if mine:
            reached = max(offsets, default=-1)
            assert {o for q, o in got if q == p and o <= reached} == {x[1] for x in mine if x[0] == p}
    if os.path.exists('/usr/bin/kcat'):
        assert {(r.partition, r.offset): r.value for r in clients.read_kcat(s.bootstrap, 't')} == got
    figures('%d kills, %d begins answered, %d batches, %d partitions, %d current documents, a consumer saw %d' % (
        kills, len(h.begun), len(h.answered), parts, len(got), len(seen)))
