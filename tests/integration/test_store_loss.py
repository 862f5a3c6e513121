"""Files of the local store that are away, damaged or without their database: a start is refused in words, or what is healthy
is served; nothing is lost for good because it could not be found once."""
import json
import os

import pytest

from docs_util import read_all
from journals import Journal
from kafka_raw import Conn
from sluice import run_cli

pytestmark = pytest.mark.local_store
STORAGE_ERROR = 56
FLAGS = ('--journal-admin',)


def fill(s, topic, fragments=4, docs=5):
    """So many closed fragments of docs documents; the journal, and [(begin, end)] of the fragments."""
    j, ranges = Journal(s, topic), []
    for i in range(fragments):
        begin = j.at
        for k in range(docs):
            j.doc(size=300, n=i * docs + k)
        j.write()
        j.close_fragment()
        ranges.append((begin, j.at))
    j.doc(n=-1)
    j.write()
    return j, ranges


def offsets(s, topic):
    return [r.offset for r in read_all(s.kafka, topic, 0)]


def raw_files(s):
    return sorted(s.data_dir.rglob('*.raw'))


def refused(s, *words):
    """The start fails in these words, and so does the check."""
    p = run_cli(['serve', '--data-dir', str(s.data_dir), '--kafka-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'], check=False)
    assert p.returncode == 1, (p.returncode, p.stderr)
    c = run_cli(['check', '--data-dir', str(s.data_dir)], check=False)
    assert c.returncode == 1, (c.returncode, c.stdout)
    for w in words:
        assert w.encode() in p.stderr, (w, p.stderr)
        assert w.encode() in c.stdout, (w, c.stdout)


def check(s, want=0):
    p = run_cli(['check', '--data-dir', str(s.data_dir)], check=False)
    assert (b': %d fault' % want) in p.stdout.splitlines()[-1], p.stdout
    return p.stdout


def test_fragments_that_are_away_for_a_start_are_not_given_up(make_server, topic):
    s = make_server(*FLAGS)
    j, _ = fill(s, topic)
    want = [d[1] for d in j.docs]
    s.stop()
    files = raw_files(s)
    os.rename(s.data_dir / 'fragments', s.data_dir / 'away')
    for _ in range(2):
        refused(s, 'journal %s: 4 of its 4 recorded fragments are missing' % j.name, '--accept-lost-fragments')
    os.rename(s.data_dir / 'away', s.data_dir / 'fragments')
    s.start()
    assert offsets(s, topic) == want and raw_files(s) == files
    s.stop()
    check(s)


def test_a_fragment_that_is_away_is_a_hole_until_it_is_back(make_server, topic, tmp_path):
    s = make_server(*FLAGS)
    j, ranges = fill(s, topic)
    want = [d[1] for d in j.docs]
    for i, (begin, end) in enumerate(ranges):
        s.stop()
        f = raw_files(s)[i]
        os.rename(f, tmp_path / 'away')
        assert b'its file is missing' in check(s, 1)
        s.start()
        assert offsets(s, topic) == [o for o in want if not begin <= o < end]
        s.restart()
        assert offsets(s, topic) == [o for o in want if not begin <= o < end]
        s.stop()
        assert b'its file is missing' in check(s, 1), 'not forgotten'
        os.rename(tmp_path / 'away', f)
        s.start()
        assert offsets(s, topic) == want
        with Conn(s.kafka) as c:
            assert c.list_offset(topic, 0, -2)['offset'] == 0
    s.stop()
    check(s)


def test_lost_fragments_are_accepted_once_and_served_again_when_they_are_back(make_server, topic):
    s = make_server(*FLAGS)
    j, ranges = fill(s, topic)
    want = [d[1] for d in j.docs]
    s.stop()
    os.rename(s.data_dir / 'fragments', s.data_dir / 'away')
    accepting = make_server(*FLAGS, '--accept-lost-fragments', data_dir=s.data_dir)
    assert offsets(accepting, topic) == want[-1:]
    accepting.stop()
    s.start()
    assert offsets(s, topic) == want[-1:]
    with Conn(s.kafka) as c:
        assert c.list_offset(topic, 0, -2)['offset'] == ranges[-1][1]
    s.stop()
    check(s, 4)
    os.rename(s.data_dir / 'away', s.data_dir / 'fragments')
    s.start()
    assert offsets(s, topic) == want
    s.stop()
    check(s)


def test_a_folder_that_goes_while_it_runs_makes_readers_wait(make_server, topic):
    s = make_server(*FLAGS, '--cache-bytes', '1MiB')
    j, ranges = fill(s, topic)
    want = [d[1] for d in j.docs]
    s.restart()    # nothing is open, nothing cached
    os.rename(s.data_dir / 'fragments', s.data_dir / 'away')
    with Conn(s.kafka) as c:
        assert c.fetch(topic, 0, 0)['error_code'] == STORAGE_ERROR
        r = c.fetch(topic, 0, ranges[-1][1])
        assert r['error_code'] == 0 and r['batches'], 'the growing fragment is there'
    os.rename(s.data_dir / 'away', s.data_dir / 'fragments')
    assert offsets(s, topic) == want
    s.stop()
    check(s)


@pytest.mark.parametrize('how', ['deleted', 'emptied'])
def test_a_lost_database_is_told_and_not_replaced(make_server, topic, how):
    s = make_server(*FLAGS)
    fill(s, topic)
    with Conn(s.kafka) as c:
        old = c.metadata(topic, 10)['topic_id']
    s.stop()
    files = raw_files(s)
    for f in s.data_dir.glob('sluice.db*'):
        f.unlink()
    if how == 'emptied':
        (s.data_dir / 'sluice.db').touch()
    refused(s, 'sluice.db is missing or empty', topic)
    assert raw_files(s) == files
    if how == 'deleted':
        assert not (s.data_dir / 'sluice.db').exists()
    # as the text says: begin anew, and clients see another topic
    for name in ('fragments', 'open'):
        os.rename(s.data_dir / name, s.data_dir / ('old-' + name))
    s.start()
    fill(s, topic)
    with Conn(s.kafka) as c:
        assert c.metadata(topic, 10)['topic_id'] != old
    s.stop()
    check(s)


def test_a_damaged_fragment_hides_none_of_its_neighbours(make_server, topic):
    s = make_server(*FLAGS)
    j, ranges = fill(s, topic)
    s.stop()
    begin, end = ranges[1]
    with open(raw_files(s)[1], 'r+b') as f:
        f.truncate((end - begin) // 2)
    s.start()
    with Conn(s.kafka) as c:
        whole = [o for _, o, *_ in j.docs if begin <= o < begin + (end - begin) // 2]
        damage = whole[-1] + 1 if whole else begin
        r = c.fetch(topic, 0, 0)
        assert r['error_code'] == 0
        assert [x.offset for b in r['batches'] for x in b.records] == [d[1] for d in j.docs if d[1] < damage]
        for at in (damage, (damage + end) // 2, end - 1):
            r = c.fetch(topic, 0, at)
            assert r['error_code'] == STORAGE_ERROR and not r['batches'], at
        for at in (end, ranges[2][1]):
            r = c.fetch(topic, 0, at)
            assert r['error_code'] == 0
            assert [x.offset for b in r['batches'] for x in b.records if x.offset >= at] == [d[1] for d in j.docs if d[1] >= at]
    s.stop()
    assert b'another size' in check(s, 1)
