"""The contract suite of the stores (tests/contract) against a real broker, where there is one: every test of the suite, by name."""
import os
import re
import subprocess
from pathlib import Path

from gazette_lab import cluster
from sluice import BIN, SANITIZER_ENV

PROGRAM = Path(BIN).parent / 'tests/contract_gazette_contract_test'


def test_a_real_broker_keeps_the_contract(tmp_path, figures):
    with cluster(tmp_path / 'lab') as c:    # its journals are deleted
        assert os.access(PROGRAM, os.X_OK), 'no %s: build it' % PROGRAM
        p = subprocess.run([str(PROGRAM)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280,
                           cwd=Path(__file__).resolve().parents[2], env={**os.environ, **SANITIZER_ENV, 'CMOCKA_MESSAGE_OUTPUT': 'STDOUT',
                                                                         'SLUICE_GAZETTE': '127.0.0.1:%d' % c.port})
    text = p.stdout.decode(errors='replace')
    # One group for the stand-in, one for it with stored fragments, one for the real broker.
    groups = [int(n) for n in re.findall(r'\[==========\] Running (\d+) test', text)]
    failed = re.findall(r'\[  FAILED  \] (\w+)', text)
    assert p.returncode == 0 and not failed, 'exit %d: %s %s' % (p.returncode, sorted(set(failed)), text[-1500:])
    assert len(groups) == 3 and len(set(groups)) == 1 and groups[0] > 30, groups
    figures('%d of %d' % (groups[2], groups[2]))
