"""Documents for tests, and the oracle of what is served: every visible document of a partition with its bytes."""
import bisect
import time

from kafka_raw import EARLIEST, LATEST, Conn
from sluice import dumps

STAMP = len('"_meta":{"uuid":"') + 36 + len('"},')


def doc(n, /, **fields):
    """JSON text that takes n bytes in the journal, newline and UUID included (n >= 65 with no fields)."""
    text = dumps(dict(fields, p=''))
    pad = n - 1 - STAMP - len(text)
    assert pad >= 0, 'a document of %d bytes is too small' % n
    return text[:-2] + 'x' * pad + '"}'


def place(c, topic, partition, which):
    """The earliest or latest offset; asked again, as a client does, while it is not known for sure."""
    end = time.monotonic() + 30
    while True:
        r = c.list_offset(topic, partition, which)
        if r['error_code'] not in (5, 6, 78) or time.monotonic() > end:
            assert r['error_code'] == 0, '%s: %s' % (topic, r)
            return r['offset']
        time.sleep(0.02)


def read_all(port, topic, partition, version=11, **kw):
    """All records that a client sees, by raw fetches from the earliest offset to the high watermark."""
    out = []
    with Conn(port) as c:
        at = place(c, topic, partition, EARLIEST)
        end = place(c, topic, partition, LATEST)
        while at < end:
            p = c.fetch(topic, partition, at, version, max_wait_ms=2000, **kw)
            assert p['error_code'] == 0, p['error_code']
            assert p['batches'], 'nothing at %d below the high watermark %d' % (at, end)
            out += [r for b in p['batches'] if not b.control for r in b.records if r.offset >= at]
            nxt = p['batches'][-1].last + 1
            assert nxt > at, 'a fetch at %d ends at %d' % (at, nxt - 1)
            at = nxt
    return out


class Oracle:
    """What rule O2 says about one partition, from the list of its visible documents."""

    def __init__(self, records):
        self.records = records
        self.offsets = [r.offset for r in records]

    def first_from(self, offset):
        i = bisect.bisect_left(self.offsets, offset)
        return self.records[i] if i < len(self.records) else None

    @staticmethod
    def begin(record):
        """O1: the offset is the last byte, the newline; the value is what stands before it."""
        return record.offset - len(record.value)
