"""Consumers that keep running: each prints the offset of every record as it comes, until it is stopped. Java's probe is
compiled at test time against the lab's kafka-clients."""
import os
import re
import shutil
import subprocess
import tempfile

import clients
from clients import LAB, LAB_DIR, need

CONFLUENT = '''
import sys, confluent_kafka as ck
b, t, iso = sys.argv[1:4]
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x', 'client.id': 'probe-confluent', 'enable.partition.eof': True, 'isolation.level': iso,
                 'enable.auto.commit': False})
c.assign([ck.TopicPartition(t, p, ck.OFFSET_BEGINNING) for p in c.list_topics(t, timeout=20).topics[t].partitions])
while True:
    m = c.poll(0.5)
    if m is None: continue
    if m.error():
        assert m.error().code() == ck.KafkaError._PARTITION_EOF, m.error()
        print('eof', m.offset(), flush=True)
    else: print(m.partition(), m.offset(), flush=True)
'''
CONFLUENT_SEEK = '''
import sys, time, zlib, confluent_kafka as ck
b, t, p, iso = sys.argv[1:5]
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'x', 'enable.partition.eof': True, 'isolation.level': iso, 'enable.auto.commit': False,
                 'auto.offset.reset': 'error', 'fetch.wait.max.ms': 100})
for line in sys.stdin:
    off = int(line)
    c.assign([ck.TopicPartition(t, int(p), off)])
    end = time.time() + 15
    while True:
        m = c.poll(0.2)
        if m is None:
            if time.time() > end: print(off, 'stuck', flush=True); break
        elif m.error() is None: print(off, m.offset(), m.timestamp()[1], len(m.value()), zlib.crc32(m.value()), flush=True); break
        elif m.error().code() == ck.KafkaError._PARTITION_EOF: print(off, 'none', m.offset(), flush=True); break
        else: print(off, 'error', m.error().name(), flush=True); break
'''
KAFKAJS = '''
const [b, topic, mode] = process.argv.slice(1);
const { Kafka, logLevel } = require('module').createRequire(process.env.LAB + '/node/')('kafkajs');
const c = new Kafka({ clientId: 'probe-kafkajs', brokers: [b], logLevel: logLevel.ERROR }).consumer({ groupId: 'g-' + topic, maxWaitTimeInMs: +(process.env.WAIT_MS || 1000) });
const eachBatch = async ({ batch, resolveOffset, commitOffsetsIfNecessary }) => {
  for (const m of batch.messages) {
    console.log(batch.partition + ' ' + m.offset);
    if (mode === 'manual') resolveOffset(m.offset);
  }
  if (mode === 'manual') await commitOffsetsIfNecessary({ topics: [{ topic, partitions: [{ partition: batch.partition, offset: String(BigInt(batch.lastOffset()) + 1n) }] }] });
};
(async () => {
  await c.connect(); await c.subscribe({ topic, fromBeginning: true });
  await c.run(mode === 'manual' ? { autoCommit: false, eachBatchAutoResolve: false, eachBatch } : { eachBatch });
})().catch((e) => { console.error('FAIL', e); process.exit(1); });
'''

_classes = None


def java_probe(*args):
    """The command line of OffsetProbe."""
    global _classes
    need(clients.JAVA, 'kafka-install.sh')
    libs = str(clients.JAVA.parent / '*')
    if _classes is None:
        _classes = tempfile.TemporaryDirectory()
        clients.run(['javac', '-nowarn', '-d', _classes.name, '-cp', libs, LAB_DIR / 'java/OffsetProbe.java'], 120)
    return ['java', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', libs + ':' + _classes.name, 'OffsetProbe', *map(str, args)]


class Live:
    """Owner: the test. A running consumer."""

    def __init__(self, name, client_id, cmd, pick, env=None, dump=False):
        self.name, self.client_id, self.pick = name, client_id, pick
        self.dir = tempfile.mkdtemp()
        self.out, self.err = os.path.join(self.dir, 'out'), os.path.join(self.dir, 'err')
        env = dict(os.environ, LAB=str(LAB), **(env or {}))
        if dump:
            env.update(LAB_DUMP=self.out, LAB_FLUSH='1', LAB_IDLE_MS='3600000')
        with open(self.err, 'wb') as err, open(os.devnull if dump else self.out, 'wb') as out:
            self.proc = subprocess.Popen([str(c) for c in cmd], stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env)

    def lines(self):
        try:
            with open(self.out) as f:
                return [x for x in f.read().split('\n')[:-1] if x]
        except FileNotFoundError:
            return []

    def offsets(self):
        return [int(m.group(1)) for m in map(self.pick.match, self.lines()) if m]

    def error(self):
        with open(self.err, errors='replace') as f:
            return f.read()[:500]

    def stop(self):
        self.proc.kill()
        self.proc.wait(20)
        shutil.rmtree(self.dir, ignore_errors=True)


SECOND = re.compile(r'\d+\s(\d+)(?:\s|$)')


def kcat(b, t):
    need('kcat', 'c-install.sh')
    return Live('kcat', 'probe-kcat', ['kcat', '-C', '-u', '-q', '-b', b, '-t', t, '-o', 'beginning', '-f', '%p %o\n', '-X', 'client.id=probe-kcat'], SECOND)


def confluent(b, t, isolation='read_committed'):
    need(clients.PY['main'], 'py-install.sh main')
    return Live('confluent-kafka', 'probe-confluent', [clients.PY['main'], '-c', CONFLUENT, b, t, isolation], SECOND)


def java(b, t, **x):
    return Live('java', 'probe-java', java_probe('follow', b, t), SECOND, {'LAB_X': ' '.join('%s=%s' % kv for kv in x.items())})


def franz(b, t):
    need(LAB / 'bin/lab-franz', 'go-install.sh')
    return Live('franz-go', 'probe-franz', [LAB / 'bin/lab-franz', '-m', 'direct', '-b', b, '-t', t, '-id', 'probe-franz'], SECOND, dump=True)


def sarama(b, t):
    need(LAB / 'bin/lab-sarama', 'go-install.sh')
    return Live('sarama', 'probe-sarama', [LAB / 'bin/lab-sarama', '-m', 'direct', '-b', b, '-t', t, '-id', 'probe-sarama'], SECOND, dump=True)


def kafkajs(b, t, mode='auto', wait_ms=1000):
    """The whole consumer of KafkaJS, which has none without a group."""
    need(LAB / 'node/.locked', 'node-install.sh')
    return Live('kafkajs', 'probe-kafkajs', ['node', '-e', KAFKAJS, b, t, mode], SECOND, {'WAIT_MS': str(wait_ms)})


ALL = {'kcat': kcat, 'confluent-kafka': confluent, 'java': java, 'franz-go': franz, 'sarama': sarama, 'kafkajs': kafkajs}


class Asker:
    """A program that answers a line for each line: questions about offsets."""

    def __init__(self, cmd, env=None):
        self.proc = subprocess.Popen([str(c) for c in cmd], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                     env=dict(os.environ, LAB=str(LAB), **(env or {})))

    def ask_all(self, lines, timeout):
        """All answers; the deadline is for the whole: each single answer has its own in the program."""
        out, _ = self.proc.communicate(b''.join(b'%s\n' % str(x).encode() for x in lines), timeout)
        assert self.proc.returncode == 0, self.proc.returncode
        return out.decode().split('\n')[:-1]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait(20)


def java_seeks(b, t, partition, isolation):
    return Asker(java_probe('seek', b, t, partition), {'LAB_X': 'isolation.level=' + isolation})


def confluent_seeks(b, t, partition, isolation):
    need(clients.PY['main'], 'py-install.sh main')
    return Asker([clients.PY['main'], '-c', CONFLUENT_SEEK, b, t, str(partition), isolation])
