"""Registry clients over catalogs that change a topic's schema while they read: what they got before stays what it was, what comes then is
decoded by the new id; bytes that were kept are decoded by a client that starts later, after a restart of the gateway too."""
import base64
import http.client
import json
import signal
import struct
import time

import auth_lab
import pytest

import registry_lab
from kafka_raw import Conn
from registry_lab import CLIENTS, Reader
from scale import LONG, QUICK
from sluice import Server

TOKEN = 'pw:with:colons'
DOCS = 10
NAME = [{'type': 'string'}, {'type': ['string', 'integer']}, {'type': ['string', 'integer']}]
MORE = [{}, {'extra': {'type': 'number'}}, {'extra': {'type': 'number'}, 'list': {'type': 'array', 'items': {'type': 'string', 'format': 'date'}}}]


def doc(version, n):
    """A document that fits the schemas from this version on, and how it reads by its own."""
    d = [{'name': 'n%d' % n}, {'name': n, 'extra': n + 0.5}, {'name': 'x', 'extra': -1, 'list': ['1970-01-0%d' % (1 + n % 9)]}][version]
    return dict(d, id=n)


def seen(d, version):
    """The document by the schema of a version, spelled as the readers spell."""
    name = d['name']
    out = {'id': d['id'], 'name': 's:' + name if version == 0 else {'json': 's:' + json.dumps(name)}}
    if version > 0:
        out['extra'] = 'd:' + struct.pack('>d', d['extra']).hex() if 'extra' in d else None
    if version > 1:
        out['list'] = [int(x[-2:]) - 1 for x in d['list']] if 'list' in d else None
    return out


def write(path, version):
    schema = {'type': 'object', 'required': ['id', 'name'], 'properties': {'id': {'type': 'integer'}, 'name': NAME[version], **MORE[version]}}
    return registry_lab.write_catalog(path, {'c/h': {'schema': schema, 'key': ['/id']}}, {'t': (TOKEN, {'h': 'c/h'}, {})})


def chosen():
    return [c for c in CLIENTS if not QUICK or CLIENTS[c][0] == 'python']


class World:
    def __init__(self, work):
        self.catalog = work / 'catalog.json'
        write(self.catalog, 0)
        self.server = s = Server(work / 'data', work, ['--catalog', str(self.catalog), '--registry-listen', 'sasl://127.0.0.1:0'])
        s.listen = 'sasl://127.0.0.1:0'
        s.start()
        self.docs, self.ids, self.kept, self.bad, self.readers, self.start = [], [], [], {}, {}, 0

    @property
    def registry(self):
        return 'http://127.0.0.1:%d' % json.loads(self.server.ports_file.read_text())['registry']

    def reader(self, client, count, stdin=None):
        login = {'mechanism': 'PLAIN', 'user': 't', 'password': TOKEN}
        kafka = '-' if stdin is not None else self.server.bootstrap
        return Reader(client, kafka, self.registry, 'h', count, login, stdin)

    def latest(self):
        c = http.client.HTTPConnection(self.registry.removeprefix('http://'), timeout=30)
        c.request('GET', '/subjects/h-value/versions/latest', headers={
            'Authorization': 'Basic ' + base64.b64encode(('t:' + TOKEN).encode()).decode()})
        got = json.loads(c.getresponse().read())
        c.close()
        return got['version'], got['id']

    def each(self, what):
        """For each client that has not failed yet; its failure is its own test's."""
        for c in chosen():
            if c not in self.bad:
                try:
                    what(c)
                except (Exception, pytest.skip.Exception) as e:    # noqa: BLE001
                    self.bad[c] = e

    def publish(self, version):
        docs = [doc(version, len(self.docs) + i) for i in range(DOCS)]
        self.server.publish('c/h', docs)
        self.docs += docs
        with Conn(self.server.kafka) as c:
            auth_lab.login(c, 't', TOKEN, 'PLAIN')
            got, _ = c.records_from('h', 0, self.start)
        self.start = got[-1].offset + 1
        assert len(got) == DOCS
        self.kept += [r.value for r in got]
        self.ids.append(self.latest()[1])

    def change(self, version):
        write(self.catalog, version)
        self.server.proc.send_signal(signal.SIGHUP)
        end = time.monotonic() + 30
        while self.latest()[0] != version + 1:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    w = World(tmp_path_factory.mktemp('history'))
    try:
        w.publish(0)

        def begin(client):
            w.readers[client] = w.reader(client, 3 * DOCS)
        w.each(begin)
        w.each(lambda c: w.readers[c].wait(1 + DOCS))
        for version in (1, 2):
            w.change(version)
            w.publish(version)
            w.each(lambda c: w.readers[c].wait(1 + (version + 1) * DOCS))
        w.each(lambda c: w.readers[c].all())    # Java's takes its leave of the group, which a restart would hold up
        w.server.restart()
        yield w
        w.server.stop()
    finally:
        for r in w.readers.values():
            r.end()
        w.server.kill()


@pytest.mark.parametrize('client', chosen())
def test_a_client_reads_on_while_the_schema_changes(world, client):
    if client in world.bad:
        raise world.bad[client]
    head, *records = world.readers[client].all()
    assert len(set(world.ids)) == 3 and head['latest'] == world.ids[0]
    for n, (r, d) in enumerate(zip(records, world.docs, strict=True)):
        assert (r['id'], r['value']) == (world.ids[n // DOCS], seen(d, n // DOCS)), n
        assert r['key'] == {'_flow_key': {'p1': d['id']}}


@pytest.mark.parametrize('client', chosen() + (list(registry_lab.KEPT_ONLY) if LONG else []))
def test_bytes_that_were_kept_are_decoded_later(world, client):
    kept = ''.join(b.hex() + '\n' for b in world.kept).encode()
    lines = world.reader(client, 0, kept).all()
    for n, (r, d) in enumerate(zip(lines, world.docs, strict=True)):
        assert (r['id'], r['value']) == (world.ids[n // DOCS], seen(d, n // DOCS)), n


@pytest.mark.parametrize('client', chosen())
def test_a_client_that_starts_later_reads_all_by_the_schema_of_now(world, client):
    head, *records = world.reader(client, 3 * DOCS).all()
    assert head['latest'] == world.ids[-1]
    assert [(r['id'], r['value']) for r in records] == [(world.ids[-1], seen(d, 2)) for d in world.docs]
