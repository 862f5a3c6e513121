#!/usr/bin/env python3
"""Compares our tables with the message definitions that a kafka-clients jar carries, version by version.

usage: compare_tables.py JAR

For each API and version of ours, both directions: the same fields in the same order, with the same type, nullability,
tag, default and ignorable flag; the same first flexible version; no version of ours that Kafka does not have or calls
unstable. Prints the number of compared fields. Exit 0; 1 with a line a difference; 77 when the jar has no definitions.
"""
import json
import pathlib
import re
import subprocess
import sys
import zipfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "kafka_proto" / "gen"))
from kmsg import NEVER, snake  # noqa: E402

INTS = ("int8", "int16", "int32", "int64", "bool")


def our_tables():
    files = sorted(str(p) for p in (ROOT / "kafka_proto" / "messages").glob("*.kmsg"))
    out = subprocess.run([sys.executable, str(ROOT / "kafka_proto" / "gen" / "kpgen.py"), "--dump-model", *files],
                         check=True, capture_output=True)
    return json.loads(out.stdout)


def their_definitions(jar):
    """(api key, "request" or "response") -> definition. The files are JSON with // comments."""
    found = {}
    with zipfile.ZipFile(jar) as z:
        for name in z.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                text = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*', lambda m: m[1] or "", z.read(name).decode("utf-8"))
                d = json.loads(text)
                if "apiKey" in d:
                    found[d["apiKey"], d["type"]] = d
    return found


def within(versions, v):
    if versions in (None, "none"):
        return False
    lo, plus, hi = re.fullmatch(r"(\d+)(?:(\+)|-(\d+))?", versions).groups()
    return v >= int(lo) and (plus is not None or v <= int(hi or lo))


def first_flexible(versions):
    return NEVER if versions == "none" else int(re.match(r"\d+", versions)[0])


def their_default(f, kind, array):
    """As our generator has it: None for zero, false or empty, "null", or the number."""
    text = str(f.get("default", "")).lower()
    if text == "null":
        return "null"
    if array or kind not in INTS:
        assert text == "", f"{f['name']}: unexpected default {text}"
        return None
    number = {"": 0, "false": 0, "true": 1}.get(text)
    return (int(text, 0) if number is None else number) or None


def theirs(fields, common, v):
    """The rows of one version, nested ones with them."""
    rows = []
    for f in fields:
        if not within(f["versions"], v):
            continue
        array = f["type"].startswith("[]")
        base = f["type"].removeprefix("[]")
        kind = "struct" if base[0].isupper() else base
        children = (f.get("fields") or common[base]) if kind == "struct" else []
        rows.append({"name": snake(f["name"]), "type": kind, "array": array,
                     "null": within(f.get("nullableVersions"), v),
                     "tag": f.get("tag") if within(f.get("taggedVersions"), v) else None,
                     "default": their_default(f, kind, array), "ignorable": f.get("ignorable", False),
                     "fields": theirs(children, common, v)})
    return rows


def ours(fields, v):
    return [{"name": f["name"], "type": f["type"], "array": f["array"],
             "null": f["null_lo"] is not None and v >= f["null_lo"], "tag": f["tag"],
             "default": f["default"] or None, "ignorable": f["ignorable"], "fields": ours(f["fields"], v)}
            for f in fields if f["lo"] <= v <= f["hi"]]


def compare(where, a, b, faults):
    """Number of rows that were compared; tagged fields have no place, so they are sorted to the end."""
    a, b = (sorted(x, key=lambda f: -1 if f["tag"] is None else f["tag"]) for x in (a, b))
    if [f["name"] for f in a] != [f["name"] for f in b]:
        faults.append(f"{where}: fields {[f['name'] for f in a]}, Kafka has {[f['name'] for f in b]}")
        return 0
    n = len(a)
    for x, y in zip(a, b):
        here = f"{where}.{x['name']}"
        faults.extend(f"{here}: {k} {x[k]}, Kafka has {y[k]}" for k in x if k != "fields" and x[k] != y[k])
        n += compare(here, x["fields"], y["fields"], faults)
    return n


def main(argv):
    if len(argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    definitions = their_definitions(argv[1])
    if not definitions:
        print("the jar has no message definitions")
        return 77
    faults, rows = [], 0
    for api in our_tables():
        for side in ("request", "response"):
            d = definitions[api["key"], side]
            name = d["name"]
            if name != api["name"] + side.capitalize():
                faults.append(f"key {api['key']}: {api['name']}, Kafka has {name}")
            if first_flexible(d["flexibleVersions"]) != api["flexible"]:
                faults.append(f"{name}: flexible from {api['flexible']}, Kafka has {d['flexibleVersions']}")
            common = {c["name"]: c["fields"] for c in d.get("commonStructs", [])}
            for v in range(api["lo"], api["hi"] + 1):
                if not within(d["validVersions"], v):
                    faults.append(f"{name}: version {v}, Kafka has {d['validVersions']}")
                    continue
                rows += compare(f"{name} v{v}", ours(api[side], v), theirs(d["fields"], common, v), faults)
            newest = re.findall(r"\d+", d["validVersions"])[-1]
            if d.get("latestVersionUnstable") and api["hi"] >= int(newest):
                faults.append(f"{name}: version {newest} is unstable")
    for fault in faults:
        print(fault)
    print(f"{rows} fields compared, {len(faults)} differences")
    return 1 if faults or rows == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
