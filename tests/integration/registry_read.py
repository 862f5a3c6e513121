"""Reads an Avro topic as an application would: confluent-kafka's AvroDeserializer against the registry. One JSON line a
record. registry_read.py KAFKA REGISTRY USER PASSWORD TOPIC COUNT. Runs in the venv that has the clients."""
import datetime
import json
import sys

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

kafka, registry, user, password, topic, count = sys.argv[1:]
sr = SchemaRegistryClient({'url': registry, 'basic.auth.user.info': '%s:%s' % (user, password)})
read = AvroDeserializer(sr)
c = Consumer({'bootstrap.servers': kafka, 'group.id': 'g', 'auto.offset.reset': 'earliest', 'enable.auto.commit': False,
              'security.protocol': 'SASL_PLAINTEXT', 'sasl.mechanism': 'PLAIN', 'sasl.username': user, 'sasl.password': password})
c.subscribe([topic])


def plain(x):
    return x.isoformat() if isinstance(x, (datetime.datetime, datetime.date)) else repr(x)


print(json.dumps({'subjects': sr.get_subjects(), 'latest': sr.get_latest_version(topic + '-value').schema_id}))
left = int(count)
while left:
    m = c.poll(30)
    assert m is not None, 'nothing for 30 s'
    assert m.error() is None, m.error()
    key = read(m.key(), SerializationContext(topic, MessageField.KEY))
    value = None if m.value() is None else read(m.value(), SerializationContext(topic, MessageField.VALUE))
    print(json.dumps({'key': key, 'value': value, 'offset': m.offset(), 'id': None if value is None else int.from_bytes(m.value()[1:5], 'big'),
                      'headers': [[k, v.decode()] for k, v in m.headers() or []]}, default=plain))
    left -= 1
c.close()
