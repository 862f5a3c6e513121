"""Real documents, of the npm package vega-datasets (fetched by version when the test runs, not part of this tree), go
in and come out byte by byte through every client that needs no group. Equal means: the value without the leading
_meta member, cut out as text, is the document's own text in the file, without its line breaks."""
import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

import clients
from scale import QUICK
from sluice import ndjson, strip_meta

VERSION = '2.11.0'
SHA256 = 'd888f3d9f0a9799a2f6066e5dbe5ed40eb86f75b4568b493d9bdd55e9652050a'

SETS = {    # file, where its documents are, partitions, key, how it is published
    'movies': ('movies.json', None, 1, None, 'post-array'),
    'earthquakes': ('earthquakes.json', 'features', 2, '/id', 'post-array'),
    'flights-2k': ('flights-2k.json', None, 3, '/origin', 'cli'),
    'flights-200k': ('flights-200k.json', None, 4, None, 'post'),
}
SLOW = {'java-console-partition', 'aiokafka', 'kafka-python-2.0', 'kafka-python-ng', 'kafkajs-lowlevel', 'platformatic', 'kafka-go', 'confluent-kafka-1.9',
        'confluent-kafka-2.3', 'sarama'}


@pytest.fixture(scope='module')
def package():
    """The folder data/ of the package, kept between runs beside the lab."""
    at = clients.LAB / ('vega-datasets-' + VERSION)
    if not (at / 'data/movies.json').exists():
        clients.need('npm', 'node-install.sh')
        at.mkdir(parents=True, exist_ok=True)
        p = subprocess.run(['npm', 'pack', '--silent', 'vega-datasets@' + VERSION], cwd=at, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=180)
        if p.returncode:
            pytest.skip('vega-datasets cannot be fetched: ' + p.stderr[-100:].decode(errors='replace'))
        tgz = at / ('vega-datasets-%s.tgz' % VERSION)
        assert hashlib.sha256(tgz.read_bytes()).hexdigest() == SHA256, 'another package than the one that was pinned'
        with tarfile.open(tgz) as t:
            for name in ('movies', 'earthquakes', 'flights-2k', 'flights-200k'):
                m = t.getmember('package/data/%s.json' % name)
                m.name = 'data/%s.json' % name
                t.extract(m, at)
        os.unlink(tgz)
    return Path(at) / 'data'


def load(package, name):
    """(the array as it stands in the file, its documents as their own source text on one line)."""
    file, inside, *_ = SETS[name]
    text = (package / file).read_text()
    start = text.index('[', text.index('"%s"' % inside)) if inside else text.index('[')
    docs, at, decoder = [], start + 1, json.JSONDecoder()
    while True:
        while text[at] in ' \t\r\n,':
            at += 1
        if text[at] == ']':
            return text[start:at + 1].encode(), docs
        _, end = decoder.raw_decode(text, at)
        docs.append(text[at:end].replace('\r', '').replace('\n', '').encode())
        at = end


published = {}


def topic_of(srv, package, name):
    """Publishes a set once for each server process; returns (topic, documents)."""
    if published.get(name, (None,))[0] == srv.proc.pid:
        return 'vega-' + name, published[name][1]
    topic, (array, docs) = 'vega-' + name, load(package, name)
    _, _, parts, key, how = SETS[name]
    if how == 'cli':
        args = ['--partitions', str(parts)] + (['--key', key] if key else [])
        srv.cli('publish', topic, *args, stdin=ndjson(docs))
    elif how == 'post-array':
        srv.publish(topic, array, parts, key, content_type='application/json')
    else:
        for i in range(0, len(docs), 20000):
            srv.publish(topic, ndjson(docs[i:i + 20000]), parts, key)
    published[name] = (srv.proc.pid, docs)
    return topic, docs


def check(recs, docs, parts, key):
    assert len(recs) == len(docs)
    values = [strip_meta(r.value) for r in recs]
    by_part = {}
    for r in recs:
        by_part.setdefault(r.partition, []).append(r.offset)
    assert set(by_part) <= set(range(parts))
    for offsets in by_part.values():
        assert offsets == sorted(set(offsets)), 'offsets of a partition rise'
    if parts == 1:
        assert values == docs
        return
    assert sorted(values) == sorted(docs)
    if key:    # documents of one key: one partition, in the order of publishing
        def of(d):
            return json.dumps(json.loads(d)[key[1:]])
        want, got, where = {}, {}, {}
        for d in docs:
            want.setdefault(of(d), []).append(d)
        for r, v in zip(recs, values):
            got.setdefault(of(v), []).append(v)
            assert where.setdefault(of(v), r.partition) == r.partition
        assert got == want
    else:    # each partition is a subsequence of what was published
        at = {}
        place = {}
        for i, d in enumerate(docs):
            place.setdefault(d, []).append(i)
        for r, v in zip(recs, values):
            nxt = next((i for i in place[v] if i > at.get(r.partition, -1)), None)
            assert nxt is not None, 'partition %d is out of order at offset %d' % (r.partition, r.offset)
            at[r.partition] = nxt


@pytest.mark.parametrize('client', list(clients.DIRECT))
@pytest.mark.parametrize('name', ['movies', 'earthquakes', 'flights-2k'])
def test_real_documents_come_back_byte_equal(srv, package, name, client):
    if QUICK and client in SLOW:
        pytest.skip('quick profile')
    topic, docs = topic_of(srv, package, name)
    check(clients.DIRECT[client](srv.bootstrap, topic), docs, *SETS[name][2:4])


@pytest.mark.parametrize('client', ['kcat', 'confluent-kafka', 'java-assign', 'franz-go', 'sarama', 'kafka-python'])
def test_200000_real_documents_come_back_byte_equal(srv, package, client, figures):
    if QUICK:
        pytest.skip('quick profile')
    topic, docs = topic_of(srv, package, 'flights-200k')
    recs = clients.DIRECT[client](srv.bootstrap, topic)
    figures('%d documents' % len(recs))
    check(recs, docs, *SETS['flights-200k'][2:4])


def test_sluice_read_shows_the_same_documents(srv, package):
    topic, docs = topic_of(srv, package, 'movies')
    journal = srv.topics()[topic]['partitions'][0]['journal']
    out = srv.cli('read', journal).stdout
    found = 0
    for d in docs[:50]:
        found += d[1:] in out
    assert found == 50
