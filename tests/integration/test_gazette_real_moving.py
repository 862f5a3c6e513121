"""docs/moving-to-gazette.md, command by command, against a real broker: the same documents at the same offsets, the same ends and epochs,
and groups that go on where they were."""
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing

import pytest

from clients import LAB, PY, need, run
from docs_util import read_all
from gazette_lab import broker_bin, free_block
from groups_raw import Raw
from kafka_raw import EARLIEST, LATEST, Conn
from sluice import BIN, ROOT, Server, run_cli

GUIDE = ROOT / 'docs/moving-to-gazette.md'
GROUP = '''
import sys, confluent_kafka as ck
b, t, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'mover', 'auto.offset.reset': 'earliest',
                 'enable.auto.commit': False, 'session.timeout.ms': 6000})
c.subscribe([t])
idle = 0
while n > 0 and idle < 25:
    m = c.poll(1.0)
    if m is None: idle += 1; continue
    assert not m.error(), m.error()
    print(m.partition(), m.offset(), flush=True)
    n -= 1
c.commit(asynchronous=False)
c.close()
'''


def blocks():
    """The guide's command blocks, in order: [(heading, text)]."""
    out, heading, lines = [], '', []
    for line in GUIDE.read_text().splitlines() + ['']:
        if line.startswith('    '):
            lines.append(line[4:])
            continue
        if lines and line.strip():
            out.append((heading, '\n'.join(lines)))
            lines = []
        if line.startswith('## '):
            heading = line[3:]
    if lines:
        out.append((heading, '\n'.join(lines)))
    return out


class Shell:
    """Runs blocks one after the other in one shell, as a reader would; ends what they left running."""

    def __init__(self, work, env):
        self.work = work
        self.p = subprocess.Popen(['bash'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(work / 'shell.err', 'wb'), cwd=work,
                                  env=env, start_new_session=True)

    def run(self, text, timeout=120):
        script = self.work / 'block.sh'
        script.write_text('set -e\n' + text + '\n')
        # sourced, so that exports stay; what runs in the background must not hold the pipe
        self.p.stdin.write(b'exec 3>&1 1>out.txt; . ./block.sh; rc=$?; set +e; exec 1>&3 3>&-; echo "done $rc"\n')
        self.p.stdin.flush()
        end = time.monotonic() + timeout
        os.set_blocking(self.p.stdout.fileno(), False)
        got = b''
        while b'done ' not in got:
            got += self.p.stdout.read() or b''
            assert self.p.poll() is None, 'a line of the guide failed:\n%s\n%s' % (text, self.errors())
            assert time.monotonic() < end, 'not over in time:\n%s\n%s' % (text, self.errors())
            time.sleep(0.02)
        return (self.work / 'out.txt').read_text()

    def errors(self):
        return (self.work / 'shell.err').read_text(errors='replace')[-1500:]

    def end(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.p.pid, sig)
            except ProcessLookupError:
                break
            time.sleep(1.5 if sig == signal.SIGTERM else 0)
        self.p.wait(10)


def seen(port, topics):
    """All that a client sees of topics: records by partition, both ends, the epoch."""
    out = {}
    with Conn(port) as c:
        for t in topics:
            n = len(c.metadata(t)['partitions'])
            for p in range(n):
                ends = [c.list_offset(t, p, which) for which in (EARLIEST, LATEST)]
                records = [(r.offset, r.timestamp, r.key, r.value) for r in read_all(port, t, p)]
                out[t, p] = records, [(e['offset'], e['leader_epoch']) for e in ends]
    return out


def fill(s):
    """Topics with several partitions and closed fragments; one whose partitions came later; one with a bound; an empty one."""
    for i in range(6):
        s.publish('move/orders', [{'id': '%d-%d' % (i, k), 'pad': 'x' * 300} for k in range(200)], partitions=3, key='/id')
    s.publish('move/old', [{'id': k} for k in range(50)])
    s.publish('move/back', [{'id': k} for k in range(40)], partitions=2, key='/id')
    s.cli('backfill', 'begin', 'move/back', '--wait')
    s.publish('move/back', [{'id': k, 'new': True} for k in range(7)], key='/id')
    s.cli('backfill', 'complete', 'move/back', '--wait')
    return ['move/orders', 'move/old', 'move/back', 'move/idem']


def confluent(s, topic, n):
    need(PY['main'], 'py-install.sh')
    out = run([PY['main'], '-c', GROUP, s.bootstrap, topic, str(n)], timeout=90).stdout.decode()
    return [tuple(map(int, line.split())) for line in out.splitlines()]


@pytest.fixture
def guide(tmp_path):
    """guide(data, copied): a shell in which the guide's settings are ours."""
    shells = []

    def make(data, copied):
        gazette = broker_bin()
        bin_dir = tmp_path / 'bin'
        bin_dir.mkdir()
        etcd = LAB / 'bin/etcd'
        if not etcd.exists():
            etcd = shutil.which('etcd') or pytest.skip('needs a Gazette broker: no etcd beside it')
        for name, path in (('sluice', BIN), ('gazette', gazette), ('etcd', etcd)):
            (bin_dir / name).symlink_to(os.path.abspath(path))
        p = free_block(8)
        settings = {'DATA': data, 'ROOT': tmp_path / 'cluster/store' if copied else data / 'fragments', 'BROKER': '127.0.0.1:%d' % p,
                    'ETCD': 'http://127.0.0.1:%d' % (p + 1), 'PEER': 'http://127.0.0.1:%d' % (p + 2),
                    'KAFKA': '127.0.0.1:%d' % (p + 3), 'ADMIN': '127.0.0.1:%d' % (p + 4)}
        sh = Shell(tmp_path, {**os.environ, 'PATH': '%s:%s' % (bin_dir, os.environ['PATH'])})
        shells.append(sh)
        sh.run(blocks()[0][1])    # the guide's own names
        sh.run('\n'.join('export %s=%s' % (k, v) for k, v in settings.items()))
        sh.settings = settings
        return sh
    yield make
    for sh in shells:
        sh.end()


def attach(sh, data):
    """The gateway that the guide started, as a Server for its admin calls."""
    s = Server(data, sh.work)
    s.kafka, s.admin = (int(sh.settings[k].rsplit(':', 1)[1]) for k in ('KAFKA', 'ADMIN'))
    return s


@pytest.mark.parametrize('copied', [True, False], ids=['copied', 'in_place'])
def test_the_guide_moves_a_folder_and_nothing_changes_for_clients(make_server, guide, tmp_path, copied, figures):
    broker_bin()
    s = make_server('--fragment-bytes', '40KiB')
    topics = fill(s)
    answer = s.publish('move/idem', [{'id': 1}], idem='once')
    s.restart()    # closes nothing: the newest fragments are still open
    raw = Raw(s.kafka, 'simple')
    first = confluent(s, 'move/orders', 500)
    orders = {p: [r.offset for r in read_all(s.kafka, 'move/orders', p)] for p in range(3)}
    for p in range(3):
        raw.commit('move/orders', p, orders[p][10] + 1, metadata='here')
    raw.close()
    before = seen(s.kafka, topics)
    data = s.data_dir

    sh = guide(data, copied)
    t0 = time.monotonic()
    s.expect_dead = True    # the guide stops it
    rest = blocks()[1:]
    assert [h[:1] for h, _ in rest] == ['1', '2', '3', '4', '5', 'B']
    for heading, text in rest[:5]:
        if not copied:
            text = re.sub(r'^(mkdir|cp) .*$', '', text, flags=re.M)
        out = sh.run(text)
        if heading.startswith('1'):
            assert s.proc.wait(20) == 0 and s.verdict() is None
            assert 'data folder %s: 0 faults' % data in out, out
            assert 'open fragments' in out and ' 0 open fragments' not in out, out
        if heading.startswith('2'):
            assert ' 0 open fragments' in out, out
    figures('moved in %.1f s by the guide, waits included' % (time.monotonic() - t0))

    g = attach(sh, data)
    assert seen(g.kafka, topics) == before
    raw = Raw(g.kafka, 'simple')
    for p in range(3):
        c = raw.committed('move/orders', p)
        assert (c['committed_offset'], c['metadata']) == (orders[p][10] + 1, 'here')
    raw.close()
    left = confluent(g, 'move/orders', 700)
    assert sorted(first + left) == sorted((p, o) for p in range(3) for o in orders[p])
    assert g.publish('move/idem', [{'id': 1}], idem='once') == answer, 'the key is known'

    refused = run_cli(['serve', '--data-dir', str(data), '--kafka-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'], check=False)
    assert refused.returncode == 1 and b'handed over to gazette://' in refused.stderr

    if copied:    # nothing was written there yet: the way back is open
        sh.run(rest[5][1])
        b = make_server(data_dir=data)
        assert seen(b.kafka, topics) == before
        return
    for i in range(5):
        g.publish('move/orders', [{'id': 'after-%d-%d' % (i, k)} for k in range(20)], key='/id')
    after = seen(g.kafka, topics)
    for key, (records, ends) in before.items():
        assert after[key][0][:len(records)] == records
        assert [e for _, e in after[key][1]] == [e for _, e in ends], 'the epoch stays'
    assert sum(len(v[0]) for v in after.values()) == sum(len(v[0]) for v in before.values()) + 100


def test_a_move_to_a_store_without_the_fragments_leaves_nothing_behind(make_server, guide, tmp_path):
    broker_bin()
    s = make_server()
    s.publish('move/lone', [{'id': k} for k in range(100)])
    s.stop()
    sh = guide(s.data_dir, True)
    rest = blocks()[1:]
    sh.run('mkdir -p "$ROOT"\n' + rest[2][1])
    args = ['move', 'run', '--data-dir', str(s.data_dir), '--store', 'gazette://' + sh.settings['BROKER'], '--fragment-store', 'file:///']
    p = run_cli(args, check=False)
    assert p.returncode == 1 and b'are its fragments in the store?' in p.stderr, p.stderr
    sh.run('cp -a "$DATA/fragments/." "$ROOT/"')
    with closing(sqlite3.connect(s.data_dir / 'sluice.db', isolation_level=None)) as db:    # a later step fails: what was made is deleted, too
        key, value = db.execute("SELECT key, value FROM kv WHERE CAST(key AS TEXT) LIKE '%/generation'").fetchone()
        db.execute('UPDATE kv SET value = ? WHERE key = ?', (b'no JSON', key))
    p = run_cli(args, check=False)
    assert p.returncode == 1 and b'nothing was moved' in p.stderr and b'left in the cluster' not in p.stderr, p.stderr
    with closing(sqlite3.connect(s.data_dir / 'sluice.db', isolation_level=None)) as db:
        db.execute('UPDATE kv SET value = ? WHERE key = ?', (value, key))
    p = run_cli(args)
    assert b'moved to' in p.stdout
    p = run_cli(args, check=False)
    assert p.returncode == 1 and b'already' in p.stderr, p.stderr
    p = run_cli(['move', 'plan', '--data-dir', str(s.data_dir)])
    assert json.dumps('move/lone')[1:-1] in p.stdout.decode()
