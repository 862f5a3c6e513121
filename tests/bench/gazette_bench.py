#!/usr/bin/env python3
"""Reading a backlog of a real Gazette cluster: fragments where they lie against the same bytes through the broker, in one run, with the
CPU of each process. Prints a table; asserts nothing.

    GAZETTE_BIN=... $LAB/py-tests/bin/python tests/bench/gazette_bench.py [MiB]        (default 1024)

SLUICE_BIN     a release build (default build/release/sluice)
BENCH_CODECS   codecs of the fragments, by comma (default none); BENCH_ROUNDS (default 2), the best of which is printed
The page cache holds the files in every round: what is compared is the way, not the disk."""
import os
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
os.environ.setdefault('SLUICE_BIN', str(ROOT / 'build/release/sluice'))
sys.path.insert(0, str(ROOT / 'tests/integration'))
from clients import LAB    # noqa: E402
from gazette_lab import cluster    # noqa: E402
from kafka_raw import FETCH, LATEST, Conn, encode_request, framed    # noqa: E402
from sluice import Server    # noqa: E402

MIB = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
ROUNDS = int(os.environ.get('BENCH_ROUNDS') or 2)
TOPIC = 'bench'


def docs(n_bytes):
    """NDJSON of about 1 KiB a line, not all alike."""
    pad = 'abcdefghijklmnopqrstuvwxyz0123456789' * 26
    n, out = 0, []
    while n_bytes > 0:
        line = '{"id":%d,"at":%d,"text":"%s"}\n' % (n, n * 7919, pad[n % 36:n % 36 + 880])
        out.append(line)
        n_bytes -= len(line) + 56
        n += 1
        if len(out) == 4096:
            yield ''.join(out).encode()
            out = []
    yield ''.join(out).encode()


def consume(port):
    """Every record batch from 0 to the end, by raw fetches, one under way behind the other; returns bytes and batches."""
    got = batches = 0
    with Conn(port, timeout=60, rcvbuf=4 << 20) as c:
        end, at = c.list_offset(TOPIC, 0, LATEST)['offset'], 0
        buf = bytearray(64 << 20)
        view = memoryview(buf)
        sock = c.s if hasattr(c, 's') else c.sock
        while at < end:
            body = {'max_wait_ms': 5000, 'min_bytes': 1, 'max_bytes': 16 << 20, 'isolation_level': 0, 'session_id': 0, 'session_epoch': -1,
                    'topics': [{'topic': TOPIC, 'partitions': [{'partition': 0, 'fetch_offset': at, 'partition_max_bytes': 16 << 20,
                                                                 'current_leader_epoch': -1}]}], 'forgotten_topics_data': []}
            sock.sendall(framed(encode_request(FETCH, 11, body)))
            n = 0
            while n < 4:
                n += sock.recv_into(view[n:4])
            size, n = struct.unpack_from('>i', buf)[0], 0
            while n < size:
                n += sock.recv_into(view[n:size])
            # the records are the tail of a v11 answer of one partition: ...int32 length, batches
            head = 4 + 4 + 2 + 4 + 4 + 2 + len(TOPIC) + 4 + 4
            error, = struct.unpack_from('>h', buf, head)
            assert error == 0, error
            p = head + 2 + 8 + 8 + 8
            aborted, = struct.unpack_from('>i', buf, p)
            p += 4 + max(aborted, 0) * 16 + 4
            length, = struct.unpack_from('>i', buf, p)
            p += 4
            assert length > 0, 'nothing at %d of %d' % (at, end)
            stop = p + length
            while p + 61 <= stop:
                base, blen = struct.unpack_from('>qi', buf, p)
                last, = struct.unpack_from('>i', buf, p + 23)
                if p + 12 + blen > stop:
                    break
                at = base + last + 1
                p += 12 + blen
                batches += 1
            got += length
    return got, batches


def librdkafka(port):
    p = subprocess.run([str(LAB / 'bin/rdkafka_performance'), '-C', '-q', '-b', '127.0.0.1:%d' % port, '-t', TOPIC, '-p', '0', '-o', 'beginning', '-e',
                        '-X', 'fetch.message.max.bytes=8000000', '-X', 'check.crcs=false'], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600)
    assert p.returncode == 0, p.stdout[-400:]


READERS = [('raw fetches', consume)]
if (LAB / 'bin/rdkafka_performance').exists():
    READERS.append(('librdkafka', librdkafka))


def rounds(c, work, label, flags, reader, content):
    """The best of several cold gateways: (MB/s, CPU of gateway, of the broker, of the reader)."""
    best = None
    for k in range(ROUNDS):
        s = Server(work / 'gateway', work / ('w-%s-%d' % (label, time.monotonic_ns())), ['--store', 'gazette://' + c.brokers, *flags])
        s.workdir.mkdir()
        s.start()
        with Conn(s.kafka) as conn:
            conn.list_offset(TOPIC, 0, LATEST)    # the journal is open
        g0, b0, r0, t0 = s.cpu(), c.cpu('gazette0'), os.times(), time.monotonic()
        reader(s.kafka)
        took, r1 = time.monotonic() - t0, os.times()
        me = sum(r1[:4]) - sum(r0[:4])
        row = (content / took / 1e6, s.cpu() - g0, c.cpu('gazette0') - b0, me)
        s.stop()
        if best is None or row[0] > best[0]:
            best = row
    return best


def main():
    work = Path(tempfile.mkdtemp(prefix='gazette-bench-'))
    try:
        for codec in (os.environ.get('BENCH_CODECS') or 'none').split(','):
            run(work / codec, codec)
    finally:
        subprocess.run(['rm', '-rf', str(work)])


def run(work, codec):
    work.mkdir(parents=True)
    with cluster(work / 'lab') as c:
        flags = ['--fragment-store', 'file:///', '--fragment-codec', codec]
        s = Server(work / 'gateway', work / 'fill', ['--store', 'gazette://' + c.brokers, *flags])
        s.workdir.mkdir()
        s.start()
        p = subprocess.Popen([s.binary, 'publish', TOPIC, '--admin', s.admin_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        t0 = time.monotonic()
        for part in docs(MIB << 20):
            p.stdin.write(part)
        p.stdin.close()
        out = p.stdout.read().decode()
        assert p.wait() == 0, out
        took = time.monotonic() - t0
        content = s.topics()[TOPIC]['partitions'][0]
        content = content.get('high_watermark') or content.get('hwm')
        print('%s: %d MB published in %.1f s: %.0f MB/s' % (codec, content / 1e6, took, content / took / 1e6), flush=True)
        s.stop()
        c.stop()    # the last fragment goes to the store, too
        c.start()
        print('%-12s %-12s %8s %12s %12s %12s' % ('reader', 'way', 'MB/s', 'gateway CPU', 'broker CPU', 'reader CPU'))
        for name, reader in READERS:
            direct = rounds(c, work, 'direct', [*flags, '--fragment-root', str(c.store)], reader, content)
            broker = rounds(c, work, 'broker', [*flags, '--fragments-by-broker'], reader, content)
            for way, r in (('direct', direct), ('broker', broker)):
                print('%-12s %-12s %8.0f %10.2f s %10.2f s %10.2f s' % (name, way, *r))
            print('%-12s %-12s %8.1f x' % (name, 'ratio', direct[0] / broker[0]), flush=True)


main()
