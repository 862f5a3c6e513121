#!/usr/bin/env python3
"""Turns the gateway's GET /v1/topics (standard input) into what kafka-get-offsets prints for TOPIC:
one line TOPIC:PARTITION:HIGH_WATERMARK. end_offsets.py TOPIC"""
import json, sys
doc = json.load(sys.stdin)
for t in doc['topics'] if isinstance(doc, dict) else doc:
    if t.get('name', t.get('topic')) == sys.argv[1]:
        for i, p in enumerate(t['partitions']):
            print('%s:%d:%d' % (sys.argv[1], p.get('partition', i), p['high_watermark']))
