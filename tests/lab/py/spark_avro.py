#!/usr/bin/env python3
"""Avro topics by Structured Streaming and from_avro. spark-run.sh 35|4 py/spark_avro.py KAFKA REGISTRY TOPIC,.. DIR
Each topic is read to its end by a streaming query (trigger availableNow): key and value without the five bytes in front are decoded by
from_avro with the schema that the registry serves, and written as parquet below DIR. LAB_LOGIN as in registry/README.md, without TLS. Prints one
line a record: {"topic", "partition", "offset", "key", "value"}, spelled as in avro/README.md, but for NaN, which is d:nan."""
import base64
import datetime
import json
import os
import struct
import sys
import urllib.parse
import urllib.request

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

kafka, registry, topics, work = sys.argv[1:]
W = json.loads(os.environ['LAB_LOGIN'])
EPOCH = datetime.datetime(1970, 1, 1)


def served(subject):
    auth = base64.b64encode(('%s:%s' % (W['user'], W['password'])).encode()).decode()
    url = '%s/subjects/%s/versions/latest' % (registry, urllib.parse.quote(subject, safe=''))
    with urllib.request.urlopen(urllib.request.Request(url, headers={'Authorization': 'Basic ' + auth}), timeout=30) as r:
        return json.loads(r.read())


def plain(v):
    if v is None or isinstance(v, (bool, int)):
        return v
    if isinstance(v, float):
        return 'd:%016x' % struct.unpack('>Q', struct.pack('>d', v))[0]
    if isinstance(v, str):
        return 's:' + v
    if isinstance(v, (bytes, bytearray)):
        return 'b:' + bytes(v).hex()
    if isinstance(v, datetime.datetime):
        return (v - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(v, datetime.date):
        return v.toordinal() - EPOCH.toordinal()
    if hasattr(v, 'asDict'):
        return {k: plain(v[k]) for k in v.asDict()}
    if isinstance(v, dict):
        return {k: plain(x) for k, x in v.items()}
    return [plain(x) for x in v]


os.environ['TZ'] = 'UTC'
# Spark takes names that differ by case as one, and refuses dates before 1582, by which Spark 2 meant another calendar, unless told
spark = (SparkSession.builder.appName('avro').config('spark.sql.session.timeZone', 'UTC').config('spark.sql.caseSensitive', 'true')
         .config('spark.sql.avro.datetimeRebaseModeInRead', 'CORRECTED').config('spark.sql.parquet.datetimeRebaseModeInWrite', 'CORRECTED')
         .config('spark.sql.parquet.datetimeRebaseModeInRead', 'CORRECTED').config('spark.sql.parquet.outputTimestampType', 'TIMESTAMP_MICROS')
         .getOrCreate())
spark.sparkContext.setLogLevel('ERROR')
jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="%s" password="%s";' % (W['user'], W['password'])
for n, topic in enumerate(topics.split(',')):
    rows = (spark.readStream.format('kafka').option('kafka.bootstrap.servers', kafka).option('subscribe', topic)
            .option('startingOffsets', 'earliest').option('kafka.security.protocol', 'SASL_PLAINTEXT')
            .option('kafka.sasl.mechanism', 'PLAIN').option('kafka.sasl.jaas.config', jaas).load())
    columns = ['topic', 'partition', 'offset']
    for side in ('key', 'value'):
        s = served('%s-%s' % (topic, side))
        head = F.expr('hex(substring(%s, 1, 5))' % side)
        rows = rows.withColumn(side + '_head', head)
        # FAILFAST: what does not decode ends the query
        rows = rows.withColumn(side + '_record', from_avro(F.expr('substring(%s, 6, length(%s) - 5)' % (side, side)), s['schema'], {'mode': 'FAILFAST'}))
        columns += [side + '_head', side + '_record', F.lit('00%08X' % s['id']).alias(side + '_want')]
    out = os.path.join(work, 'out-%d' % n)
    q = (rows.select(*columns).writeStream.format('parquet').option('path', out).option('checkpointLocation', os.path.join(work, 'checkpoint-%d' % n))
         .trigger(availableNow=True).start())
    q.awaitTermination()
    for r in sorted(spark.read.parquet(out).collect(), key=lambda r: (r.partition, r.offset)):
        assert r.key_head == r.key_want and r.value_head in (None, r.value_want), r
        print(json.dumps({'topic': r.topic, 'partition': r.partition, 'offset': r.offset, 'key': plain(r.key_record), 'value': plain(r.value_record)}))
    sys.stdout.flush()
print(json.dumps({'spark': spark.version}))
sys.stdout.flush()
os._exit(0)
