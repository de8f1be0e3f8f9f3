// The same two roles as child.py, for BullMQ on Node.js:
//   node bullmq.cjs produce         answers each line of standard input with a line of JSON
//   node bullmq.cjs work N          works with a concurrency of N until it is killed
const fs = require('fs');
const readline = require('readline');
const { Queue, Worker } = require('bullmq');

const [role, concurrency] = process.argv.slice(2);
const connection = { host: '127.0.0.1', port: Number(process.env.PEERS_PORT) };
const payload = process.env.PEERS_PAYLOAD;
const BULK = 500;
const now = () => process.hrtime.bigint(); // the monotonic clock, as in Python

function work() {
  const file = fs.openSync(process.env.PEERS_RECORD, 'a');
  const handle = async (job) => {
    const bytes = Buffer.allocUnsafe(16);
    bytes.writeBigInt64LE(BigInt(job.data.number), 0);
    bytes.writeBigInt64LE(now(), 8);
    fs.writeSync(file, bytes);
  };
  new Worker('peers', handle, { connection, concurrency: Number(concurrency) }).on('error', (error) => console.error(error));
}

async function produce() {
  const queue = new Queue('peers', { connection });
  await queue.waitUntilReady();
  const data = (number) => ({ number, data: payload });
  const say = (words) => process.stdout.write(JSON.stringify(words) + '\n');
  const commands = {
    send: async (jobs) => {
      for (let number = 0; number < jobs; number++) await queue.add('handle', data(number));
    },
    many: async (jobs) => {
      for (let first = 0; first < jobs; first += BULK) {
        const size = Math.min(BULK, jobs - first);
        await queue.addBulk(Array.from({ length: size }, (_, next) => ({ name: 'handle', data: data(first + next) })));
      }
    },
    one: (number) => queue.add('handle', data(number)),
    later: (number, seconds) => queue.add('handle', data(number), { delay: Math.round(seconds * 1000) }),
  };
  say({ versions: { bullmq: require('bullmq/package.json').version, node: process.versions.node } });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [command, ...words] = line.split(' ');
    const before = process.cpuUsage();
    const began = now();
    await commands[command](...words.map(Number));
    const ended = now();
    const used = process.cpuUsage(before);
    say({ began: Number(began), ended: Number(ended), cpu: (used.user + used.system) / 1e6 });
  }
  process.exit(0);
}

if (role === 'work') work();
else produce();
