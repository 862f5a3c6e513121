"""The catalog changes while clients read: what did not change goes on as if nothing had happened, what did change takes
effect as a whole, and a bad file changes nothing. The last test makes random edits under consumers that must not notice."""
import json
import os
import random
import shutil
import signal
import threading
import time

import pytest

import live
from kafka_raw import EPOCH_END, FETCH, LATEST, Conn, decode_batches, visible
from scale import size
from test_catalog import serve, task, topics, values, write    # noqa: F401

SOON = 6    # a change is looked for each second and must stand still for one


def reloads(s):
    m = s.metrics()
    return (m['sluice_catalog_reloads_total{result="ok"}'], m['sluice_catalog_reloads_total{result="failed"}'])


def hup(s, until, result=0):
    """Asks for a reload and waits for its outcome: 0 in force, 1 refused."""
    before = reloads(s)[result]
    s.proc.send_signal(signal.SIGHUP)
    until(lambda: reloads(s)[result] > before, 20, 'no reload')


def epoch_of(c, topic):
    return c.metadata(topic)['partitions'][0]['leader_epoch']


def test_a_changed_file_is_read_and_so_are_imported_ones(serve, until, tmp_path):
    part = tmp_path / 'part.yaml'
    write(part, {'other': task({'x': 'acme/x'})})
    s = serve({'t': task({'a': 'acme/a'})}, '--anonymous-task', 't', **{'import': ['part.yaml']})
    s.publish('acme/a', [{'id': 1}])
    with Conn(s.kafka) as c:
        assert set(topics(c)) == {'a'}
        write(s.catalog, {'t': task({'a': 'acme/a', 'b': 'acme/a'})}, **{'import': ['part.yaml']})
        until(lambda: set(topics(c)) == {'a', 'b'}, SOON, 'the change was not seen')
        assert values(c.records_from('b', 0, 0)[0]) == [1]
        write(part, {'other': task({'x': 'acme/x', 'y': 'acme/x'}), 'third': task({})})
        n = reloads(s)[0]
        until(lambda: reloads(s)[0] > n, SOON, 'the change of the imported file was not seen')
        assert set(topics(c)) == {'a', 'b'}
        assert set(s.topics()) == {'a', 'b', 'x', 'y'}
        # a topic that is taken away is unknown at once, in a request that asks for others too
        write(s.catalog, {'t': task({'a': 'acme/a'})}, **{'import': ['part.yaml']})
        hup(s, until)
        until(lambda: set(topics(c)) == {'a'}, SOON)
        assert c.metadata('b')['error_code'] == 3
        assert c.fetch('b', 0, 0)['error_code'] == 3
        assert c.list_offset('b', 0, LATEST)['error_code'] == 3
        e = c.call(EPOCH_END, 3, topics=[{'topic': 'b', 'partitions': [{'partition': 0, 'leader_epoch': 1}]}])
        assert e['topics'][0]['partitions'][0]['error_code'] == 3
        assert values(c.records_from('a', 0, 0)[0]) == [1]


def test_sessions_and_long_polls_of_unchanged_topics_go_on(serve, until):
    s = serve({'t': task({'a': 'acme/a', 'gone': 'acme/b'})})
    s.publish('acme/a', [{'id': 1}])
    s.publish('acme/b', [{'id': 1}])
    with Conn(s.kafka) as c, Conn(s.kafka) as poll, Conn(s.kafka) as other:
        end = c.list_offset('a', 0, LATEST)['offset']
        ids = {n: t['topic_id'] for n, t in topics(c, 12).items()}
        r = c.finish(FETCH, 12, c.fetch_start('a', {0: end}, 12, session_epoch=0))
        session = r['session_id']
        assert session != 0
        waiting = poll.fetch_start('a', {0: end}, 12, max_wait_ms=30000)
        doomed = other.fetch_start('gone', {0: 1 << 10}, 12, max_wait_ms=0)
        assert other.finish(FETCH, 12, doomed)['responses'][0]['partitions'][0]['error_code'] in (0, 1)
        for epoch in range(1, 4):
            write(s.catalog, {'t': task({'a': 'acme/a', 'new%d' % epoch: 'acme/b'})})
            hup(s, until)
            until(lambda: 'new%d' % epoch in topics(other), SOON)
            r = c.finish(FETCH, 12, c.fetch_start('a', {}, 12, session_id=session, session_epoch=epoch))
            assert (r['error_code'], r['session_id']) == (0, session)
            assert not [p for t in r['responses'] for p in t['partitions'] if p['error_code']]
        poll.s.settimeout(0.3)
        with pytest.raises(Exception):
            poll.recv()    # it waits still
        poll.s.settimeout(30)
        assert topics(c, 12)['a']['topic_id'] == ids['a']
        s.publish('acme/a', [{'id': 2}])
        p = poll.finish(FETCH, 12, waiting)['responses'][0]['partitions'][0]
        assert p['error_code'] == 0 and b'"id":2' in p['records']
        r = c.finish(FETCH, 12, c.fetch_start('a', {}, 12, session_id=session, session_epoch=4))
        assert b'"id":2' in r['responses'][0]['partitions'][0]['records']


def test_a_raised_backfill_raises_the_epoch_and_a_lower_one_does_not(serve, until):
    plain = {'source': 'acme/a'}
    s = serve({'t': task({'a': dict(plain), 'b': dict(plain)})})
    s.publish('acme/a', [{'id': 1}])
    with Conn(s.kafka) as c:
        assert (epoch_of(c, 'a'), epoch_of(c, 'b')) == (1, 1)
        before = topics(c, 12)
        write(s.catalog, {'t': task({'a': dict(plain, backfill=3), 'b': dict(plain)})})
        hup(s, until)
        until(lambda: epoch_of(c, 'a') == 4, SOON)
        after = topics(c, 12)
        assert after['b'] == before['b'] and after['a']['topic_id'] == before['a']['topic_id']    # running franz-go clients go on
        assert c.fetch('a', 0, 0, epoch=1)['error_code'] == 74
        assert c.fetch('a', 0, 0, epoch=4)['error_code'] == 0
        write(s.catalog, {'t': task({'a': dict(plain, backfill=1), 'b': dict(plain, backfill=1)})})
        hup(s, until)
        until(lambda: epoch_of(c, 'b') == 2, SOON)
        assert epoch_of(c, 'a') == 4
    assert 'view.backfill_lowered' in s.log.read_text()
    s.restart()
    with Conn(s.kafka) as c:
        assert (epoch_of(c, 'a'), epoch_of(c, 'b')) == (4, 2)


BAD = ['', '{', '{"materializations": {"t": {}}}', '[1, 2]', '{"materializations": {}}', 'a: *b', '[' * 100000, None,
       '{"import": ["nowhere.yaml"], "materializations": {"t": {"endpoint": {"dekaf": {"config": {}}}, "bindings": []}}}',
       # good by itself, but an open listener would not know whom to serve, or would show what has a token
       json.dumps({'materializations': {'t': task({}), 'u': task({})}}), json.dumps({'materializations': {'t': task({}, {'token': 'hunter2'})}})]


def test_a_bad_file_changes_nothing_and_is_counted_and_logged(serve, until):
    s = serve({'t': task({'a': 'acme/a'})})
    s.publish('acme/a', [{'id': 1}])
    with Conn(s.kafka) as c:
        for i, text in enumerate(BAD):
            if os.path.exists(s.catalog):
                os.unlink(s.catalog)
            if text is not None:
                open(s.catalog, 'w').write(text)
            hup(s, until, 1)
            assert reloads(s)[0] == 0
            assert set(topics(c)) == {'a'} and values(c.records_from('a', 0, 0)[0]) == [1], text
        assert s.request('GET', '/readyz')[0] == 200
        write(s.catalog, {'t': task({'a': 'acme/a', 'b': 'acme/a'})})
        until(lambda: set(topics(c)) == {'a', 'b'}, SOON, 'the server did not recover by itself')
    log = s.log.read_text()
    assert log.count('catalog.not_reloaded') >= len(BAD) and 'catalog.fault' in log and 'hunter2' not in log
    assert 'catalog.yaml:1: /import/0' in log


def test_settings_of_a_task_change_under_its_connections(serve, until):
    s = serve({'t': task({'a/b': 'acme/a', 'none': 'acme/none'})})
    s.publish('acme/a', [{'id': 1}, {'id': 2}])
    with Conn(s.kafka) as c:
        assert set(topics(c)) == {'a/b', 'none'}
        write(s.catalog, {'t': task({'a/b': 'acme/a', 'none': 'acme/none'}, {'strict_topic_names': True, 'allow_empty_topics': True})})
        hup(s, until)
        until(lambda: set(topics(c)) == {'a.2Fb', 'none'}, SOON)
        assert len(c.metadata('none')['partitions']) == 1
        write(s.catalog, {'t': task({'a/b': {'source': {'name': 'acme/a', 'notAfter': '2001-01-01T00:00:00Z'}}})})
        hup(s, until)
        until(lambda: set(topics(c)) == {'a/b'}, SOON)
        assert c.records_from('a/b', 0, 0)[0] == []
        write(s.catalog, {'t': task({'a/b': 'acme/a'})})
        hup(s, until)
        until(lambda: values(c.records_from('a/b', 0, 0)[0]) == [1, 2], SOON)
        # a source that the catalog defines from now on can be published to
        assert s.request('POST', '/v1/collections/acme%2Fnew/documents', b'{"id":1}\n')[0] == 404
        write(s.catalog, {'t': task({'new': 'acme/new'})})
        hup(s, until)
        until(lambda: set(topics(c)) == {'new'}, SOON)
        s.publish('acme/new', [{'id': 9}])
        assert values(c.records_from('new', 0, 0)[0]) == [9]


@pytest.mark.local_store    # whose folder is copied
@pytest.mark.parametrize('consumer', [live.kcat, live.confluent, live.java, live.franz], ids=['kcat', 'librdkafka', 'java', 'franz-go'])
def test_running_consumers_follow_a_redirect(make_server, tmp_path, until, consumer):
    """The other place holds the same journals; the consumer goes on there where it stood."""
    path = write(tmp_path / 'source.yaml', {'t': task({'a': 'acme/a'})})
    source = make_server('--catalog', path)
    source.publish('acme/a', [{'id': 10}, {'id': 11}])
    source.stop()
    shutil.copytree(source.data_dir, tmp_path / 'copy')
    source.start()
    target = make_server('--catalog', write(tmp_path / 'target.yaml', {'t': task({'a': 'acme/a'})}), data_dir=tmp_path / 'copy')
    with Conn(source.kafka) as a, Conn(target.kafka) as b:
        first = [r.offset for r in a.records_from('a', 0, 0)[0]]
        assert first == [r.offset for r in b.records_from('a', 0, 0)[0]]
        run = consumer(source.bootstrap, 'a')
        try:
            until(lambda: run.offsets() == first, 60, 'no records: %s' % run.error())
            write(path, {'t': task({'a': 'acme/a'}, sluice={'redirect': target.bootstrap})})
            hup(source, until)
            target.publish('acme/a', [{'id': 12}, {'id': 13}])
            second = [r.offset for r in b.records_from('a', 0, first[-1] + 1)[0]]
            until(lambda: run.offsets() == first + second, 60, 'it did not go on: %s %s' % (run.offsets(), run.error()))
        finally:
            run.stop()


# --- random edits -------------------------------------------------------------------------------------------------

class Reader(threading.Thread):
    """Reads one topic by bytes, in a session, and keeps what it got. Any error is a failure."""

    def __init__(self, port, topic):
        super().__init__(daemon=True)
        self.port, self.topic, self.got, self.error, self.end = port, topic, [], None, False

    def run(self):
        try:
            with Conn(self.port) as c:
                at, session, epoch = 0, 0, 0
                while not self.end:
                    r = c.finish(FETCH, 12, c.fetch_start(self.topic, {0: at}, 12, max_wait_ms=300, session_id=session, session_epoch=epoch))
                    assert r['error_code'] == 0, r['error_code']
                    session, epoch = r['session_id'], epoch + 1
                    for t in r['responses']:
                        for p in t['partitions']:
                            assert p['error_code'] == 0, p['error_code']
                            for rec in visible(decode_batches(p['records'] or b''), at):
                                self.got.append(json.loads(rec.value)['id'])
                                at = rec.offset + 1
        except Exception as e:    # noqa: BLE001
            self.error = repr(e)


def random_catalog(rng, stable):
    bindings = dict(stable)
    for n in rng.sample(['r%d' % i for i in range(8)], rng.randrange(6)):
        b = {'source': rng.choice(['acme/a', 'acme/b', 'acme/none', 'acme/gone/%d' % rng.randrange(3)])}
        if rng.random() < .3:
            b['backfill'] = rng.randrange(4)
        if rng.random() < .2:
            b['disable'] = True
        if rng.random() < .2:
            b['source'] = {'name': b['source'], 'notAfter': '2001-01-01T00:00:00Z'}
        bindings[n] = b
    tasks = {'t': task(bindings, {'allow_empty_topics': rng.random() < .5})}
    for n in rng.sample(['u', 'v', 'w'], rng.randrange(3)):
        tasks[n] = task({'keep': 'acme/b'}, {'token': str(rng.random()), 'strict_topic_names': rng.random() < .5})
    return tasks


@pytest.mark.parametrize('seed', range(2))
def test_random_edits_do_not_disturb_what_stays(serve, until, seed, figures):
    rng = random.Random(seed)
    stable = {'keep': 'acme/a', 'keep/too': 'acme/b'}
    s = serve({'t': task(stable)}, '--anonymous-task', 't')
    sent = {c: [] for c in ('acme/a', 'acme/b')}

    def publish(c):
        ids = [len(sent[c]) + i for i in range(rng.randrange(1, 5))]
        s.publish(c, [{'id': i} for i in ids])
        sent[c] += ids
    for c in sent:
        publish(c)
    readers = [Reader(s.kafka, t) for t in stable]
    consumer = live.confluent(s.bootstrap, 'keep')
    for r in readers:
        r.start()
    end, rounds, bad = time.monotonic() + size(300, 12, 5), 0, 0
    try:
        with Conn(s.kafka) as c:
            while time.monotonic() < end:
                want = random_catalog(rng, stable)
                if rng.random() < .25:
                    open(s.catalog, 'w').write(rng.choice([b for b in BAD[:-2] if b is not None]))
                    bad += 1
                    if rng.random() < .5:
                        hup(s, until, 1)
                else:
                    write(s.catalog, want)
                    if rng.random() < .7:
                        hup(s, until)
                        shown = {n for n, b in ((b['resource']['topic_name'], b) for b in want['t']['bindings']) if not b.get('disable')}
                        until(lambda: set(topics(c)) == shown, SOON, 'topics')
                publish(rng.choice(list(sent)))
                rounds += 1
                assert epoch_of(c, 'keep') == 1
        for r, collection in zip(readers, ('acme/a', 'acme/b')):
            until(lambda: r.error or len(r.got) >= len(sent[collection]), 20, 'documents are missing')
            assert r.error is None and r.got == sent[collection]
        until(lambda: len(consumer.offsets()) >= len(sent['acme/a']), 30, consumer.error())
        offsets = consumer.offsets()
        assert len(offsets) == len(sent['acme/a']) and offsets == sorted(set(offsets))
    finally:
        for r in readers:
            r.end = True
        consumer.stop()
    figures('%d edits, %d of them bad' % (rounds, bad))
