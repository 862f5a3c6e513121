'use strict';
// avsc: parses schemas, with its checks of names and defaults.
const avsc = require(process.env.AVRO_NODE + '/node_modules/avsc');
const rl = require('readline').createInterface({ input: process.stdin });
rl.on('line', (line) => {
  let answer;
  try {
    avsc.Type.forSchema(JSON.parse(JSON.parse(line).schema), { wrapUnions: true });
    answer = { ok: true, values: [] };
  } catch (e) {
    answer = { ok: false, error: String(e) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
});
