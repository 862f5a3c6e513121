"""Two gateways over one broker (the stand-in): what one of them wrote, or the broker removed, the other one tells when it is asked,
also of a journal that sleeps there and is looked at every 5 seconds only. Nobody loses its place by going to the other gateway."""
import time
import urllib.parse

import pytest

from clients import busy
from kafka_raw import EARLIEST, EPOCH_END, LATEST, Conn
from sluice import ndjson
from stand_in import StandIn

OUT_OF_RANGE = 1
ASLEEP_S = 4    # broker-idle-time of 1 s, looked at each second
SOON_S = 1.5    # no answer may take longer on a machine with time for it: those that wait for the next look take up to 5 s


@pytest.fixture
def pair(make_server, tmp_path):
    """Who publishes and who is asked, and their broker."""
    broker = StandIn(tmp_path / 'broker')
    writer = make_server(*broker.flags())
    asked = make_server(*broker.flags(), '--broker-idle-time', '1s', '--journal-admin')
    yield writer, asked, broker
    for s in (asked, writer):
        s.stop()
    broker.stop()


def publish(s, topic, n, at=0):
    s.publish(topic, ndjson([{'n': at + i, 'text': 'x' * 100} for i in range(n)]))


def end_of(s, topic):
    with Conn(s.kafka) as c:
        return c.list_offset(topic, 0, LATEST)['offset']


def known(s, topic):
    with Conn(s.kafka) as c:
        return not c.metadata(topic)['error_code']


def fragments(s, topic, until):
    """The journal of a topic, and where its fragments begin. s has operator routes."""
    (name,) = until(lambda: {j['name'] for j in s.get_json('/v1/journals')['journals'] if topic in j['name']}, 10)
    return name, [f['begin'] for f in s.get_json('/v1/journals/' + urllib.parse.quote(name, safe=''))['fragments']]


def in_time(f):
    t0 = time.monotonic()
    v = f()
    assert time.monotonic() - t0 < min(4, SOON_S * busy()), 'it took %.1f s' % (time.monotonic() - t0)
    return v


def test_who_asks_the_other_gateway_is_told_of_the_present_end(pair, topic, until):
    writer, asked, _ = pair
    publish(writer, topic, 3)
    until(lambda: known(asked, topic), 10)
    for i, version in enumerate((1, 4, 7, 11)):
        time.sleep(ASLEEP_S if i < 2 else ASLEEP_S / 3)    # asleep, or about to be
        publish(writer, topic, 2, i)
        want = end_of(writer, topic)
        with Conn(asked.kafka) as c:
            assert in_time(lambda: c.list_offset(topic, 0, LATEST, version))['offset'] == want


def test_nobody_is_out_of_range_for_what_the_other_gateway_served(pair, topic, until):
    """A consumer that read through one gateway and goes on at the other one, in both ways that it may ask."""
    writer, asked, _ = pair
    publish(writer, topic, 3)
    until(lambda: known(asked, topic), 10)
    for i in range(3):
        time.sleep(ASLEEP_S)
        publish(writer, topic, 2, i)
        at = end_of(writer, topic)
        with Conn(asked.kafka, timeout=10) as c:
            if i != 1:
                p = in_time(lambda: c.fetch(topic, 0, at, max_wait_ms=0))
                assert (p['error_code'], p['high_watermark'], p['batches']) == (0, at, [])
            epoch = c.metadata(topic)['partitions'][0]['leader_epoch']
            r = in_time(lambda: c.call(EPOCH_END, 4, topics=[{'topic': topic, 'partitions': [{'partition': 0, 'leader_epoch': epoch}]}]))
            r = r['topics'][0]['partitions'][0]
            assert (r['error_code'], r['leader_epoch'], r['end_offset']) == (0, epoch, at)
            p = in_time(lambda: c.fetch(topic, 0, at + 1000, max_wait_ms=0))
            assert (p['error_code'], p['high_watermark']) == (OUT_OF_RANGE, at), 'what nobody wrote is out of range'


def test_what_the_broker_removed_is_told_by_both(pair, topic, until):
    writer, asked, broker = pair
    for i in range(4):
        publish(writer, topic, 5, 5 * i)
        broker.close(fragments(asked, topic, until)[0])
    name, begins = fragments(asked, topic, until)
    until(lambda: known(asked, topic), 10)
    with Conn(asked.kafka) as c:
        assert c.list_offset(topic, 0, EARLIEST)['offset'] == 0
        assert c.list_offset(topic, 0, 1)['offset'] > 0
        time.sleep(ASLEEP_S)
        broker.prune(name, 2)
        start = in_time(lambda: c.list_offset(topic, 0, EARLIEST))['offset']
        assert start == begins[2]
        first = in_time(lambda: c.list_offset(topic, 0, 1))['offset']
        p = c.fetch(topic, 0, start)
        assert p['log_start_offset'] == start and p['batches'][0].records[0].offset == first
        assert c.fetch(topic, 0, start - 1)['error_code'] == OUT_OF_RANGE


def test_a_fetch_that_meets_what_was_removed_is_out_of_range_at_once(pair, topic, until):
    """The log start is not known to have moved yet: the read finds out."""
    writer, asked, broker = pair
    for i in range(4):
        publish(writer, topic, 5, 5 * i)
        broker.close(fragments(asked, topic, until)[0])
    name, begins = fragments(asked, topic, until)
    writer.stop()    # what it keeps in memory would do
    other = writer.start()
    until(lambda: known(other, topic), 10)
    with Conn(other.kafka) as c:
        end = c.list_offset(topic, 0, LATEST)['offset']
        broker.prune(name, 1)
        p = in_time(lambda: c.fetch(topic, 0, 0, max_wait_ms=0))
        if p['error_code'] == 0:    # the end of the journal was looked at at the start, and is kept
            assert end < 1 << 16
            until(lambda: c.fetch(topic, 0, 0, max_wait_ms=0)['error_code'] == OUT_OF_RANGE, 13)
            p = c.fetch(topic, 0, 0, max_wait_ms=0)
        assert (p['error_code'], p['log_start_offset'], p['high_watermark']) == (OUT_OF_RANGE, begins[1], end)
