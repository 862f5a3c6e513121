"""Groups in trouble: six members of five kinds are killed, stopped, continued and started again, and so is the gateway by
kill -9, while documents come in. Afterwards every document was delivered at least once, no partition had two owners in one
generation, no answered commit was lost or undone, generations stayed bounded, and the group settles with lag 0.
SLUICE_TEST_LONG=1: ten minutes and ten kills of the gateway. SLUICE_TEST_SEED: another history."""
import http.client
import os
import random
import signal
import threading
import time

import clients
from groups_raw import Raw
from kafka_raw import LATEST, Conn
from test_groups import MEMBERS, Member, command, newest, tapped    # noqa: F401
from sluice import AdminError

LONG = os.environ.get('SLUICE_TEST_LONG') == '1'
SECONDS, KILLS = (600, 10) if LONG else (40, 3)
PARTITIONS = 6
KINDS = ['confluent', 'confluent', 'franz-go-range', 'sarama', 'kafka-python', 'java']


class Publisher(threading.Thread):
    """Goes on through deaths of the server: a batch is sent again under its key until it was answered."""
    def __init__(self, s):
        super().__init__(daemon=True)
        self.s, self.n, self.over, self.fault = s, 0, threading.Event(), None

    def run(self):
        batch = 0
        try:
            while not self.over.is_set():
                batch += 1
                docs = [{'id': 'k%d' % (self.n + i), 'n': self.n + i} for i in range(20)]
                while True:
                    try:
                        self.s.publish('t', docs, partitions=PARTITIONS, key='/id', idem='batch-%d' % batch, timeout=10)
                        break
                    except (OSError, AdminError, EOFError, http.client.HTTPException):
                        time.sleep(0.2)
                self.n += len(docs)
                self.over.wait(0.25)
        except Exception as e:    # noqa: BLE001  the test reports it
            self.fault = repr(e)


class Crew:
    def __init__(self, tap, folder):
        self.tap, self.folder, self.n, self.all, self.seats = tap, folder, 0, [], {}

    def start(self, seat):
        self.n += 1
        m = Member(KINDS[seat], self.tap.address, 't', 'g', self.folder, '-%d-%d' % (seat, self.n))
        m.stopped_until = 0
        self.all.append(m)
        self.seats[seat] = m

    def delivered(self):
        return {r for m in self.all for r in m.records()}

    def tick(self, rng, now):
        for seat, m in self.seats.items():
            if m.stopped_until and now > m.stopped_until:
                m.signal(signal.SIGCONT)
                m.stopped_until = 0
            if m.p.poll() is not None and rng.random() < 0.5:
                self.start(seat)

    def trouble(self, rng, now):
        seat = rng.randrange(len(KINDS))
        m = self.seats[seat]
        if m.p.poll() is not None or m.stopped_until:
            return
        if rng.random() < 0.5:
            m.p.kill()
        else:
            m.signal(signal.SIGSTOP)
            m.stopped_until = now + rng.choice((0.5, 2, 8))

    def heal(self):
        for seat, m in list(self.seats.items()):
            m.signal(signal.SIGCONT)
            m.stopped_until = 0
            if m.p.poll() is not None:
                self.start(seat)

    def end(self):
        for m in self.all:
            m.end()


def test_members_and_the_gateway_die_and_nothing_is_lost(tapped, tmp_path, until, figures):    # noqa: F811
    for k in KINDS:
        command(k, '', '', '')    # skips where one is not installed
    seed = int(os.environ.get('SLUICE_TEST_SEED', 7))
    rng = random.Random(seed)
    s, tap = tapped('--log-level', 'warn')
    s.publish('t', [{'id': 'first', 'n': -1}], partitions=PARTITIONS, key='/id')
    tap.know('t')
    crew, pub = Crew(tap, tmp_path), Publisher(s)
    began = time.monotonic()
    kills, last_trouble = 0, 0
    try:
        for seat in range(len(KINDS)):
            crew.start(seat)
        pub.start()
        while (now := time.monotonic() - began) < SECONDS:
            crew.tick(rng, now)
            if now - last_trouble > 2:
                last_trouble = now
                crew.trouble(rng, now)
            if kills < KILLS and now > SECONDS * (kills + 1) / (KILLS + 1):
                kills += 1
                s.kill()
                s.start()
                tap.target = s.kafka
            time.sleep(0.2)
        pub.over.set()
        pub.join(30)
        assert pub.fault is None, pub.fault
        crew.heal()
        recs = clients.kcat('127.0.0.1:%d' % s.kafka, 't', '-o', 'beginning', '-e')
        wanted = {(r.partition, r.offset) for r in recs}
        assert len(wanted) >= pub.n + 1
        end = time.monotonic() + 90
        while not (settled(tap) and wanted <= crew.delivered()):
            crew.heal()    # some of the lab's programs end after 40 s without a record
            assert time.monotonic() < end, 'every document is delivered and the group settles: %d missing of %d, %s' % (
                len(wanted - crew.delivered()), len(wanted), newest(tap))
            time.sleep(0.5)
        g = Raw(s.kafka, 'g')
        with Conn(s.kafka) as c:
            ends = {p: c.list_offset('t', p, LATEST)['offset'] for p in range(PARTITIONS)}
        until(lambda: all(g.committed('t', p)['committed_offset'] == e for p, e in ends.items()), 30, 'lag 0')
        tap.check_ownership()
        tap.check_commits()
        assert not tap.errors, tap.errors
        top = max(x[2] for x in tap.generations)
        figures('%d documents, %d deliveries, %d member lives, %d kills of the gateway, %d generations, %d commits, %d reads, seed %d' % (
            len(wanted), sum(len(m.records()) for m in crew.all), crew.n, kills, top, len(tap.commits), len(tap.reads), seed))
        assert top < 20 + 8 * (crew.n + kills + SECONDS / 2), 'generations without bound: %d' % top
    finally:
        pub.over.set()
        crew.end()


def settled(tap):
    owned = newest(tap)
    return sum(len(o.partitions) for o in owned) == PARTITIONS and len(owned) == len(KINDS)
