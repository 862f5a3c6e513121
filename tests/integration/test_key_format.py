"""key_format as real clients see it: JSON text and the bare scalar, of every kind of key."""
import json

import pytest

import clients

IDS = ['plain', '', 'quoted "é" \\ \n', 7, -1.5, True, False, None]


def catalog(path, key_format, value_format='json'):
    config = {'sluice': {'value_format': value_format, 'key_format': key_format}}
    one = {'schema': {'type': 'object', 'properties': {'id': {}, 'n': {'type': 'integer'}}}, 'key': ['/id']}
    two = {'schema': one['schema'], 'key': ['/id', '/n']}
    bindings = [{'source': 'acme/' + c, 'resource': {'topic_name': c}} for c in ('one', 'two')]
    path.write_text(json.dumps({'collections': {'acme/one': one, 'acme/two': two},
                                'materializations': {'t': {'endpoint': {'dekaf': {'variant': 'test', 'config': config}}, 'bindings': bindings}}}))
    return str(path)


def bare(v):
    """What the key must be: None is no key."""
    if v is None:
        return None
    return v.encode() if isinstance(v, str) else json.dumps(v).encode()


@pytest.mark.parametrize('read', [clients.read_confluent, clients.read_java_direct, clients.read_franz], ids=['librdkafka', 'java', 'franz-go'])
@pytest.mark.parametrize('value_format', ['json', 'avro'])
def test_a_bare_key_is_what_the_scalar_says(make_server, tmp_path, read, value_format):
    s = make_server('--catalog', catalog(tmp_path / 'c.json', 'scalar', value_format))
    docs = [{'id': v, 'n': i} for i, v in enumerate(IDS)]
    for d in docs:
        s.publish('acme/one', [d])
        s.publish('acme/two', [d])
    assert [r.key for r in read(s.bootstrap, 'one')] == [bare(v) for v in IDS]
    assert [json.loads(r.key) for r in read(s.bootstrap, 'two')] == [[d['id'], d['n']] for d in docs]


def test_the_keys_of_json_topics_are_json_text_unless_said_otherwise(make_server, tmp_path):
    s = make_server('--catalog', catalog(tmp_path / 'c.json', 'json'))
    for i, v in enumerate(IDS):
        s.publish('acme/one', [{'id': v, 'n': i}])
    assert [json.loads(r.key) for r in clients.read_confluent(s.bootstrap, 'one')] == IDS
