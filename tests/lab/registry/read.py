#!/usr/bin/env python3
"""Reads Avro topics with confluent-kafka and one of two registry clients: Confluent's own AvroDeserializer, or
python-schema-registry-client (src). read.py confluent|src KAFKA REGISTRY TOPIC,.. COUNT; the protocol is that of README.md. Runs in the
venv of py-install.sh main."""
import datetime
import json
import os
import struct
import sys
import time
import uuid

lib, kafka, registry, topics, count = sys.argv[1:]
W = json.loads(os.environ['LAB_LOGIN'])
ca = W.get('ca')
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def plain(v):
    """Both libraries read with fastavro, which makes objects of logical types."""
    if v is None or isinstance(v, (bool, int)):
        return v
    if isinstance(v, float):
        return 'd:%016x' % struct.unpack('>Q', struct.pack('>d', v))[0]
    if isinstance(v, (str, uuid.UUID)):
        return 's:%s' % v
    if isinstance(v, bytes):
        return 'b:' + v.hex()
    if isinstance(v, datetime.datetime):
        return (v - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(v, datetime.date):
        return v.toordinal() - EPOCH.toordinal()
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v]


def confluent():
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.avro import AvroDeserializer
    from confluent_kafka.serialization import MessageField, SerializationContext
    sr = SchemaRegistryClient({'url': registry, 'basic.auth.user.info': '%s:%s' % (W['user'], W['password']),
                               **({'ssl.ca.location': ca} if ca else {})})
    read = AvroDeserializer(sr)
    fields = {'key': MessageField.KEY, 'value': MessageField.VALUE}
    return sr.get_subjects, lambda s: sr.get_latest_version(s).schema_id, lambda b, topic, what: read(b, SerializationContext(topic, fields[what]))


def src():
    if ca:
        os.environ['SSL_CERT_FILE'] = ca    # its ca_location counts only beside a certificate of the client's own
    import httpx
    from schema_registry.client import SchemaRegistryClient
    from schema_registry.serializers import AvroMessageSerializer
    sr = SchemaRegistryClient(url=registry, auth=httpx.BasicAuth(W['user'], W['password']))
    read = AvroMessageSerializer(sr)
    # it puts the subject into the path as it is
    return sr.get_subjects, lambda s: sr.get_schema(s.replace('/', '%2F')).schema_id, lambda b, topic, what: read.decode_message(b)


def say(x):
    sys.stdout.write(json.dumps(x) + '\n')
    sys.stdout.flush()


def id_of(b):
    return None if b is None else int.from_bytes(b[1:5], 'big')


subjects, latest, decode = {'confluent': confluent, 'src': src}[lib]()
if kafka == '-':
    for text in sys.stdin:
        b = bytes.fromhex(text)
        say({'id': id_of(b), 'value': plain(decode(b, topics, 'value'))})
    sys.exit()
from confluent_kafka import Consumer    # noqa: E402
say({'subjects': subjects(), 'latest': latest(topics.split(',')[0] + '-value')})
c = Consumer({'bootstrap.servers': kafka, 'group.id': 'registry-%d-%d' % (os.getpid(), time.time() * 1e3), 'auto.offset.reset': 'earliest',
              'security.protocol': 'SASL_SSL' if ca else 'SASL_PLAINTEXT', 'sasl.mechanism': 'PLAIN', 'sasl.username': W['user'],
              'sasl.password': W['password'], **({'ssl.ca.location': ca} if ca else {})})
c.subscribe(topics.split(','))
left = int(count)
while left:
    m = c.poll(60)
    assert m is not None, 'nothing for 60 s'
    assert m.error() is None, m.error()
    k, v = m.key(), m.value()
    say({'topic': m.topic(), 'partition': m.partition(), 'offset': m.offset(),
         'key_id': id_of(k), 'key': None if k is None else plain(decode(k, m.topic(), 'key')),
         'id': id_of(v), 'value': None if v is None else plain(decode(v, m.topic(), 'value')),
         'headers': [[h, x.decode()] for h, x in m.headers() or []]})
    left -= 1
c.close()
