"""A server's life: start, drain, restart, who owns the data, what publishing promises, what an operator sees."""
import json
import os
import signal
import socket
import subprocess
import threading
import time

import pytest

from docs_util import doc, read_all
from kafka_raw import FETCH, LATEST, METADATA, Conn
from sluice import BIN, REPORT, SANITIZER_ENV, AdminError, dumps, run_cli, strip_meta


# --- start and stop -----------------------------------------------------------------------------------------------

def test_sigterm_of_an_idle_server_ends_it_at_once_with_0(make_server):
    s = make_server()
    with Conn(s.kafka) as c:
        c.api_versions()
        took = s.stop()
        assert c.closed(5)
    assert took < 10
    assert s.proc.returncode == 0


def test_sigterm_answers_the_long_poll_that_waits(make_server, topic):
    s = make_server()
    s.publish(topic, [{'id': 1}])
    with Conn(s.kafka, timeout=25) as c:
        head = c.list_offset(topic, 0, LATEST)['offset']
        n = c.fetch_start(topic, {0: head}, max_wait_ms=20000)
        time.sleep(0.3)
        t0 = time.monotonic()
        s.proc.send_signal(signal.SIGTERM)
        r = c.finish(FETCH, 11, n)
        assert r['error_code'] == 0
        assert time.monotonic() - t0 < 10, 'the answer came only with its own max_wait'
    s.stop()


def test_sigterm_finishes_a_publish_that_runs(make_server, topic):
    s = make_server()
    s.publish(topic, [{'id': 0}])
    body = b''.join(b'{"id":%d,"pad":"%s"}\n' % (i, b'x' * 900) for i in range(20000))
    box = {}

    def post():
        try:
            box['answer'] = s.publish(topic, body, timeout=40)
        except Exception as e:    # noqa: BLE001 the test looks at it
            box['error'] = e
    t = threading.Thread(target=post)
    t.start()
    time.sleep(0.15)
    s.stop()
    t.join()
    s.start()
    n = len(read_all(s.kafka, topic, 0))
    if 'answer' in box:
        assert box['answer']['documents'] == 20000
        assert n == 20001
    else:
        assert n in (1, 20001), 'a part of a request: %d' % n


def test_sigint_ends_it_like_sigterm(make_server):
    s = make_server()
    s.proc.send_signal(signal.SIGINT)
    s.proc.wait(20)
    assert s.verdict() is None


@pytest.mark.parametrize('pause', [0, 0.7])
def test_a_second_signal_cuts_the_drain_short(make_server, topic, pause):
    s = make_server('--drain-timeout', '60s', '--stall-timeout', '60s')
    for _ in range(4):
        s.publish(topic, [{'n': i, 'pad': 'x' * 1000} for i in range(4000)])
    with Conn(s.kafka, rcvbuf=4096) as c:    # takes nothing of its answers: the drain waits for it
        for _ in range(4):
            c.fetch_start(topic, {0: 0}, max_bytes=50 << 20, partition_max_bytes=50 << 20)
        time.sleep(1)
        s.proc.send_signal(signal.SIGTERM)
        time.sleep(pause)
        assert s.alive()
        t0 = time.monotonic()
        s.proc.send_signal(signal.SIGINT)    # another one: two SIGTERM may become one
        assert s.proc.wait(20) == 1, 'a drain that was cut is no clean end'
        assert time.monotonic() - t0 < 5
    s.start()
    s.publish(topic, [{'n': 0}])
    s.stop()


@pytest.mark.local_store
def test_a_second_process_on_the_same_data_is_refused_and_told_the_pid(make_server, topic):
    s = make_server()
    s.publish(topic, [{'id': 1}])
    other = make_server(data_dir=s.data_dir, start=False)
    other.expect_dead = True
    other.spawn()
    rc = other.proc.wait(20)
    text = other.log.read_text()
    assert rc not in (0, -11, -6)
    assert str(s.proc.pid) in text, text
    for cmd in (['publish', topic, '--data-dir', str(s.data_dir)],):
        p = run_cli(cmd, stdin=b'{"id":2}\n', check=False)
        assert p.returncode != 0
        assert str(s.proc.pid).encode() in p.stderr, p.stderr
    assert len(read_all(s.kafka, topic, 0)) == 1


def test_ports_that_are_taken_are_a_clear_error(make_server):
    taken = socket.socket()
    taken.bind(('127.0.0.1', 0))
    taken.listen()
    port = taken.getsockname()[1]
    s = make_server('--kafka-listen', '127.0.0.1:%d' % port, start=False)
    s.expect_dead = True
    s.spawn()
    rc = s.proc.wait(20)
    assert rc not in (0, -11, -6)
    assert str(port) in s.log.read_text()
    taken.close()


def test_a_public_listener_without_an_advertised_address_is_refused(make_server):
    s = make_server('--kafka-listen', '0.0.0.0:0', start=False)
    s.expect_dead = True
    s.spawn()
    assert s.proc.wait(20) not in (0, -11, -6)
    assert 'advertise' in s.log.read_text()


def test_an_unknown_flag_is_named_and_ends_with_an_error():
    for args in (['serve', '--no-such-flag'], ['no-such-command'], ['publish'], ['serve', '--workers', 'many']):
        p = run_cli(args, check=False, stdin=b'')
        assert p.returncode not in (0, -6, -11), args
        assert p.stderr.strip(), args


def test_help_and_version_are_there():
    assert b'serve' in run_cli(['--help']).stdout
    assert run_cli(['--version']).stdout.strip()


# --- what survives ------------------------------------------------------------------------------------------------

def state(s, topic, parts):
    with Conn(s.kafka) as c:
        m = c.metadata(topic, 12)
        ends = [c.list_offset(topic, p, LATEST)['offset'] for p in range(parts)]
    return m['topic_id'], sorted((p['partition_index'], p['leader_epoch']) for p in m['partitions']), ends


@pytest.mark.parametrize('how', ['sigterm', 'kill'])
def test_a_restart_keeps_offsets_watermarks_ids_and_epochs(make_server, topic, how):
    s = make_server()
    for i in range(5):
        s.publish(topic, [{'id': i * 10 + k} for k in range(10)], partitions=3, key='/id')
    before, docs = state(s, topic, 3), [read_all(s.kafka, topic, p) for p in range(3)]
    s.stop() if how == 'sigterm' else s.kill()
    s.start()
    assert state(s, topic, 3) == before
    for p in range(3):
        assert [(r.offset, r.timestamp, r.value) for r in read_all(s.kafka, topic, p)] == \
               [(r.offset, r.timestamp, r.value) for r in docs[p]]
    s.publish(topic, [{'id': 1000 + k} for k in range(10)])
    after = state(s, topic, 3)
    assert all(a >= b for a, b in zip(after[2], before[2])) and sum(after[2]) > sum(before[2])
    assert sum(len(read_all(s.kafka, topic, p)) for p in range(3)) == 60


def test_documents_are_readable_as_soon_as_they_are_answered(srv, topic):
    with Conn(srv.kafka) as c:
        for i in range(60):
            a = srv.publish(topic, [{'id': i}])
            last = a['partitions'][0]['last_offset']
            p = c.fetch(topic, 0, last, max_wait_ms=0)
            assert p['error_code'] == 0
            assert p['batches'] and p['batches'][-1].last == last, 'not there right after the answer, document %d' % i
            assert p['high_watermark'] == last + 1


# --- publishing ---------------------------------------------------------------------------------------------------

def test_bad_lines_are_named_and_nothing_of_the_request_is_published(srv, topic):
    srv.publish(topic, [{'id': 0}], partitions=3, key='/id')
    before = state(srv, topic, 3)
    body = b'{"id":1}\n{"id":2,}\n\n{"id":3}\nnot json\n{"no":"key"}\n[1]\n{"id":{"a":1}}\n{"id":4}\n'
    with pytest.raises(AdminError) as e:
        srv.publish(topic, body)
    assert e.value.status == 400
    answer = json.loads(e.value.body)
    assert [x['line'] for x in answer['errors']] == [2, 5, 6, 7, 8]
    assert all(x['reason'] for x in answer['errors'])
    assert state(srv, topic, 3) == before


@pytest.mark.parametrize('bad', [b'{"a":"\xff\xfe"}', b'{"a":"\x01"}', b'{"a":01}', b'{"a":"\\u12"}', b'{"a":1', b'{"a":NaN}',
                                 b'{"a":1}{"b":2}', b'{"a":"x\x00y"}', b'\x00', b'null', b'"text"', b'{"a":1}x', b'{\'a\':1}'],
                         ids=['utf8', 'control', 'zero-one', 'escape', 'cut', 'nan', 'two', 'nul-in-text', 'nul', 'null', 'string', 'rest', 'quotes'])
def test_what_is_not_a_json_object_is_refused(srv, topic, bad):
    srv.publish(topic, [{'id': 0}])
    with pytest.raises(AdminError) as e:
        srv.publish(topic, b'{"id":1}\n' + bad + b'\n')
    assert e.value.status == 400
    assert json.loads(e.value.body)['errors'][0]['line'] == 2
    assert len(read_all(srv.kafka, topic, 0)) == 1


def test_an_array_with_an_error_names_its_line(srv, topic):
    with pytest.raises(AdminError) as e:
        srv.publish(topic, b'[\n{"id":1},\n{"id":2},\n7\n]', content_type='application/json')
    assert e.value.status == 400
    assert json.loads(e.value.body)['errors'][0]['line'] == 4


def test_a_json_array_is_published_like_its_lines(srv, topic):
    docs = [{'id': i, 'text': 'ä\u2028"\\', 'n': [1, {'x': None}]} for i in range(20)]
    srv.publish(topic, json.dumps(docs, ensure_ascii=False).encode(), content_type='application/json')
    pretty = json.dumps([{'id': 99, 'deep': {'a': [1, 2]}}], indent=2).encode()
    srv.publish(topic, pretty, content_type='application/json')
    got = [json.loads(strip_meta(r.value)) for r in read_all(srv.kafka, topic, 0)]
    assert got == docs + [{'id': 99, 'deep': {'a': [1, 2]}}]
    assert all(b'\n' not in r.value for r in read_all(srv.kafka, topic, 0))


def test_an_empty_body_publishes_nothing(srv, topic):
    srv.publish(topic, [{'id': 0}])
    before = state(srv, topic, 1)
    for body in (b'', b'\n\n  \n'):
        a = srv.publish(topic, body)
        assert a['documents'] == 0
    assert srv.publish(topic, b'[]', content_type='application/json')['documents'] == 0
    assert state(srv, topic, 1) == before


def test_json_passes_through_byte_for_byte(srv, topic):
    texts = ['{"id":13911860366432393,"a":9007199254740993,"b":9223372036854775807,"c":-9223372036854775808,"d":1.0,"e":1e3}',
             '{"x":1e400,"y":-1e400,"z":1e-400,"w":4.9e-324,"long":0.' + '1' * 10000 + '}',
             '{"s":"a\\u0000b","k\\u0000y":1,"e":"\\ud83d\\ude00","sl":"\\/","u":"ünï😀"}',
             '{ "spaces" : [ 1 , 2 ] , "t":\t"x" }', '{}', '{"a":{"_meta":{"uuid":"inner"}}}',
             '{"dup":1,"dup":2}', '{"deep":' + '[' * 200 + ']' * 200 + '}', '{"":""}']
    srv.publish(topic, texts)
    got = [strip_meta(r.value) for r in read_all(srv.kafka, topic, 0)]
    assert got == [t.encode() for t in texts]


@pytest.mark.parametrize('depth', [100, 1000, 10000, 1000000])
def test_deep_nesting_is_served_or_refused_but_never_fatal(srv, topic, depth):
    srv.publish(topic, [{'id': 0}])
    for text in ('{"d":' + '[' * depth + ']' * depth + '}', '{"d":' * depth + '1' + '}' * depth, '{"d":' + '[' * depth):
        try:
            srv.publish(topic, [text])
            balanced = text.count('[') == text.count(']')
            assert balanced
        except AdminError as e:
            assert e.status in (400, 413)
    a = srv.publish(topic, [{'id': 1}])
    got = read_all(srv.kafka, topic, 0)
    assert got[-1].offset == a['partitions'][0]['last_offset']


def test_a_retry_under_the_same_key_publishes_nothing_twice_even_after_a_restart(make_server, topic):
    s = make_server()
    docs = [{'id': i} for i in range(30)]
    first = s.publish(topic, docs, partitions=3, key='/id', idem='req-1')
    again = s.publish(topic, docs, idem='req-1')
    assert again['partitions'] == first['partitions']
    s.restart()
    third = s.publish(topic, docs, idem='req-1')
    assert third['partitions'] == first['partitions']
    s.kill()
    s.start()
    s.publish(topic, docs, idem='req-1')
    assert sum(len(read_all(s.kafka, topic, p)) for p in range(3)) == 30
    assert s.metrics()['sluice_publish_replays_total'] == 1    # counted by the present process
    s.publish(topic, docs, idem='req-2')
    assert sum(len(read_all(s.kafka, topic, p)) for p in range(3)) == 60


def test_two_requests_at_once_under_one_key_leave_one_copy(srv, topic):
    srv.publish(topic, [{'id': -1}])
    answers, docs = [], [{'id': i} for i in range(200)]

    def post():
        try:
            answers.append(srv.publish(topic, docs, idem='same'))
        except AdminError as e:
            answers.append(e)
    ts = [threading.Thread(target=post) for _ in range(8)]
    [t.start() for t in ts]
    [t.join() for t in ts]
    good = [a for a in answers if isinstance(a, dict)]
    assert good
    assert all(a['partitions'] == good[0]['partitions'] for a in good)
    assert all(a.status in (409, 503) for a in answers if not isinstance(a, dict))
    assert len(read_all(srv.kafka, topic, 0)) == 201


def test_documents_of_one_key_stay_in_one_partition_in_order(srv, topic):
    n = 0
    for _ in range(10):
        srv.publish(topic, [{'k': 'key%d' % (i % 17), 'n': n + i} for i in range(50)], partitions=5, key='/k')
        n += 50
    where, order = {}, {}
    for p in range(5):
        for r in read_all(srv.kafka, topic, p):
            d = json.loads(r.value)
            assert where.setdefault(d['k'], p) == p
            order.setdefault(d['k'], []).append(d['n'])
    assert sum(len(v) for v in order.values()) == 500
    assert all(v == sorted(v) for v in order.values())
    assert len(set(where.values())) > 1


def test_a_body_beyond_the_limit_is_413_and_does_not_stay_in_memory(srv, topic):
    before = srv.rss()
    try:
        status, _, _ = srv.request('POST', '/v1/collections/%s/documents' % topic, b'{"a":"' + b'x' * (80 << 20) + b'"}\n',
                                   {'Content-Type': 'application/x-ndjson'})
        assert status == 413
    except (ConnectionError, BrokenPipeError):
        pass    # closing before the body was read is an answer as well
    assert srv.rss() - before < 400 << 20
    srv.publish(topic, [{'id': 1}])


def test_names_of_collections_are_checked(srv):
    for name in ('', '..', 'a//b', '/a', 'a/', 'a b\n', 'x' * 5000):
        status, body, _ = srv.request('POST', '/v1/collections/%s/documents' % name.replace('/', '%2F').replace(' ', '%20').replace('\n', '%0A'),
                                      b'{"id":1}\n', {'Content-Type': 'application/x-ndjson'})
        assert 400 <= status < 500, (name, status, body)


@pytest.mark.local_store
@pytest.mark.parametrize('name', ['x' * 256, 'x' * 500, 'acme/' + 'y' * 300 + '/z', 'x.raw', 'x.open', 'a/b.idx/c'], ids=lambda n: n[:8] + str(len(n)))
def test_a_name_that_the_store_cannot_hold_is_400_and_says_why(srv, name):
    status, body, headers = srv.request('POST', '/v1/collections/%s/documents' % name.replace('/', '%2F'), b'{"id":1}\n',
                                        {'Content-Type': 'application/x-ndjson'})
    assert status == 400, body
    assert headers['Retry-After'] is None
    assert b'255 bytes' in body and b'.raw' in body
    p = srv.cli('publish', name, stdin=b'{"id":1}\n', check=False)
    assert p.returncode == 1 and b'255 bytes' in p.stderr, p.stderr
    assert srv.publish('x' * 250 + '.rawx', [{'id': 1}])['documents'] == 1


# --- what an operator sees ----------------------------------------------------------------------------------------

def test_health_is_plain_and_ready_says_so(srv):
    assert srv.request('GET', '/healthz')[0] == 200
    assert srv.request('GET', '/readyz')[0] == 200
    assert srv.request('HEAD', '/healthz')[0] == 200


@pytest.mark.parametrize('method,path,want', [('GET', '/nothing', (404,)), ('GET', '/v1/nothing', (404,)),
                                              ('DELETE', '/v1/topics', (405,)), ('GET', '/v1/topics/no-such-topic', (404,)),
                                              ('POST', '/metrics', (405,)), ('GET', '/v1/collections/x/documents', (405, 404)),
                                              ('GET', '/../etc/passwd', (400, 404)), ('GET', '/%00', (400, 404))])
def test_http_errors_are_json_with_the_right_status(srv, method, path, want):
    status, body, headers = srv.request(method, path)
    assert status in want
    assert 'json' in headers['Content-Type']
    assert json.loads(body)['error']


def test_http_that_is_garbage_does_no_harm(srv):
    for raw in (b'\x00\xff\x00\xff\r\n\r\n', b'GET\r\n\r\n', b'GET / HTTP/9.9\r\n\r\n', b'POST /v1/collections/x/documents HTTP/1.1\r\nContent-Length: -1\r\n\r\n',
                b'POST /v1/collections/x/documents HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n', b'GET /' + b'a' * 200000 + b' HTTP/1.1\r\n\r\n',
                b'POST /v1/collections/x/documents HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffff\r\n', b'A' * 100000):
        s = socket.create_connection(('127.0.0.1', srv.admin), timeout=5)
        try:
            s.sendall(raw)
            s.shutdown(socket.SHUT_WR)
            while s.recv(4096):
                pass
        except OSError:
            pass
        finally:
            s.close()
    assert srv.request('GET', '/healthz')[0] == 200


def test_metrics_are_well_formed_and_count(srv, topic):
    a = srv.metrics()
    srv.publish(topic, [{'id': i} for i in range(7)])
    read_all(srv.kafka, topic, 0)
    b = srv.metrics()
    assert b['sluice_publish_documents_total'] - a['sluice_publish_documents_total'] == 7
    assert b['sluice_publish_requests_total'] - a['sluice_publish_requests_total'] == 1
    assert b['sluice_requests_total'] > a['sluice_requests_total']
    assert b['sluice_connections_total'] > a['sluice_connections_total']
    assert b['sluice_fetch_record_bytes_total'] > a['sluice_fetch_record_bytes_total']
    assert b['sluice_connections_open'] >= 0


def test_open_connections_fall_back_to_zero(srv, until):
    cs = [Conn(srv.kafka) for _ in range(20)]
    [c.api_versions() for c in cs]
    assert srv.metrics()['sluice_connections_open'] >= 20
    [c.close() for c in cs]
    until(lambda: srv.metrics()['sluice_connections_open'] == 0, 10, 'connections_open 0')


def test_the_commands_show_what_is_there_as_json_and_as_a_table(srv, topic):
    srv.publish(topic, [{'id': i} for i in range(9)], partitions=2, key='/id')
    for what in ('collections', 'topics', 'journals'):
        out = srv.cli(what, '--json').stdout
        assert json.loads(out) and topic in out.decode(), what
        table = srv.cli(what).stdout.decode()
        assert len(table.splitlines()) >= 2 and topic in table, what
    t = srv.topics()[topic]
    assert len(t['partitions']) == 2
    with Conn(srv.kafka) as c:
        for i, p in enumerate(t['partitions']):
            assert p['high_watermark'] == c.list_offset(topic, i, LATEST)['offset']


def test_publish_and_read_from_the_command_line(srv, topic):
    docs = [dumps({'id': i, 'v': 'ü' * i}) for i in range(40)]
    out = srv.cli('publish', topic, '--partitions', '2', '--key', '/id', stdin=('\n'.join(docs) + '\n').encode())
    assert b'40' in out.stdout + out.stderr
    want = sorted(d.encode() for d in docs)
    got = sorted(strip_meta(r.value) for p in range(2) for r in read_all(srv.kafka, topic, p))
    assert got == want
    journals = [p['journal'] for p in srv.topics()[topic]['partitions']]
    text = b''.join(srv.cli('read', j).stdout for j in journals)
    assert all(d.split(b'{', 1)[1][:20] in text for d in want)
    bad = srv.cli('publish', topic, stdin=b'{"id":1}\n{"id":\n', check=False)
    assert bad.returncode != 0 and b'2' in bad.stderr
    assert sum(len(read_all(srv.kafka, topic, p)) for p in range(2)) == 40


@pytest.mark.local_store
def test_the_commands_work_on_a_folder_that_no_server_holds(make_server, topic):
    s = make_server()
    s.publish(topic, [{'id': 1}])
    journal = s.topics()[topic]['partitions'][0]['journal']
    s.stop()
    run_cli(['check', '--data-dir', str(s.data_dir)])
    assert b'"id":1' in run_cli(['read', journal, '--data-dir', str(s.data_dir)]).stdout
    run_cli(['publish', topic, '--data-dir', str(s.data_dir)], stdin=b'{"id":2}\n')
    run_cli(['check', '--data-dir', str(s.data_dir)])
    s.start()
    assert [strip_meta(r.value) for r in read_all(s.kafka, topic, 0)] == [b'{"id":1}', b'{"id":2}']


@pytest.mark.local_store
def test_check_finds_a_damaged_fragment(make_server, topic):
    s = make_server('--fragment-bytes', '64KiB')
    s.publish(topic, [json.loads(doc(2000, id=i)) for i in range(50)])
    s.publish(topic, [{'id': 'closes the fragment before'}])
    time.sleep(1.5)
    s.stop()
    run_cli(['check', '--data-dir', str(s.data_dir)])
    files = [f for f in s.data_dir.rglob('*.raw') if f.stat().st_size > 50000]
    assert files, 'a fragment of 100 KB was closed'
    with open(files[0], 'r+b') as f:
        f.seek(40000)
        f.write(b'X')
    p = run_cli(['check', '--data-dir', str(s.data_dir)], check=False)
    assert p.returncode == 1, (p.returncode, p.stdout, p.stderr)
    assert p.stdout + p.stderr
    s.expect_dead = True


def test_a_command_without_a_server_says_so(tmp_path):
    p = run_cli(['topics', '--admin', 'http://127.0.0.1:1'], check=False)
    assert p.returncode not in (0, -6, -11)
    assert b'127.0.0.1:1' in p.stderr
    p = run_cli(['read', 'x', '--data-dir', str(tmp_path / 'nowhere')], check=False)
    assert p.returncode not in (0, -6, -11)


def test_the_log_as_json_is_one_object_a_line(make_server, topic):
    s = make_server('--log-format', 'json', '--log-level', 'debug')
    s.publish(topic, [{'id': 1, 'secret': 'do-not-log-me'}])
    with Conn(s.kafka) as c:
        c.api_versions()
        c.call(METADATA, 9, topics=None)
    with Conn(s.kafka) as c:
        c.s.sendall(b'\xff' * 64)
        c.closed(5)
    s.stop()
    lines = [x for x in s.log.read_text().splitlines() if x]
    assert lines
    for line in lines:
        json.loads(line)
    assert 'do-not-log-me' not in s.log.read_text()


def test_settings_come_from_the_environment_and_a_file_too(make_server, tmp_path):
    s = make_server(env={'SLUICE_PARTITIONS': '3'})
    s.publish('env', [{'id': 1}])
    assert len(s.topics()['env']['partitions']) == 3
    conf = tmp_path / 'c.yaml'
    conf.write_text('partitions: 2\n')
    s = make_server('--config', str(conf))
    s.publish('file', [{'id': 1}])
    assert len(s.topics()['file']['partitions']) == 2
    os.unlink(conf)


def test_a_record_has_its_documents_key(srv, topic):
    """One pointer: that value's text, in one spelling; several: an array of them."""
    srv.publish(topic, ['{"id":"a\\u0041","n":1}', '{"id":7.0,"n":2}', '{"id":null,"n":3}'], key='/id')
    assert [r.key for r in read_all(srv.kafka, topic, 0)] == [b'"aA"', b'7', b'null']
    srv.publish(topic + '-two', [{'a': {'b': 1}, 'c': 'x'}], key=['/a/b', '/c'])
    assert [r.key for r in read_all(srv.kafka, topic + '-two', 0)] == [b'[1,"x"]']
    srv.publish(topic + '-none', [{'id': 1}])
    assert [r.key for r in read_all(srv.kafka, topic + '-none', 0)] == [None]


def into(mode, args, stdin=b''):
    """A command with /dev/null as its output; mode 'rb': every write to it fails, as on a full disk. Not /dev/full: in some
    containers that is a plain file. (exit code, stderr)"""
    with open('/dev/null', mode) as out:
        p = subprocess.run([BIN, *args], input=stdin, stdout=out, stderr=subprocess.PIPE, timeout=60, env=dict(os.environ, **SANITIZER_ENV))
    assert not REPORT.search(p.stderr.decode(errors='replace')), p.stderr
    return p.returncode, p.stderr


@pytest.mark.local_store
def test_output_that_is_lost_fails_the_command(make_server, topic):
    """A backup by `sluice read > file` on a full disk must not look whole."""
    s = make_server()
    s.publish(topic, [{'id': i, 'pad': 'x' * 1000} for i in range(3000)])
    journal = s.topics()[topic]['partitions'][0]['journal']
    live = ['--admin', s.admin_url]
    commands = [['read', journal, *live], ['read', journal, '--limit', '1', *live], ['topics', *live], ['collections', '--json', *live],
                ['journals', *live], ['publish', topic, *live], ['backfill', 'status', topic, *live],
                ['help'], ['help', 'config'], ['help', 'serve'], ['--help'], ['version'], ['--version'], ['read', '--help']]

    def all_of_them():
        for args in commands:
            stdin = b'{"id":1}\n' if args[0] == 'publish' else b''
            rc, text = into('wb', args, stdin)
            assert rc == 0, (args, text)
            rc, text = into('rb', args, stdin)
            assert rc == 1 and b'output' in text, (args, rc, text)
    all_of_them()
    s.stop()
    offline = ['--data-dir', str(s.data_dir)]
    commands = [['read', journal, *offline], ['read', journal, '--limit', '1', *offline], ['publish', topic, *offline], ['check', *offline]]
    all_of_them()


def test_a_reader_that_leaves_the_pipe_gets_no_complaint(srv, topic):
    srv.publish(topic, [{'id': i, 'pad': 'x' * 1000} for i in range(3000)])
    journal = srv.topics()[topic]['partitions'][0]['journal']
    for ignored in (True, False):
        p = subprocess.Popen([BIN, 'read', journal, '--admin', srv.admin_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             restore_signals=not ignored, env=dict(os.environ, **SANITIZER_ENV))
        assert p.stdout.readline()
        p.stdout.close()
        assert p.stderr.read() == b''
        assert p.wait(20) in (1, -signal.SIGPIPE)
        p.stderr.close()


def test_a_server_whose_banner_is_lost_serves_and_says_so(tmp_path):
    ports, log = tmp_path / 'ports', tmp_path / 'log'
    with open('/dev/null', 'rb') as out, open(log, 'wb') as err:
        p = subprocess.Popen([BIN, 'serve', '--data-dir', str(tmp_path / 'd'), '--kafka-listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0',
                              '--ports-file', str(ports)], stdout=out, stderr=err, env=dict(os.environ, **SANITIZER_ENV))
    for _ in range(300):
        if ports.exists() or p.poll() is not None:
            break
        time.sleep(0.05)
    p.terminate()
    assert p.wait(30) == 0, log.read_text()
    assert 'banner_lost' in log.read_text()
