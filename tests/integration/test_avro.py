"""Avro as it is served, read by others. Random collections and documents: fastavro and Java Avro decode to what the
mapping rules say of the JSON source; every schema parses strictly in Java Avro, fastavro, avsc, goavro, hamba and
apache-avro. Works on tests/avro/avro_dump, without a server."""
import json
import os
import shutil
import subprocess

import pytest

import avro_model
from scale import LONG

HERE = os.path.dirname(os.path.abspath(__file__))
READERS = os.path.join(HERE, '..', 'lab', 'avro')
LAB = os.environ.get('LAB', '/opt/lab')
AVRO = os.path.join(LAB, 'avro')
SEEDS = 4000 if LONG else 400
DOCS = 8


def find_dump():
    """avro_dump of the build that the server is of, or one made here."""
    for d in (os.environ.get('SLUICE_BUILD_DIR'), os.path.dirname(os.environ.get('SLUICE_BIN', '')),
              os.path.join(HERE, '..', '..', 'build', 'dev')):
        if d and os.path.exists(os.path.join(d, 'tests', 'avro', 'avro_dump')):
            return os.path.join(d, 'tests', 'avro', 'avro_dump')
    d = os.path.join(HERE, '..', '..', 'build', 'dev')
    subprocess.run(['cmake', '--build', d, '--target', 'avro_dump', '-j2'], check=True, stdout=subprocess.DEVNULL)
    return os.path.join(d, 'tests', 'avro', 'avro_dump')


def lines(cmd, cases, env=None):
    """One answer for each case."""
    text = ''.join(json.dumps(c) + '\n' for c in cases)
    p = subprocess.run(cmd, input=text.encode('utf-8', 'surrogatepass'), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       env=dict(os.environ, **(env or {})), timeout=900)
    assert p.returncode == 0, p.stderr[-2000:]
    out = [json.loads(x) for x in p.stdout.decode().split('\n') if x]
    assert len(out) == len(cases)
    return out


def dump(cases):
    return lines([find_dump()], cases)


def reader(name):
    """The command of a reader, or a skip."""
    cmd = {'fastavro': [os.path.join(LAB, 'py', 'bin', 'python'), os.path.join(READERS, 'fastavro_read.py')],
           'java': ['java', '-Xmx512m', '-cp', '%s:%s/*' % (os.path.join(AVRO, 'java'), os.path.join(AVRO, 'java', 'libs')), 'AvroRead'],
           'node': ['node', os.path.join(READERS, 'node', 'parse.js')],
           'go': [os.path.join(AVRO, 'bin', 'avro-go')], 'rust': [os.path.join(AVRO, 'bin', 'avro-rust')]}[name]
    if name != 'rust' or LONG:
        p = subprocess.run([os.path.join(READERS, '..', 'avro-install.sh'), name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           timeout=900)
        if p.returncode != 0:
            pytest.skip('no reader %s: %s' % (name, p.stdout.decode()[-200:].replace('\n', ' ')))
    if shutil.which(cmd[0]) is None:
        pytest.skip('no reader %s: built only with SLUICE_TEST_LONG=1' % name)
    return cmd


def read(name, cases):
    return lines(reader(name), cases, {'AVRO_NODE': os.path.join(AVRO, 'node')})


@pytest.fixture(scope='module')
def made():
    """[(case, answer, [(document, value, key)])] of the random collections."""
    cases, docs = [], []
    for seed in range(SEEDS):
        r, t, key, case = avro_model.collection(seed)
        mine = [avro_model.document(r, t, key) for _ in range(DOCS)]
        # lone surrogates are escapes in the text, so the text itself is UTF-8
        cases.append(dict(case, docs=[d[0] for d in mine]))
        docs.append(mine)
    return list(zip(cases, dump(cases), docs))


def both(made, field, values):
    return [{'schema': a[field + '_schema'], 'data': [x[field][10:] for x in a['records']] if values else []} for _, a, _ in made]


def test_every_document_of_a_random_collection_is_encoded(made):
    for case, answer, docs in made:
        assert 'error' not in answer, (case['schema'], answer)
        for rec, doc in zip(answer['records'], docs):
            assert 'error' not in rec, (case['schema'], doc[0], rec)


@pytest.mark.parametrize('name', ['fastavro', 'java'])
def test_a_reader_sees_what_the_json_source_says(made, name, figures):
    n = 0
    for field, at in (('value', 1), ('key', 2)):
        for (case, answer, docs), got in zip(made, read(name, both(made, field, True))):
            assert got['ok'], (got, answer[field + '_schema'])
            for doc, v in zip(docs, got['values']):
                assert v == doc[at], (case['schema'], answer[field + '_schema'], doc[0])
                n += 1
    figures('%d records of %d collections equal' % (n, len(made)))


@pytest.mark.parametrize('name', ['fastavro', 'java', 'node', 'go', 'rust'])
def test_every_schema_parses_strictly(made, name):
    cases = both(made, 'value', False) + both(made, 'key', False)
    for case, got in zip(cases, read(name, cases)):
        assert got['ok'], (got['error'], case['schema'])
