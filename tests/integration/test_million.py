"""A million documents of about 1 KB over four partitions: published, consumed completely by librdkafka, counted and
compared by checksum. Against the release build; a share of the million unless SLUICE_TEST_LONG=1."""
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import clients
from scale import size
from sluice import ROOT
from stand_in import LOCAL

HERE = Path(__file__).parent
RELEASE = ROOT / 'build/release/sluice'


@pytest.fixture(scope='module')
def release():
    """SLUICE_RELEASE_BIN, or build/release, built when it is missing or older than the sources."""
    given = os.environ.get('SLUICE_RELEASE_BIN')
    if given:
        return given
    newest = max(f.stat().st_mtime for d in ('base', 'kafka_proto', 'journal_client', 'schema', 'gateway', 'app')
                 for f in (ROOT / d).rglob('*') if f.suffix in ('.c', '.h', '.def', '.kmsg', '.py'))
    if not RELEASE.exists() or RELEASE.stat().st_mtime < newest:
        for cmd in (['cmake', '--preset', 'release'], ['cmake', '--build', 'build/release', '--target', 'sluice', '-j2']):
            p = subprocess.run(['nice', *cmd], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=900)
            assert p.returncode == 0, p.stdout[-1500:].decode(errors='replace')
    return str(RELEASE)


def test_a_million_documents_go_in_and_come_out(make_server, release, figures):
    clients.need(clients.PY['main'], 'py-install.sh main')
    n = size(1000000, 100000, 20000)
    s = make_server(binary=release)
    t0 = time.monotonic()
    gen = subprocess.Popen([sys.executable, str(HERE / 'gen_docs.py'), str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pub = subprocess.Popen([release, 'publish', 'million', '--partitions', '4', '--key', '/user', '--admin', s.admin_url],
                           stdin=gen.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    gen.stdout.close()
    out, err = pub.communicate(timeout=1200)
    want_n, want_size, want_sum = (int(x) for x in gen.stderr.read().split())
    gen.wait(30)
    assert pub.returncode == 0, (out[-300:], err[-600:])
    t1 = time.monotonic()
    server_cpu = s.cpu()
    got = clients.run([clients.PY['main'], HERE / 'million_consume.py', s.bootstrap, 'million'], timeout=1200).stdout.split()
    count, total_size, total, secs, order, offsets, cpu = got
    figures('%d documents, %.0f MB: published in %.1f s (%.0f/s, %.0f MB/s), consumed in %s s (%.0f/s, %.0f MB/s; client %s s CPU, server %.1f s)' % (
        n, want_size / 1e6, t1 - t0, n / (t1 - t0), want_size / 1e6 / (t1 - t0), secs.decode(), n / float(secs), want_size / 1e6 / float(secs),
        cpu.decode(), s.cpu() - server_cpu))
    figures('memory of the server: %.0f MB' % (s.rss() / 1e6))
    assert (int(count), int(total_size), int(total)) == (want_n, want_size, want_sum)
    assert (int(order), int(offsets)) == (0, 0), 'order per key, rising offsets'
    ends = [p['high_watermark'] for p in s.topics()['million']['partitions']]
    assert len(ends) == 4 and min(ends) > sum(ends) / 4 * 0.8, 'the four partitions share the load: %s' % ends
    if size(1, 0, 0):
        s.restart()
        again = clients.run([clients.PY['main'], HERE / 'million_consume.py', s.bootstrap, 'million'], timeout=1200).stdout.split()
        assert again[:3] == got[:3], 'the same after a restart'
    s.stop()
    if LOCAL:
        s.cli('check', '--data-dir', str(s.data_dir), offline=True, timeout=600)
