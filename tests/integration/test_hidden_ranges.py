"""Rule O9 on live consumers: whatever is hidden, and wherever, a consumer's position reaches the high watermark in a number of
fetches that the bytes justify, then waits quietly, and gets the next document at once. Each consumer runs behind a tap that
counts its fetches and knows from where they were; the position is what a client asks for next, not what it says.

Field cases 1, 9, 11, 13 and 63 are reports of clients that did not."""
import time

import pytest

import clients
import live
from journals import ACK, CONTROL, Journal
from kafka_raw import LATEST, Conn
from scale import QUICK
from sluice import Server
from tap import Tap

CLIENTS = ['kcat', 'confluent-kafka'] if QUICK else list(live.ALL)
IDLE_S = 1.5
READ_S = 20    # a JVM beside five other clients on two cores, under sanitizers; franz-go's program gives up after 30


class Shape:
    """write(j, low, high): low() and high() are clocks below and above the bound."""

    def __init__(self, write, bounded=False):
        self.write, self.bounded = write, bounded


SHAPES = {}


def shape(bounded=False):
    def add(f):
        SHAPES[f.__name__] = Shape(f, bounded)
        return f
    return add


@shape()
def only_acks(j, low, high):
    [j.ack() for _ in range(40)]


@shape()
def ack_first(j, low, high):
    j.ack().ack().doc(200).doc(300)


@shape()
def many_acks_first(j, low, high):
    [j.ack() for _ in range(8000)]
    j.doc(200)


@shape()
def acks_last(j, low, high):
    [j.doc(150) for _ in range(100)]
    j.ack().ack().ack()


@shape()
def many_acks_last(j, low, high):
    [j.doc(150) for _ in range(10)]
    [j.ack() for _ in range(8000)]


@shape()
def acks_between(j, low, high):
    [j.doc(120).ack() for _ in range(50)]


@shape()
def runs_over_many_blocks(j, low, high):
    """Runs of 0.8 MB: three lines of 256 KiB without a document each."""
    for _ in range(3):
        j.doc(100)
        [j.ack() for _ in range(9000)]
    j.doc(100)


@shape()
def a_run_that_ends_at_a_block(j, low, high):
    """Documents that begin and end exactly at the edges of 256 KiB, hidden lines around them."""
    j.doc(1000)
    for edge in (1, 2, 3):
        while j.at < edge * 262144 - 400:
            j.ack()
        if edge == 2:
            j.doc(edge * 262144 - j.at)
        else:
            j.raw(b' ' * (edge * 262144 - 1 - j.at) + b'\n')
        assert j.at == edge * 262144
        if edge != 2:
            j.doc(150)
    j.ack()


@shape()
def blank_lines(j, low, high):
    j.raw(b'\n' * 300000).doc(100).raw(b'   \n\t\r\n' * 2000).doc(100).raw(b'\n')


@shape()
def control_flags(j, low, high):
    j.ack(flags=CONTROL).doc(100).ack(flags=CONTROL | ACK).doc(100)
    [j.ack(flags=CONTROL | 1) for _ in range(4000)]


@shape(bounded=True)
def a_prefix_below_the_bound(j, low, high):
    for _ in range(1500):
        j.doc(1000, clock=low())
    j.ack(clock=low())
    for _ in range(5):
        j.doc(200, clock=high())


@shape(bounded=True)
def all_below_the_bound(j, low, high):
    for _ in range(1200):
        j.doc(800, clock=low())
    j.ack(clock=high())


@shape(bounded=True)
def a_tail_below_the_bound(j, low, high):
    """An old producer goes on behind a new one: the watermark lies behind documents that nobody may see."""
    for _ in range(5):
        j.doc(200, clock=high())
    for _ in range(1200):
        j.doc(800, clock=low())


@shape(bounded=True)
def a_middle_below_the_bound(j, low, high):
    for _ in range(3):
        j.doc(200, clock=high())
        for _ in range(700):
            j.doc(1000, clock=low())
        j.ack(clock=low())
    j.doc(200, clock=high()).ack(clock=high())


@shape(bounded=True)
def single_documents_among_those_below_the_bound(j, low, high):
    for i in range(400):
        j.doc(300, clock=high() if i % 9 == 4 else low())
        if i % 20 == 0:
            j.ack(clock=high())


@pytest.fixture(scope='module')
def stage(tmp_path_factory):
    """A server that advertises the tap, and what was found out about each shape."""
    tap = Tap()
    work = tmp_path_factory.mktemp('server')
    s = Server(work / 'data', work, ('--journal-admin', '--kafka-advertise', tap.address)).start()
    tap.target = s.kafka
    yield s, tap, {}
    s.stop()
    tap.stop()


def position(tap, client_id):
    f = tap.of(client_id)
    return f[-1].offsets.get(0) if f else None


def play(s, tap, name):
    """Runs all clients over one shape, together. {client: what happened}"""
    sh, topic = SHAPES[name], name.replace('_', '-')
    j = Journal(s, topic)
    bound = j.now + (10**7 << 4)
    ticks = {'low': j.now, 'high': bound}

    def clock(which):
        def next_clock():
            ticks[which] += 16
            return ticks[which]
        return next_clock
    if sh.bounded:
        j.put(**{'estuary.dev/truncated-at': '%016x' % bound})
    sh.write(j, clock('low'), clock('high'))
    j.write()
    want, hw = j.oracle(bound if sh.bounded else 0).offsets, j.hw
    with Conn(s.kafka) as c:
        end = time.monotonic() + 10
        while c.list_offset(topic, 0, LATEST) ['offset'] != hw or c.metadata(topic)['error_code']:
            assert time.monotonic() < end, 'high watermark %s, not %d' % (c.list_offset(topic, 0, LATEST), hw)
            time.sleep(0.05)
    tap.clear()
    out, running = {}, {}
    try:
        for c in CLIENTS:
            try:
                running[c] = live.ALL[c](tap.address, topic)
            except pytest.skip.Exception as e:
                out[c] = {'skip': str(e)}
        end = time.monotonic() + READ_S
        waiting = set(running)
        while waiting and time.monotonic() < end:
            for c in list(waiting):
                r = running[c]
                if position(tap, r.client_id) == hw and r.offsets() == want:
                    waiting.discard(c)
            time.sleep(0.05)
        for c, r in running.items():
            fetches = tap.of(r.client_id)
            out[c] = {'offsets': r.offsets(), 'want': want, 'hw': hw, 'position': position(tap, r.client_id), 'stderr': r.error(),
                      'below': [f.offsets[0] for f in fetches if f.offsets.get(0, hw) < hw], 'visible_bytes': sum(len(x.value) for x in j.oracle(bound if sh.bounded else 0).records)}
        counted = {c: len(tap.of(r.client_id)) for c, r in running.items()}
        time.sleep(IDLE_S)
        for c, r in running.items():
            out[c]['idle'] = (len(tap.of(r.client_id)) - counted[c]) / IDLE_S
        late = j.ack(clock=ticks['high'] + 16 if sh.bounded else None).doc(120, clock=ticks['high'] + 32 if sh.bounded else None).hw - 1
        j.write()
        t0 = time.monotonic()
        waiting = set(running)
        while waiting and time.monotonic() < t0 + 8:
            for c in list(waiting):
                if running[c].offsets() == want + [late]:
                    out[c]['late_s'] = time.monotonic() - t0
                    waiting.discard(c)
            time.sleep(0.02)
        for c in waiting:
            out[c]['late_s'] = None
            out[c]['after'] = running[c].offsets()[-5:]
    finally:
        for r in running.values():
            r.stop()
    return out


def result(stage, name, client):
    s, tap, seen = stage
    if name not in seen:
        seen[name] = None
        seen[name] = play(s, tap, name)
    assert seen[name] is not None, 'the shape could not be played, see the first test of it'
    r = seen[name][client]
    if 'skip' in r:
        pytest.skip(r['skip'])
    return r


@pytest.mark.parametrize('client', CLIENTS)
@pytest.mark.parametrize('name', SHAPES)
def test_a_consumer_passes_what_is_hidden_without_crawling(stage, figures, name, client):
    r = result(stage, name, client)
    assert r['offsets'] == r['want'], 'got %d of %d documents, position %s of %s: %s' % (len(r['offsets']), len(r['want']), r['position'], r['hw'], r['stderr'])
    assert r['position'] == r['hw'], 'the position stands at %s, the high watermark is %d' % (r['position'], r['hw'])
    below = r['below']
    assert below == sorted(below), 'the position went back: %s' % below
    limit = 4 + r['visible_bytes'] // 500000
    figures('%d fetches below the watermark, %.1f/s idle, a late document after %s' % (len(below), r['idle'], r['late_s'] and '%.0f ms' % (r['late_s'] * 1e3)))
    assert len(below) <= limit, 'crawled in %d fetches: %s' % (len(below), below[:20])
    assert r['idle'] <= 3, '%.1f fetches a second with nothing to get' % r['idle']
    assert r['late_s'] is not None and r['late_s'] < 2.5 * clients.busy(), 'the document behind the hidden ones: %s s, last %s' % (r['late_s'], r.get('after'))
