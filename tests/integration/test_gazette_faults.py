"""What happens to a cluster in its life, over the stand-in: a publisher that asks again under its key and a reader from offset 0 that
never starts anew. No document is lost or doubled, the order of each key stays, and no watermark goes back. The same with three real
brokers: gazette_real_brokers; single calls: tests/contract/gazette_faults*_test.c."""
import time

import pytest

from docs_util import read_all
from stand_in import StandIn
from test_gazette_real_brokers import Traffic

KEY = 'c2VjcmV0LW9mLXRoZS1zdGFuZC1pbg=='
ROUNDS = 3


@pytest.fixture
def traffic(make_server, topic, tmp_path, until):
    """traffic(*flags of the server, broker=flags): the stand-in, the server and the traffic through both."""
    made = []

    def start(*flags, broker=(), partitions=2):
        b = StandIn(tmp_path / 'broker', *broker)
        made.append(b)
        s = make_server(*b.flags(), *flags)
        made.append(s)
        t = Traffic(s, topic, partitions)
        made.append(t)
        t.wait(5, until)
        return b, s, t
    yield start
    for x in reversed(made):    # also after a failure
        if isinstance(x, Traffic):
            x.stop_publish.set()
            x.stop_read.set()
            made[0].calm()
            for th in x.threads:
                th.join(120)
        elif isinstance(x, StandIn) or x.alive():
            x.stop()


def journals(t):
    return [p['journal'] for p in t.s.topics()[t.topic]['partitions']]


def test_brokers_that_die_and_come_back(traffic, until, figures):
    """kill -9: all connections break, one append's answer is lost though it is stored, the next calls find nobody."""
    b, _, t = traffic()
    for _ in range(ROUNDS):
        b.fault('reset-conn', 'Append', landed=1)
        b.fault('grpc', 'any', value=14, skip=1, times=12)
        b.end_calls('any', 'reset-conn')
        t.wait(10, until)
        b.calm()
    assert b.stats()['hits'] >= 5 * ROUNDS
    figures(t.finish())


def test_a_hand_off_to_a_broker_that_has_not_listed_the_store(traffic, until, figures):
    """Reads know less for a while; appends go to who is the primary no longer, then wait for the listing."""
    b, _, t = traffic('--fragment-bytes', '4KiB')
    for _ in range(ROUNDS):
        for j in journals(t):
            b.close(j)
            b.ask('hide', j, 1000)
        b.fault('status', 'Append', value=3, times=3)
        b.end_calls('any', 'end')
        t.wait(10, until)
        b.calm()
    assert b.stats()['hits'] >= ROUNDS
    figures(t.finish())


def test_etcd_pauses(traffic, until, figures):
    """Nobody lists, and brokers find no peers; when it is over everything goes on."""
    b, _, t = traffic()
    for _ in range(ROUNDS):
        b.fault('hang', 'List', times=-1)
        b.fault('status', 'Append', value=4, times=-1)
        b.end_calls('List', 'reset-stream')
        n = t.published
        time.sleep(1)    # the pause itself
        assert t.published <= n + 1
        b.calm()
        b.end_calls('List', 'reset-stream')
        t.wait(10, until)
    figures(t.finish())


def test_tokens_end_in_the_middle_of_reads(traffic, until, figures):
    """A broker ends each stream with its token; some new ones are refused at first."""
    b, s, t = traffic('--broker-auth-keys', KEY, '--broker-token-lifetime', '10s', broker=('--auth-key', KEY))
    for _ in range(ROUNDS):
        b.fault('grpc', 'Read', value=16, times=2)
        b.end_calls('Read', 'end')
        t.wait(10, until)
    calls = b.stats()['Read']['calls']
    until(lambda: b.stats()['Read']['calls'] > calls, 30, 'a stream that ended with its token')
    t.wait(10, until)
    figures(t.finish())


def test_a_store_that_lists_late(traffic, make_server, until, figures, topic):
    """Fragments close all the time and are known seconds later; who starts in between gets everything."""
    b, _, t = traffic('--fragment-bytes', '2KiB', broker=('--listing-lag', '2000'), partitions=1)
    t.wait(30, until)
    late = make_server(*b.flags())
    until(lambda: topic in late.topics(), 20)
    before = read_all(late.kafka, topic, 0)
    t.wait(20, until)
    assert len(read_all(late.kafka, topic, 0)) >= len(before) + 20
    late.stop()
    figures(t.finish())


def test_all_brokers_restart(traffic, until, figures):
    """What is stored is there, nothing else is known: appends without an offset get status 12, ours say theirs."""
    b, _, t = traffic()
    for _ in range(ROUNDS):
        t.stop_publish.set()
        t.threads[0].join(60)
        for j in journals(t):
            b.close(j)
        b.ask('down')
        n = t.published
        docs = [{'n': n * 4 + k, 'k': k} for k in range(4)]
        t.s.publish(t.topic, docs, key='/k', idem='%s-%d' % (t.topic, n), timeout=90)
        t.published += 1
    figures(t.finish())
