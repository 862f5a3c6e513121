#!/usr/bin/env node
'use strict';
// Reads Avro topics with KafkaJS and one of two registry clients: @kafkajs/confluent-schema-registry, or Confluent's own
// @confluentinc/schemaregistry. read.js kafkajs|confluent KAFKA REGISTRY TOPIC,.. COUNT; the protocol is that of ../README.md.
const fs = require('fs'), https = require('https');
const req = require('module').createRequire((process.env.LAB || '/opt/lab') + '/registry/node/');
const avsc = req('avsc');
const [lib, kafka, url, topics, count] = process.argv.slice(2);
const W = JSON.parse(process.env.LAB_LOGIN);
const ca = W.ca && fs.readFileSync(W.ca, 'utf8');

// both decode with avsc, which refuses a long beyond 2^53 unless it is given a type for it
const long = avsc.types.LongType.__with({
  fromBuffer: (b) => b.readBigInt64LE(), toBuffer: (n) => { const b = Buffer.alloc(8); b.writeBigInt64LE(n); return b; },
  fromJSON: BigInt, toJSON: Number, isValid: (n) => typeof n === 'bigint', compare: (a, b) => (a === b ? 0 : a < b ? -1 : 1),
});
const typeHook = (s) => (s === 'long' || (s && s.type === 'long') ? long : undefined);

function plain(t, v) {
  const kind = t.typeName;
  if (kind.startsWith('union')) {
    if (v === null) return null;
    return plain(t.types.find((x) => x.typeName !== 'null'), kind === 'union:wrapped' ? Object.values(v)[0] : v);
  }
  switch (kind) {
    case 'record': return Object.fromEntries(t.fields.map((f) => [f.name, plain(f.type, v[f.name])]));
    case 'map': return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, plain(t.valuesType, x)]));
    case 'array': return v.map((x) => plain(t.itemsType, x));
    case 'double': { const b = Buffer.alloc(8); b.writeDoubleBE(v); return 'd:' + b.toString('hex'); }
    case 'string': return 's:' + v;
    case 'fixed': return 'b:' + Buffer.from(v).toString('hex');
    case 'abstract:long': case 'long': return '\u0001' + v;    // a number of any size, see say()
    default: return v;
  }
}
const say = (x) => process.stdout.write(JSON.stringify(x).replace(/"\\u0001(-?\d+)"/g, '$1') + '\n');

function kafkajs() {
  const { SchemaRegistry, SchemaType } = req('@kafkajs/confluent-schema-registry');
  const r = new SchemaRegistry({ host: url, auth: { username: W.user, password: W.password }, agent: ca && new https.Agent({ ca }) },
    { [SchemaType.AVRO]: { typeHook } });
  return {
    latest: (s) => r.getLatestSchemaId(s),
    decode: async (b) => [await r.getSchema(b.readUInt32BE(1)), await r.decode(b)],
  };
}

function confluent() {
  const { SchemaRegistryClient, AvroDeserializer, SerdeType } = req('@confluentinc/schemaregistry');
  const c = new SchemaRegistryClient({ baseURLs: [url], createAxiosDefaults: { httpsAgent: new https.Agent({ ca }) },
    basicAuthCredentials: { credentialsSource: 'USER_INFO', userInfo: W.user + ':' + W.password } });
  const de = { key: new AvroDeserializer(c, SerdeType.KEY, { typeHook }), value: new AvroDeserializer(c, SerdeType.VALUE, { typeHook }) };
  const types = new Map();
  return {
    subjects: () => c.getAllSubjects(),
    latest: async (s) => (await c.getLatestSchemaMetadata(s)).id,
    decode: async (b, topic, what) => {
      const v = await de[what].deserialize(topic, b), id = b.readUInt32BE(1);
      if (!types.has(id)) types.set(id, avsc.Type.forSchema(JSON.parse((await c.getBySubjectAndId(topic + '-' + what, id)).schema), { typeHook }));
      return [types.get(id), v];
    },
  };
}

(async () => {
  const r = { kafkajs, confluent }[lib]();
  const one = async (b, topic, what) => (b === null ? [null, null] : [b.readUInt32BE(1), plain(...await r.decode(b, topic, what))]);
  if (kafka === '-') {
    for await (const line of require('readline').createInterface({ input: process.stdin })) {
      const [id, value] = await one(Buffer.from(line, 'hex'), topics, 'value');
      say({ id, value });
    }
    return;
  }
  say({ subjects: r.subjects ? await r.subjects() : null, latest: await r.latest(topics.split(',')[0] + '-value') });
  const { Kafka, logLevel } = req('kafkajs');
  const c = new Kafka({ brokers: [kafka], clientId: 'lab-registry', logLevel: logLevel.ERROR, ssl: ca && { ca: [ca] },
    sasl: { mechanism: 'plain', username: W.user, password: W.password } }).consumer({ groupId: 'registry-' + process.pid + '-' + Date.now(), maxWaitTimeInMs: 200 });
  await c.connect();
  await c.subscribe({ topics: topics.split(','), fromBeginning: true });
  let left = Number(count);
  await c.run({ eachMessage: async ({ topic, partition, message }) => {
    try {
      const [key_id, key] = await one(message.key, topic, 'key'), [id, value] = await one(message.value, topic, 'value');
      say({ topic, partition, offset: Number(message.offset), key_id, key, id, value, headers: Object.entries(message.headers).map(([k, v]) => [k, String(v)]) });
    } catch (e) {    // KafkaJS would try the message again
      console.error(topic, message.offset, e);
      process.exit(1);
    }
    if (--left === 0) process.stdout.write('', () => process.exit(0));    // all is written by then
  } });
})().catch((e) => { console.error(e); process.exit(1); });
