"""The lab's smoke test (tests/lab/smoke.sh) against the gateway: each client and tool is one test, named after its row, with
groups of both protocols. Frameworks and native Node clients that CI does not install are left out."""
import re
import subprocess

import pytest

import clients
from scale import QUICK
from sluice import Server

SMOKE = str(clients.LAB_DIR / 'smoke.sh')
LEFT_OUT = {'quix', 'faust', 'bytewax', 'faststream', 'node-rdkafka', 'confluent-js', 'confluent-js-next'}
ROWS = [r for r in subprocess.run([SMOKE, '-l'], stdout=subprocess.PIPE, check=True).stdout.decode().split() if r not in LEFT_OUT]
N = 1200
NOT_QUICK = re.compile('java|franz|sarama|kafka-go|kafkajs|platformatic|2.3|1.9|ng|2.0|rskafka')


@pytest.fixture(scope='module')
def hello(_shared):
    return {}


@pytest.mark.parametrize('row', ROWS)
def test_smoke(srv: Server, hello, row, tmp_path):
    if QUICK and NOT_QUICK.search(row):
        pytest.skip('quick profile')
    if hello.get('pid') != srv.proc.pid:
        for i in range(0, N, 100):
            srv.publish('hello', [{'id': i + k, 'text': 'document %d' % (i + k)} for k in range(100)], 3, '/id')
        hello['pid'] = srv.proc.pid
    p = clients.run([SMOKE, '-b', srv.bootstrap, '-a', srv.admin_url, '-t', 'hello', '-n', N, '-k', tmp_path, row], timeout=150,
                    env={'LAB_IDLE_MS': clients.patience(1200), 'LAB_CONSOLE_MS': clients.patience(4000)}, check=False)
    line = next((x for x in p.stdout.decode().split('\n') if x.split(' ')[1:2] == [row]), '')
    if line.startswith('SKIP'):
        pytest.skip('not installed: %s' % row)
    assert line.startswith('PASS'), line or p.stderr[-400:]
