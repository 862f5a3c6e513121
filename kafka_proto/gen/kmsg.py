"""Parser and checker of the .kmsg files. The format:

A .kmsg file holds one API. `#` starts a comment. Nesting is by two spaces:

    api 1 Fetch  versions 4-18  flexible 12       flexible: first version of KIP-482, or `none`
    request                                       what we speak; no range: as the enclosing struct
      replica_id     int32     4-14  = -1         NAME TYPE [RANGE] [tag N] [ignorable] [= DEFAULT]
      topics         []                           array of structs: its fields follow, indented
        partitions   []int32?  13+                `?`: nullable, `?12+`: nullable from version 12 on
      cursor         {}?                          nested struct
    response
      ...

TYPE: bool int8 int16 int32 int64 uuid string bytes records, [] of these, [] and {} of structs.
DEFAULT: a number, true, or null; without one: 0, false, empty. A field that is absent in a version
must hold its default when that version is encoded, unless it is `ignorable`.
Names are Kafka's own in snake_case: a capital starts a word unless it follows a capital and no
lower-case letter follows it. Whatever would make a wrong table is refused with file and line.
"""
import re

# type: (C type, smallest wire size in plain and in flexible versions)
TYPES = {
    "bool": ("bool", 1, 1), "int8": ("int8_t", 1, 1), "int16": ("int16_t", 2, 2),
    "int32": ("int32_t", 4, 4), "int64": ("int64_t", 8, 8), "uuid": ("struct kp_uuid", 16, 16),
    "string": ("struct span", 2, 1), "bytes": ("struct span", 4, 1),
    "records": ("struct kp_records", 4, 1),
}
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
NEVER = 32767
C_WORDS = set("""auto break case char const continue default do double else enum extern float for goto if
inline int long register restrict return short signed sizeof static struct switch typedef union unsigned
void volatile while bool true false""".split())


class Refused(Exception):
    """A fault in a message file; its text starts with file:line."""


def refuse(where, text):
    raise Refused(f"{where}: {text}")


def snake(name):
    """Kafka's CamelCase to our names."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


class Field:
    def __init__(self, where, name):
        self.where, self.name = where, name
        self.type = None          # a key of TYPES, or "struct"
        self.array = False
        self.lo = self.hi = 0
        self.null_lo = None       # first version in which null is legal
        self.tag = None
        self.ignorable = False
        self.default = None       # int, "null" or None
        self.fields = []
        self.path = None          # of structs: C name without `struct`

    def present(self, v):
        return self.lo <= v <= self.hi


class Api:
    def __init__(self, where, key, name, lo, hi, flexible):
        self.where, self.key, self.name, self.lo, self.hi, self.flexible = where, key, name, lo, hi, flexible
        self.snake = snake(name)
        self.request, self.response = [], []
        self.about = ""


def parse_range(where, text, within):
    m = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", text)
    if not m:
        refuse(where, f"bad version range '{text}'")
    lo = int(m[1])
    hi = within[1] if m[2] else int(m[3] or lo)
    if lo > hi or lo < within[0] or hi > within[1]:
        refuse(where, f"range {text} lies outside of versions {within[0]}-{within[1]}")
    return lo, hi


def parse_default(where, f, text):
    if text == "null":
        if f.null_lo is None or f.null_lo > f.lo:
            refuse(where, "default null, but the field is not nullable in all its versions")
        return "null"
    if f.array or f.type not in BITS and f.type != "bool":
        refuse(where, f"default '{text}' does not fit the type")
    if f.type == "bool":
        if text not in ("true", "false"):
            refuse(where, f"default '{text}' does not fit bool")
        return int(text == "true")
    try:
        n = int(text, 0)
    except ValueError:
        refuse(where, f"default '{text}' is no number")
    if not -(1 << BITS[f.type] - 1) <= n < 1 << BITS[f.type] - 1:
        refuse(where, f"default {text} does not fit {f.type}")
    return n


def parse_field(where, text, api, within):
    m = re.fullmatch(r"([a-z][a-z0-9_]*)\s+(\[\]|)(\w*|\{\})(?:(\?)(?:(\d+)\+)?)?"
                     r"(?:\s+(\d[\d+-]*))?(?:\s+tag\s+(\d+))?(\s+ignorable)?(?:\s+=\s*(\S+))?", text)
    if not m:
        refuse(where, f"cannot read field '{text}'")
    f = Field(where, m[1])
    f.array = m[2] != ""
    f.type = "struct" if m[3] == "{}" or f.array and m[3] == "" else m[3]
    if f.type not in TYPES and f.type != "struct" or f.array and m[3] in ("{}", "records"):
        refuse(where, f"unknown type '{m[2]}{m[3]}'")
    if f.name in C_WORDS:
        refuse(where, f"'{f.name}' is a word of C")
    f.lo, f.hi = parse_range(where, m[6], within) if m[6] else within
    if m[4]:
        if not f.array and f.type not in ("string", "bytes", "records", "struct"):
            refuse(where, f"{f.type} cannot be null")
        f.null_lo = int(m[5]) if m[5] else f.lo
        if not f.lo <= f.null_lo <= f.hi:
            refuse(where, "nullable outside of the field's versions")
        if f.type == "struct" and not f.array and (f.null_lo != f.lo or m[9] != "null" or m[7]):
            refuse(where, "a nullable struct is so in all its versions, defaults to null and has no tag")
    if m[7] is not None:
        f.tag = int(m[7])
        if f.lo < api.flexible:
            refuse(where, f"tag before the flexible version {api.flexible}")
    f.ignorable = m[8] is not None
    if m[9] is not None:
        f.default = parse_default(where, f, m[9])
    return f


def parse_api(where, text):
    m = re.fullmatch(r"api (\d+) ([A-Z]\w*)\s+versions (\d+)-(\d+)\s+flexible (\d+|none)", text)
    if not m:
        refuse(where, "the api line comes first: api KEY Name  versions A-B  flexible F")
    api = Api(where, int(m[1]), m[2], int(m[3]), int(m[4]), NEVER if m[5] == "none" else int(m[5]))
    if api.lo > api.hi or api.hi >= NEVER or api.key >= NEVER:
        refuse(where, "bad versions or key")
    return api


def parse_file(path):
    api, about, seen = None, [], []
    stack = []  # by depth: (list that takes fields, its versions), None below a field that takes none
    with open(path, encoding="ascii") as file:
        lines = file.read().split("\n")
    for no, raw in enumerate(lines, 1):
        where = f"{path}:{no}"
        if "\t" in raw:
            refuse(where, "tab")
        text = raw.split("#")[0].rstrip()
        if not text:
            if api is None and raw.startswith("#"):
                about.append(raw.lstrip("# "))
            continue
        depth, rest = divmod(len(text) - len(text.lstrip()), 2)
        text = text.strip()
        if rest:
            refuse(where, "odd indentation")
        if api is None:
            api = parse_api(where, text)
        elif depth == 0:
            if text not in ("request", "response") or text in seen:
                refuse(where, f"'{text}' where a request or response was expected")
            seen.append(text)
            stack = [(getattr(api, text), (api.lo, api.hi))]
        else:
            if depth > len(stack) or stack[depth - 1] is None:
                refuse(where, "field is indented below nothing that takes fields")
            above, within = stack[depth - 1]
            f = parse_field(where, text, api, within)
            above.append(f)
            stack[depth:] = [(f.fields, (f.lo, f.hi)) if f.type == "struct" else None]
    if seen != ["request", "response"]:
        refuse(path, "needs an api line, a request and a response, in this order")
    api.about = " ".join(about)
    for path_c, fields in sides(api):
        check_struct(api, fields, path_c)
    return api


def wire_min(api, fields, v):
    """The smallest number of bytes that a struct takes in a version."""
    flexible = v >= api.flexible
    n = 1 if flexible else 0
    for f in fields:
        if f.present(v) and f.tag is None:
            if f.array:
                n += 1 if flexible else 4
            elif f.type != "struct":
                n += TYPES[f.type][2 if flexible else 1]
            else:
                n += 1 if f.null_lo is not None else wire_min(api, f.fields, v)
    return n


def check_struct(api, fields, path):
    """Names, ranges and sizes within one struct; sets the C names on the way down."""
    by_name, last_tag = {}, -1
    for f in fields:
        if f.name in by_name:
            refuse(f.where, f"'{f.name}' is taken ({by_name[f.name].where})")
        by_name[f.name] = f
        if f.tag is not None:
            if f.tag <= last_tag:
                refuse(f.where, f"tags must rise, {f.tag} follows {last_tag}")
            last_tag = f.tag
        if f.type == "struct":
            if not f.fields:
                refuse(f.where, f"'{f.name}' has no fields")
            f.path = f"{path}_{f.name}"
            check_struct(api, f.fields, f.path)
            if f.array:
                for v in range(f.lo, f.hi + 1):
                    if wire_min(api, f.fields, v) == 0:
                        refuse(f.where, f"an element takes no bytes in version {v}")
    for f in fields:
        if f.array and f.name + "_n" in by_name:
            refuse(by_name[f.name + "_n"].where, f"'{f.name}_n' is the count of '{f.name}'")


def sides(api):
    yield f"kp_{api.snake}_req", api.request
    yield f"kp_{api.snake}_resp", api.response


def structs(fields, path):
    """Innermost first, as C wants it."""
    for f in fields:
        if f.type == "struct":
            yield from structs(f.fields, f.path)
    yield path, fields


def load(paths):
    apis = sorted((parse_file(p) for p in paths), key=lambda a: a.key)
    for a, b in zip(apis, apis[1:]):
        if a.key == b.key:
            refuse(b.where, f"key {b.key} is taken ({a.where})")
    names = {}
    for api in apis:
        for top, fields in sides(api):
            for path, _ in structs(fields, top):
                if path in names:
                    refuse(api.where, f"struct {path} is taken ({names[path]})")
                names[path] = api.where
    return apis
