// SPDX-License-Identifier: Apache-2.0
//
// Work for node whose output is the same every time; run by node.sh. What it needs of malloc lies outside of V8's own
// heap: buffers, compression, digests, worker threads, child processes, the compiler.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { createHash, scryptSync } = require('crypto');
const { execFileSync } = require('child_process');
const fs = require('fs');
const path = require('path');
const os = require('os');
const zlib = require('zlib');
const { promisify } = require('util');

const sha = (data) => createHash('sha256').update(data).digest('hex').slice(0, 16);

function churn(seed) {
  let state = seed;
  const number = (n) => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 8) % n; };
  const live = new Map();
  for (let step = 0; step < 20000; ++step) {
    const key = number(300);
    switch (number(5)) {
      case 0: live.set(key, Buffer.alloc(number(20000), key)); break;
      case 1: live.set(key, new Float64Array(number(3000)).fill(step)); break;
      case 2: live.set(key, 'x'.repeat(number(3000)) + step); break;
      case 3: live.set(key, Buffer.allocUnsafeSlow(1 + number(70000)).fill(step & 255)); break;
      default: live.delete(key);
    }
  }
  const hash = createHash('sha256');
  for (const key of [...live.keys()].sort((a, b) => a - b)) hash.update(String(key)).update(live.get(key));
  return hash.digest('hex').slice(0, 16);
}

function inWorker(seed) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(__filename, { workerData: seed });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

async function main() {
  console.log('churn', churn(1));
  console.log('workers', (await Promise.all([2, 3, 4, 5].map(inWorker))).join(' '));

  const text = JSON.stringify([...Array(20000).keys()].map((i) => ({ id: i, body: 'y'.repeat(i % 97) })));
  const deflated = await Promise.all([1, 6, 9].map((level) => promisify(zlib.gzip)(text, { level })));
  for (const data of deflated) console.log('gzip', sha(await promisify(zlib.gunzip)(data)) === sha(text));
  const brotli = await promisify(zlib.brotliCompress)(text, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 5 } });
  console.log('brotli', sha(await promisify(zlib.brotliDecompress)(brotli)) === sha(text));
  console.log('scrypt', scryptSync('word', 'salt', 32, { N: 4096 }).toString('hex').slice(0, 16));

  const folder = await fs.promises.mkdtemp(path.join(os.tmpdir(), 'churn-'));
  const names = [...Array(200).keys()].map((i) => path.join(folder, `file${i}`));
  await Promise.all(names.map((name, i) => fs.promises.writeFile(name, 'f'.repeat(i * 100))));
  const read = await Promise.all(names.map((name) => fs.promises.readFile(name)));
  console.log('files', read.reduce((sum, data) => sum + data.length, 0));
  await fs.promises.rm(folder, { recursive: true });

  const matches = text.match(/"id":(\d)\d*?\1,/g);
  console.log('match', matches.length, JSON.parse(text).filter((item) => item.body.length > 90).length);
  const child = execFileSync(process.execPath, ['-e', 'console.log("z".repeat(70000).length)']);
  console.log('child', child.toString().trim());
}

if (isMainThread) main();
else parentPort.postMessage(churn(workerData));
