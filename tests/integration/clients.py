"""Real Kafka clients of the lab (tests/lab), each reading a whole topic by assigned partitions, no group. Every reader
returns [Rec(partition, offset, timestamp, key, value)] in the order in which the client delivered."""
import base64
import collections
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

LAB_DIR = Path(__file__).resolve().parents[1] / 'lab'
LAB = Path(os.environ.get('LAB') or ('/opt/lab' if os.access('/opt/lab', os.W_OK) else
           Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'sluice-lab'))
KAFKA_VERSION = os.environ.get('KAFKA_VERSION', '4.3.1')
JAVA = LAB / 'kafka' / KAFKA_VERSION / 'libs' / '.done'
Rec = collections.namedtuple('Rec', 'partition offset timestamp key value')
PY = {'main': LAB / 'py/bin/python', 'old': LAB / 'py-old/bin/python', 'ng': LAB / 'py-ng/bin/python'}
CONSUME = str(LAB_DIR / 'py/consume.py')


def need(path, script):
    """Skips the test when a client is not installed."""
    if not (os.path.exists(path) or shutil.which(str(path))):
        pytest.skip('not installed: %s (tests/lab/%s)' % (Path(path).name, script))


def run(cmd, timeout=90, env=None, check=True, stdin=None):
    p = subprocess.run([str(c) for c in cmd], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, input=stdin,
                       env=dict(os.environ, LAB=str(LAB), **(env or {})))
    if check:
        assert p.returncode == 0, '%s: exit %d: %s %s' % (' '.join(str(c) for c in cmd)[:200], p.returncode,
                                                       p.stderr[-600:].decode(errors='replace'), p.stdout[-200:].decode(errors='replace'))
    return p


def b64(s):
    return None if s == '-' else b'' if s == '=' else base64.b64decode(s)


def busy():
    """1 on a machine with nothing else to do, up to 4 as it has more to do than cores."""
    return min(4.0, max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)))


def patience(ms):
    """A silence after which a client gives up or is done, as text."""
    return str(int(ms * busy()))


def dumped(cmd, timeout=120, idle_ms=1200, env=None):
    with tempfile.TemporaryDirectory() as d:
        f = os.path.join(d, 'dump')
        run(cmd, timeout, dict({'LAB_DUMP': f, 'LAB_IDLE_MS': patience(idle_ms)}, **(env or {})))
        out = []
        with open(f) as lines:
            for line in lines:
                p, o, t, k, v = line.rstrip('\n').split('\t')
                out.append(Rec(int(p), int(o), int(t), b64(k), b64(v)))
        return out


def kt(*args, timeout=90, env=None, check=True):
    need(JAVA, 'kafka-install.sh')
    return run([LAB_DIR / 'kt', *args], timeout, env, check)


def kcat(bootstrap, topic, *args, timeout=60):
    """kcat -C with any further arguments; parses by the lengths that it prints."""
    need('kcat', 'c-install.sh')
    out = run(['kcat', '-C', '-q', '-b', bootstrap, '-t', topic, '-f', '%p %o %T %K %S\n%k\n%s\n', *args], timeout).stdout
    recs, at = [], 0
    while at < len(out):
        nl = out.index(b'\n', at)
        p, o, t, kn, vn = (int(x) for x in out[at:nl].split())
        at = nl + 1
        k = None if kn < 0 else out[at:at + kn]
        at += max(kn, 0) + 1
        v = None if vn < 0 else out[at:at + vn]
        at += max(vn, 0) + 1
        recs.append(Rec(p, o, t, k, v))
    return recs


def read_kcat(b, t):
    return kcat(b, t, '-o', 'beginning', '-e')


def read_confluent(b, t):
    need(PY['main'], 'py-install.sh main')
    return dumped([PY['main'], CONSUME, 'confluent', '-m', 'direct', '-b', b, '-t', t])


def read_confluent_old(b, t):
    need(PY['old'], 'py-install.sh old')
    return dumped([PY['old'], CONSUME, 'confluent', '-m', 'direct', '-b', b, '-t', t])


def read_confluent_23(b, t):
    need(PY['ng'], 'py-install.sh ng')
    return dumped([PY['ng'], CONSUME, 'confluent', '-m', 'direct', '-b', b, '-t', t])


def read_kafka_python(b, t):
    need(PY['main'], 'py-install.sh main')
    return dumped([PY['main'], CONSUME, 'kafka-python', '-m', 'direct', '-b', b, '-t', t])


def read_kafka_python_2(b, t):
    need(PY['old'], 'py-install.sh old')
    return dumped([PY['old'], CONSUME, 'kafka-python', '-m', 'direct', '-b', b, '-t', t])


def read_kafka_python_ng(b, t):
    need(PY['ng'], 'py-install.sh ng')
    return dumped([PY['ng'], CONSUME, 'kafka-python', '-m', 'direct', '-b', b, '-t', t])


def read_aiokafka(b, t):
    need(PY['main'], 'py-install.sh main')
    return dumped([PY['main'], CONSUME, 'aiokafka', '-m', 'direct', '-b', b, '-t', t])


def read_franz(b, t):
    need(LAB / 'bin/lab-franz', 'go-install.sh')
    return dumped([LAB / 'bin/lab-franz', '-m', 'direct', '-b', b, '-t', t])


def read_sarama(b, t):
    need(LAB / 'bin/lab-sarama', 'go-install.sh')
    return dumped([LAB / 'bin/lab-sarama', '-m', 'direct', '-b', b, '-t', t])


def read_kafka_go(b, t):
    need(LAB / 'bin/lab-kafkago', 'go-install.sh')
    return dumped([LAB / 'bin/lab-kafkago', '-m', 'direct', '-b', b, '-t', t])


def node(lib):
    def read(b, t):
        need(LAB / 'node/.locked', 'node-install.sh')
        return dumped(['node', LAB_DIR / 'node/consume.js', lib, b, t])
    return read


def read_java_direct(b, t):
    need(JAVA, 'kafka-install.sh')
    return dumped([LAB_DIR / 'kt', 'class', 'LabClient', 'direct', b, t])


def read_java_console(b, t):
    """kafka-console-consumer --partition N for each partition."""
    need(JAVA, 'kafka-install.sh')
    out = []
    for p in range(partitions(b, t)):
        lines = kt('console-consumer', '--bootstrap-server', b, '--topic', t, '--partition', str(p), '--offset', 'earliest',
                   '--timeout-ms', patience(2500), '--formatter-property', 'print.partition=true', '--formatter-property', 'print.offset=true',
                   '--formatter-property', 'print.timestamp=true', '--formatter-property', 'print.key=true').stdout
        for line in lines.split(b'\n'):
            if not line:
                continue
            ts, part, off, key, value = line.split(b'\t', 4)
            out.append(Rec(int(part.split(b':')[1]), int(off.split(b':')[1]), int(ts.split(b':')[1]),
                           None if key == b'null' else key, value))
    return out


def partitions(b, t):
    need('kcat', 'c-install.sh')
    return run(['kcat', '-L', '-b', b, '-t', t]).stdout.count(b'\n    partition ')


DIRECT = {
    'kcat': read_kcat,
    'confluent-kafka': read_confluent,
    'confluent-kafka-1.9': read_confluent_old,
    'confluent-kafka-2.3': read_confluent_23,
    'java-console-partition': read_java_console,
    'java-assign': read_java_direct,
    'franz-go': read_franz,
    'kafka-python': read_kafka_python,
    'kafka-python-2.0': read_kafka_python_2,
    'kafka-python-ng': read_kafka_python_ng,
    'aiokafka': read_aiokafka,
    'sarama': read_sarama,
    'kafka-go': read_kafka_go,
    'platformatic': node('platformatic-direct'),
    'kafkajs-lowlevel': node('kafkajs-direct'),
}
