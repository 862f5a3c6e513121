"""What `sluice publish` says: never "not published" where that is not known, and how to go on."""
import http.server
import json
import threading

import pytest

from docs_util import read_all
from sluice import run_cli


class Proxyless:
    """An admin address that plays a list of behaviours, one a request; the last one is repeated."""

    def __init__(self, *script):
        self.script, self.keys = list(script), []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = 'HTTP/1.1'

            def do_POST(self):
                self.rfile.read(int(self.headers['Content-Length']))
                outer.keys.append(self.headers['Idempotency-Key'])
                status, body = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                self.close_connection = True
                if status is None:
                    return    # the answer is lost
                self.send_response(status)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self.httpd = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()
        self.url = 'http://127.0.0.1:%d' % self.httpd.server_address[1]

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.httpd.shutdown()
        self.httpd.server_close()


LOST = (None, b'')


def publish(url, *more, stdin=b'{"a":1}\n{"a":2}\n'):
    return run_cli(['publish', 'c', '--admin', url, *more], stdin, check=False)


def stem_told(text):
    return text.split('--idempotency-key ', 1)[1].split(':', 1)[0].split()[0]


@pytest.mark.parametrize('script', [
    [LOST],
    [LOST, (503, b'{"error":"busy"}')],
    [(500, b'{"error":"commit: input or output error"}')],
    [(502, b'bad gateway')],
    [(200, b'<html>')],
], ids=['lost', 'lost then busy', 'a fault of the store', 'a gateway between', 'an answer that is none'])
def test_an_outcome_that_is_not_known_is_called_so(script):
    with Proxyless(*script) as p:
        r = publish(p.url)
    text = r.stderr.decode()
    assert r.returncode == 1
    assert 'not known' in text and 'nothing of the lines' not in text
    assert p.keys[0] == stem_told(text) + '-1' and len(set(p.keys)) == 1


@pytest.mark.parametrize('script', [
    [(400, b'{"error":"no"}')],
    [(503, b'{"error":"busy"}')],
    [LOST, (422, b'{"error":"another body"}')],
], ids=['refused', 'busy', 'lost then refused'])
def test_a_refusal_says_that_nothing_was_published(script):
    with Proxyless(*script) as p:
        r = publish(p.url)
    assert r.returncode == 1
    assert b'nothing of the lines from 1 on was published' in r.stderr and b'not known' not in r.stderr


def test_a_server_that_cannot_be_reached_got_nothing():
    r = publish('http://127.0.0.1:1')
    assert r.returncode == 1
    assert b'nothing of the lines from 1 on was published' in r.stderr


def test_the_key_that_was_told_publishes_the_rest_once(make_server, topic):
    server = make_server()
    docs = b'{"n":1}\n{"n":2}\nnonsense\n{"n":3}\n'
    r = server.cli('publish', topic, '--batch', '1', stdin=docs, check=False)
    assert r.returncode == 1
    stem = stem_told(r.stderr.decode())
    r = server.cli('publish', topic, '--batch', '1', '--idempotency-key', stem, stdin=docs.replace(b'nonsense', b'{"n":9}'))
    assert b'partly before' in r.stdout
    assert [json.loads(d.value)['n'] for d in read_all(server.kafka, topic, 0)] == [1, 2, 9, 3]
    r = server.cli('publish', topic, '--batch', '1', '--idempotency-key', stem, stdin=docs.replace(b'nonsense', b'{"n":9}'))
    assert b' (before, ' in r.stdout and b'partly' not in r.stdout


def test_no_documents_still_ask_the_server(make_server, topic):
    server = make_server()
    r = server.cli('publish', topic, stdin=b'')
    assert b'published 0 documents to ' + topic.encode() + b' in 0 transactions' in r.stdout
    assert topic in server.topics()
    r = server.cli('publish', '../x', stdin=b'', check=False)
    assert r.returncode == 1
    r = publish('http://127.0.0.1:1', stdin=b'')
    assert r.returncode == 1 and r.stderr


def test_a_backfill_whose_answer_is_lost_is_called_not_known():
    with Proxyless(LOST) as p:
        r = run_cli(['backfill', 'begin', 'c', '--admin', p.url], check=False)
    assert r.returncode == 1
    assert b'not known' in r.stderr and b'backfill status c' in r.stderr
