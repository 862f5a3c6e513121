#!/usr/bin/env python3
"""Lab consumer in Python. consume.py LIB [-b HOST:PORT] [-t TOPIC] [-m group|next|direct] [-g GROUP] [-n MAX] [-X k=v]
LIB: confluent | kafka-python | aiokafka. Prints one line with counts and rates; exit 1 if nothing came in 40 s.
LAB_DUMP=FILE: one line a record: partition, offset, timestamp, key and value in base64 ("-" is null, "=" is empty).
LAB_LOGIN: JSON, how to log in: {"mechanism": "PLAIN|SCRAM-SHA-256|SCRAM-SHA-512|OAUTHBEARER", "user", "password" (the token, for
OAUTHBEARER), "ca", "cert", "key": PEM files}; without mechanism no SASL, without ca no TLS.
LAB_IDLE_MS: silence after which the run ends (default 3000). LAB_FLUSH=1: each record is written at once."""
import argparse, asyncio, base64, json, os, sys, time, resource

ap = argparse.ArgumentParser()
ap.add_argument('lib'); ap.add_argument('-b', default='127.0.0.1:9092'); ap.add_argument('-t', default='hello')
ap.add_argument('-m', default='group'); ap.add_argument('-g', default=None); ap.add_argument('-n', type=int, default=0)
ap.add_argument('-i', '--id', default=None); ap.add_argument('-X', action='append', default=[])
ap.add_argument('--idle', type=float, default=int(os.environ.get('LAB_IDLE_MS', 3000)) / 1000); ap.add_argument('-v', action='store_true')
ap.add_argument('--no-commit', action='store_true')
a = ap.parse_args()
cid = a.id or 'lab-' + a.lib
grp = a.g or 'lab-%s-%d' % (a.lib, int(time.time() * 1000))
X = dict(x.split('=', 1) for x in a.X)
n = by = 0
t0 = last = time.time()
if a.v:
    import logging; logging.basicConfig(level=logging.DEBUG)

dump = open(os.environ['LAB_DUMP'], 'w', buffering=1 << 20) if os.environ.get('LAB_DUMP') else None
def b64(b): return '-' if b is None else base64.b64encode(b).decode() or '='
def seen(partition, offset, ts, key, value):
    global n, by
    n += 1; by += len(value or b'') + len(key or b'')
    if dump:
        dump.write('%d\t%d\t%d\t%s\t%s\n' % (partition, offset, ts, b64(key), b64(value)))
        if os.environ.get('LAB_FLUSH') == '1': dump.flush()

def fin(ver, count, nbytes, last):
    if dump: dump.close()
    d = max(last - t0, 1e-6); u = resource.getrusage(resource.RUSAGE_SELF)
    print('%s %s %s records=%d bytes=%d secs=%.3f MB/s=%.1f msgs/s=%.0f cpu_s=%.2f rss_mb=%.0f' % (
        a.lib, ver, a.m, count, nbytes, d, nbytes / 1e6 / d, count / d, u.ru_utime + u.ru_stime, u.ru_maxrss / 1024))
    sys.stdout.flush()
    os._exit(0 if count else 1)

W = json.loads(os.environ.get('LAB_LOGIN') or '{}')
PROTOCOL = ('SASL_' if W.get('mechanism') else '') + ('SSL' if W.get('ca') else 'PLAINTEXT')
BEARER = W.get('mechanism') == 'OAUTHBEARER'

def login_python():    # kafka-python and aiokafka
    if not W: return {}
    kw = {'security_protocol': PROTOCOL}
    if W.get('mechanism'): kw.update(sasl_mechanism=W['mechanism'])
    if W.get('mechanism') and not BEARER: kw.update(sasl_plain_username=W['user'], sasl_plain_password=W['password'])
    if BEARER:
        import importlib
        base = importlib.import_module('aiokafka.abc' if a.lib == 'aiokafka' else 'kafka.net.sasl.oauth').AbstractTokenProvider
        class Provider(base):
            if a.lib == 'aiokafka':
                async def token(self): return W['password']
            else:
                def token(self): return W['password']
        kw.update(sasl_oauth_token_provider=Provider())
    if W.get('ca') and a.lib == 'aiokafka':
        import ssl
        kw['ssl_context'] = ssl.create_default_context(cafile=W['ca'])
        if W.get('cert'): kw['ssl_context'].load_cert_chain(W['cert'], W['key'])
    elif W.get('ca'):
        kw.update(ssl_cafile=W['ca'])
        if W.get('cert'): kw.update(ssl_certfile=W['cert'], ssl_keyfile=W['key'])
    return kw

def login_confluent():
    if not W: return {}
    d = {'security.protocol': PROTOCOL}
    if W.get('mechanism'): d['sasl.mechanisms'] = W['mechanism']
    if BEARER: d['oauth_cb'] = lambda _: (W['password'], time.time() + 50)
    elif W.get('mechanism'): d.update({'sasl.username': W['user'], 'sasl.password': W['password']})
    if W.get('ca'): d['ssl.ca.location'] = W['ca']
    if W.get('cert'): d.update({'ssl.certificate.location': W['cert'], 'ssl.key.location': W['key']})
    return d

if a.lib == 'confluent':
    import confluent_kafka as ck
    conf = {'bootstrap.servers': a.b, 'group.id': grp, 'client.id': cid, 'auto.offset.reset': 'earliest', **login_confluent(), **X}
    if a.m == 'next': conf['group.protocol'] = 'consumer'
    if a.v: conf['debug'] = 'protocol,cgrp,feature,topic,metadata,fetch'
    c = ck.Consumer(conf)
    if a.m == 'direct':
        md = c.list_topics(a.t, timeout=10)
        c.assign([ck.TopicPartition(a.t, p, ck.OFFSET_BEGINNING) for p in md.topics[a.t].partitions])
    else:
        c.subscribe([a.t])
    while True:
        ms = c.consume(500, 0.2)
        for m in ms:
            if m.error(): print('ERR', m.error(), file=sys.stderr); continue
            seen(m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value())
        now = time.time()
        if ms: last = now
        if (n and now - last > a.idle) or (a.n and n >= a.n) or (not n and now - t0 > 40): break
    if n and not a.no_commit and a.m != 'direct':
        try: c.commit(asynchronous=False)
        except ck.KafkaException as e:          # auto commit may have stored everything already
            if e.args[0].code() != ck.KafkaError._NO_OFFSET: raise
    if a.m != 'direct': c.close()    # where no coordinator is to be found, as without groups, librdkafka's close() looks for one for 47 s
    fin('%s/librdkafka-%s' % (ck.version() if isinstance(ck.version(), str) else ck.version()[0], ck.libversion()[0]), n, by, last)

elif a.lib == 'kafka-python':
    import kafka
    kw = dict(bootstrap_servers=a.b, client_id=cid, auto_offset_reset='earliest', **login_python())
    for k, v in X.items(): kw[k] = int(v) if v.lstrip('-').isdigit() else v
    if a.m == 'next': kw['group_protocol'] = 'consumer'
    if a.m == 'direct':
        c = kafka.KafkaConsumer(**kw)
        tps = [kafka.TopicPartition(a.t, p) for p in sorted(c.partitions_for_topic(a.t))]
        c.assign(tps); c.seek_to_beginning(*tps)
    else:
        c = kafka.KafkaConsumer(a.t, group_id=grp, **kw)
    while True:
        r = c.poll(timeout_ms=200, max_records=1000)
        for ms in r.values():
            for m in ms: seen(m.partition, m.offset, m.timestamp, m.key, m.value)
        now = time.time()
        if r: last = now
        if (n and now - last > a.idle) or (a.n and n >= a.n) or (not n and now - t0 > 40): break
    if n and a.m != 'direct': c.commit()
    c.close(); fin(kafka.__version__, n, by, last)

elif a.lib == 'aiokafka':
    import aiokafka
    async def main():
        global n, by, last
        kw = dict(bootstrap_servers=a.b, client_id=cid, auto_offset_reset='earliest', **login_python())
        for k, v in X.items(): kw[k] = int(v) if v.lstrip('-').isdigit() else v
        c = aiokafka.AIOKafkaConsumer(*([] if a.m == 'direct' else [a.t]), group_id=None if a.m == 'direct' else grp, **kw)
        await c.start()
        if a.m == 'direct':
            await c._client.force_metadata_update()
            ps = c.partitions_for_topic(a.t) or set()
            if not ps:
                await c._client.add_topic(a.t); ps = c._client.cluster.partitions_for_topic(a.t)
            c.assign([aiokafka.TopicPartition(a.t, p) for p in sorted(ps)]); await c.seek_to_beginning()
        while True:
            r = await c.getmany(timeout_ms=200, max_records=1000)
            for ms in r.values():
                for m in ms: seen(m.partition, m.offset, m.timestamp, m.key, m.value)
            now = time.time()
            if r: last = now
            if (n and now - last > a.idle) or (a.n and n >= a.n) or (not n and now - t0 > 40): break
        if n and a.m != 'direct': await c.commit()
        await c.stop()
    asyncio.run(main()); fin(aiokafka.__version__, n, by, last)
else:
    sys.exit('unknown lib')
