"""JSON schemas that people wrote. Each compiles to Avro that parses strictly, or is refused with a reason; the share and
the reasons are printed. Documents that the JSON Schema test suite calls valid are never refused for their shape."""
import collections
import glob
import json
import os
import subprocess

import pytest

from test_avro import LAB, READERS, dump, read

CORPORA = os.path.join(LAB, 'avro', 'corpora')
# valid by the suite, but beyond what an Avro type holds, by a rule of docs/avro.md
BEYOND = ('an integer beyond 64 bits',)


@pytest.fixture(scope='module', autouse=True)
def corpora():
    p = subprocess.run([os.path.join(READERS, '..', 'avro-corpora.sh')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if p.returncode != 0:
        pytest.skip('the packages of schemas could not be fetched: %s' % p.stdout.decode()[-200:].replace('\n', ' '))


def case(schema, docs=()):
    """A collection with the schema under /v, where every kind of schema may stand."""
    return {'schema': {'type': 'object', 'properties': {'id': {'type': 'string', 'default': ''}, 'v': {'$ref': 'lab:schema'}}},
            'refs': {'lab:schema': schema}, 'key': ['/id'], 'docs': ['{"id":"1","v":%s}' % json.dumps(d) for d in docs]}


def test_schemas_of_schemastore_compile_or_say_why_not(figures):
    files = sorted(glob.glob(os.path.join(CORPORA, 'schemastore', '**', 'jsondata', '*.json'), recursive=True))
    assert len(files) > 500
    cases = []
    for f in files:
        with open(f, encoding='utf-8-sig') as fp:
            try:
                cases.append(case(json.load(fp)))
            except ValueError:
                continue
    answers = dump(cases)
    reasons = collections.Counter()
    good = []
    for a in answers:
        if 'error' in a:
            assert a['reason'] and a['error'] in ('E_INVALID', 'E_LIMIT', 'E_SYNTAX'), a
            reasons[a['reason'].split(':')[0]] += 1
        else:
            good.append({'schema': a['value_schema'], 'data': []})
    for name in ('java', 'fastavro', 'node', 'go'):
        for c, got in zip(good, read(name, good)):
            assert got['ok'], (name, got['error'], c['schema'][:2000])
    raw = sum(any('JSON text' in n['text'] for n in a.get('notes', ())) for a in answers)
    figures('%d of %d compile (%.1f %%), %d with a part as JSON text; refused: %s' %
            (len(good), len(cases), 100 * len(good) / len(cases), raw, dict(reasons)))
    assert len(good) > 0.85 * len(cases)


def test_valid_documents_of_the_test_suite_are_served(figures):
    cases, reasons = [], collections.Counter()
    for f in sorted(glob.glob(os.path.join(CORPORA, 'suite', 'package', 'tests', 'draft4', '**', '*.json'), recursive=True)):
        if os.path.basename(f) == 'format.json':
            continue    # formats are held to: what is no date does not fit a date
        with open(f, encoding='utf-8') as fp:
            for group in json.load(fp):
                cases.append((f, case(group['schema'], [t['data'] for t in group['tests'] if t['valid']])))
    assert len(cases) > 60
    n, data = 0, []
    for (f, c), a in zip(cases, dump([c for _, c in cases])):
        if 'error' in a:
            reasons[a['reason']] += 1
            continue
        for doc, rec in zip(c['docs'], a['records']):
            assert 'error' not in rec or rec['reason'] in BEYOND, (f, c, doc, rec)
            n += 1
        data.append({'schema': a['value_schema'], 'data': [r['value'][10:] for r in a['records'] if 'error' not in r]})
    for name in ('fastavro', 'java'):
        for d, got in zip(data, read(name, data)):
            assert got['ok'], (name, got['error'], d['schema'])
    figures('%d of %d schemas, %d documents; refused: %s' % (len(data), len(cases), n, dict(reasons)))
    assert len(data) > 0.9 * len(cases)
