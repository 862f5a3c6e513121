"""Fragments of every codec as a real broker stores them, read where they lie: the bytes come from the files, inflated and checked, and
damage to a file is served around by the broker. zstd needs a broker that was built with it."""
import json
import random
from pathlib import Path

import pytest

from docs_util import read_all
from gazette_lab import broker_bin, cluster
from kafka_raw import Conn

SUFFIX = {'none': '.raw', 'gzip': '.gz', 'snappy': '.sz', 'zstd': '.zst'}
MAGIC = {'gzip': b'\x1f\x8b', 'snappy': b'\xff\x06\x00\x00sNaPpY', 'zstd': b'\x28\xb5\x2f\xfd'}


@pytest.fixture(scope='module')
def lab(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp('codecs') / 'lab') as c:
        yield c


def ways(s):
    m = s.metrics()
    return m['sluice_gazette_read_bytes_total{way="fragment"}'], m['sluice_gazette_read_bytes_total{way="broker"}']


def flags(c, codec, *more):
    return ['--store', 'gazette://' + c.brokers, '--fragment-store', 'file:///', '--fragment-codec', codec, *more]


def stored(c, topic):
    """Stops and starts the broker: everything is in the store then."""
    c.stop()
    c.start()
    return sorted(c.store.glob('%s/*/*' % topic))


def need_codec(codec):
    """A broker built with the tag nozstd lacks that codec: appends to such a journal hang."""
    if codec == 'zstd' and b'github.com/DataDog/zstd' not in Path(broker_bin()).read_bytes():
        pytest.skip('needs a Gazette broker: GAZETTE_BIN names one built with zstd')


@pytest.mark.parametrize('codec', ['none', 'gzip', 'snappy', 'zstd'])
def test_stored_fragments_are_read_where_they_lie(lab, make_server, until, topic, codec):
    need_codec(codec)
    rng = random.Random(codec)
    s = make_server(*flags(lab, codec, '--fragment-bytes', '6MiB'))
    want = []
    for i in range(7):    # commits of more than 1 MiB: one gzip member each
        docs = [{'n': i * 2000 + k, 'text': '%030x' % rng.getrandbits(120) * rng.randrange(1, 60)} for k in range(2000)]
        s.publish(topic, docs)
        want += [d['n'] for d in docs]
    s.stop()
    files = stored(lab, topic)
    assert len(files) >= 2 and {f.suffix for f in files} == {SUFFIX[codec]}, files
    assert all(f.read_bytes().startswith(MAGIC.get(codec, b'{')) for f in files)
    if codec == 'gzip':
        assert max(f.read_bytes().count(b'\x1f\x8b\x08') for f in files) >= 2, 'several members'

    d = make_server(*flags(lab, codec, '--fragment-root', str(lab.store)))
    assert [json.loads(r.value)['n'] for r in read_all(d.kafka, topic, 0)] == want
    fragment, broker = ways(d)
    length = d.topics()[topic]['partitions'][0]['high_watermark']
    assert fragment >= length * 0.99, (fragment, broker, length)
    assert broker < 1 << 20, 'all but the tail came from the files'
    d.stop()

    b = make_server(*flags(lab, codec, '--fragments-by-broker'))
    assert [json.loads(r.value)['n'] for r in read_all(b.kafka, topic, 0)] == want
    assert ways(b)[0] == 0
    b.stop()

    # a damaged file: its SHA-1 (or its length) tells, and the broker is asked, which reads the same file: refused, not served wrong
    if codec != 'none':
        bad = max(files, key=lambda f: f.stat().st_size)
        kept = bad.read_bytes()
        bad.write_bytes(kept[:len(kept) // 2] + bytes([kept[len(kept) // 2] ^ 0x55]) + kept[len(kept) // 2 + 1:])
        x = make_server(*flags(lab, codec, '--fragment-root', str(lab.store)))
        with Conn(x.kafka, timeout=60) as c:
            r = c.fetch(topic, 0, int(bad.name.split('-')[0], 16), max_wait_ms=100)
            got = [json.loads(record.value)['n'] for b in r['batches'] or [] for record in b.records]
            assert set(got) <= set(want)
        assert 'gazette.direct' in x.log.read_text()
        bad.write_bytes(kept)
