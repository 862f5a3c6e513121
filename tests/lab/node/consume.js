#!/usr/bin/env node
// Lab consumer in Node: node consume.js LIB BOOTSTRAP TOPIC GROUP
// LIB: kafkajs | kafkajs-direct | platformatic | platformatic-next | platformatic-direct | node-rdkafka | confluent | confluent-next
//   kafkajs-direct: KafkaJS has no consumer without a group. This drives its own Cluster, broker and Batch classes, the
//   ones that its consumer uses (no public API): its encoder and decoder are under test, not its consumer loop.
//   platformatic-direct: the public Consumer.listOffsets() and Consumer.fetch(), no group is joined.
// Modules come from $LAB/node (node-install.sh). Prints counts; exit 1 when nothing came in 40 s.
// LAB_DUMP=FILE, LAB_IDLE_MS and LAB_FLUSH as in py/consume.py.
const fs = require('fs');
const LAB = process.env.LAB || '/opt/lab';
const req = require('module').createRequire(LAB + '/node/');
Promise.withResolvers ||= function () { let a, b; const p = new Promise((x, y) => { a = x; b = y; }); return { promise: p, resolve: a, reject: b }; }; // Node 20 for @platformatic/kafka 2.x
const [lib, b, topic, group] = process.argv.slice(2);
const session = +(process.env.LAB_SESSION_MS || 0); // KafkaJS's group; 0: the library's
const idle = +(process.env.LAB_IDLE_MS || 3000);
let n = 0, by = 0, last = Date.now(); const t0 = Date.now();
const lines = process.env.LAB_DUMP ? [] : null;
const b64 = (x) => x === null || x === undefined ? '-' : x.length ? Buffer.from(x).toString('base64') : '=';
const seen = (k, v, partition, offset, ts) => {
  n++; by += (k ? k.length : 0) + (v ? v.length : 0); last = Date.now();
  if (lines && process.env.LAB_FLUSH === '1') fs.appendFileSync(process.env.LAB_DUMP, `${partition}\t${offset}\t${ts}\t${b64(k)}\t${b64(v)}\n`);
  else if (lines) lines.push(`${partition}\t${offset}\t${ts}\t${b64(k)}\t${b64(v)}`);
};
const report = (ver) => {
  if (lines && process.env.LAB_FLUSH !== '1') fs.writeFileSync(process.env.LAB_DUMP, lines.map((l) => l + '\n').join(''));
  const d = (last - t0) / 1000, u = process.resourceUsage();
  console.log(`${lib} ${ver} records=${n} bytes=${by} secs=${d.toFixed(3)} MB/s=${(by / 1e6 / d).toFixed(1)} msgs/s=${(n / d).toFixed(0)} cpu_s=${((u.userCPUTime + u.systemCPUTime) / 1e6).toFixed(2)} rss_mb=${(u.maxRSS / 1024).toFixed(0)}`);
};
const done = (ver, stop) => { const iv = setInterval(async () => {
  if (n && Date.now() - last > idle || !n && Date.now() - t0 > 40000) {
    clearInterval(iv); report(ver);
    setTimeout(() => process.exit(n ? 0 : 1), 3000).unref();
    try { await stop(); } catch (e) { console.error('stop', e.message); }
    process.exit(n ? 0 : 1);
  }
}, 50); };
// LAB_LOGIN as in py/consume.py, for KafkaJS.
const W = JSON.parse(process.env.LAB_LOGIN || '{}');
const read = (f) => f && fs.readFileSync(f, 'utf8');
const ssl = W.ca ? { ca: [read(W.ca)], cert: read(W.cert), key: read(W.key) } : undefined;
const sasl = !W.mechanism ? undefined : W.mechanism === 'OAUTHBEARER' ? { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: W.password }) } :
  { mechanism: W.mechanism.toLowerCase(), username: W.user, password: W.password };
const ver = (m) => JSON.parse(fs.readFileSync(LAB + '/node/node_modules/' + m + '/package.json')).version;
(async () => {
  if (lib === 'kafkajs') {
    const { Kafka, logLevel } = req('kafkajs');
    const c = new Kafka({ clientId: 'lab-kafkajs', brokers: [b], ssl, sasl, logLevel: process.env.V ? logLevel.DEBUG : logLevel.ERROR }).consumer({ groupId: group, ...(session ? { sessionTimeout: session, heartbeatInterval: session / 6, rebalanceTimeout: session } : {}) });
    await c.connect(); await c.subscribe({ topic, fromBeginning: true });
    await c.run({ ...(session ? { autoCommitInterval: session / 6 } : {}), eachBatch: async ({ batch }) => { for (const m of batch.messages) seen(m.key, m.value, batch.partition, m.offset, m.timestamp); } });
    done(ver('kafkajs'), () => c.disconnect());
  } else if (lib === 'kafkajs-direct') {
    const { createLogger, LEVELS } = req('kafkajs/src/loggers'), Cluster = req('kafkajs/src/cluster'), Batch = req('kafkajs/src/consumer/batch');
    const c = new Cluster({ logger: createLogger({ level: LEVELS.ERROR, logCreator: req('kafkajs/src/loggers/console') }), socketFactory: req('kafkajs/src/network/socketFactory')(),
      brokers: () => [b], ssl, sasl, clientId: 'lab-kafkajs', connectionTimeout: 5000, authenticationTimeout: 5000, reauthenticationThreshold: 10000, requestTimeout: 30000,
      enforceRequestTimeout: true, metadataMaxAge: 300000, retry: { retries: 3 }, allowAutoTopicCreation: false, maxInFlightRequests: null, isolationLevel: 1, offsets: new Map() });
    await c.connect(); await c.addTargetTopic(topic);
    const ids = c.findTopicPartitionMetadata(topic).map((p) => p.partitionId);
    const offsetsOf = async (fromBeginning) => new Map((await c.fetchTopicsOffset([{ topic, partitions: ids.map((partition) => ({ partition })), fromBeginning }]))[0].partitions.map((p) => [p.partition, BigInt(p.offset)]));
    const at = await offsetsOf(true), end = await offsetsOf(false);
    while ([...at].some(([p, o]) => o < end.get(p))) {
      if (Date.now() - last > 30000) { console.error('stuck', [...at], [...end]); process.exit(1); }
      for (const [leader, parts] of Object.entries(c.findLeaderForPartitions(topic, ids))) {
        const open = parts.filter((p) => at.get(p) < end.get(p)); if (!open.length) continue;
        const broker = await c.findBroker({ nodeId: leader });
        const rs = await broker.fetch({ isolationLevel: 1, maxWaitTime: 500, minBytes: 1, maxBytes: 10485760, topics: [{ topic, partitions: open.map((partition) => ({ partition, fetchOffset: String(at.get(partition)), maxBytes: 1048576 })) }] });
        for (const t of rs.responses) for (const p of t.partitions) {
          const batch = new Batch(topic, String(at.get(p.partition)), p);
          for (const m of batch.messages) seen(m.key, m.value, p.partition, m.offset, m.timestamp);
          if (batch.rawMessages.length) at.set(p.partition, BigInt(batch.lastOffset()) + 1n);
        }
      }
    }
    report(ver('kafkajs')); await c.disconnect();
  } else if (lib === 'platformatic-direct') {
    const { Consumer } = req('@platformatic/kafka');
    const c = new Consumer({ groupId: group || 'unused', clientId: 'lab-platformatic', bootstrapBrokers: [b], autocommit: false });
    const md = (await c.metadata({ topics: [topic] })), info = md.topics.get(topic);
    const list = async (timestamp) => (await c.listOffsets({ topics: [topic], timestamp })).get(topic);
    const at = [...await list(-2n)].map(BigInt), end = [...await list(-1n)].map(BigInt);
    while (at.some((o, p) => o < end[p])) {
      if (Date.now() - last > 30000) { console.error('stuck', at, end); process.exit(1); }
      const byNode = new Map();
      at.forEach((o, p) => { if (o < end[p]) { const l = info.partitions[p].leader; byNode.set(l, [...(byNode.get(l) || []), p]); } });
      for (const [node, parts] of byNode) {
        const rs = await c.fetch({ node, minBytes: 1, maxBytes: 10485760, maxWaitTime: 500, isolationLevel: 1, topics: [{ topicId: info.id, partitions: parts.map((partition) => (
          { partition, currentLeaderEpoch: -1, fetchOffset: at[partition], lastFetchedEpoch: -1, partitionMaxBytes: 1048576 })) }] });
        for (const t of rs.responses) for (const p of t.partitions) for (const batch of p.records || []) {
          const control = (batch.attributes & 0x20) !== 0;
          for (const m of batch.records) {
            const off = batch.firstOffset + BigInt(m.offsetDelta);
            if (!control && off >= at[p.partitionIndex]) seen(m.key, m.value, p.partitionIndex, off, batch.firstTimestamp + m.timestampDelta);
          }
          const next = batch.firstOffset + BigInt(batch.lastOffsetDelta) + 1n;
          if (next > at[p.partitionIndex]) at[p.partitionIndex] = next;
        }
      }
    }
    report(ver('@platformatic/kafka')); await c.close(true);
  } else if (lib.startsWith('platformatic')) {
    const { Consumer } = req('@platformatic/kafka');
    const c = new Consumer({ groupId: group, clientId: 'lab-platformatic', bootstrapBrokers: [b], ...(lib.endsWith('next') ? { groupProtocol: 'consumer' } : {}) });
    const s = await c.consume({ topics: [topic], mode: 'earliest', autocommit: true });
    s.on('data', (m) => seen(m.key, m.value, m.partition, m.offset, m.timestamp)); s.on('error', (e) => console.error('ERR', e.message));
    done(ver('@platformatic/kafka'), async () => { await s.close(); await c.close(); });
  } else if (lib === 'node-rdkafka') {
    const K = req('node-rdkafka');
    const c = new K.KafkaConsumer({ 'metadata.broker.list': b, 'group.id': group, 'client.id': 'lab-node-rdkafka' }, { 'auto.offset.reset': 'earliest' });
    c.connect(); c.on('ready', () => { c.subscribe([topic]); c.consume(); }); c.on('data', (m) => seen(m.key, m.value, m.partition, m.offset, m.timestamp));
    done(ver('node-rdkafka') + '/librdkafka-' + K.librdkafkaVersion, () => new Promise((r) => c.disconnect(r)));
  } else if (lib.startsWith('confluent')) {
    const { Kafka } = req('@confluentinc/kafka-javascript').KafkaJS;
    const c = new Kafka({}).consumer({ 'bootstrap.servers': b, 'group.id': group, 'client.id': 'lab-confluent-js', 'auto.offset.reset': 'earliest',
      ...(lib.endsWith('next') ? { 'group.protocol': 'consumer' } : {}) });
    await c.connect(); await c.subscribe({ topic });
    await c.run({ eachMessage: async ({ partition, message: m }) => seen(m.key, m.value, partition, m.offset, m.timestamp) });
    done(ver('@confluentinc/kafka-javascript') + '/librdkafka-' + req('@confluentinc/kafka-javascript').librdkafkaVersion, () => c.disconnect());
  } else { console.error('unknown lib'); process.exit(2); }
})().catch((e) => { console.error('FAIL', e.message, (e.errors || []).map((x) => x.message).join('; ')); process.exit(1); });
