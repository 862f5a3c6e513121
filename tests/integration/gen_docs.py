#!/usr/bin/env python3
"""Deterministic documents of about 1 KB for the million test. gen_docs.py N [FIRST] > docs.ndjson
Standard error gets one line: 'count bytes sum', where sum adds up an 8-byte hash of every document's text modulo 2^64:
equal sums mean the same documents, in whatever order."""
import hashlib
import random
import sys


def bodies():
    r = random.Random(20260101)
    words = [''.join(r.choice('abcdefghijklmnopqrstuvwxyz') for _ in range(r.randint(3, 10))) for _ in range(3000)]
    return [('"url":"https://shop.example/%s","amount":%.2f,"tags":["%s"],"note":"%s","sig":"%064x"}' % (
        '/'.join(r.choice(words) for _ in range(4)), r.random() * 1000, '","'.join(r.choice(words) for _ in range(6)),
        ' '.join(r.choice(words) for _ in range(97)), r.getrandbits(256))).encode() for _ in range(1024)]


def doc_hash(text):
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), 'big')


def main():
    n, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    pool, out = bodies(), sys.stdout.buffer
    total = size = 0
    chunk = []
    for i in range(first, first + n):
        d = b'{"id":%d,"user":"u%05d","session":"%016x",' % (i, i * 2654435761 % 50021, i * 0x9E3779B97F4A7C15 & (1 << 64) - 1) + pool[i * 7919 & 1023]
        total = total + doc_hash(d) & (1 << 64) - 1
        size += len(d)
        chunk.append(d)
        if len(chunk) == 1000:
            out.write(b'\n'.join(chunk) + b'\n')
            chunk = []
    if chunk:
        out.write(b'\n'.join(chunk) + b'\n')
    out.flush()
    print(n, size, total, file=sys.stderr)


if __name__ == '__main__':
    main()
