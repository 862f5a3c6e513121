"""The compatibility check against Java Avro's SchemaCompatibility, the one that other registries use: random pairs of schemas that are
near to each other, both ways. Equal are the verdict, and of what is wrong the kind, the place and the words; the pairs are judged by
schema/avro_compat.c, through tests/avro/avro_compat_dump."""
import json
import os
import random
import subprocess

from scale import LONG
from test_avro import find_dump, lines, reader

PAIRS = 20000 if LONG else 4000
PLAIN = ['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string']
VALUES = {'null': None, 'boolean': True, 'int': 1, 'long': 2, 'float': 1.5, 'double': 2.5, 'bytes': 'b', 'string': 's'}


class Maker:
    """Schemas over few names and symbols, so that two of them meet often."""

    def __init__(self, r):
        self.r, self.names = r, []

    def name(self, kind):
        n = self.r.choice(['A', 'B', 'C', 'D']) + kind
        return n if n not in self.names else None

    def named(self, kind, depth):
        r, n = self.r, self.name(kind[0])
        if n is None:
            return r.choice(self.names) if kind == 'record' and r.random() < 0.5 else 'int'
        s = {'type': kind, 'name': n}
        if r.random() < 0.3:
            s['namespace'] = r.choice(['x', 'x.y'])
        if r.random() < 0.2:
            s['aliases'] = [r.choice(['A', 'B', 'x.C', 'x.y.D']) + kind[0]]
        if kind == 'fixed':
            s['size'] = r.choice([4, 4, 8])
        elif kind == 'enum':
            s['symbols'] = r.sample(['P', 'Q', 'R', 'S'], r.randint(1, 4))
            if r.random() < 0.3:
                s['default'] = s['symbols'][0]
        else:
            if 'namespace' not in s:
                self.names.append(n)
            s['fields'] = [self.field(f, depth + 1) for f in r.sample(['f', 'g', 'h', 'i'], r.randint(0, 4))]
        return s

    def field(self, name, depth):
        r, s = self.r, {'name': name, 'type': self.type(depth)}
        if r.random() < 0.15:
            s['aliases'] = [r.choice(['f', 'g', 'h', 'i', 'old'])]
        first = s['type'][0] if isinstance(s['type'], list) and s['type'] else s['type']
        if isinstance(first, str) and first in VALUES and r.random() < 0.4:
            s['default'] = VALUES[first]
        return s

    def type(self, depth=0):
        r = self.r
        k = r.random()
        if depth > 3 or k < 0.45:
            return r.choice(PLAIN)
        if k < 0.55:
            return {'type': 'array', 'items': self.type(depth + 1)}
        if k < 0.62:
            return {'type': 'map', 'values': self.type(depth + 1)}
        if k < 0.74:
            branches = r.sample(PLAIN, r.randint(0, 3))
            if r.random() < 0.5:
                extra = self.named(r.choice(['fixed', 'enum', 'record']), depth)
                if not isinstance(extra, str) or extra not in branches:
                    branches.append(extra)
            return branches
        return self.named(r.choice(['fixed', 'enum', 'record', 'record', 'record']), depth)


def changed(r, s):
    """The schema with one thing or another changed in it."""
    if isinstance(s, str):
        return r.choice(PLAIN) if r.random() < 0.15 else s
    if isinstance(s, list):
        out = [changed(r, x) for x in s]
        if out and r.random() < 0.1:
            out.pop(r.randrange(len(out)))
        return out if r.random() > 0.05 or len(out) != 1 else out[0]
    s = dict(s)
    if r.random() < 0.08:
        s['name' if 'name' in s else 'doc'] = 'Zz'
    for k in ('items', 'values', 'type'):
        if k in s and not (k == 'type' and 'name' in s and ('fields' in s or 'symbols' in s or 'size' in s)):
            s[k] = changed(r, s[k])
    if 'symbols' in s and r.random() < 0.3:
        s['symbols'] = sorted(set(s['symbols']) ^ {r.choice('PQRS')}) or ['P']
        s.pop('default', None)
    if 'size' in s and r.random() < 0.2:
        s['size'] = 16
    if 'fields' in s:
        s['fields'] = [changed(r, f) for f in s['fields'] if r.random() > 0.08]
        if r.random() < 0.2:
            s['fields'].append({'name': 'added', 'type': r.choice(PLAIN), **({'default': None} if r.random() < 0.1 else {})})
    return s


def find_judge():
    """avro_compat_dump, beside the avro_dump that is tested; made when it is missing."""
    at = os.path.join(os.path.dirname(find_dump()), 'avro_compat_dump')
    if not os.path.exists(at):
        subprocess.run(['cmake', '--build', os.path.join(os.path.dirname(at), '..', '..'), '--target', 'avro_compat_dump', '-j2'], check=True,
                       stdout=subprocess.DEVNULL)
    return at


def enum_without_default(ours, theirs):
    """It holds an enum that has a default, in a field that has none, against the record that lacks the field; we say what is missing."""
    return (ours['type'], theirs['type'], theirs['text'], theirs['path']) == (
        'READER_FIELD_MISSING_DEFAULT_VALUE', 'TYPE_MISMATCH', 'reader type: ENUM not compatible with writer type: RECORD', ours['path'] + '/type')


def pairs():
    r, out = random.Random(17), []
    while len(out) < PAIRS:
        a = Maker(r).type()
        b = changed(r, a) if r.random() < 0.8 else Maker(r).type()
        for x, y in ((a, b), (b, a)):
            out.append({'reader': json.dumps(x), 'writer': json.dumps(y)})
    return out[:PAIRS]


def test_verdicts_and_reasons_are_those_of_java(figures):
    cases = pairs()
    java = reader('java')[:-1] + ['AvroCompat']
    theirs = lines(java, cases)
    ours = lines([find_judge()], cases)
    refused = good = bad = 0
    for case, a, b in zip(cases, ours, theirs):
        if not b['ok'] and a['ok']:
            # an alias that makes two fields one, even below a union that has another way: it throws, we go on. And from within a
            # namespace it sees the types of none only once they are complete
            assert 'matches multiple fields' in b['error'] or 'Undefined schema' in b['error'], (case, b)
            continue
        if not a['ok']:    # what it takes beyond the specification: a name that is defined twice, alike
            assert not b['ok'] or a['error'] == 'a name is defined twice', (case, a, b)
            refused += 1
            continue
        assert a['compatible'] == b['compatible'], (case, a, b)
        good, bad = good + a['compatible'], bad + (not a['compatible'])
        a['list'] = [y if enum_without_default(x, y) else x for x, y in zip(a['list'], b['list'])] + a['list'][len(b['list']):]
        said = [[(x['type'], x['text']) for x in y['list']] for y in (a, b)]
        assert said[0] == said[1], (case, a, b)
        seen = set()
        for x, y in zip(a['list'], b['list']):    # it remembers a pair with the place where it met it first
            assert x['path'] == y['path'] or json.dumps(y) in seen or x['path'].endswith(y['path']), (case, x, y)
            seen.add(json.dumps(y))
    assert good > PAIRS / 20 and bad > PAIRS / 4 and refused < PAIRS / 3, (good, bad, refused)
    figures('%d pairs compatible, %d not, %d no schemas' % (good, bad, refused))
