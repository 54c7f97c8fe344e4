// The Vercel AI package, as opencode and others use it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

import { nano, scripted } from "./support/servers.js";
import { roundTrips, schemas } from "./support/tools.js";

const provider = (server) =>
  createOpenAICompatible({ name: "tandem", baseURL: `${server.url}/v1`, apiKey: "none", includeUsage: true });
const model = provider(nano)("nano");
const actor = provider(scripted)("scripted");
const plain = { temperature: 0, maxRetries: 0, providerOptions: { tandem: { reasoningEffort: "none" } } };
const thinking = { ...plain, providerOptions: { tandem: { reasoningEffort: "low" } } };

function toolSet(name, execute) {
  const { description, parameters } = schemas[name];
  return { [name]: tool({ description, inputSchema: jsonSchema(parameters), execute }) };
}

describe("ai sdk", () => {
  it("generates text with usage", async () => {
    const { text, usage, finishReason } = await generateText({ ...plain, model, prompt: "What is the capital of France?" });
    assert.equal(text, "The capital of France is Paris.");
    assert.equal(finishReason, "stop");
    assert.ok(usage.inputTokens > 0 && usage.outputTokens > 0);
  });

  it("streams text and reasoning in order", async () => {
    const result = streamText({ ...thinking, model, prompt: "What is 37 + 45?" });
    const kinds = [];
    let reasoning = "", text = "";
    for await (const part of result.fullStream) {
      assert.notEqual(part.type, "error", String(part.error));
      if (part.type === "reasoning-delta") reasoning += part.text;
      if (part.type === "text-delta") text += part.text;
      if (kinds.at(-1) !== part.type) kinds.push(part.type);
    }
    assert.match(reasoning, /Total 82\./);
    assert.equal(text, "37 + 45 = 82.");
    assert.ok(kinds.indexOf("reasoning-end") < kinds.indexOf("text-delta"));
    assert.equal(kinds.filter((kind) => kind === "reasoning-start").length, 1);
    assert.ok((await result.usage).outputTokens > 0);
  });

  for (const trip of roundTrips) {
    it(`runs the ${trip.name} tool in its own loop`, async () => {
      const inputs = [];
      const tools = toolSet(trip.name, async (input) => {
        inputs.push(input);
        return trip.result;
      });
      const result = streamText({ ...plain, model, prompt: trip.question, tools, stopWhen: stepCountIs(3) });
      for await (const part of result.fullStream) assert.notEqual(part.type, "error", String(part.error));
      assert.deepEqual(inputs, [trip.args]);
      assert.equal(await result.text, trip.answer);
      assert.equal((await result.steps).length, 2);
    });
  }

  it("sees reasoning, text and a call of one answer", async () => {
    const tools = { get_time: tool({ inputSchema: jsonSchema({ type: "object", properties: {} }) }) };
    const result = streamText({ ...thinking, model: actor, prompt: "think, talk and call", tools });
    for await (const part of result.fullStream) assert.notEqual(part.type, "error", String(part.error));
    assert.equal(await result.reasoningText, "need the clock");
    assert.equal(await result.text, "Checking.");
    const [call] = await result.toolCalls;
    assert.deepEqual([call.toolName, call.input], ["get_time", { tz: "Europe/Rome", n: 2 }]);
    assert.equal(await result.finishReason, "tool-calls");
  });
});
