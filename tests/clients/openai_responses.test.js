// The official OpenAI package on /v1/responses.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import OpenAI from "openai";

import { nano, numRunning, scripted, streamEvents, until } from "./support/servers.js";
import { responsesTool, roundTrips } from "./support/tools.js";

const client = new OpenAI({ baseURL: `${nano.url}/v1`, apiKey: "none", maxRetries: 0 });
const actor = new OpenAI({ baseURL: `${scripted.url}/v1`, apiKey: "none", maxRetries: 0 });

const ask = (input, more = {}) => ({ model: "nano", input, temperature: 0, reasoning: { effort: "none" }, ...more });
const clock = {
  type: "function",
  name: "get_time",
  strict: false,
  parameters: { type: "object", properties: { tz: { type: "string" }, n: { type: "integer" } } },
};

describe("openai responses", () => {
  it("answers with text and usage", async () => {
    const response = await client.responses.create(ask("What is the capital of France?"));
    assert.match(response.id, /^resp_/);
    assert.equal(response.object, "response");
    assert.equal(response.status, "completed");
    assert.equal(response.output_text, "The capital of France is Paris.");
    assert.deepEqual(response.output.map((item) => item.type), ["message"]);
    assert.equal(response.usage.total_tokens, response.usage.input_tokens + response.usage.output_tokens);
    assert.ok(response.usage.input_tokens_details.cached_tokens >= 0);
    assert.ok(response.usage.output_tokens_details.reasoning_tokens >= 0);
  });

  it("takes instructions and a list of items", async () => {
    const response = await client.responses.create(
      ask(
        [
          { role: "user", content: [{ type: "input_text", text: "Hello!" }] },
          { type: "message", role: "assistant", status: "completed", id: "msg_1", content: [{ type: "output_text", text: "Hi!", annotations: [] }] },
          { type: "message", role: "user", content: [{ type: "input_text", text: "What is the capital of Italy?" }] },
        ],
        { instructions: "You are a helpful assistant." },
      ),
    );
    assert.match(response.output_text, /Rome/);
  });

  it("streams what it answers unstreamed", async () => {
    const body = ask("Write a short story about a fox and a lamp.", { max_output_tokens: 60 });
    const whole = await client.responses.create(body);
    assert.equal(whole.status, "incomplete");
    assert.equal(whole.incomplete_details.reason, "max_output_tokens");
    let text = "", last = null;
    for await (const event of await client.responses.create({ ...body, stream: true })) {
      if (event.type === "response.output_text.delta") text += event.delta;
      last = event;
    }
    assert.equal(text, whole.output_text);
    assert.equal(last.type, "response.incomplete");
    assert.equal(last.response.usage.output_tokens, whole.usage.output_tokens);
  });

  it("collects a stream through the package's own helper", async () => {
    const response = await client.responses.stream(ask("Hello!")).finalResponse();
    assert.equal(response.output_text, "Hello! How can I help you today?");
  });

  it("shows reasoning only to those who ask for a summary", async () => {
    const body = ask("What is 37 + 45?", { reasoning: { effort: "low", summary: "auto" } });
    const whole = await client.responses.create(body);
    assert.deepEqual(whole.output.map((item) => item.type), ["reasoning", "message"]);
    assert.match(whole.output[0].summary[0].text, /Total 82\./);
    assert.equal(whole.output_text, "37 + 45 = 82.");
    assert.ok(whole.usage.output_tokens_details.reasoning_tokens > 0);
    const hidden = await client.responses.create(ask("What is 37 + 45?", { reasoning: { effort: "low" } }));
    assert.deepEqual(hidden.output.map((item) => item.type), ["message"]);
    const streamed = await client.responses.stream(body).finalResponse();
    assert.equal(streamed.output[0].summary[0].text, whole.output[0].summary[0].text);
  });

  for (const trip of roundTrips) {
    it(`calls ${trip.name} and answers from its result`, async () => {
      const tools = [responsesTool(trip.name)];
      const first = await client.responses.create(ask(trip.question, { tools }));
      const call = first.output.find((item) => item.type === "function_call");
      assert.equal(call.name, trip.name);
      assert.deepEqual(JSON.parse(call.arguments), trip.args);
      const input = [
        { role: "user", content: trip.question },
        ...first.output,
        { type: "function_call_output", call_id: call.call_id, output: trip.result },
      ];
      const second = await client.responses.create(ask(input, { tools }));
      assert.equal(second.output_text, trip.answer);
    });
  }

  it("sends events in the documented order, numbered without a gap", async () => {
    const events = await streamEvents(scripted, "/v1/responses", {
      model: "nano",
      input: "think, talk and call",
      reasoning: { effort: "low", summary: "auto" },
      tools: [clock],
    });
    events.forEach(({ event, data }, i) => {
      assert.equal(event, data.type);
      assert.equal(data.sequence_number, i);
    });
    const shape = [];
    for (const { data } of events) {
      const part = data.type.replace("response.", "") + (data.output_index === undefined ? "" : ` ${data.output_index}`);
      if (shape.at(-1) !== part) shape.push(part);
    }
    assert.deepEqual(
      shape.filter((part) => part !== "in_progress"),
      [
        "created",
        "output_item.added 0",
        "reasoning_summary_part.added 0",
        "reasoning_summary_text.delta 0",
        "reasoning_summary_text.done 0",
        "reasoning_summary_part.done 0",
        "output_item.done 0",
        "output_item.added 1",
        "content_part.added 1",
        "output_text.delta 1",
        "output_text.done 1",
        "content_part.done 1",
        "output_item.done 1",
        "output_item.added 2",
        "function_call_arguments.delta 2",
        "function_call_arguments.done 2",
        "output_item.done 2",
        "completed",
      ],
    );
    const completed = events.at(-1).data.response;
    assert.deepEqual(completed.output.map((item) => item.type), ["reasoning", "message", "function_call"]);
    assert.equal(completed.output[2].arguments, '{"tz":"Europe/Rome","n":2}');
    const added = events.find(({ data }) => data.type === "response.output_item.added" && data.output_index === 2).data.item;
    assert.equal(added.arguments, "");
  });

  it("stops working when a stream is aborted (B034)", async () => {
    const stream = actor.responses.stream({ model: "nano", input: "never stop" });
    let deltas = 0;
    for await (const event of stream) {
      if (event.type === "response.output_text.delta" && ++deltas === 5) break;
    }
    stream.abort();
    await until(async () => (await numRunning(scripted)) === 0, 2000, "the request is cancelled");
  });

  it("reports mistakes as the package's own error classes", async () => {
    await assert.rejects(client.responses.create({ model: "nano" }), (error) => {
      assert.ok(error instanceof OpenAI.BadRequestError);
      assert.match(error.message, /input/);
      return true;
    });
    await assert.rejects(client.responses.create(ask("Hi", { previous_response_id: "resp_1" })), OpenAI.BadRequestError);
    await assert.rejects(client.responses.create(ask("word ".repeat(200000))), (error) => {
      assert.equal(error.code, "context_length_exceeded");
      return true;
    });
  });
});
