"""Random collections and documents, with what a reader must see of them: the oracle of test_avro.py. It knows the mapping
rules of docs/avro.md and nothing of the program: a type makes its JSON schema, its documents and its decoded values.

A JSON value is a list of tokens (text), so that white space can stand between any two, and so that its text without
white space is known to the byte. Decoded values are written as tests/lab/avro/README.md says."""
import datetime
import json
import random
import re
import struct


def double(x):
    return 'd:%016x' % struct.unpack('>Q', struct.pack('>d', x))[0]


def compact(tokens):
    return ''.join(tokens)


def spaced(r, tokens):
    out = []
    for t in tokens:
        if r.random() < 0.3:
            out.append(r.choice([' ', '  ', '\t', '\r', '\n ']))
        out.append(t)
    return ''.join(out) + r.choice(['', ' ', '\n'])


def quote(r, s):
    """A JSON string with a random choice among the spellings of each character."""
    out = ['"']
    for c in s:
        n = ord(c)
        short = {'"': '\\"', '\\': '\\\\', '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f', '/': '\\/'}
        if 0xd800 <= n < 0xe000 or n < 0x20 and c not in short or r.random() < 0.05:
            if n > 0xffff:
                n -= 0x10000
                out.append('\\u%04x\\u%04X' % (0xd800 + (n >> 10), 0xdc00 + (n & 0x3ff)))
            else:
                out.append('\\u%04x' % n)
        elif c in short and (c != '/' or r.random() < 0.3):
            out.append(short[c])
        else:
            out.append(c)
    return ''.join(out) + '"'


ALPHABET = 'abcXYZ019 _-"\\/\n\t\x00\x1f\x7fäßñ€漢字\U0001f600'


def text(r, odd=True):
    n = r.choice([0, 1, 2, 3, 5, 8, 15, 16, 17, 33, 64, 100])
    s = ''.join(r.choice(ALPHABET if odd else 'abcdefgh0123') for _ in range(n))
    if odd and r.random() < 0.1:
        k = r.randrange(len(s) + 1)
        # a lone surrogate; never before a low one, so that no pair arises
        s = s[:k] + chr(r.choice([0xd800, 0xdbff, 0xdfff])) + 'x' + s[k:]
    return s


def seen(s):
    return ''.join('\ufffd' if 0xd800 <= ord(c) < 0xe000 else c for c in s)


def integer(r):
    return r.choice([0, 1, -1, 63, 64, -64, -65, r.randrange(-10**6, 10**6), r.randrange(-2**63, 2**63), 2**63 - 1, -2**63,
                     2**53 + 1, 10**r.randrange(19)])


def number_text(r):
    k = r.randrange(8)
    if k == 0:
        return str(integer(r))
    if k == 1:
        return repr(r.random() * 10**r.randrange(-20, 20))
    if k == 2:
        return '%d.%de%d' % (r.randrange(1000), r.randrange(10**9), r.randrange(-340, 330))
    if k == 3:
        return repr(struct.unpack('>d', struct.pack('>Q', r.randrange(1 << 52, 0x7ff << 52)))[0]).replace('inf', '1e999')
    if k == 4:
        return str(r.randrange(10**40))
    if k == 5:
        return '0.' + '0' * r.randrange(30) + str(r.randrange(1, 10**25))
    if k == 6:
        return r.choice(['-0', '-0.0', '1e400', '-1e400', '1e-400', '4.9e-324', '1.7976931348623157e308', '0e5', '9007199254740993'])
    return '-%d.5E+%d' % (r.randrange(100), r.randrange(20))


class Type:
    """kinds(): what its schema says without null."""
    null = False
    default = None    # (tokens, decoded)

    def schema(self, r, top=False):
        s = self.body(r)
        if self.null:
            s = r.choice([nullable_list, nullable_any, nullable_one])(s)
        if self.default:
            s = dict(s, default=json.loads(compact(self.default[0])))
        return s

    def make(self, r):
        """(tokens, decoded)"""
        if self.null and r.random() < 0.2:
            return ['null'], None
        return self.value(r)

    def is_null(self):
        return self.null


def nullable_list(s):
    if isinstance(s.get('type'), str) and 'enum' not in s and 'const' not in s:
        return dict(s, type=[s['type'], 'null'])
    return nullable_any(s)


def nullable_any(s):
    return {'anyOf': [{'type': 'null'}, s]}


def nullable_one(s):
    return {'oneOf': [s, {'const': None}]}


class Long(Type):
    scalar = True

    def body(self, r):
        return r.choice([{'type': 'integer'}, {'type': 'integer', 'minimum': -10}, {'enum': [1, 2, 3.0]}])

    def value(self, r):
        v = integer(r)
        t = str(v)
        if r.random() < 0.2:
            t = r.choice(['%d.0' % v, '%d.000' % v, '%de0' % v, '%d0e-1' % v if v else '0e-1'])
        return [t], v


class Double(Type):
    def body(self, r):
        return r.choice([{'type': 'number'}, {'type': ['integer', 'number']}, {'enum': [1.5, 2]}])

    def value(self, r):
        t = number_text(r)
        return [t], double(float(t))


class String(Type):
    scalar = True

    def body(self, r):
        return r.choice([{'type': 'string'}, {'type': 'string', 'format': 'email'}, {'type': 'string', 'format': 'integer'},
                         {'const': 'x'}, {'enum': ['a', 'b']}, {'type': 'string', 'pattern': '^a'}])

    def value(self, r):
        s = text(r)
        return [quote(r, s)], 's:' + seen(s)


class Bool(Type):
    scalar = True

    def body(self, r):
        return r.choice([{'type': 'boolean'}, {'enum': [True, False]}])

    def value(self, r):
        v = r.random() < 0.5
        return ['true' if v else 'false'], v


class Date(Type):
    scalar = True

    def body(self, r):
        return {'type': 'string', 'format': 'date'}

    def value(self, r):
        d = datetime.date.fromordinal(r.randrange(1, datetime.date(9999, 12, 31).toordinal()))
        return [quote(r, '%04d-%02d-%02d' % (d.year, d.month, d.day))], d.toordinal() - datetime.date(1970, 1, 1).toordinal()


class Time(Type):
    def body(self, r):
        return {'type': 'string', 'format': 'date-time'}

    def value(self, r):
        day = r.randrange(1, datetime.date(9999, 12, 31).toordinal())
        h, m, s = r.randrange(24), r.randrange(60), r.randrange(60)
        frac = ''.join(r.choice('0123456789') for _ in range(r.choice([0, 1, 3, 6, 7, 9, 12])))
        off = r.choice([None, 0, 90, -330, 14 * 60])
        d = datetime.date.fromordinal(day)
        t = '%04d-%02d-%02d%s%02d:%02d:%02d' % (d.year, d.month, d.day, r.choice('TTTt '), h, m, s)
        t += '.' + frac if frac else ''
        t += r.choice('Zz') if off is None else '%s%02d:%02d' % ('-' if off < 0 else '+', abs(off) // 60, abs(off) % 60)
        micros = (day - datetime.date(1970, 1, 1).toordinal()) * 86400 * 10**6
        micros += ((h * 60 + m - (off or 0)) * 60 + s) * 10**6 + int((frac + '000000')[:6])
        return [quote(r, t)], micros


class Uuid(Type):
    scalar = True

    def body(self, r):
        return {'type': 'string', 'format': 'uuid'}

    def value(self, r):
        h = '%032x' % r.getrandbits(128)
        h = h.upper() if r.random() < 0.3 else h
        u = '-'.join([h[:8], h[8:12], h[12:16], h[16:20], h[20:]])
        return [quote(r, r.choice([u, u, h, '{%s}' % u, 'urn:uuid:' + u]))], 's:' + u


class Duration(Type):
    def body(self, r):
        return {'type': 'string', 'format': 'duration'}

    def value(self, r):
        y, mo, w, d = (r.choice([0, r.randrange(100)]) for _ in range(4))
        h, mi, s, ms = (r.choice([0, r.randrange(100)]) for _ in range(4))
        t = 'P' + ''.join('%d%s' % (n, u) for n, u in ((y, 'Y'), (mo, 'M'), (w, 'W'), (d, 'D')) if n)
        part = ''.join('%d%s' % (n, u) for n, u in ((h, 'H'), (mi, 'M')) if n)
        part += '%d.%03dS' % (s, ms) if ms else '%dS' % s if s else ''
        t += 'T' + part if part else ''
        t = 'P0D' if t == 'P' else t
        total = (h * 3600 + mi * 60 + s) * 1000 + ms
        return [quote(r, t)], 'b:' + struct.pack('<III', y * 12 + mo, w * 7 + d, total).hex()


class TextNumber(Type):
    scalar = True

    def body(self, r):
        f = r.choice(['integer', 'number'])
        return r.choice([{'type': ['string', 'integer'], 'format': f},
                         {'anyOf': [{'type': 'integer'}, {'type': 'string', 'format': f}]}])

    def value(self, r):
        if r.random() < 0.5:
            s = r.choice(['1.0', '1.1', '17', text(r)])
            return [quote(r, s)], 's:' + seen(s)
        v = r.choice([integer(r), 10**30 + 1])
        t = r.choice([str(v), '%d.00' % v])
        if r.random() < 0.2:
            t, v = '12e3', 12000
        return [t], 's:%d' % v


class NumberText(Type):
    def body(self, r):
        return r.choice([{'type': ['string', 'number'], 'format': 'number'},
                         {'oneOf': [{'type': 'number'}, {'type': 'string', 'format': 'number'}]}])

    def value(self, r):
        t = number_text(r)
        if r.random() < 0.5:
            return [t], double(float(t))
        t = r.choice([t, 'Infinity', '-inf', '+' + t.lstrip('-')])
        return [quote(r, t)], double(float(t))


def any_json(r, depth=0):
    """Tokens of any value."""
    k = r.randrange(9 if depth < 3 else 6)
    if k == 0:
        return [r.choice(['null', 'true', 'false'])]
    if k in (1, 2):
        return [number_text(r)]
    if k < 6:
        return [quote(r, text(r))]
    out = []
    for i in range(r.randrange(4)):
        out += [','] if i else []
        if k > 6:
            out += [quote(r, 'k%d%s' % (i, r.choice(['', 'ä', '"'])))] + [':']
        out += any_json(r, depth + 1)
    return ['{'] + out + ['}'] if k > 6 else ['['] + out + [']']


class Raw(Type):
    def __init__(self, r):
        self.anything = r.random() < 0.5
        self.null = False

    def schema(self, r, top=False):
        if self.anything:
            return r.choice([{}, True, {'description': 'what it is'}, {'not': {'required': ['q'], 'type': 'object'}}])
        return r.choice([{'type': ['string', 'integer']}, {'type': ['array', 'object', 'boolean']}, {'not': {'type': 'null'}}])

    def is_null(self):
        return self.anything

    def make(self, r):
        t = any_json(r)
        while not self.anything and t == ['null']:
            t = any_json(r)
        return t, None if t == ['null'] else {'json': 's:' + compact(t)}


class Array(Type):
    def __init__(self, r, depth):
        self.of = random_type(r, depth + 1)

    def body(self, r):
        s = self.of.schema(r)
        return r.choice([{'type': 'array', 'items': s}, {'type': 'array', 'items': [s], 'additionalItems': s},
                         {'type': 'array', 'prefixItems': [s, s], 'items': s}, {'type': 'array', 'items': [s, s], 'maxItems': 2}])\
            if r.random() < 0.5 else {'type': 'array', 'items': s}

    def value(self, r):
        out, vals = ['['], []
        for i in range(r.choice([0, 1, 2, 3, 70] if isinstance(self.of, (Long, Bool, String)) else [0, 1, 2])):
            t, v = self.of.make(r)
            out += ([','] if i else []) + t
            vals.append(v)
        return out + [']'], vals


def one_key(r, taken):
    while True:
        k = r.choice(['k', 'ab', 'x-y', 'ä', '', 'with space', 'q"q', 'n\nl', 'nul\x00l', '漢', 'a/b', '~t', '9'])
        k += str(r.randrange(100))
        if k not in taken:
            taken.add(k)
            return k


class Map(Type):
    def __init__(self, r, depth):
        self.of = random_type(r, depth + 1)

    def body(self, r):
        s = self.of.schema(r)
        return r.choice([{'type': 'object', 'additionalProperties': s},
                         {'type': 'object', 'patternProperties': {'^.*$': s}, 'additionalProperties': False}])

    def value(self, r):
        out, vals, taken = ['{'], {}, set()
        for i in range(r.choice([0, 1, 2, 3])):
            k = one_key(r, taken)
            t, v = self.of.make(r)
            out += ([','] if i else []) + [quote(r, k), ':'] + t
            vals[k] = v
        return out + ['}'], vals


NAMES = ['a', 'b', 'name', 'value', 'string', 'record', 'root', 'Key', '_x', 'A', 'json', 'very_long_name_of_more_than_16_bytes', 'null',
         'a_b', 'int', 'z9', 'RawJSON', 'duration']
ILLEGAL = ['x-y', '9a', 'ü', 'a b', 'a/b', 'q"', '', '_flow_extra', 'tilde~', 'nul\x00']


class Record(Type):
    def __init__(self, r, depth, top=False):
        self.top = top
        self.fields = {}
        for n in r.sample(NAMES, r.randrange(1, 7)):
            self.fields[n] = random_type(r, depth + 1)
        self.required = {n for n in self.fields if r.random() < 0.5}
        for n, t in self.fields.items():
            if r.random() < 0.25 and not isinstance(t, (Raw, Record)):
                t.default = default_of(r, t)
        self.illegal = {}
        if not top:
            for n in r.sample(ILLEGAL, r.choice([0, 0, 1, 2])):
                self.illegal[n] = Raw(r)
        self.open = r.random() < 0.5

    def body(self, r):
        props = {n: t.schema(r) for n, t in self.fields.items()}
        props.update({n: t.schema(r) for n, t in self.illegal.items()})
        s = {'type': 'object', 'properties': props, 'required': sorted(self.required)}
        if not self.open:
            s['additionalProperties'] = False
        if r.random() < 0.3 and self.open and len(props) > 1:
            half = sorted(props)[:len(props) // 2]
            s['properties'] = {k: v for k, v in props.items() if k not in half}
            s['allOf'] = [{'properties': {k: props[k] for k in half}}, True]
        return s

    def members(self, r):
        """[(key, tokens)], {field: decoded}, {extra: tokens}"""
        got, extra, members = {}, {}, []
        for n, t in self.fields.items():
            if n not in self.required and r.random() < 0.4:
                got[n] = t.default[1] if t.default else None
                continue
            if n in self.required and (t.default or t.is_null()) and r.random() < 0.2:
                got[n] = t.default[1] if t.default else None
                continue
            tokens, got[n] = t.make(r)
            members.append((n, tokens))
            if r.random() < 0.1:    # an earlier one, of any kind: the last counts
                members.insert(r.randrange(len(members)), (n, any_json(r)))
        for n, t in self.illegal.items():
            if r.random() < 0.6:
                tokens, extra[n] = t.make(r)
                members.append((n, tokens))
        if r.random() < 0.7 and (self.open or not self.illegal):
            taken = {n for n, _ in members} | set(NAMES) | set(ILLEGAL)
            for _ in range(r.randrange(3)):
                k = one_key(r, taken)
                tokens = any_json(r)
                members.append((k, tokens))
                if self.open:
                    extra[k] = None if tokens == ['null'] else {'json': 's:' + compact(tokens)}
        order = list(range(len(members)))
        r.shuffle(order)
        # duplicates keep their order
        done, out = {}, []
        for i in order:
            name = members[i][0]
            same = [m for m in members if m[0] == name]
            out.append(same[done.get(name, 0)])
            done[name] = done.get(name, 0) + 1
        return out, got, extra

    def value(self, r):
        members, got, extra = self.members(r)
        out = ['{']
        for i, (n, tokens) in enumerate(members):
            out += ([','] if i else []) + [quote(r, n), ':'] + tokens
        if (self.open or self.illegal) and not self.top:
            got['_flow_extra'] = extra
        return out + ['}'], got


def default_of(r, t):
    """One that Python's json writes as it was, or none."""
    if t.null and r.random() < 0.3:
        return ['null'], None
    if isinstance(t, (Array, Map)):
        return (['[]'], []) if isinstance(t, Array) else (['{}'], {})
    tokens, decoded = t.value(r)
    s = compact(tokens)
    if s[0] != '"' and isinstance(t, (Long, TextNumber)) and re.search('[.eE]', s):
        return None
    if s[0] != '"' and isinstance(t, (Double, NumberText)) and float(s) in (float('inf'), float('-inf')):
        return None
    if s[:2] == '-0':
        return None    # Python reads an integer 0
    return None if re.search(r'\\u[dD][89abcdefABCDEF]', s) else (tokens, decoded)


def random_type(r, depth):
    kinds = [Long, Double, String, Bool, Date, Time, Uuid, Duration, TextNumber, NumberText]
    k = r.random()
    if depth < 4 and k < 0.35:
        t = r.choice([Array, Map, Record])(r, depth)
    elif k < 0.5:
        return Raw(r)
    else:
        t = r.choice(kinds)()
    t.null = r.random() < 0.3
    return t


def collection(seed):
    """A case for avro_dump without documents, and the type."""
    r = random.Random(seed)
    t = Record(r, 0, top=True)
    t.illegal, t.open = {}, True
    key = [n for n, f in t.fields.items() if getattr(f, 'scalar', False)]
    if not key:
        t.fields['id'] = Long()
        key = ['id']
    key = key[:r.choice([1, 1, 2])]
    for n in key:
        t.fields[n].null, t.fields[n].default = False, None
        t.required.add(n)
    case = {'schema': t.schema(r), 'key': ['/' + n for n in key], 'exclude': ['flow_published_at']}
    return r, t, key, case


def document(r, t, key):
    """(text, decoded value, decoded key)"""
    tokens, got = t.value(r)
    return spaced(r, tokens), got, {'_flow_key': {'p%d' % (i + 1): got[n] for i, n in enumerate(key)}}
