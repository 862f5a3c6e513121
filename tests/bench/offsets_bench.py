#!/usr/bin/env python3
"""Figures of the offset contract: what waiting costs, how quick news is, what many partitions cost. Prints a table; asserts
nothing: times belong to the machine, the ratios of one run are what counts.

    $LAB/py/bin/python tests/bench/offsets_bench.py [idle latency throughput metadata session]     (default: all)

SLUICE_BIN  a release build (default build/release/sluice). With the lab's Kafka installed (tests/lab/kafka-install.sh) the same is
            asked of a real Kafka in the same run. BENCH_SECONDS, BENCH_DOCS: how much (10; 200000)."""
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
os.environ.setdefault('SLUICE_BIN', str(ROOT / 'build/release/sluice'))
sys.path.insert(0, str(ROOT / 'tests/integration'))
sys.modules.setdefault('pytest', types.ModuleType('pytest'))    # the helpers below only skip with it; this is no test
import clients    # noqa: E402
from journals import Journal    # noqa: E402
from kafka_raw import FETCH, LATEST, METADATA, Conn, decode_batches, encode_request, framed, visible    # noqa: E402
from sluice import Server    # noqa: E402

SECONDS = float(os.environ.get('BENCH_SECONDS') or 10)
DOCS = int(os.environ.get('BENCH_DOCS') or 200000)
LAB_DIR = clients.LAB_DIR
HZ = os.sysconf('SC_CLK_TCK')


def cpu_of(pid):
    f = open('/proc/%d/stat' % pid).read().rsplit(') ', 1)[1].split()
    return (int(f[11]) + int(f[12])) / HZ


def rss_of(pid):
    return next(int(x.split()[1]) / 1024 for x in open('/proc/%d/status' % pid) if x.startswith('VmRSS'))


class Kafka:
    """A real Kafka, or None when it is not installed."""

    def __init__(self, work):
        self.dir, self.port = work / 'kafka', 19392
        subprocess.run([LAB_DIR / 'kafka-up.sh', str(self.dir), str(self.port)], check=True, stdout=subprocess.DEVNULL)
        self.pid = int((self.dir / 'pid').read_text())
        self.bootstrap = '127.0.0.1:%d' % self.port

    def topic(self, name, partitions=1):
        from confluent_kafka.admin import AdminClient, NewTopic
        admin = AdminClient({'bootstrap.servers': self.bootstrap})    # must outlive its answers
        for f in admin.create_topics([NewTopic(name, partitions, 1)]).values():
            f.result()
        time.sleep(1)

    def stop(self):
        subprocess.run([LAB_DIR / 'kafka-down.sh', str(self.dir)], check=False, stdout=subprocess.DEVNULL)


def row(*cells):
    print('| ' + ' | '.join(str(c) for c in cells) + ' |', flush=True)


def head(title, *names):
    print('\n### %s\n' % title)
    row(*names)
    row(*(['---'] + ['---:'] * (len(names) - 1)))


def producer(k):
    from confluent_kafka import Producer
    return Producer({'bootstrap.servers': k.bootstrap, 'linger.ms': 0, 'acks': 1, 'queue.buffering.max.messages': 200000})


# --- idle consumers ------------------------------------------------------------------------------------------------------

def idle(s, k, work):
    """2,000 consumers, a Fetch of 500 ms each, at the end of a partition."""
    tool = work / 'ask_loop'
    subprocess.run(['cc', '-O2', '-D_GNU_SOURCE', '-o', tool, HERE / 'ask_loop.c'], check=True)
    head('2,000 consumers in long poll (500 ms), nothing to get', 'server', 'fetches/s', 'CPU of one core', 'us per fetch', 'RSS MB')
    s.publish('idle', [{'n': 1}])
    if k:
        k.topic('idle')
        p = producer(k)
        p.produce('idle', b'{"n":1}')
        p.flush()
    for name, port, pid in [('Sluice', s.kafka, s.proc.pid)] + ([('Kafka', k.port, k.pid)] if k else []):
        with Conn(port) as c:
            at = c.list_offset('idle', 0, LATEST)['offset']
        f = work / 'frame'
        f.write_bytes(framed(encode_request(FETCH, 11, {'max_wait_ms': 500, 'min_bytes': 1, 'max_bytes': 50 << 20, 'topics': [
            {'topic': 'idle', 'partitions': [{'partition': 0, 'fetch_offset': at, 'partition_max_bytes': 1 << 20}]}]})))
        q = subprocess.Popen([tool, str(port), f, '2000', str(SECONDS + 3)], stdout=subprocess.PIPE)
        assert q.stdout.readline() == b'ready\n'
        time.sleep(2)
        c0, t0 = cpu_of(pid), time.monotonic()
        time.sleep(SECONDS)
        used, took = cpu_of(pid) - c0, time.monotonic() - t0
        answers = float(q.communicate()[0].split()[-2])
        row(name, '%.0f' % answers, '%.1f %%' % (used / took * 100), '%.1f' % (used / took / answers * 1e6), '%.0f' % rss_of(pid))


# --- latency -------------------------------------------------------------------------------------------------------------

def latency(s, k, work):
    """From the call that publishes to the record in the hands of a consumer that waits (raw Fetch, 5 s)."""
    import http.client
    n = int(30 * SECONDS)
    head('A new document reaches a waiting consumer (%d documents)' % n, 'server', 'median ms', 'p99 ms', 'durable on disk before it is seen')
    figures = {}
    for name, port in [('Sluice', s.kafka)] + ([('Kafka', k.port)] if k else []):
        if name == 'Sluice':
            s.publish('news', [{'n': 0}])
            h = http.client.HTTPConnection('127.0.0.1', s.admin)

            def publish(i):
                h.request('POST', '/v1/collections/news/documents', b'{"n":%d,"pad":"%s"}\n' % (i, b'x' * 200), {'Content-Type': 'application/x-ndjson'})
                return lambda: h.getresponse().read()
        else:
            k.topic('news')
            p = producer(k)
            p.produce('news', b'{"n":0}')
            p.flush()

            def publish(i):
                p.produce('news', b'{"n":%d,"pad":"%s"}' % (i, b'x' * 200))
                return p.flush
        waits = []
        with Conn(port) as c:
            at = c.list_offset('news', 0, LATEST)['offset']
            for i in range(n):
                corr = c.fetch_start('news', {0: at}, max_wait_ms=5000)
                time.sleep(0.004)
                t0 = time.monotonic()
                done = publish(i)
                r = c.finish(FETCH, 11, corr)
                waits.append(time.monotonic() - t0)
                done()
                got = visible(decode_batches(r['responses'][0]['partitions'][0]['records'], check_crc=False), at)
                at = got[-1].offset + 1
        waits.sort()
        figures[name] = waits[n // 2], waits[int(n * 0.99)]
        row(name, '%.2f' % (waits[n // 2] * 1e3), '%.2f' % (waits[int(n * 0.99)] * 1e3), 'yes' if name == 'Sluice' else 'no (page cache)')
    if k:
        row('ratio', *['%.2f' % (a / b) for a, b in zip(figures['Sluice'], figures['Kafka'])], '')


# --- throughput ------------------------------------------------------------------------------------------------------------

def throughput(s, k, work):
    """The same documents (about 1 KiB, 4 partitions) from both servers, second of two runs."""
    py = clients.PY['main']
    lines = subprocess.run([py, LAB_DIR / 'bench-load.py', '--stdout', '-n', str(DOCS)], check=True, stdout=subprocess.PIPE).stdout.splitlines(True)
    for i in range(0, len(lines), 20000):
        s.publish('bulk', b''.join(lines[i:i + 20000]), partitions=4, key='/user')
    if k:
        k.topic('bulk', 4)
        from confluent_kafka import Consumer, OFFSET_BEGINNING, TopicPartition
        c, p, n = Consumer({'bootstrap.servers': s.bootstrap, 'group.id': 'x'}), None, 0
        from confluent_kafka import Producer
        p = Producer({'bootstrap.servers': k.bootstrap, 'linger.ms': 50, 'batch.size': 131072, 'queue.buffering.max.messages': 200000})
        c.assign([TopicPartition('bulk', i, OFFSET_BEGINNING) for i in range(4)])
        while n < len(lines):
            for m in c.consume(1000, 1):
                assert not m.error()
                p.produce('bulk', m.value(), m.key(), partition=m.partition())
                n += 1
            p.poll(0)
        p.flush()
    head('Reading %d documents' % DOCS, 'client', 'server', 'documents/s', 'MB/s', 'client CPU s', 'server CPU s', 'server RSS MB')
    for name, cmd in (('librdkafka (kcat)', lambda b: ['kcat', '-C', '-q', '-b', b, '-t', 'bulk', '-o', 'beginning', '-e', '-f', '']),
                      ('librdkafka (confluent-kafka)', lambda b: [py, LAB_DIR / 'py/consume.py', 'confluent', '-m', 'direct', '-b', b, '-t', 'bulk', '-n', str(DOCS)]),
                      ('franz-go', lambda b: [clients.LAB / 'bin/lab-franz', '-m', 'bench', '-b', b, '-t', 'bulk', '-n', str(DOCS)])):
        for server, b, pid in [('Sluice', s.bootstrap, s.proc.pid)] + ([('Kafka', k.bootstrap, k.pid)] if k else []):
            best = None
            for _ in range(3):
                c0, r0, t0 = cpu_of(pid), resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
                out = subprocess.run([str(x) for x in cmd(b)], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode(errors='replace')
                took, r1 = time.monotonic() - t0, resource.getrusage(resource.RUSAGE_CHILDREN)
                secs = float(out.split('secs=')[1].split()[0]) if 'secs=' in out else took
                figures = (secs, r1.ru_utime + r1.ru_stime - r0.ru_utime - r0.ru_stime, cpu_of(pid) - c0)
                best = min(best or figures, figures)
            row(name, server, '%.0f' % (DOCS / best[0]), '%.0f' % (sum(map(len, lines)) / 1e6 / best[0]), '%.2f' % best[1], '%.2f' % best[2], '%.0f' % rss_of(pid))


# --- many partitions ---------------------------------------------------------------------------------------------------------

def many(s, topic, n):
    js = [Journal(s, topic, name='%s/%05d' % (topic, i)) for i in range(n)]
    end = time.monotonic() + 60
    with Conn(s.kafka, timeout=60) as c:
        while len(c.metadata(topic)['partitions']) < n:
            assert time.monotonic() < end
            time.sleep(0.1)
    return js


def metadata(s, k, work):
    head('Metadata of a topic', 'partitions', 'median ms', 'bytes', 'server CPU us a request')
    for n in (10, 1000, 5000):
        topic = 'wide-%d' % n
        many(s, topic, n)
        waits = []
        with Conn(s.kafka, timeout=60) as c:
            rounds = 200 if n < 5000 else 50
            c0 = cpu_of(s.proc.pid)
            for i in range(rounds):
                t0 = time.monotonic()
                c.start(METADATA, 12, topics=[{'name': topic}])
                size = len(c.recv())
                waits.append(time.monotonic() - t0)
            used = cpu_of(s.proc.pid) - c0
        waits.sort()
        row(n, '%.2f' % (waits[rounds // 2] * 1e3), size, '%.0f' % (used / rounds * 1e6))


def session(s, k, work):
    """Cost of an incremental fetch by the number of partitions in the session: one is busy."""
    head('Session fetch, one busy partition', 'partitions', 'fetches', 'median ms', 'server CPU us a fetch', 'idle session: server CPU us a fetch')
    for n in (10, 100, 1000):
        topic = 'sess-%d' % n
        js = many(s, topic, n)
        for j in js:
            j.doc(100).write()
        rounds = int(100 * SECONDS)
        with Conn(s.kafka, timeout=60) as c:
            end = time.monotonic() + 20
            while any(c.list_offset(topic, i, LATEST)['offset'] != 100 for i in (0, n - 1)):
                assert time.monotonic() < end
            r = c.finish(FETCH, 11, c.fetch_start(topic, {i: 100 for i in range(n)}, session_id=0, session_epoch=0))
            sid, epoch, at, waits, used = r['session_id'], 1, 100, [], 0
            assert sid
            # rounds of appends outside of the clock, then fetches of what came; CPU of the fetches alone
            for i in range(rounds):
                js[n // 2].doc(150).write()
                c0, t0 = time.thread_time(), time.monotonic()
                r = c.finish(FETCH, 11, c.fetch_start(topic, {n // 2: at}, session_id=sid, session_epoch=epoch, max_wait_ms=500))
                waits.append(time.monotonic() - t0)
                (p,) = [p for t in r['responses'] for p in t['partitions']]
                at, epoch = visible(decode_batches(p['records'], check_crc=False), at)[-1].offset + 1, epoch + 1
            f0 = cpu_of(s.proc.pid)
            many_n = 20 * rounds
            for i in range(many_n):    # the busy partition again and again from one document back: always one to serve
                r = c.finish(FETCH, 11, c.fetch_start(topic, {n // 2: at - 150}, session_id=sid, session_epoch=epoch, max_wait_ms=0))
                epoch += 1
            busy = (cpu_of(s.proc.pid) - f0) / many_n
            c.finish(FETCH, 11, c.fetch_start(topic, {n // 2: at}, session_id=sid, session_epoch=epoch))
            epoch += 1
            f0 = cpu_of(s.proc.pid)
            for i in range(many_n):
                c.finish(FETCH, 11, c.fetch_start(topic, {}, session_id=sid, session_epoch=epoch, max_wait_ms=0))
                epoch += 1
            still = (cpu_of(s.proc.pid) - f0) / many_n
        waits.sort()
        row(n, rounds, '%.2f' % (waits[rounds // 2] * 1e3), '%.1f' % (busy * 1e6), '%.1f' % (still * 1e6))


ALL = {'idle': idle, 'latency': latency, 'throughput': throughput, 'metadata': metadata, 'session': session}


def main():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    names = sys.argv[1:] or list(ALL)
    work = Path(tempfile.mkdtemp(prefix='sluice-bench-'))
    s = k = None
    try:
        s = Server(work / 'data', work, ('--journal-admin', '--workers', '1', '--log-level', 'warn')).start()
        if clients.JAVA.exists() and set(names) & {'idle', 'latency', 'throughput'}:
            k = Kafka(work)
        for n in names:
            ALL[n](s, k, work)
        print('\nload average %.1f, %d cores, one worker thread' % (os.getloadavg()[0], os.cpu_count()))
    finally:
        if s:
            s.stop()
        if k:
            k.stop()
        shutil.rmtree(work, ignore_errors=True)


if __name__ == '__main__':
    main()
