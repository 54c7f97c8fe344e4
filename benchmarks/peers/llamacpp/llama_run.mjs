// One run of llama.cpp: node llama_run.mjs MODEL THREADS PREFILL TOKENS CONTEXT...
// Prints one JSON line: the speed of a prefill of PREFILL tokens and, after each CONTEXT, of TOKENS tokens one
// by one, in tokens a second.
import {getLlama, LlamaLogLevel} from "node-llama-cpp";

const model_path = process.argv[2];
const [threads, prefill, tokens, ...contexts] = process.argv.slice(3).map(Number);
const vocab_size = 8192;

// The same made-up prompt in every run; the time of a step does not depend on it.
function made_up_tokens(count) {
  let state = 1;
  return Array.from({length: count}, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return 3 + (state >>> 8) % (vocab_size - 3);
  });
}

const llama = await getLlama({
  gpu: false, build: "never", maxThreads: threads, logLevel: LlamaLogLevel.disabled});
const model = await llama.loadModel({modelPath: model_path, gpuLayers: 0});

async function with_sequence(num_tokens, body) {
  const context = await model.createContext({
    contextSize: num_tokens + 64, sequences: 1, threads, batchSize: 512});
  const result = await body(context.getSequence());
  await context.dispose();
  return result;
}

const result = {gen_tps: {}};
result.prefill_tps = await with_sequence(prefill, async (sequence) => {
  const begin = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(made_up_tokens(prefill));
  return prefill / (performance.now() - begin) * 1000;
});
for (const context of contexts) {
  result.gen_tps[context] = await with_sequence(context + tokens, async (sequence) => {
    const prompt = made_up_tokens(context);
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(0, -1));
    // The first token comes with the last one of the prompt; the clock runs over the `tokens` after it.
    let count = -1;
    let begin = 0;
    for await (const token of sequence.evaluate(prompt.slice(-1), {temperature: 0, yieldEogToken: true})) {
      if (++count === 0) begin = performance.now();
      if (count === tokens) break;
    }
    return count / (performance.now() - begin) * 1000;
  });
}
console.log(JSON.stringify(result));
process.exit(0);
