"""JSON schemas that people wrote, from ten packages. Each compiles to Avro that parses strictly, or is refused with a reason; the share
and the reasons are printed. Documents that the JSON Schema test suite calls valid are never refused for their shape, in any draft."""
import base64
import collections
import glob
import json
import os
import re
import struct
import subprocess
import urllib.request

import pytest

import auth_lab
import registry_lab
from kafka_raw import Conn
from scale import LONG
from test_avro import LAB, READERS, dump, lines, read

CORPORA = os.path.join(LAB, 'avro', 'corpora')
# valid by the suite, but beyond what an Avro type holds, by a rule of docs/avro.md
ABSENT = object()
BEYOND = ('an integer beyond 64 bits',)
# up to draft 7 nothing beside a $ref counted; schemas are read as of 2019-09
OLD = ('$ref prevents a sibling $id from changing the base uri', '$ref prevents a sibling id from changing the base uri')
DRAFTS = ('2016', 'draft3', 'draft4', 'draft6', 'draft7', 'draft2019-09', 'draft2020-12', 'draft-next')
SETS = {    # the package: its schemas, how many there are at least, and the least share of them that compiles
    'cfn-lint': ('cfnlint/data/schemas/resources/*.json', 1800, 1),
    'check-jsonschema': ('check_jsonschema/builtin_schemas/**/*.json', 25, 0.95),
    'asyncapi': ('schemas/[0-9]*.json', 25, 0.8),
    'fhir': ('fhir.schema.json/*.json', 150, 1),
    'fhir-r4': ('fhir.schema.json', 1, 1),
    'cyclonedx': ('res/schema/*.json', 10, 1),
    'vega-lite': ('build/vega-lite-schema.json', 1, 1),
    'octokit': ('schema.json', 1, 1),
    'cspell': ('cspell.schema.json', 1, 1),
}


@pytest.fixture(scope='module', autouse=True)
def corpora():
    p = subprocess.run([os.path.join(READERS, '..', 'avro-corpora.sh')], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    if p.returncode != 0:
        pytest.skip('the packages of schemas could not be fetched: %s' % p.stdout.decode()[-200:].replace('\n', ' '))


def case(schema, docs=(), refs=None, name='lab:schema'):
    """A collection with the schema under /v, where every kind of schema may stand."""
    return {'schema': {'type': 'object', 'properties': {'id': {'type': 'string', 'default': ''}, 'v': {'$ref': name}}},
            'refs': dict(refs or {}, **{name: schema}), 'key': ['/id'], 'docs': ['{"id":"1","v":%s}' % json.dumps(d) for d in docs]}


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
    assert check({'schemastore': cases}, figures)['schemastore'] > 0.85


def check(sets, figures):
    """{name: cases}: what compiles parses strictly, all others say why not. Returns the share of each that compiles."""
    answers, good, shares = {}, [], {}
    flat = dump([c for cases in sets.values() for c in cases])
    for name, cases in sets.items():
        answers[name], flat = flat[:len(cases)], flat[len(cases):]
        reasons, n = collections.Counter(), 0
        for a in answers[name]:
            if 'error' in a:
                assert a['reason'] and a['error'] in ('E_INVALID', 'E_LIMIT', 'E_SYNTAX'), a
                reasons[a['reason'].split(':')[0]] += 1
            else:
                good.append({'schema': a['value_schema'], 'data': []})
                n += 1
        raw = sum(any('JSON text' in n['text'] for n in a.get('notes', ())) for a in answers[name])
        figures('%s: %d of %d compile (%.1f %%), %d with a part as JSON text; refused: %s' %
                (name, n, len(cases), 100 * n / len(cases), raw, dict(reasons)))
        shares[name] = n / len(cases)
    for reader in ('java', 'fastavro', 'node', 'go'):
        for c, got in zip(good, read(reader, good), strict=True):
            assert got['ok'], (reader, got['error'], c['schema'][:2000])
    return shares


def schemas_of(package):
    """Cases of a package. Its files may refer to each other, by the name of the file or without .schema.json."""
    pattern, least, _ = SETS[package]
    files = sorted(glob.glob(os.path.join(CORPORA, package, pattern), recursive=True))
    assert len(files) >= least
    schemas, uses = {}, {}
    for f in files:
        with open(f, encoding='utf-8-sig') as fp:
            text, name = fp.read(), os.path.basename(f)
        schemas[name] = json.loads(text)
        uses[name] = {u.rsplit('/', 1)[-1] for u in re.findall(r'"\$ref"\s*:\s*"([^"#]+)', text)}
    cases = []
    for n, (name, s) in enumerate(schemas.items()):
        if package == 'cfn-lint' and not LONG and n % 10:
            continue
        base = os.path.dirname(s.get('$id') or s.get('id') or 'http://lab/x')
        refs, todo = {}, [name]
        while todo:
            for u in uses[todo.pop()]:
                other = u if u in schemas else u + '.schema.json'
                if other in schemas and other != name and base + '/' + u not in refs:
                    refs[base + '/' + u] = schemas[other]
                    todo.append(other)
        cases.append(case(s, refs=refs, name=base + '/' + name.removesuffix('.schema.json')))
    return cases


def test_schemas_of_packages_compile_or_say_why_not(figures):
    shares = check({p: schemas_of(p) for p in SETS}, figures)
    for package, (_, _, want) in SETS.items():
        assert shares[package] >= want, package


def groups_of_the_suite(draft):
    """[(file, description, schema, valid documents)]. The old package stands for the suite as it was in 2016."""
    where = ('suite', 'tests', 'draft4') if draft == '2016' else ('jsonschema', 'json', 'tests', draft)
    for f in sorted(glob.glob(os.path.join(CORPORA, *where, '**', '*.json'), recursive=True)):
        if os.path.basename(f) == 'format.json' or '/format/' in f:
            continue    # formats are held to: what is no date does not fit a date
        with open(f, encoding='utf-8') as fp:
            for group in json.load(fp):
                yield f, group['description'], group['schema'], [t['data'] for t in group['tests'] if t['valid']]


def remotes():
    """The schemas that the suite's schemas refer to."""
    top = os.path.join(CORPORA, 'jsonschema', 'json', 'remotes')
    out = {}
    for f in glob.glob(os.path.join(top, '**', '*.json'), recursive=True):
        with open(f, encoding='utf-8') as fp:
            out['http://localhost:1234/' + os.path.relpath(f, top)] = json.load(fp)
    return out


def test_valid_documents_of_the_test_suite_are_served(figures):
    far = remotes()
    data = []
    for draft in DRAFTS:
        groups = list(groups_of_the_suite(draft))
        assert len(groups) > 60
        reasons, n, good = collections.Counter(), 0, 0
        cases = [case(schema, docs, refs=far if '"$ref"' in json.dumps(schema) else None) for _, _, schema, docs in groups]
        for (f, description, schema, _), c, a in zip(groups, cases, dump(cases), strict=True):
            if 'error' in a:
                reasons[a['reason']] += 1
                continue
            for doc, rec in zip(c['docs'], a['records'], strict=True):
                assert 'error' not in rec or rec['reason'] in BEYOND or description in OLD, (f, schema, doc, rec)
                n += 1
            good += 1
            data.append({'schema': a['value_schema'], 'data': [r['value'][10:] for r in a['records'] if 'error' not in r]})
        figures('%s: %d of %d schemas, %d documents; refused: %s' % (draft, good, len(groups), n, dict(reasons)))
        assert good == len(groups) if draft in DRAFTS[2:7] else good > 0.95 * len(groups), draft
    for name in ('fastavro', 'java'):
        for d, got in zip(data, read(name, data), strict=True):
            assert got['ok'], (name, got['error'], d['schema'])


@pytest.fixture(scope='module')
def webhooks():
    """[(event, schema, payloads, how many of them are invalid)]: what GitHub sends, as recorded. The payloads are those that the package
    jsonschema calls valid."""
    with open(os.path.join(CORPORA, 'octokit-examples', 'api.github.com', 'index.json'), encoding='utf-8') as f:
        events = json.load(f)
    with open(os.path.join(CORPORA, 'octokit', 'schema.json'), encoding='utf-8') as f:
        definitions = json.load(f)['definitions']
    asked = []
    for e in events:
        name = next(n for n in (e['name'] + '_event', e['name'] + '$event') if n in definitions)
        used, todo = set(), [name]
        while todo:
            used.add(n := todo.pop())
            todo += set(re.findall(r'"#/definitions/([^"]+)"', json.dumps(definitions[n]))) - used
        asked.append({'schema': {'definitions': {n: definitions[n] for n in used}, '$ref': '#/definitions/' + name}, 'docs': e['examples']})
    valid = lines([os.path.join(LAB, 'py', 'bin', 'python'), os.path.join(READERS, 'valid.py')], asked)
    return [(e['name'], a['schema'], [d for d, ok in zip(a['docs'], v['valid'], strict=True) if ok], v['valid'].count(False))
            for e, a, v in zip(events, asked, valid, strict=True)]


def test_valid_webhooks_of_github_are_served(webhooks, figures):
    """By the schema of their event. What is valid fits, but for times that are none."""
    cases = [case(schema, payloads) for _, schema, payloads, _ in webhooks]
    data, times, n = [], 0, 0
    for c, a in zip(cases, dump(cases), strict=True):
        assert 'error' not in a, a
        bad = [r for r in a['records'] if 'error' in r]
        assert all(r['reason'] == 'a time is expected (RFC 3339)' for r in bad), bad
        times += len(bad)
        n += len(a['records'])
        data.append({'schema': a['value_schema'], 'data': [r['value'][10:] for r in a['records'] if 'error' not in r]})
    for name in ('fastavro', 'java'):
        for d, got in zip(data, read(name, data), strict=True):
            assert got['ok'], (name, got['error'], d['schema'])
    figures('%d events, %d payloads, %d of them valid, %d of those hold a time that is none' %
            (len(webhooks), n + sum(w[3] for w in webhooks), n, times))
    assert n > 250 and times < 5


def differs(v, source, at=''):
    """Where a decoded value, spelled as the readers do, does not say what the JSON source says; None when it does. Of times only that they are some."""
    ok, inner = False, []
    if source is ABSENT:
        ok = True    # null, or the schema's default
    elif v is None:
        ok = source is None
    elif isinstance(v, dict) and set(v) == {'json'}:
        ok = json.loads(v['json'][2:]) == source
    elif isinstance(v, dict) and isinstance(source, dict):
        # a record: names that are none of Avro's are in _flow_extra
        extra = v.get('_flow_extra', {})
        ok = set(extra) <= set(source)
        inner = [(k, x, source.get(k, ABSENT)) for k, x in [*v.items(), *extra.items()] if k != '_flow_extra']
    elif isinstance(v, list):
        ok = isinstance(source, list) and len(v) == len(source)
        inner = [(i, *pair) for i, pair in enumerate(zip(v, source or ()))]
    elif isinstance(v, str):
        ok = v[2:] == source if v[:2] == 's:' else struct.unpack('>d', bytes.fromhex(v[2:]))[0] == source
    else:
        ok = v == source or not isinstance(v, bool) and isinstance(source, str)
    if not ok:
        return '%s: %r for %r' % (at, v, source)
    return next((d for k, x, y in inner if (d := differs(x, y, '%s/%s' % (at, k)))), None)


def test_registry_clients_read_the_webhooks(webhooks, make_server, tmp_path, figures):
    """Eight topics with the largest of their schemas, end to end by every registry client: Java's values say what the payloads say, all others are
    equal to Java's."""
    chosen = sorted(webhooks, key=lambda w: -len(w[2]))[:8]
    made = {w[0]: {'schema': dict(w[1], **{'type': 'object', 'required': ['id'], 'properties': {
        'id': {'type': 'integer'}, 'v': {'$ref': w[1]['$ref']}}}), 'key': ['/id']} for w in chosen}
    for d in made.values():
        del d['schema']['$ref']
    catalog = registry_lab.write_catalog(tmp_path / 'catalog.json', {'c/' + t: d for t, d in made.items()},
                                         {'t': ('tok', {t: 'c/' + t for t in made}, {'sluice': {'on_schema_error': 'skip'}})})
    s = make_server('--catalog', catalog, '--registry-listen', 'sasl://127.0.0.1:0', start=False)
    s.listen = 'sasl://127.0.0.1:0'
    s.start()
    sources, count = {}, 0
    for t, _, payloads, _ in chosen:
        sources[t] = [{'id': n, 'v': p} for n, p in enumerate(payloads)]
        s.publish('c/' + t, [json.dumps(d, separators=(',', ':')) for d in sources[t]])
        with Conn(s.kafka) as c:    # what does not fit is skipped
            auth_lab.login(c, 't', 'tok', 'PLAIN')
            count += len(c.records_from(t, 0, 0)[0])
    registry = 'http://127.0.0.1:%d' % json.loads(s.ports_file.read_text())['registry']
    size = max(len(served(registry, t)) for t in made)
    readers = {c: registry_lab.Reader(c, s.bootstrap, registry, ','.join(made), count, {'user': 't', 'password': 'tok'}) for c in registry_lab.CLIENTS}
    got = {}
    try:
        for c, r in readers.items():
            got[c] = {(x['topic'], x['key']['_flow_key']['p1']): x['value'] for x in r.all()[1:]}
    finally:
        for r in readers.values():
            r.end()
    assert len(got['java-http']) == count
    for (t, n), v in got['java-http'].items():
        assert differs(v, sources[t][n]) is None, (t, n, differs(v, sources[t][n]))
    for c, values in got.items():
        assert values == got['java-http'], c
    figures('%d payloads of %d events, schemas up to %d KB' % (count, len(made), size // 1024))


def served(registry, topic):
    auth = base64.b64encode(b't:tok').decode()
    url = '%s/subjects/%s-value/versions/latest/schema' % (registry, topic)
    with urllib.request.urlopen(urllib.request.Request(url, headers={'Authorization': 'Basic ' + auth}), timeout=30) as r:
        return r.read()
