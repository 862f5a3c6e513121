#!/usr/bin/env python3
"""Reads batches written by our own writer with kafka-python's record classes.

usage: batch_check.py DIR     DIR/*.batch, left there by unit_kafka_proto_batch_golden_test with SLUICE_BATCH_DUMP=DIR

Exit 0: all equal the agreed 40 records (tests/unit/kafka_proto/batch_golden_test.c). 77: kafka-python is missing.
"""
import pathlib
import sys

try:
    from kafka.record import MemoryRecords
except ImportError:
    print("skipped: kafka-python is not installed")
    sys.exit(77)

TEXT = "the quick brown fox jumps over the lazy dog, the quick brown fox"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def make(i):
    """Record i of the agreed content: offset, timestamp, key, value, headers."""
    key = None if i % 4 == 0 else f"key-{i}".encode()
    value = f'{{"i":{i},"text":"{TEXT}"}}'.encode()
    if i % 10 == 3:
        value = None
    if i % 10 == 4:
        value = b""
    headers = [("\u00fc", None), ("h1", b"" if i % 2 == 0 else b"x")][: i % 3]
    return 100 + 7 * i, 1700000000000 + 10 * (i % 5) - i % 3, key, value, headers


def check(name, data):
    records = MemoryRecords(data)
    batch = records.next_batch()
    assert batch.validate_crc(), f"{name}: CRC"
    assert not records.has_next(), f"{name}: bytes left over"
    if name == "control":
        (rec,) = list(batch)
        assert batch.is_control_batch and rec.offset == 4711 and rec.value is None, name
        assert rec.key == b"\x00\x00\xff\xff", name
        return
    assert batch.compression_type == CODECS.index(name), f"{name}: codec"
    assert batch.last_offset == 100 + 7 * 39, f"{name}: last offset"
    got = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert got == [make(i) for i in range(40)], f"{name}: records differ"


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("*.batch"))
    assert len(files) == len(CODECS) + 1, f"{len(files)} batches found"
    for f in files:
        check(f.stem, f.read_bytes())
    print(f"{len(files)} batches read by kafka-python")


if __name__ == "__main__":
    main()
