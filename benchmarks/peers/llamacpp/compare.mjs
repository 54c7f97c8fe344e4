// Tandem and llama.cpp on the same file, alternating, each with 1 and with 2 threads; prints the medians of each
// engine's better thread count and their ratio.
//   npm ci && node compare.mjs [--tandem PROGRAM] [--model FILE] [--runs N] [--tokens N] [--json FILE]
import {execFileSync} from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import {parseArgs} from "node:util";

const here = import.meta.dirname;
const repo = path.resolve(here, "../../..");
const {values: options} = parseArgs({options: {
  tandem: {type: "string", default: path.join(repo, "build/cpu-release/apps/tandem")},
  model: {type: "string", default: path.join(repo, "models/nano-q4_k.gguf")},
  runs: {type: "string", default: "7"},
  tokens: {type: "string", default: "128"},
  json: {type: "string"},
}});
const kThreads = [1, 2];
const kPrefill = 2048;
const kContexts = [256, 2048];

// On a CPU with AMX this library of llama.cpp aborts on the model, so it must not be found.
function set_amx_library_aside() {
  if (!/\bamx_tile\b/.test(fs.readFileSync("/proc/cpuinfo", "utf8"))) return;
  for (const file of find_library()) {
    const full = path.resolve(here, file);
    fs.renameSync(full, full + ".aside");
  }
}

function find_library() {
  return execFileSync("find", ["node_modules", "-name", "libggml-cpu-sapphirerapids.so"], {cwd: here})
    .toString().split("\n").filter(Boolean);
}

function run_tandem(threads) {
  const bench = (context) => {
    const csv = execFileSync(options.tandem, [
      "bench", "-m", options.model, "-t", threads, "--ctx-start", context, "--ctx-max", context,
      "--gen-tokens", options.tokens], {encoding: "utf8"}).trim().split("\n");
    const columns = csv[0].split(",");
    return Object.fromEntries(csv[1].split(",").map((value, i) => [columns[i], Number(value)]));
  };
  const rows = Object.fromEntries(kContexts.map((context) => [context, bench(context)]));
  return {
    prefill_tps: rows[kPrefill].prefill_tps,
    gen_tps: Object.fromEntries(kContexts.map((context) => [context, rows[context].gen_tps])),
  };
}

function run_llama(threads) {
  const out = execFileSync(process.execPath, [
    path.join(here, "llama_run.mjs"), options.model, threads, kPrefill, options.tokens, ...kContexts],
  {cwd: here, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"]});
  return JSON.parse(out.trim().split("\n").at(-1));
}

// From the start of the program to its first token after a prompt of six, program start included.
function first_token_ms() {
  const begin = performance.now();
  execFileSync(options.tandem, [
    "bench", "-m", options.model, "--ctx-start", "6", "--ctx-max", "6", "--gen-tokens", "1"]);
  return performance.now() - begin;
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

set_amx_library_aside();
const measures = {
  "prefill 2048": (run) => run.prefill_tps,
  ...Object.fromEntries(kContexts.map((c) => [`decode at ${c}`, (run) => run.gen_tps[c]])),
};
const runs = {tandem: {1: [], 2: []}, llama: {1: [], 2: []}};
const starts = [];
for (let i = 0; i < Number(options.runs); ++i) {
  for (const threads of kThreads) {
    runs.tandem[threads].push(run_tandem(threads));
    runs.llama[threads].push(run_llama(threads));
  }
  starts.push(first_token_ms());
  process.stderr.write(`run ${i + 1} of ${options.runs}\n`);
}

const report = {};
console.log("measure          tandem tok/s (threads)   llama.cpp tok/s (threads)   ratio");
for (const [name, get] of Object.entries(measures)) {
  const best = (engine) => kThreads
    .map((threads) => ({threads, tps: median(runs[engine][threads].map(get))}))
    .reduce((a, b) => (a.tps >= b.tps ? a : b));
  const [ours, theirs] = [best("tandem"), best("llama")];
  report[name] = {tandem: ours, llama: theirs, ratio: ours.tps / theirs.tps};
  const cell = (x, width) => `${x.tps.toFixed(1)} (${x.threads})`.padStart(width);
  console.log(`${name.padEnd(16)} ${cell(ours, 21)} ${cell(theirs, 27)} ${(ours.tps / theirs.tps).toFixed(2).padStart(10)}`);
}
report.first_token_ms = median(starts);
console.log(`program start to the first token of a 6-token prompt: ${report.first_token_ms.toFixed(1)} ms`);
if (options.json) fs.writeFileSync(options.json, JSON.stringify({report, runs, starts}, null, 1));
