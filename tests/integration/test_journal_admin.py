"""The operator's routes on raw journals: off by default, compare-and-set, conditions, faults."""
import json
import urllib.parse

import pytest

LABELS = {'estuary.dev/key-begin': '00000000', 'estuary.dev/key-end': ['ffffffff']}


class Ops:
    def __init__(self, srv, name, slashes=''):
        self.srv, self.name = srv, urllib.parse.quote(name, safe=slashes)

    def __call__(self, method, tail='', body=None, want=200):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        status, out, _ = self.srv.request(method, '/v1/journals/' + self.name + tail, body)
        assert status == want, (method, tail, status, out[:300])
        return json.loads(out)


@pytest.fixture
def ops(make_server):
    srv = make_server('--journal-admin', '--max-ingest-bytes', '256KiB')
    ops = Ops(srv, 'acme/a/pivot=00')
    ops('PUT', body={'labels': dict(LABELS, **{'estuary.dev/collection': 'acme/a'}), 'retention_ms': 10 ** 9})
    return ops


def test_without_the_flag_every_change_is_forbidden(make_server):
    srv = make_server()
    srv.publish('acme/a', [{'id': 1}])
    name = srv.get_json('/v1/journals')['journals'][0]['name']
    ops = Ops(srv, name)
    for method, tail in (('PUT', ''), ('DELETE', ''), ('POST', '/content'), ('POST', '/close'), ('DELETE', '/fragments?end=9')):
        assert 'journal-admin' in ops(method, tail, b'{}\n' if method != 'DELETE' else None, want=403)['error']
    assert ops('GET')['name'] == name
    srv.publish('acme/a', [{'id': 2}])


def test_absent_members_keep_their_values_and_a_revision_is_compared(ops):
    first = ops('GET')
    ops('PUT', body={'labels': {}, 'expect_mod_revision': 0}, want=409)
    lost = ops('PUT', body={'retention_ms': 5, 'expect_mod_revision': first['mod_revision'] + 1}, want=409)
    assert lost['mod_revision'] == first['mod_revision']
    now = ops('PUT', body={'fragment_bytes': 4096, 'expect_mod_revision': first['mod_revision']})
    after = ops('GET')
    assert after['mod_revision'] == now['revision'] and after['create_revision'] == first['create_revision']
    assert (after['fragment_bytes'], after['retention_ms'], after['labels']) == (4096, 10 ** 9, first['labels'])
    ops('PUT', body={'retention_ms': 0})    # compares nothing
    assert ops('GET')['retention_ms'] == 0 and ops('GET')['fragment_bytes'] == 4096
    assert Ops(ops.srv, 'acme/none')('PUT', body={'expect_mod_revision': 3}, want=409)['mod_revision'] == 0


def test_faults_of_a_spec_are_named(ops):
    for body, part in ((b'{', 'JSON'), ({'label': {}}, 'unknown member'), ({'labels': {'a b': 'x'}}, 'label name'),
                       ({'retention_ms': -1}, 'negative'), ({'retention_ms': '1'}, 'whole number'), ([], 'object')):
        assert part in ops('PUT', body=body, want=400)['error']
    assert 'name' in Ops(ops.srv, 'abc')('PUT', body={}, want=400)['error']
    ops('PUT', body=b'{"labels":{"a/b":"' + b'x' * 300000 + b'"}}', want=413)


def test_bytes_are_appended_as_they_stand(ops):
    assert ops('POST', '/content', b'{"a":1}\n\n \n{"b":2}\n') == {'begin': 0, 'end': 19}
    assert Ops(ops.srv, 'acme/a/pivot=00', '/')('POST', '/content', b'x\n') == {'begin': 19, 'end': 21}
    for body, want in ((b'{"a":1}', 400), (b'', 400), (b'x' * 262144 + b'\n', 413)):
        ops('POST', '/content', body, want=want)
    ops('POST', '/content?offset=3', b'x\n', want=400)
    Ops(ops.srv, 'acme/none')('POST', '/content', b'x\n', want=404)
    status, out, _ = ops.srv.request('GET', '/v1/journals/%s/content' % ops.name)
    assert status == 200 and out.splitlines()[0] == b'7\t{"a":1}' and out.endswith(b'20\tx\n')


@pytest.mark.local_store
def test_fragments_are_closed_and_removed_from_below_or_in_the_middle(ops):
    for i in range(4):
        ops('POST', '/content', b'{"n":%d}\n' % i)
        got = ops('POST', '/close')['fragments']
    assert [(f['begin'], f['open']) for f in got] == [(0, False), (8, False), (16, False), (24, False)]
    ops('POST', '/content', b'{"n":4}\n')
    assert [f['begin'] for f in ops('DELETE', '/fragments?begin=16')['fragments']] == [0, 8, 24, 32]
    ops('DELETE', '/fragments?begin=3', want=404)
    assert [f['begin'] for f in ops('DELETE', '/fragments?end=15')['fragments']] == [8, 24, 32]
    for tail in ('', '?begin=8&end=9', '?end=x', '?end=-1', '?until=3'):
        ops('DELETE', '/fragments' + tail, want=400)
    left = ops('DELETE', '/fragments?end=1000')['fragments']    # the open one stays
    assert [(f['begin'], f['open']) for f in left] == [(32, True)]


def test_a_journal_is_deleted_only_as_asked(ops):
    rev = ops('GET')['mod_revision']
    assert ops('DELETE', '?expect_mod_revision=%d' % (rev + 1), want=409)['mod_revision'] == rev
    ops('DELETE', '?expect_mod_revison=%d' % rev, want=400)    # a misspelt condition
    ops('DELETE', '?expect_mod_revision=%d' % rev)
    ops('GET', want=404)
    ops('DELETE', want=404)
    ops('POST', '/content', b'x\n', want=404)
