#!/usr/bin/env python3
"""Change documents as a capture from a database makes them, the same on each run: small.ndjson (about
360 bytes each) and big.ndjson (960), MB each of the first argument, in the present folder."""
import json
import random
import sys

random.seed(7)


def doc(i, pad):
    uuid = "%08x-%04x-1%03x-a%03x-0100000000%02x" % (
        random.getrandbits(32), random.getrandbits(16), random.getrandbits(12), 0, random.getrandbits(8))
    return json.dumps({
        "_meta": {"uuid": uuid, "op": "u",
                  "source": {"ts_ms": 1700000000000 + i, "schema": "public", "table": "orders", "loc": [1, 2, i]}},
        "id": i, "customer": "cust-%d" % random.randrange(10**6), "amount": round(random.random() * 1000, 2),
        "status": random.choice(["new", "paid", "shipped", "returned"]), "note": "x" * pad + " \u00e9 \"q\"",
        "items": [{"sku": "sku-%d" % random.randrange(9999), "qty": random.randrange(9),
                   "price": random.random() * 50} for _ in range(3)],
        "flag": True, "nul": None}, separators=(",", ":"), ensure_ascii=False)


for name, pad in (("small", 0), ("big", 600)):
    want, n, i = (int(sys.argv[1]) if len(sys.argv) > 1 else 16) << 20, 0, 0
    with open(name + ".ndjson", "w", encoding="utf-8") as f:
        while n < want:
            line = doc(i, pad) + "\n"
            n += len(line.encode())
            i += 1
            f.write(line)
