"""Spark Structured Streaming over the Kafka connector, decoding by from_avro with the schema that the registry serves: what comes
out is what the JSON source says. Spark is 300 MB and slow to start: only in long runs."""
import json

import pytest

import registry_lab
from clients import LAB_DIR, run
from scale import LONG

pytestmark = pytest.mark.skipif(not LONG, reason='Spark takes minutes to install and to run: only with SLUICE_TEST_LONG=1')
TOKEN = 'tok'
TOPICS, DOCS = 8, 40
HAND = {'schema': {'type': 'object', 'required': ['id'], 'properties': {'id': {'type': 'integer'}, 'name': {'type': 'string'}}}, 'key': ['/id']}


@pytest.mark.parametrize('spark', ['35', '4'])
def test_from_avro_decodes_what_the_json_source_says(make_server, tmp_path, spark, figures):
    made = {}
    for m in registry_lab.collections(9000, DOCS):
        if len(made) == TOPICS:
            break
        made['t%d' % len(made)] = m
    collections = {'c/' + t: m.definition for t, m in made.items()}
    tombstones = [{'id': 1, 'name': 'x'}, {'id': 1, '_meta': {'op': 'd'}}, {'id': 2}]
    catalog = registry_lab.write_catalog(tmp_path / 'catalog.json', dict(collections, **{'c/hand': HAND}),
                                         {'t': (TOKEN, {**{t: 'c/' + t for t in made}, 'hand': 'c/hand'}, {})})
    s = make_server('--catalog', catalog, '--registry-listen', 'sasl://127.0.0.1:0', start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    for t, m in made.items():
        s.publish('c/' + t, [d[0] for d in m.docs])
    s.publish('c/hand', tombstones)
    registry = 'http://127.0.0.1:%d' % json.loads(s.ports_file.read_text())['registry']
    out = run([LAB_DIR / 'spark-run.sh', spark, LAB_DIR / 'py/spark_avro.py', s.bootstrap, registry, ','.join([*made, 'hand']), tmp_path / 'spark'],
              timeout=900, check=False, env={'LAB_LOGIN': json.dumps({'user': 't', 'password': TOKEN}), 'TZ': 'UTC'})
    causes = [x for x in out.stderr.decode(errors='replace').splitlines() if 'Exception' in x or 'Error' in x]
    assert out.returncode == 0, causes
    lines = [json.loads(x) for x in out.stdout.decode().splitlines() if x.startswith('{')]
    version, records = lines.pop()['spark'], {}
    for r in lines:
        records.setdefault(r['topic'], []).append(r)
    n = 0
    for t, m in made.items():
        for r, (text, value, key) in zip(records[t], m.docs, strict=True):
            assert (r['key'], r['value']) == (key, value), (t, m.definition, text)
            n += 1
    assert [(r['key']['_flow_key']['p1'], r['value']) for r in records['hand']] == [(1, {'id': 1, 'name': 's:x'}), (1, None), (2, {'id': 2, 'name': None})]
    figures('Spark %s: %d records of %d collections equal' % (version, n, len(made)))
