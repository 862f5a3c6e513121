"""kill -9 at random moments while several publishers write multi-partition transactions. What was answered is there
exactly once; what was not answered is there wholly or not at all; a retry under the same Idempotency-Key leaves one
copy; what a consumer saw never vanishes."""
import collections
import http.client
import json
import os
import queue
import random
import threading
import time

import pytest

import clients
from docs_util import read_all
from kafka_raw import EARLIEST, FETCH, Closed, Conn, decode_batches, visible
from scale import size
from sluice import AdminError, run_cli

PARTS = 4


class Publisher(threading.Thread):
    """Takes request numbers from a queue; an unanswered request is retried under its key, or left for good."""

    def __init__(self, crash, seed):
        super().__init__(daemon=True)
        self.crash, self.rnd = crash, random.Random(seed)

    def run(self):
        while True:
            try:
                r = self.crash.todo.get_nowait()
            except queue.Empty:
                return
            tries = 0
            while not self.crash.failed:
                self.crash.up.wait(60)
                tries += 1
                try:
                    a = self.crash.server.publish('t', self.crash.docs[r], PARTS, '/id', idem='request-%d' % r, timeout=20)
                    self.crash.answers[r] = a
                    break
                except AdminError as e:
                    if e.status != 503:
                        self.crash.failed = 'request %d: %s' % (r, e)
                        return
                    time.sleep(0.05)
                except (OSError, http.client.HTTPException, ValueError):
                    self.crash.lost += 1
                    if r in self.crash.no_retry:
                        break    # the answer is lost and nobody asks again
                    time.sleep(self.rnd.random() * 0.05)


class Watcher(threading.Thread):
    """A consumer of all partitions: what it was shown must be there for good."""

    def __init__(self, crash):
        super().__init__(daemon=True)
        self.crash, self.seen = crash, {}

    def run(self):
        at = None
        while not self.crash.over:
            self.crash.up.wait(60)
            try:
                with Conn(self.crash.server.kafka, timeout=5) as c:
                    if at is None:
                        at = {p: c.list_offset('t', p, EARLIEST)['offset'] for p in range(PARTS)}
                        at = {p: max(o, 0) for p, o in at.items()}
                    while not self.crash.over:
                        r = c.finish(FETCH, 11, c.fetch_start('t', at, max_wait_ms=100))
                        for p in r['responses'][0]['partitions']:
                            if p['error_code'] == 3:    # not there yet
                                at = None
                                raise Closed()
                            if p['error_code']:
                                self.crash.failed = 'a consumer got error %d at %d' % (p['error_code'], at[p['partition_index']])
                                return
                            for x in visible(decode_batches(p['records'] or b''), at[p['partition_index']]):
                                self.seen[p['partition_index'], x.offset] = x.value
                                at[p['partition_index']] = x.offset + 1
            except (OSError, Closed):
                time.sleep(0.02)


class Crash:
    def __init__(self, server, requests, seed):
        rnd = random.Random(seed)
        self.server, self.todo, self.answers, self.failed, self.lost, self.over = server, queue.Queue(), {}, None, 0, False
        self.up = threading.Event()
        self.docs = {}
        for r in range(requests):
            n = rnd.choice([1, 3, 8, 20, 40, 200])
            self.docs[r] = [json.dumps({'id': 'r%d-%d' % (r, i), 'r': r, 'i': i, 'pad': 'p' * rnd.choice([0, 50, 900, 4000])}) for i in range(n)]
            self.todo.put(r)
        self.no_retry = {r for r in range(requests) if rnd.random() < 0.4}


def check_store(server):
    run_cli(['check', '--data-dir', str(server.data_dir)], timeout=180)


@pytest.mark.local_store
def test_kill_9_during_publishing_loses_nothing_and_doubles_nothing(make_server, figures):
    seed = int(os.environ.get('SLUICE_TEST_SEED') or time.time_ns() % 100000)
    figures('seed %d (SLUICE_TEST_SEED repeats it)' % seed)
    rnd = random.Random(seed)
    requests, kills = 200, size(60, 14, 5)
    s = make_server()
    s.publish('t', [{'id': 'first', 'r': -1, 'i': 0}], PARTS, '/id', idem='first')
    crash = Crash(s, requests, seed)
    crash.up.set()
    publishers = [Publisher(crash, i) for i in range(5)]
    watcher = Watcher(crash)
    [p.start() for p in publishers]
    watcher.start()
    killed = checks = 0
    # kills follow the progress of the work, so that each falls into publishing
    marks = sorted(rnd.randrange(requests) for _ in range(kills))
    for mark in marks:
        while len(crash.answers) + len(crash.no_retry) // 2 < mark and any(p.is_alive() for p in publishers) and not crash.failed:
            time.sleep(0.002)
        time.sleep(rnd.random() * 0.03)
        if not s.alive():
            break
        crash.up.clear()
        s.kill()
        killed += 1
        if rnd.random() < 0.4:
            check_store(s)
            checks += 1
        s.start()
        crash.up.set()
        assert crash.failed is None, crash.failed
        if not any(p.is_alive() for p in publishers):
            break
    [p.join(120) for p in publishers]
    assert not any(p.is_alive() for p in publishers)
    assert crash.failed is None, crash.failed
    crash.over = True
    watcher.join(30)

    recs = {p: read_all(s.kafka, 't', p) for p in range(PARTS)}
    copies, places = collections.Counter(), {}
    for p, rs in recs.items():
        assert [r.offset for r in rs] == sorted({r.offset for r in rs})
        for r in rs:
            d = json.loads(r.value)
            copies[d['r'], d['i']] += 1
            places.setdefault(d['r'], {}).setdefault(p, []).append(r.offset)
    whole = nothing = 0
    for r, docs in crash.docs.items():
        n = [copies[r, i] for i in range(len(docs))]
        if r in crash.answers or r not in crash.no_retry:
            assert n == [1] * len(docs), 'request %d was answered: copies %s' % (r, n)
            a = crash.answers[r]
            assert a['documents'] == len(docs)
            assert {x['partition']: (x['documents'], x['first_offset'], x['last_offset']) for x in a['partitions']} == \
                   {p: (len(o), o[0], o[-1]) for p, o in places[r].items()}, 'request %d' % r
        elif n == [1] * len(docs):
            whole += 1
        else:
            assert n == [0] * len(docs), 'request %d is there in part: %s' % (r, n)
            nothing += 1
    assert copies[-1, 0] == 1
    assert sum(copies.values()) == sum(len(x) for x in recs.values())
    now = {(p, r.offset): r.value for p, rs in recs.items() for r in rs}
    gone = [k for k, v in watcher.seen.items() if now.get(k) != v]
    assert not gone, 'a consumer saw what is no longer there: %s' % gone[:5]
    figures('%d kills, %d requests of which %d unanswered and never retried (%d there, %d not), %d answers lost, %d documents, consumer saw %d' % (
        killed, requests, whole + nothing, whole, nothing, crash.lost, len(now), len(watcher.seen)))
    assert killed >= kills // 2

    # the same by other eyes
    if os.path.exists('/usr/bin/kcat'):
        seen = clients.read_kcat(s.bootstrap, 't')
        assert {(r.partition, r.offset): r.value for r in seen} == now
    journals = [p['journal'] for p in s.topics()['t']['partitions']]
    raw = b''.join(s.cli('read', j).stdout for j in journals)
    for v in list(now.values())[:300]:
        assert raw.count(v) == 1
    # every key, also those that nobody retried, is settled by one more try
    for r in sorted(crash.no_retry):
        s.publish('t', crash.docs[r], idem='request-%d' % r)
    total = sum(len(read_all(s.kafka, 't', p)) for p in range(PARTS))
    assert total == 1 + sum(len(d) for d in crash.docs.values()), 'exactly one copy of everything'
    s.stop()
    check_store(s)
    figures('the store was checked %d times' % (checks + 1))


def test_kill_9_right_after_an_answer_loses_nothing(make_server):
    s = make_server()
    n = 0
    for i in range(size(40, 8, 3)):
        a = s.publish('t', [{'id': n + k} for k in range(50)], PARTS, '/id')
        s.kill()
        n += 50
        assert a['documents'] == 50
        s.start()
        got = {json.loads(r.value)['id'] for p in range(PARTS) for r in read_all(s.kafka, 't', p)}
        assert got == set(range(n))
        for x in a['partitions']:
            with Conn(s.kafka) as c:
                assert c.list_offset('t', x['partition'], -1)['offset'] == x['last_offset'] + 1


@pytest.mark.local_store
@pytest.mark.parametrize('cut', ['bytes', 'garbage'])
def test_a_torn_tail_is_cut_and_nothing_answered_is_lost(make_server, cut):
    """What a crash of the machine may leave behind the committed end of a growing fragment."""
    s = make_server()
    s.publish('t', [{'id': i} for i in range(100)])
    before = [(r.offset, r.value) for r in read_all(s.kafka, 't', 0)]
    s.kill()
    (f,) = [x for x in s.data_dir.rglob('*.open') if x.is_file()]
    with open(f, 'ab') as out:
        out.write(b'{"_meta":{"uuid":"0' if cut == 'bytes' else os.urandom(5000))
    s.start()
    assert [(r.offset, r.value) for r in read_all(s.kafka, 't', 0)] == before
    a = s.publish('t', [{'id': 100}])['partitions'][0]
    assert a['begin'] > before[-1][0]
    assert len(read_all(s.kafka, 't', 0)) == 101
    s.stop()
    check_store(s)
