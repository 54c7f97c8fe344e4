// Many streams at once: some are answered, the others wait for their turn. Prints one JSON line:
// memory growth, tokens, heartbeats, errors; exits with 1 if there was an error or the growth is
// beyond its floor.
//   node idle_streams.js URL PID [--active 16] [--idle 200] [--seconds 20] [--text PROMPT]

import { readFileSync } from "node:fs";
import net from "node:net";

const GROWTH_FLOOR_MB = 100;
const [address, pid] = process.argv.slice(2);
const option = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : process.argv[at + 1];
};
const active = Number(option("active", 16));
const idle = Number(option("idle", 200));
const seconds = Number(option("seconds", 20));
const prompt = option("text", "never stop");
const { hostname, port } = new URL(address);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const memoryMb = () => Number(readFileSync(`/proc/${pid}/status`, "utf8").match(/VmRSS:\s*(\d+)/)[1]) / 1024;

/** One stream: counts what comes. */
function open(content, maxTokens) {
  const body = JSON.stringify({
    messages: [{ role: "user", content }],
    temperature: 0,
    thinking: { type: "disabled" },
    max_tokens: maxTokens,
    stream: true,
  });
  const stream = { tokens: 0, heartbeats: 0, problem: null, closed: false };
  const socket = net.connect(Number(port), hostname);
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  let head = "";
  socket.on("data", (data) => {
    const text = data.toString("latin1");
    if (head.length < 12) {
      head += text.slice(0, 12 - head.length);
      if (head.length >= 12 && !/ 200$/.test(head)) stream.problem = head;
    }
    stream.tokens += text.split('"delta":{"content":"').length - 1;
    stream.heartbeats += text.split(": prefill").length - 1;
    if (text.includes("event: error")) stream.problem = text;
  });
  socket.on("error", (error) => (stream.problem ??= stream.leaving ? null : error.message));
  socket.on("close", () => (stream.closed = true));
  stream.leave = () => {
    stream.leaving = true;
    socket.destroy();
  };
  return stream;
}

async function until(condition, limitMs) {
  const end = Date.now() + limitMs;
  while (!condition() && Date.now() < end) await sleep(20);
  return condition();
}

const warmUp = open(prompt, 20);
await until(() => warmUp.closed, 30000);
const before = memoryMb();

const running = Array.from({ length: active }, (_, i) => open(`${i} ${prompt}`, 100000));
await until(() => running.every((stream) => stream.tokens > 0), 60000);
const tokensAtStart = running.reduce((sum, stream) => sum + stream.tokens, 0);
const started = Date.now();
const waiting = Array.from({ length: idle }, (_, i) => open(`later ${i} ${prompt}`, 100000));
let peak = memoryMb();
while (Date.now() < started + 1000 * seconds) {
  await sleep(250);
  peak = Math.max(peak, memoryMb());
}
const elapsed = (Date.now() - started) / 1000;
const tokens = running.reduce((sum, stream) => sum + stream.tokens, 0) - tokensAtStart;
const errors = [...running, ...waiting].filter((stream) => stream.problem !== null);
const ended = [...running, ...waiting].filter((stream) => stream.closed).length;
const heartbeats = waiting.map((stream) => stream.heartbeats);
for (const stream of [...running, ...waiting]) stream.leave();
await sleep(3000);

const growth = peak - before;
console.log(
  JSON.stringify({
    bench: "idle_streams",
    active,
    idle,
    seconds: elapsed,
    errors: errors.length,
    first_error: errors[0]?.problem,
    ended,
    tokens_per_s: tokens / elapsed,
    slowest_stream_tokens: Math.min(...running.map((stream) => stream.tokens)),
    fewest_heartbeats: Math.min(...heartbeats),
    memory_before_mb: before,
    memory_growth_mb: growth,
    memory_after_mb: memoryMb(),
    floor_mb: GROWTH_FLOOR_MB,
  }),
);
process.exit(errors.length > 0 || growth >= GROWTH_FLOOR_MB ? 1 : 0);
