"""Fixtures, and one line a test on the descriptor SLUICE_TEST_LINES_FD: PASS name | FAIL name reason | SKIP name (reason)."""
import os
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from kafka_raw import Conn    # noqa: E402
from sluice import BIN, Server    # noqa: E402
from stand_in import LOCAL, PREFIX, release    # noqa: E402

LINES = int(os.environ.get('SLUICE_TEST_LINES_FD', 0))


def name_of(nodeid):
    path, _, test = nodeid.partition('::')
    return '%s/%s/%s' % (PREFIX, os.path.basename(path)[5:-3], test.replace(' ', '_'))


def say(text):
    if LINES:
        os.write(LINES, (text + '\n').encode())


def reason_of(report):
    crash = getattr(report.longrepr, 'reprcrash', None)
    text = crash.message if crash else str(report.longrepr)
    return ' '.join(text.split())[:300]


_failed = set()


def pytest_runtest_logreport(report):
    name = name_of(report.nodeid)
    if report.failed:
        if report.when == 'teardown' and report.nodeid in _failed:
            return    # one line a test
        _failed.add(report.nodeid)
        say('FAIL %s%s %s' % (name, '' if report.when == 'call' else ':' + report.when, reason_of(report)))
    elif report.skipped:
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        say('SKIP %s (%s)' % (name, text.removeprefix('Skipped: ')))
    elif report.when == 'call':
        say('PASS %s %.1fs' % (name, report.duration))


def pytest_collectreport(report):
    if report.failed:
        say('FAIL %s/%s:collect %s' % (PREFIX, os.path.basename(report.nodeid), reason_of(report)))


def pytest_collection_modifyitems(config, items):
    """Over another store, what is of the local one alone is left out."""
    out = [] if LOCAL else [i for i in items if i.get_closest_marker('local_store')]
    if out:
        items[:] = [i for i in items if i not in out]
        config.hook.pytest_deselected(items=out)


def pytest_deselected(items):
    """Nothing is left out unsaid, whether by a mark or by run.sh's choice."""
    n = {True: 0, False: 0}
    for i in items:
        n[not LOCAL and i.get_closest_marker('local_store') is not None] += 1
    suite = '/'.join(name_of(items[0].nodeid).split('/')[:2]) if items else ''
    if n[True]:
        say('     %s: left out %d of the local store alone' % (suite, n[True]))
    if n[False]:
        say('     %s: left out %d that this run does not choose' % (suite, n[False]))


@pytest.fixture
def figures(request):
    """figures('text'): a measured figure, printed beside the test's line."""
    return lambda text: say('     %s: %s' % (name_of(request.node.nodeid), text))


@pytest.fixture(scope='session', autouse=True)
def _binary():
    assert os.access(BIN, os.X_OK), 'no binary %s: build it, or set SLUICE_BIN' % BIN


@pytest.fixture
def make_server(tmp_path):
    """make_server(*flags, data_dir=, binary=): servers that end with the test, cleanly."""
    servers = []

    def make(*args, data_dir=None, binary=None, start=True, env=None):
        work = tmp_path / ('s%d' % len(servers))
        work.mkdir()
        s = Server(data_dir or work / 'data', work, args, binary, env)
        servers.append(s)
        return s.start() if start else s
    yield make
    bad = []
    for s in reversed(servers):
        if s.proc is None:
            continue
        try:
            if s.alive():
                s.stop()
            elif getattr(s, 'expect_dead', False) is False and s.verdict():
                bad.append(s.verdict())
        except AssertionError as e:
            bad.append(str(e))
    for s in servers:
        try:
            release(s.data_dir)
        except AssertionError as e:
            bad.append(str(e))
    assert not bad, '\n'.join(bad)


@pytest.fixture(scope='module')
def _shared(tmp_path_factory, request):
    """One server for the tests of a module; made anew when a test killed it."""
    box = {'server': None}
    yield box
    if box['server'] is not None:
        if box['server'].alive():
            box['server'].stop()
        release(box['server'].data_dir)


@pytest.fixture
def srv(_shared, tmp_path_factory, request):
    s = _shared['server']
    if s is None or not s.alive():
        work = tmp_path_factory.mktemp('server')
        flags = getattr(request.module, 'SERVER_FLAGS', ())
        s = _shared['server'] = Server(work / 'data', work, flags).start()
    yield s
    bad = None if s.alive() else s.verdict() or 'the server ended with 0, nobody asked it to'
    bad = bad or s.verdict()
    if bad:
        s.kill()
        pytest.fail(bad)


@pytest.fixture
def conn(srv):
    with Conn(srv.kafka) as c:
        yield c


_count = 0


@pytest.fixture
def topic(request):
    """A name that no other test uses."""
    global _count
    _count += 1
    return '%s-%d' % (''.join(c if c.isalnum() else '-' for c in request.node.name)[:60].strip('-'), _count)


@pytest.fixture
def until():
    """until(f, seconds, what): f's first true value; fails when there is none in time."""
    def wait(f, seconds=10, what=''):
        end = time.monotonic() + seconds
        while True:
            v = f()
            if v:
                return v
            if time.monotonic() > end:
                pytest.fail('not within %s s: %s' % (seconds, what or f))
            time.sleep(0.02)
    return wait
