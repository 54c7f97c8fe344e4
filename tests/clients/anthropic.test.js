// The official Anthropic package on /v1/messages.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { nano, numRunning, post, scripted, streamEvents, until } from "./support/servers.js";
import { anthropicTool, roundTrips } from "./support/tools.js";

const client = new Anthropic({ baseURL: nano.url, apiKey: "none", maxRetries: 0 });
const actor = new Anthropic({ baseURL: scripted.url, apiKey: "none", maxRetries: 0 });

const ask = (content, more = {}) => ({
  model: "nano",
  max_tokens: 200,
  messages: [{ role: "user", content }],
  temperature: 0,
  thinking: { type: "disabled" },
  ...more,
});
const textOf = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");
const clock = {
  name: "get_time",
  description: "Get the time",
  input_schema: { type: "object", properties: { tz: { type: "string" }, n: { type: "integer" } } },
};

describe("anthropic messages", () => {
  it("answers with text, stop reason and usage", async () => {
    const message = await client.messages.create(ask("What is the capital of France?"));
    assert.match(message.id, /^msg_/);
    assert.equal(message.type, "message");
    assert.equal(message.role, "assistant");
    assert.deepEqual(message.content.map((block) => block.type), ["text"]);
    assert.equal(textOf(message), "The capital of France is Paris.");
    assert.equal(message.stop_reason, "end_turn");
    assert.equal(message.stop_sequence, null);
    assert.ok(message.usage.output_tokens > 0);
  });

  it("streams the message that it answers unstreamed", async () => {
    const body = ask("Write a short story about a fox and a lamp.", { max_tokens: 60 });
    const whole = await client.messages.create(body);
    const stream = client.messages.stream(body);
    let text = "";
    stream.on("text", (delta) => (text += delta));
    const final = await stream.finalMessage();
    assert.equal(text, textOf(whole));
    assert.deepEqual(final.content, whole.content);
    assert.equal(final.stop_reason, "max_tokens");
    assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  });

  it("gives thinking as its own block with a signature", async () => {
    const body = ask("What is 37 + 45?", { max_tokens: 2000, thinking: { type: "enabled", budget_tokens: 1024 } });
    const whole = await client.messages.create(body);
    assert.deepEqual(whole.content.map((block) => block.type), ["thinking", "text"]);
    assert.match(whole.content[0].thinking, /Total 82\./);
    assert.ok(whole.content[0].signature.length > 0);
    assert.equal(whole.content[1].text, "37 + 45 = 82.");
    const streamed = await client.messages.stream(body).finalMessage();
    assert.equal(streamed.content[0].thinking, whole.content[0].thinking);
    assert.ok(streamed.content[0].signature.length > 0);
    assert.equal(streamed.content[1].text, whole.content[1].text);
  });

  for (const trip of roundTrips) {
    it(`calls ${trip.name} and answers from its result`, async () => {
      const body = ask(trip.question, { tools: [anthropicTool(trip.name)] });
      const first = await client.messages.create(body);
      assert.equal(first.stop_reason, "tool_use");
      const call = first.content.find((block) => block.type === "tool_use");
      assert.equal(call.name, trip.name);
      assert.deepEqual(call.input, trip.args);
      const streamed = await client.messages.stream(body).finalMessage();
      assert.deepEqual(streamed.content.find((block) => block.type === "tool_use").input, trip.args);
      body.messages.push(
        { role: "assistant", content: first.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: trip.result }] },
      );
      const second = await client.messages.create(body);
      assert.equal(textOf(second), trip.answer);
      assert.equal(second.stop_reason, "end_turn");
    });
  }

  it("sends events in the documented order, with dense indexes", async () => {
    const events = await streamEvents(scripted, "/v1/messages", {
      ...ask("think, talk and call"),
      thinking: { type: "enabled", budget_tokens: 1024 },
      tools: [clock],
    });
    for (const { event, data } of events) assert.equal(event, data.type);
    const shape = [];
    for (const { data } of events) {
      const part = [data.type, data.index, data.content_block?.type ?? data.delta?.type].filter((x) => x !== undefined).join(" ");
      if (data.type !== "ping" && shape.at(-1) !== part) shape.push(part);
    }
    assert.deepEqual(shape, [
      "message_start",
      "content_block_start 0 thinking",
      "content_block_delta 0 thinking_delta",
      "content_block_delta 0 signature_delta",
      "content_block_stop 0",
      "content_block_start 1 text",
      "content_block_delta 1 text_delta",
      "content_block_stop 1",
      "content_block_start 2 tool_use",
      "content_block_delta 2 input_json_delta",
      "content_block_stop 2",
      "message_delta",
      "message_stop",
    ]);
    const joined = events.map(({ data }) => data.delta?.partial_json ?? "").join("");
    assert.equal(joined, '{"tz":"Europe/Rome","n":2}');
    const start = events.find(({ data }) => data.content_block?.type === "tool_use").data.content_block;
    assert.deepEqual(start.input, {});
    assert.equal(events.find(({ data }) => data.type === "message_delta").data.delta.stop_reason, "tool_use");
  });

  it("gives two parallel calls of one turn, and takes both results in one message (B019)", async () => {
    const body = ask("call both tools", { tools: [anthropicTool("read_file"), anthropicTool("bash")] });
    const message = await actor.messages.stream(body).finalMessage();
    const calls = message.content.filter((block) => block.type === "tool_use");
    assert.deepEqual(calls.map((call) => [call.name, call.input]), [
      ["read_file", { path: "same text" }],
      ["bash", { command: "same text" }],
    ]);
    assert.notEqual(calls[0].id, calls[1].id);
    body.messages.push(
      { role: "assistant", content: message.content },
      {
        role: "user",
        content: calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: "agent-tool-ran" })),
      },
    );
    assert.equal(textOf(await actor.messages.create(body)), "The command printed its line.");
  });

  it("takes a system message in the middle of the history (B020)", async () => {
    const message = await client.messages.create({
      ...ask("What is the capital of France?"),
      messages: [
        { role: "user", content: "Hello!" },
        { role: "system", content: "Answer briefly." },
        { role: "assistant", content: "Hello! How can I help you today?" },
        { role: "user", content: "What is the capital of France?" },
      ],
    });
    assert.match(textOf(message), /Paris/);
  });

  it("reuses the prompt although the billing line of its system text changed (B022)", async () => {
    const filler = "The library opens at nine and closes at five. ".repeat(60);
    const body = (nonce) =>
      ask("What is the capital of France?", {
        max_tokens: 1,
        system: [
          { type: "text", text: `x-anthropic-billing-header: cch=${nonce}` },
          { type: "text", text: filler },
        ],
      });
    const first = await client.messages.create(body("a1b2c"));
    const second = await client.messages.create(body("d3e4f"));
    const total = first.usage.input_tokens + first.usage.cache_creation_input_tokens + first.usage.cache_read_input_tokens;
    const computed = total - second.usage.cache_read_input_tokens;
    assert.ok(computed <= Math.max(1, total / 100), `${computed} of ${total} tokens were computed again`);
  });

  it("counts the tokens that the request then uses, tools included (B023)", async () => {
    const body = ask("What is the weather in Rome?", { system: "You are a helpful assistant.", tools: [anthropicTool("get_weather")] });
    const { max_tokens, temperature, ...countable } = body;
    const { input_tokens } = await client.messages.countTokens(countable);
    const { usage } = await client.messages.create(body);
    assert.equal(input_tokens, usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens);
    assert.ok(input_tokens > 200, `${input_tokens} tokens cannot hold the tool's schema`);
  });

  it("counts tokens while a generation runs (B023)", async () => {
    const stream = actor.messages.stream(ask("never stop", { max_tokens: 100000 }));
    const ended = stream.finalMessage().catch(() => {});
    await until(async () => (await numRunning(scripted)) === 1, 2000, "the generation runs");
    const started = Date.now();
    const counts = await Promise.all(
      Array.from({ length: 30 }, (_, i) =>
        actor.messages.countTokens({ model: "nano", messages: [{ role: "user", content: `Question ${i}` }] }),
      ),
    );
    assert.ok(Date.now() - started < 5000);
    for (const { input_tokens } of counts) assert.ok(input_tokens > 0);
    assert.equal(await numRunning(scripted), 1);
    stream.abort();
    await ended;
    await until(async () => (await numRunning(scripted)) === 0, 2000, "the request is cancelled");
  });

  it("names the stop sequence that ended the answer", async () => {
    const message = await client.messages.create(ask("What is the capital of France?", { stop_sequences: [" is"] }));
    assert.equal(textOf(message), "The capital of France");
    assert.equal(message.stop_reason, "stop_sequence");
    assert.equal(message.stop_sequence, " is");
  });

  it("answers many requests at once as it answers them alone", async () => {
    const questions = ["Hello!", "What is 12 + 30?", "What is the capital of Italy?", "Who are you?"];
    const text = async (question) => textOf(await client.messages.create(ask(question, { max_tokens: 40 })));
    const alone = [];
    for (const question of questions) alone.push(await text(question));
    assert.deepEqual(await Promise.all(questions.map(text)), alone);
  });

  it("keeps every character of a hard text, whole and streamed", async () => {
    const expected = 'Grüße, 世界! 🦊 "quoted" \\ and <tags> & `code`.';
    assert.equal(textOf(await actor.messages.create(ask("hard text"))), expected);
    assert.equal(textOf(await actor.messages.stream(ask("hard text")).finalMessage()), expected);
  });

  it("reports mistakes in Anthropic's form, as the package's own error classes", async () => {
    await assert.rejects(client.messages.create({ model: "nano", max_tokens: 5 }), (error) => {
      assert.ok(error instanceof Anthropic.BadRequestError);
      assert.equal(error.error.type, "error");
      assert.equal(error.error.error.type, "invalid_request_error");
      assert.match(error.error.error.message, /messages/);
      return true;
    });
    await assert.rejects(client.messages.create(ask("word ".repeat(200000))), /prompt is too long: \d+ tokens > \d+ maximum/);
    const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
    await assert.rejects(client.messages.create(ask([image])), /image/);
    const bad = await post(nano, "/v1/messages", "{");
    assert.equal(bad.status, 400);
    assert.equal(bad.body.type, "error");
  });
});
