"""The data folder of a gateway over brokers holds no journals: nothing opens a local store in it, where what is published would be
lost to everybody."""
import json
import socket
import threading
import time

import pytest

from docs_util import read_all
from sluice import run_cli, strip_meta
from stand_in import StandIn


@pytest.fixture
def over_broker(make_server, tmp_path):
    broker = StandIn(tmp_path / 'broker')
    s = make_server(*broker.flags(), start=False)
    yield s.start()
    if s.alive():
        s.stop()
    broker.stop()


def refused(s, *args):
    before = sorted(p.name for p in s.data_dir.iterdir())
    p = run_cli([*args, '--data-dir', str(s.data_dir)], b'{"id":2}\n', check=False)
    assert p.returncode == 1 and b'gateway over brokers (--store gazette://' in p.stderr, p.stderr
    assert sorted(f.name for f in s.data_dir.iterdir()) == before, 'nothing is made there'


def test_no_local_store_is_opened_in_it_whether_the_gateway_runs_or_not(over_broker, topic):
    s = over_broker
    s.publish(topic, [{'id': 1}])
    serve = ('serve', '--kafka-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0')
    commands = (('publish', topic), serve, ('read', topic + '/pivot=00'), ('check',))
    for args in commands:
        refused(s, *args)
    s.cli('publish', topic, stdin=b'{"id":2}\n')    # through the gateway
    s.stop()
    for args in commands:
        refused(s, *args)
    out = run_cli(['check', '--data-dir', str(s.data_dir), *s.args]).stdout    # with the gateway's own settings
    assert out.endswith(b'/state: 0 faults\n'), out
    s.start()
    assert [strip_meta(r.value) for r in read_all(s.kafka, topic, 0)] == [b'{"id":1}', b'{"id":2}']


@pytest.mark.local_store    # no broker at all
def test_a_gateway_whose_brokers_were_never_there_stops_while_a_publish_waits_for_them(make_server, topic, until):
    with socket.socket() as nobody:
        nobody.bind(('127.0.0.1', 0))    # and does not listen
        s = make_server('--store', 'gazette://127.0.0.1:%d' % nobody.getsockname()[1], '--fragment-store', 'file:///',
                        '--drain-timeout', '1s', start=False).spawn()
        until(s.ports_file.exists, 30, 'the listeners')
        s.admin = json.loads(s.ports_file.read_text())['admin']
        answers = []
        t = threading.Thread(target=lambda: answers.append(s.request('POST', '/v1/collections/%s/documents?key=/id' % topic, b'{"id":1}')[0]))
        t.start()
        time.sleep(1)    # nothing tells from outside that it waits
        assert t.is_alive(), answers
        assert s.stop(15) < 15
        t.join(30)
        assert answers == [503], answers


@pytest.mark.local_store    # beside the one of a broker
def test_a_local_store_beside_the_state_of_a_gateway_that_ended_is_one(over_broker, make_server, topic, tmp_path):
    """As after `sluice move undo`. While one runs there, it is not opened."""
    local = make_server()
    local.publish(topic, [{'id': 1}])
    local.stop()
    over_broker.stop()
    (over_broker.data_dir / 'state').rename(local.data_dir / 'state')
    over_broker.data_dir = local.data_dir
    over_broker.start()
    refused(local, 'publish', topic)
    over_broker.stop()
    run_cli(['publish', topic, '--data-dir', str(local.data_dir)], b'{"id":2}\n')
    local.start()
    assert [strip_meta(r.value) for r in read_all(local.kafka, topic, 0)] == [b'{"id":1}', b'{"id":2}']
