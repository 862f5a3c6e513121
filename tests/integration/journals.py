"""Journals written byte by byte, by the operator's routes (serve --journal-admin), and the list of what clients must see
of them. A document's clock, flags and producer are the test's to choose."""
import json
import time
import urllib.parse

import pytest

from docs_util import Oracle
from kafka_raw import Record
from sluice import clock_ms
from stand_in import STORE, broker_of

CONTINUE, ACK, CONTROL, OUTSIDE = 1, 2, 4, 0
EPOCH_100NS = 122192928000000000


def clock_of(ms, tick=0):
    """The clock of a Unix time in ms, plus ticks."""
    return (ms * 10000 + EPOCH_100NS << 4) + tick


def uuid_text(clock, flags, producer=b'\x01\x02\x03\x04\x05\x07'):
    b = (clock >> 4 & 0xffffffff).to_bytes(4, 'big') + (clock >> 36 & 0xffff).to_bytes(2, 'big') + \
        (0x1000 | clock >> 52).to_bytes(2, 'big') + bytes([0x80 | (clock & 15) << 2 | flags >> 8 & 3, flags & 0xff]) + producer
    h = b.hex()
    return '-'.join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))


class Journal:
    """One journal of a collection of its own, and the oracle of its visible documents."""

    def __init__(self, srv, collection, labels=None, name=None, closes=False, **spec):
        """closes: its fragments will be closed and removed by the test."""
        self.srv, self.collection, self.name = srv, collection, name or collection + '/pivot=00'
        self.labels = {'estuary.dev/collection': collection, 'estuary.dev/key-begin': '00000000', 'estuary.dev/key-end': 'ffffffff', **(labels or {})}
        self.spec, self.pending, self.at = spec, [], 0
        self.docs = []    # (begin, offset, clock, value) of content
        self.now = clock_of(int(time.time() * 1000) - 3600 * 1000)
        self.producer = b'\x01\x02\x03\x04\x05\x07'
        broker = broker_of(srv.data_dir)
        if closes and broker is not None:
            broker.prepare(self.name)
        self.put(there=closes and STORE == 'real')

    def url(self, tail='', **q):
        return '/v1/journals/%s%s%s' % (urllib.parse.quote(self.name, safe=''), tail, '?' + urllib.parse.urlencode(q) if q else '')

    def call(self, method, url, body=None, want=200):
        status, out, _ = self.srv.request(method, url, body, {'Content-Type': 'application/json' if method == 'PUT' else 'application/x-ndjson'})
        if status in (404, 405, 501) and b'no such page' in out or status == 405:
            pytest.skip('the server has no operator routes on journals yet')
        assert status == want, (status, out[:300])
        broker = broker_of(self.srv.data_dir)
        if broker is not None and method == 'DELETE' and url == self.url():
            broker.forget(self.name)    # the local store does so by itself
        return json.loads(out) if out.strip() else {}

    def put(self, there=False, **labels):
        """there: the brokers have it already, and the server will hear of it."""
        self.labels.update(labels)
        body = dict(self.spec, labels=self.labels)
        got, end = self.srv.request('GET', self.url()), time.monotonic() + 30
        while there and got[0] == 404 and time.monotonic() < end:
            time.sleep(0.02)
            got = self.srv.request('GET', self.url())
        if got[0] == 200:
            body['expect_mod_revision'] = json.loads(got[1])['mod_revision']
        self.call('PUT', self.url(), json.dumps(body).encode())

    def tick(self, n=16):
        self.now += n
        return self.now

    def doc(self, size=0, clock=None, flags=CONTINUE, producer=None, text=None, **fields):
        """A content document; size counts its newline."""
        if text is None:
            clock = self.tick() if clock is None else clock
            head = '{"_meta":{"uuid":"%s"}' % uuid_text(clock, flags, producer or self.producer)
            body = ''.join(',' + json.dumps(k) + ':' + json.dumps(v) for k, v in fields.items())
            pad = size - len(head) - len(body) - len(',"p":""}') - 1
            text = head + body + (',"p":"' + 'x' * max(pad, 0) + '"}')
        raw = text if isinstance(text, bytes) else text.encode()
        return self.line(raw, clock or 0)

    def line(self, raw, clock=0, shown=None):
        """Any line that is content. shown: the value that clients get."""
        begin = self.at
        self.raw(raw + b'\n')
        self.docs.append((begin, self.at - 1, clock, raw if shown is None else shown))
        return self

    def ack(self, clock=None, producer=None, flags=ACK):
        return self.raw(b'{"_meta":{"uuid":"%s","ack":true}}\n' % uuid_text(self.tick() if clock is None else clock, flags, producer or self.producer).encode())

    def raw(self, b):
        """Bytes that no client sees."""
        self.pending.append(b)
        self.at += len(b)
        return self

    def write(self):
        """Appends what is pending, in pieces below the limit of a request."""
        body = b''.join(self.pending)
        self.pending, a = [], None
        while body:
            cut = len(body) if len(body) <= 16 << 20 else body.rindex(b'\n', 0, 16 << 20) + 1
            if cut == 0:
                cut = body.index(b'\n') + 1
            a = self.call('POST', self.url('/content'), body[:cut])
            body = body[cut:]
        if a is not None:
            assert a['end'] == self.at, (a, self.at)
        return self

    def close_fragment(self):
        """Where a broker closes fragments and removes them, the stand-in is told to."""
        broker = broker_of(self.srv.data_dir)
        if broker is not None:
            broker.close(self.name)
            return self.call('GET', self.url())['fragments']
        return self.call('POST', self.url('/close'))['fragments']

    def remove_until(self, end):
        broker = broker_of(self.srv.data_dir)
        if broker is not None:
            broker.prune(self.name, sum(f['end'] <= end for f in self.call('GET', self.url())['fragments']))
            return {'fragments': self.call('GET', self.url())['fragments']}
        return self.call('DELETE', self.url('/fragments', end=end))

    def oracle(self, bound=0, start=0):
        return Oracle([Record(o, clock_ms(c) if c else -1, None, v) for _, o, c, v in self.docs if c >= bound and o >= start])

    @property
    def hw(self):
        return self.docs[-1][1] + 1 if self.docs else 0


def first_at_time(records, ms):
    return next((r for r in records if r.timestamp >= ms), None)
