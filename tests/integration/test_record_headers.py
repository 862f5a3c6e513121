"""Field report 23: records with no header, one and several, with values, with null and with an empty string inside, are
the same to every client: their number, order and bytes, and null apart from empty."""
import json
import os
import re
from base64 import b64encode as b64

import pytest

import clients
from docs_util import read_all
from journals import Journal, clock_of, uuid_text
from test_truncation import TRUNCATED, begin, complete, hex16, until

PYTHON = """
import json, sys
from base64 import b64encode as b64
lib, b, topic, n = sys.argv[1:]
out = []
def see(offset, value, headers):
    out.append([offset, None if value is None else b64(value).decode(), [[k, b64(v).decode()] for k, v in headers or []]])
if lib == 'confluent':
    from confluent_kafka import Consumer, TopicPartition
    c = Consumer({'bootstrap.servers': b, 'group.id': 'g'})
    c.assign([TopicPartition(topic, 0, 0)])
    while len(out) < int(n):
        m = c.poll(20)
        assert m is not None and m.error() is None, m and m.error()
        see(m.offset(), m.value(), m.headers())
else:
    from kafka import KafkaConsumer, TopicPartition
    c = KafkaConsumer(bootstrap_servers=b, consumer_timeout_ms=20000)
    c.assign([TopicPartition(topic, 0)])
    c.seek(TopicPartition(topic, 0), 0)
    while len(out) < int(n):
        m = next(c)
        see(m.offset, m.value, m.headers)
print(json.dumps(out))
"""
KAFKAJS = """
const { Kafka, logLevel } = require('module').createRequire((process.env.LAB || '/opt/lab') + '/node/')('kafkajs');
const [b, topic, n] = process.argv.slice(1), out = [];
const c = new Kafka({ brokers: [b], logLevel: logLevel.NOTHING }).consumer({ groupId: 'headers' });
(async () => {
  await c.connect();
  await c.subscribe({ topic, fromBeginning: true });
  await c.run({ eachMessage: async ({ message: m }) => {
    out.push([+m.offset, m.value === null ? null : m.value.toString('base64'), Object.entries(m.headers).map(([k, v]) => [k, v.toString('base64')])]);
    if (out.length === +n) { console.log(JSON.stringify(out)); process.exit(0); }
  } });
})();
setTimeout(() => process.exit(1), 60000);
"""


def by_python(lib):
    def read(b, topic, n):
        clients.need(clients.PY['main'], 'py-install.sh main')
        return json.loads(clients.run([clients.PY['main'], '-c', PYTHON, lib, b, topic, str(n)]).stdout)
    return read


def by_kafkajs(b, topic, n):
    clients.need(os.path.join(clients.LAB, 'node', 'node_modules', 'kafkajs'), 'node-install.sh')
    return json.loads(clients.run(['node', '-e', KAFKAJS, b, topic, str(n)]).stdout)


def headers_by_java(b, topic, n):
    """[(offset, headers)] as the console prints them; values are bytes that may hold anything."""
    show = ['--formatter-property', 'print.offset=true', '--formatter-property', 'print.headers=true']
    text = clients.kt('console-consumer', '--bootstrap-server', b, '--topic', topic, '--partition', '0', '--offset', '0', '--max-messages', str(n),
                      *show).stdout
    return [(int(offset), [] if h == b'NO_HEADERS' else [[k.decode(), b64(v).decode()] for k, v in (x.split(b':', 1) for x in h.split(b','))])
            for offset, h in re.findall(rb'Offset:(\d+)\t([^\t]*)\t', text)]


def headers(r):
    return [[k.decode(), b64(v).decode()] for k, v in r.headers]


@pytest.fixture
def topics(make_server, tmp_path):
    """A server whose records have no, one or several headers, and what a raw reader sees of them."""
    def make(deletions, key):
        schema = {'type': 'object', 'required': ['id'], 'properties': {'id': {'type': 'integer'}, 'v': {'type': 'string'}, '_meta': {
            'type': 'object', 'properties': {'op': {'type': 'string'}, 'uuid': {'type': 'string'}}}}}
        config = {'deletions': deletions, 'sluice': {'key_format': key, 'truncation_signal': 'headers', 'on_schema_error': 'raw'}}
        f = tmp_path / 'c.json'
        f.write_text(json.dumps({'collections': {'c': {'schema': schema, 'key': ['/id']}}, 'materializations': {'t': {
            'endpoint': {'dekaf': {'variant': 'v', 'config': config}}, 'bindings': [{'source': 'c', 'fields': {'recommended': False, 'include': ['v']}}]}}}))
        s = make_server('--journal-admin', '--catalog', str(f))
        j = Journal(s, 'c')
        b = clock_of(1_780_000_000_000)

        def doc(clock, text):
            j.raw(b'{"_meta":{"uuid":"%s"%s}%s}\n' % (uuid_text(clock, 0).encode(), b',"op":"d"' if 'DELETE' in text else b'',
                                                      text.replace('DELETE', '').encode()))
        begin(j, b)
        doc(b + 16, ',"id":1,"v":"x"')          # behind a boundary: several headers
        doc(b + 32, ',"id":2,"v":""')
        doc(b + 48, ',"id":1DELETE')
        doc(b + 64, ',"id":"no integer"')       # a header that says why
        doc(b + 80, ',"id":3,"v":"\\u00e9"')
        complete(j, b + 96, b)
        doc(b + 112, ',"id":4')
        j.write().put(**{TRUNCATED: hex16(b)})
        until(lambda: s.topics().get('c', {}).get('truncated_at') == hex16(b))
        return s, read_all(s.kafka, 'c', 0)
    return make


@pytest.mark.parametrize('read', [by_python('confluent'), by_python('kafka-python'), by_kafkajs], ids=['librdkafka', 'kafka-python', 'kafkajs'])
@pytest.mark.parametrize('deletions', ['header', 'kafka'])
def test_23_headers_and_nulls_are_the_same_to_all_clients(topics, read, deletions):
    s, raw = topics(deletions, 'avro')
    want = [[r.offset, None if r.value is None else b64(r.value).decode(), headers(r)] for r in raw]
    counts = [len(r.headers) for r in raw]
    assert len(raw) == 6 and max(counts) >= 2, counts
    if deletions == 'header':
        assert counts.count(1) >= 3 and None not in [r.value for r in raw], counts
    else:
        assert 0 in counts and [r.value for r in raw].count(None) == 1 and raw[2].value is None, counts
    assert read(s.bootstrap, 'c', len(raw)) == want


@pytest.mark.parametrize('deletions', ['header', 'kafka'])
def test_23_java_and_franz_go_read_the_same_records(topics, deletions):
    """Both decode each header to get to the next record; the Java console shows them."""
    s, raw = topics(deletions, 'json')
    for read in (clients.read_java_direct, clients.read_franz):
        assert [(r.offset, r.key, r.value) for r in read(s.bootstrap, 'c')] == [(r.offset, r.key, r.value) for r in raw]
    assert headers_by_java(s.bootstrap, 'c', len(raw)) == [(r.offset, headers(r)) for r in raw]
