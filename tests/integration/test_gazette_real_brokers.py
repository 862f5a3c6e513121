"""Several real brokers over one etcd: who is asked, two gateways over one journal, and faults of every kind: no document lost or doubled
for a reader, no watermark that goes back. SLUICE_TEST_LONG=1 repeats the faults and runs longer."""
import json
import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest

from docs_util import read_all
from gazette_lab import cluster
from kafka_raw import LATEST, Conn
from scale import LONG, size
from sluice import AdminError

ZONES = 'east,west,north'


LEASE = '10s'    # so long a dead broker keeps its journals


@pytest.fixture(scope='module')
def _three(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp('three') / 'lab', 3, ZONES=ZONES, LEASE=LEASE) as c:
        yield c


@pytest.fixture
def three(_three):
    """All three are up, whatever the test before did."""
    return _three.start(RESET_HEAD=0)


def flags(c, *more, brokers=None, replication=2):
    """Two replicas of three brokers: appends want all of a journal's replicas, so one broker may go."""
    return ['--store', 'gazette://' + (brokers or c.brokers), '--fragment-store', 'file:///', '--fragment-root', str(c.store),
            '--replication', str(replication), *more]


def talks_to(pid, ports):
    """The ports of these to which the process has an open connection."""
    inodes = set()
    for fd in Path('/proc/%d/fd' % pid).iterdir():
        try:
            m = re.match(r'socket:\[(\d+)\]', os.readlink(fd))
        except OSError:
            continue
        if m:
            inodes.add(m.group(1))
    out = set()
    for line in open('/proc/%d/net/tcp' % pid).read().splitlines()[1:]:
        f = line.split()
        if f[9] in inodes and f[3] == '01':
            out.add(int(f[2].rsplit(':', 1)[1], 16))
    return out & set(ports)


def numbers(records):
    return [json.loads(r.value)['n'] for r in records]


def test_a_reader_goes_to_the_broker_of_its_zone(three, make_server, until, topic):
    s = make_server(*flags(three))
    s.publish(topic, [{'n': 0}])
    s.stop()
    journal = next(j for j in three.listing() if j['spec']['name'].startswith(topic + '/'))
    zones = {m['zone']: int(e.rsplit(':', 1)[1]) for m, e in zip(journal['route']['members'], journal['route']['endpoints'])}
    other = next(p for p in three.ports if p not in zones.values())
    assert len(zones) == 2
    for zone, port in zones.items():    # the one broker that it is told of does not hold the journal
        r = make_server(*flags(three, '--broker-zone', zone, brokers='127.0.0.1:%d' % other))
        assert numbers(read_all(r.kafka, topic, 0)) == [0]
        until(lambda: port in talks_to(r.proc.pid, three.ports), 15, 'a connection to %s' % zone)
        r.stop()


def test_two_gateways_publish_to_one_journal(three, make_server, until, topic):
    a, b = make_server(*flags(three)), make_server(*flags(three))
    a.publish(topic, [{'n': -1}])
    rounds, faults = size(200, 40), []

    def publish(s, first):
        try:
            for i in range(rounds):
                s.publish(topic, [{'n': first + i}])
        except Exception as e:    # noqa: BLE001: told by the test
            faults.append(e)
    threads = [threading.Thread(target=publish, args=x) for x in ((a, 0), (b, 100000))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults, faults[0]
    want = sorted([-1] + [f + i for f in (0, 100000) for i in range(rounds)])
    for s in (a, b):    # what the other one published last comes to each within moments
        until(lambda: len(read_all(s.kafka, topic, 0)) >= len(want), 10, 'all of both')
        got = numbers(read_all(s.kafka, topic, 0))
        assert sorted(got) == want
        for first in (0, 100000):
            mine = [n for n in got if first <= n < first + rounds]
            assert mine == sorted(mine), 'each in its order'
    assert 'gazette.claim_lost' in a.log.read_text() + b.log.read_text()


def test_a_single_writer_stops_when_another_claimed(three, make_server, topic):
    a, b = make_server(*flags(three, '--broker-single-writer')), make_server(*flags(three))
    a.publish(topic, [{'n': 0}])
    b.publish(topic, [{'n': 1}])
    with pytest.raises(AdminError):
        a.publish(topic, [{'n': 2}])
    b.publish(topic, [{'n': 3}])
    assert numbers(read_all(b.kafka, topic, 0)) == [0, 1, 3]
    a.restart()
    a.publish(topic, [{'n': 4}])
    assert numbers(read_all(a.kafka, topic, 0)) == [0, 1, 3, 4]
    assert 'gazette.claim_lost' in (a.workdir / 'server-1.log').read_text()


def test_publishes_to_different_journals_do_not_wait_for_each_other(three, make_server, topic, figures):
    s = make_server(*flags(three))
    for k in range(8):
        s.publish('%s/%d' % (topic, k), [{'n': -1}])
    n = 30

    def publish(k):
        for i in range(n):
            s.publish('%s/%d' % (topic, k), [{'n': i}])
    t0 = time.monotonic()
    publish(0)
    alone = time.monotonic() - t0
    threads = [threading.Thread(target=publish, args=(k,)) for k in range(1, 8)]
    t0 = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    together = time.monotonic() - t0
    figures('%d publishes: one journal %.0f/s, seven at once %.0f/s' % (n, n / alone, 7 * n / together))
    for k in range(8):
        assert numbers(read_all(s.kafka, '%s/%d' % (topic, k), 0)) == [-1, *range(n)]


# --- faults ---

class Traffic:
    """A publisher that asks again under the same key until it is answered, and a reader from offset 0 that never starts anew. Documents
    carry rising numbers; each must come once, in order."""

    def __init__(self, s, topic, partitions=2):
        self.s, self.topic, self.partitions = s, topic, partitions
        s.publish(topic, [{'n': -1 - p, 'k': p} for p in range(8)], partitions=partitions, key='/k')
        self.stop_publish = threading.Event()
        self.stop_read = threading.Event()
        self.published, self.faults, self.went_back, self.slow = 0, [], [], 0.0
        self.seen = {p: [] for p in range(partitions)}
        self.at = dict.fromkeys(range(partitions), 0)
        self.high = dict.fromkeys(range(partitions), 0)
        self.codes = set()
        self.threads = [threading.Thread(target=f) for f in (self._publish, self._read)]
        for t in self.threads:
            t.start()

    def _publish(self):
        n = 0
        while not self.stop_publish.is_set():
            docs = [{'n': n * 4 + k, 'k': k} for k in range(4)]
            t0 = time.monotonic()
            while True:
                try:
                    self.s.publish(self.topic, docs, key='/k', idem='%s-%d' % (self.topic, n), timeout=90)
                    break
                except (AdminError, OSError) as e:
                    self.codes.add(getattr(e, 'status', type(e).__name__))
                    if time.monotonic() - t0 > 150:
                        self.faults.append('publish %d: %s' % (n, e))
                        return
                    time.sleep(0.2)
            self.slow = max(self.slow, time.monotonic() - t0)
            n += 1
            self.published = n
            time.sleep(0.01)

    def _read(self):
        try:
            with Conn(self.s.kafka, timeout=60) as c:
                while not (self.stop_read.is_set() and all(self.at[p] >= self.high[p] for p in self.at)):
                    for p in self.at:
                        self._fetch(c, p)
        except Exception as e:    # noqa: BLE001: told by the test
            self.faults.append('reader: %r' % e)

    def _fetch(self, c, p):
        r = c.fetch(self.topic, p, self.at[p], max_wait_ms=100)
        if r['error_code'] in (5, 6, 56, 78):    # not now
            time.sleep(0.05)
            return
        assert r['error_code'] == 0, 'partition %d at %d: error %d' % (p, self.at[p], r['error_code'])
        if r['high_watermark'] < self.high[p]:
            self.went_back.append((p, self.high[p], r['high_watermark']))
        self.high[p] = max(self.high[p], r['high_watermark'])
        for b in r['batches']:
            if not b.control:
                self.seen[p] += [json.loads(x.value) for x in b.records if x.offset >= self.at[p]]
            self.at[p] = max(self.at[p], b.last + 1)

    def wait(self, more, until, seconds=90):
        """So many further publishes are answered."""
        goal = self.published + more
        until(lambda: self.published >= goal or self.faults, seconds, '%d further publishes, %s' % (more, self.codes))

    def finish(self):
        self.stop_publish.set()
        self.threads[0].join(200)
        end = {}
        with Conn(self.s.kafka, timeout=60) as c:
            for p in self.at:
                r, limit = {'error_code': 78}, time.monotonic() + 60
                while r['error_code'] and time.monotonic() < limit:    # while a head settles it is not told
                    r = c.list_offset(self.topic, p, LATEST)
                assert r['error_code'] == 0, r
                end[p] = r['offset']
                self.high[p] = max(self.high[p], end[p])
        self.stop_read.set()
        self.threads[1].join(120)
        assert not self.threads[1].is_alive(), 'the reader hangs at %s of %s' % (self.at, self.high)
        assert not self.faults, self.faults[0]
        assert not self.went_back, self.went_back[0]
        got = sorted(d['n'] for v in self.seen.values() for d in v)
        want = list(range(-8, 0)) + list(range(4 * self.published))
        twice = sorted({n for n in got if got.count(n) > 1}) if len(got) != len(set(got)) else []
        lost = sorted(set(want) - set(got))
        assert not twice, 'doubled: %s' % twice[:20]
        assert not lost, 'lost: %s' % lost[:20]
        assert got == want
        for p, docs in self.seen.items():
            for k in range(4):
                mine = [d['n'] for d in docs if d['k'] == k and d['n'] >= 0]
                assert mine == sorted(mine), 'partition %d: order of key %d' % (p, k)
        return '%d publishes, the slowest %.1f s; refused meanwhile: %s' % (self.published, self.slow, sorted(map(str, self.codes)) or 'none')


@pytest.mark.parametrize('which', range(3))
def test_kill_9_of_one_of_three(three, make_server, until, topic, figures, which):
    s = make_server(*flags(three))
    t = Traffic(s, topic)
    t.wait(20, until)
    three.kill('gazette%d' % which)
    t.wait(60, until, 120)
    three.start(RESET_HEAD=0)
    t.wait(20, until)
    figures(t.finish())


def test_a_hand_off_moves_journals_while_they_are_written(three, make_server, until, topic, figures):
    """SIGTERM: the broker gives its journals to others, leaves by itself, and is started again."""
    s = make_server(*flags(three))
    t = Traffic(s, topic)
    t.wait(20, until)
    took = []
    for k in range(3 if LONG else 1):
        with three.restarted():
            pid = three.pid('gazette%d' % k)
            three.signal('gazette%d' % k, signal.SIGTERM)
            t.wait(40, until, 120)
            took.append(three.left(pid, 150))    # a broker tries a pulse that failed again after a minute; until then it keeps the journal
            assert took[-1] is not None, 'the broker does not leave'
    t.wait(20, until)
    figures(t.finish() + '; a broker had left, after 40 publishes, %.1f s later' % max(took))


def test_etcd_pauses(three, make_server, until, topic, figures):
    """In the long form for longer than the leases: all brokers leave then, by themselves, and are started again."""
    s = make_server(*flags(three))
    t = Traffic(s, topic)
    t.wait(20, until)
    before = [three.pid('gazette%d' % k) for k in range(three.n)]
    with three.restarted():
        three.signal('etcd', signal.SIGSTOP)
        time.sleep(15 if LONG else 2)    # the pause itself
        three.signal('etcd', signal.SIGCONT)
    t.wait(60, until, 120)
    gone = sum(three.pid('gazette%d' % k) != pid for k, pid in enumerate(before))
    figures(t.finish() + '; brokers that left: %d' % gone)


def test_a_broker_that_hangs_is_left(three, make_server, until, topic, figures):
    """SIGSTOP: its connections stay open, its lease ends. Reads and appends go on elsewhere."""
    s = make_server(*flags(three))
    t = Traffic(s, topic)
    t.wait(20, until)
    with three.restarted():    # it leaves when it finds that its lease is over
        three.signal('gazette1', signal.SIGSTOP)
        try:
            t.wait(40, until, 150)
        finally:
            three.signal('gazette1', signal.SIGCONT)
    t.wait(20, until, 120)
    figures(t.finish())


def test_fragments_that_the_store_shows_late(three, make_server, until, topic, figures):
    """Brokers list the store rarely, fragments are small: what was stored is known late, and readers from 0 get everything all the same."""
    s = make_server(*flags(three, '--fragment-bytes', '2KiB'))
    t = Traffic(s, topic, 1)
    t.wait(60, until)
    late = make_server(*flags(three))
    until(lambda: topic in late.topics(), 20)
    before = read_all(late.kafka, topic, 0)
    t.wait(60, until)
    assert len(read_all(late.kafka, topic, 0)) >= len(before) + 60
    figures(t.finish())


def test_all_brokers_restart(tmp_path, make_server, until, topic, figures):
    """A clean stop of all: appends that name no offset are refused with status 12 until somebody sets the head. Ours name it."""
    with cluster(tmp_path / 'lab', 3, ZONES=ZONES, LEASE=LEASE) as c:
        s = make_server(*flags(c))
        t = Traffic(s, topic)
        t.wait(20, until)
        t.stop_publish.set()
        t.threads[0].join(60)
        c.stop()
        c.start(RESET_HEAD=0)
        n = t.published
        until(lambda: b'INDEX_HAS_GREATER_OFFSET' in c.append('%s/pivot=00' % topic, b'{}\n'), 30, 'status 12')
        docs = [{'n': n * 4 + k, 'k': k} for k in range(4)]
        until(lambda: try_publish(s, t, docs, n), 120, 'a publish after the restart')
        t.published += 1
        figures(t.finish())


def try_publish(s, t, docs, n):
    try:
        return s.publish(t.topic, docs, key='/k', idem='%s-%d' % (t.topic, n), timeout=90)
    except (AdminError, OSError) as e:
        t.codes.add(getattr(e, 'status', type(e).__name__))
        return None
