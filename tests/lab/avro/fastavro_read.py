#!/usr/bin/env python3
"""fastavro. Logical types are read as what they are made of, so that nothing is rounded."""
import io
import json
import struct
import sys

import fastavro
from fastavro.schema import parse_schema

LOGICAL = ("logicalType",)


def strip(s):
    """The schema without logical types: fastavro would turn them into its own classes."""
    if isinstance(s, list):
        return [strip(x) for x in s]
    if isinstance(s, dict):
        return {k: (strip(v) if k in ("type", "items", "values", "fields") else v) for k, v in s.items() if k not in LOGICAL}
    return s


def plain(s, v):
    if v is None or isinstance(v, bool):
        return v
    if isinstance(v, float):
        return "d:%016x" % struct.unpack(">Q", struct.pack(">d", v))[0]
    if isinstance(v, int):
        return v
    if isinstance(v, str):
        return "s:" + v
    if isinstance(v, bytes):
        return "b:" + v.hex()
    if isinstance(v, dict):
        return {k: plain(s, x) for k, x in v.items()}
    return [plain(s, x) for x in v]


for line in sys.stdin:
    case = json.loads(line)
    try:
        parse_schema(json.loads(case["schema"]))
        schema = parse_schema(strip(json.loads(case["schema"])))
        values = []
        for h in case["data"]:
            f = io.BytesIO(bytes.fromhex(h))
            values.append(plain(schema, fastavro.schemaless_reader(f, schema)))
            if f.read(1):
                raise ValueError("bytes left over")
        print(json.dumps({"ok": True, "values": values}))
    except Exception as e:    # noqa: BLE001: whatever it says is the answer
        print(json.dumps({"ok": False, "error": "%s: %s" % (type(e).__name__, e)}))
    sys.stdout.flush()
