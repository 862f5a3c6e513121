#!/usr/bin/env python3
"""Reads a whole topic with librdkafka (confluent-kafka), assigned partitions, to the end of each. million_consume.py
BOOTSTRAP TOPIC. Runs in the lab's venv. Prints 'count bytes sum seconds order_faults offset_faults cpu': sum as in
gen_docs.py over the documents without _meta; order_faults counts documents whose id is not above the last one of the
same user; offset_faults those whose offset does not rise in its partition."""
import os
import resource
import sys
import time

import confluent_kafka as ck

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from gen_docs import doc_hash    # noqa: E402

b, topic = sys.argv[1:3]
c = ck.Consumer({'bootstrap.servers': b, 'group.id': 'million', 'enable.partition.eof': True, 'enable.auto.commit': False,
                 'queued.min.messages': 50000, 'fetch.message.max.bytes': 1 << 20})
parts = list(c.list_topics(topic, timeout=15).topics[topic].partitions)
c.assign([ck.TopicPartition(topic, p, ck.OFFSET_BEGINNING) for p in parts])
HEAD = len('{"_meta":{"uuid":"') + 36 + len('"},')
n = size = total = order = offsets = 0
last_id, last_off, ended = {}, {}, set()
t0 = heard = time.time()
while len(ended) < len(parts):
    ms = c.consume(2000, 0.1)    # waits for 2000, or so long
    if ms:
        heard = time.time()
    elif time.time() - heard > 30:
        sys.exit('nothing for 30 s after %d documents' % n)
    for m in ms:
        if m.error():
            if m.error().code() != ck.KafkaError._PARTITION_EOF:
                sys.exit('error: %s' % m.error())
            ended.add(m.partition())
            continue
        v = m.value()
        d = b'{' + v[HEAD:]
        n += 1
        size += len(d)
        total = total + doc_hash(d) & (1 << 64) - 1
        at = d.index(b',')
        i, user = int(d[6:at]), d[at + 9:at + 15]
        if i <= last_id.get(user, -1):
            order += 1
        last_id[user] = i
        if m.offset() <= last_off.get(m.partition(), -1):
            offsets += 1
        last_off[m.partition()] = m.offset()
secs = time.time() - t0
u = resource.getrusage(resource.RUSAGE_SELF)
print(n, size, total, '%.2f' % secs, order, offsets, '%.1f' % (u.ru_utime + u.ru_stime))
sys.stdout.flush()
os._exit(0)
