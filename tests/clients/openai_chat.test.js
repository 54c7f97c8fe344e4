// The official OpenAI package on /v1/chat/completions and /v1/completions.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import OpenAI from "openai";

import { nano, numRunning, scripted, until } from "./support/servers.js";
import { openAiTool, roundTrips } from "./support/tools.js";

const client = new OpenAI({ baseURL: `${nano.url}/v1`, apiKey: "none", maxRetries: 0 });
const actor = new OpenAI({ baseURL: `${scripted.url}/v1`, apiKey: "none", maxRetries: 0 });

const ask = (content, more = {}) => ({
  model: "nano",
  messages: [{ role: "user", content }],
  temperature: 0,
  reasoning_effort: "none",
  ...more,
});

describe("openai chat", () => {
  it("answers with text and usage", async () => {
    const answer = await client.chat.completions.create(ask("What is the capital of France?"));
    assert.match(answer.id, /^chatcmpl-/);
    assert.equal(answer.object, "chat.completion");
    assert.equal(answer.model, "nano");
    assert.equal(answer.choices[0].message.content, "The capital of France is Paris.");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
    assert.ok(answer.usage.prompt_tokens_details.cached_tokens >= 0);
  });

  it("streams the text that it answers unstreamed", async () => {
    const body = ask("Write a short story about a fox and a lamp.", { max_tokens: 60 });
    const whole = await client.chat.completions.create(body);
    const stream = await client.chat.completions.create({ ...body, stream: true, stream_options: { include_usage: true } });
    let text = "", finish = null, usage = null, chunks = 0;
    for await (const chunk of stream) {
      ++chunks;
      assert.equal(chunk.object, "chat.completion.chunk");
      if (chunk.usage) usage = chunk.usage;
      text += chunk.choices[0]?.delta.content ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert.equal(text, whole.choices[0].message.content);
    assert.equal(finish, whole.choices[0].finish_reason);
    assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
    assert.ok(chunks > 20, `only ${chunks} chunks`);
  });

  it("collects a stream through the package's own helper", async () => {
    const stream = client.chat.completions.stream(ask("Hello!"));
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].message.content, "Hello! How can I help you today?");
  });

  it("gives reasoning apart from content, streamed or not", async () => {
    const body = ask("What is 37 + 45?", { reasoning_effort: "low" });
    const whole = (await client.chat.completions.create(body)).choices[0].message;
    assert.match(whole.reasoning_content, /Total 82\./);
    assert.equal(whole.content, "37 + 45 = 82.");
    let reasoning = "", content = "";
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      const delta = chunk.choices[0]?.delta ?? {};
      if (delta.reasoning_content) assert.equal(content, "", "reasoning after content");
      reasoning += delta.reasoning_content ?? "";
      content += delta.content ?? "";
    }
    assert.equal(reasoning, whole.reasoning_content);
    assert.equal(content, whole.content);
  });

  for (const trip of roundTrips) {
    it(`calls ${trip.name} and answers from its result`, async () => {
      const tools = [openAiTool(trip.name)];
      const first = await client.chat.completions.create(ask(trip.question, { tools }));
      const { message, finish_reason } = first.choices[0];
      assert.equal(finish_reason, "tool_calls");
      assert.equal(message.tool_calls.length, 1);
      const [call] = message.tool_calls;
      assert.equal(call.function.name, trip.name);
      assert.deepEqual(JSON.parse(call.function.arguments), trip.args);
      const body = ask(trip.question, { tools });
      body.messages.push(message, { role: "tool", tool_call_id: call.id, content: trip.result });
      const second = await client.chat.completions.create(body);
      assert.equal(second.choices[0].message.content, trip.answer);
      assert.equal(second.choices[0].finish_reason, "stop");
      const reused = second.usage.prompt_tokens_details.cached_tokens;
      assert.ok(reused >= first.usage.prompt_tokens, `only ${reused} of the first turn's tokens were reused`);
    });
  }

  it("runs the package's tool loop on a stream", async () => {
    const [trip] = roundTrips;
    const calls = [];
    const tool = openAiTool(trip.name);
    const runner = client.chat.completions.runTools(
      ask(trip.question, {
        stream: true,
        tools: [
          {
            ...tool,
            function: {
              ...tool.function,
              parse: JSON.parse,
              function: (args) => {
                calls.push(args);
                return trip.result;
              },
            },
          },
        ],
      }),
    );
    assert.equal(await runner.finalContent(), trip.answer);
    assert.deepEqual(calls, [trip.args]);
  });

  it("makes the model call the tool that is asked for by name", async () => {
    const answer = await client.chat.completions.create(
      ask("Run `pwd`.", { tools: [openAiTool("bash")], tool_choice: { type: "function", function: { name: "bash" } } }),
    );
    assert.equal(answer.choices[0].message.tool_calls[0].function.name, "bash");
  });

  it("does not call tools when tool_choice is none", async () => {
    const answer = await client.chat.completions.create(
      ask("What is the weather in Rome?", { tools: [openAiTool("get_weather")], tool_choice: "none", max_tokens: 40 }),
    );
    assert.equal(answer.choices[0].message.tool_calls, undefined);
  });

  it("gives two parallel calls their own ids, indexes and arguments (B019)", async () => {
    const stream = actor.chat.completions.stream(
      ask("call both tools", { tools: [openAiTool("read_file"), openAiTool("bash")] }),
    );
    const seen = new Map();
    for await (const chunk of stream) {
      for (const delta of chunk.choices[0]?.delta.tool_calls ?? []) {
        if (delta.id) {
          assert.ok(!seen.has(delta.index), "an id came twice");
          assert.equal(delta.index, seen.size);
          seen.set(delta.index, { id: delta.id, name: delta.function.name, text: "" });
        }
        assert.equal(delta.index, seen.size - 1, "deltas of two calls are mixed");
        seen.get(delta.index).text += delta.function?.arguments ?? "";
      }
    }
    const calls = [...seen.values()];
    assert.deepEqual(calls.map((call) => call.name), ["read_file", "bash"]);
    assert.notEqual(calls[0].id, calls[1].id);
    assert.deepEqual(JSON.parse(calls[0].text), { path: "same text" });
    assert.deepEqual(JSON.parse(calls[1].text), { command: "same text" });
    const final = await stream.finalChatCompletion();
    assert.equal(final.choices[0].finish_reason, "tool_calls");
  });

  it("answers many requests at once as it answers them alone", async () => {
    const questions = ["Hello!", "What is 12 + 30?", "What is the capital of Italy?", "Who are you?", "Thank you!", "List 3 animals, one per line."];
    const text = async (question) =>
      (await client.chat.completions.create(ask(question, { max_tokens: 40 }))).choices[0].message.content;
    const alone = [];
    for (const question of questions) alone.push(await text(question));
    const together = await Promise.all(questions.map(text));
    assert.deepEqual(together, alone);
  });

  it("stops working when a stream is aborted (B034)", async () => {
    const controller = new AbortController();
    const stream = await actor.chat.completions.create(ask("never stop", { stream: true }), { signal: controller.signal });
    let chunks = 0;
    await assert.rejects(async () => {
      for await (const _ of stream) {
        if (++chunks === 10) controller.abort();
      }
      // The package may end the loop without an error.
      throw new OpenAI.APIUserAbortError();
    }, OpenAI.APIUserAbortError);
    await until(async () => (await numRunning(scripted)) === 0, 2000, "the request is cancelled");
  });

  it("repeats itself with one seed and differs with another", async () => {
    const text = async (seed) =>
      (
        await client.chat.completions.create(
          ask("Write a short story about a fox and a lamp.", { temperature: 1, seed, max_tokens: 40 }),
        )
      ).choices[0].message.content;
    const first = await text(7);
    assert.equal(await text(7), first);
    const others = await Promise.all([8, 9, 10].map(text));
    assert.ok(others.some((other) => other !== first));
  });

  it("cuts at a stop string", async () => {
    const answer = await client.chat.completions.create(ask("What is the capital of France?", { stop: [" is"] }));
    assert.equal(answer.choices[0].message.content, "The capital of France");
    assert.equal(answer.choices[0].finish_reason, "stop");
    let text = "";
    for await (const chunk of await client.chat.completions.create(ask("What is the capital of France?", { stop: " is", stream: true }))) {
      text += chunk.choices[0]?.delta.content ?? "";
    }
    assert.equal(text, "The capital of France");
  });

  it("says length when the budget ends the answer", async () => {
    const answer = await client.chat.completions.create(ask("Write a short story about a fox and a lamp.", { max_completion_tokens: 5 }));
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.equal(answer.usage.completion_tokens, 5);
  });

  it("gives several choices, whole and streamed", async () => {
    const body = ask("Hello!", { n: 2, temperature: 0 });
    const whole = await client.chat.completions.create(body);
    assert.deepEqual(whole.choices.map((choice) => choice.index), [0, 1]);
    const texts = ["", ""];
    for await (const chunk of await client.chat.completions.create({ ...body, stream: true })) {
      for (const choice of chunk.choices) texts[choice.index] += choice.delta.content ?? "";
    }
    assert.deepEqual(texts, whole.choices.map((choice) => choice.message.content));
  });

  it("gives log-probabilities that agree with the text", async () => {
    const answer = await client.chat.completions.create(ask("Hello!", { logprobs: true, top_logprobs: 3 }));
    const { content } = answer.choices[0].logprobs;
    assert.equal(content.map((entry) => entry.token).join(""), answer.choices[0].message.content);
    for (const entry of content) {
      assert.ok(entry.logprob <= 0);
      assert.equal(entry.top_logprobs.length, 3);
      // Temperature 0 takes the likeliest token.
      assert.equal(entry.top_logprobs[0].logprob, entry.logprob);
      assert.deepEqual(Buffer.from(entry.bytes).toString(), entry.token);
    }
  });

  it("answers in JSON where json_object or a schema asks for it", async () => {
    const object = await client.chat.completions.create(
      ask("Return a JSON object with name Ada and age 36.", { response_format: { type: "json_object" }, max_tokens: 80 }),
    );
    assert.equal(typeof JSON.parse(object.choices[0].message.content), "object");
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer" } },
      required: ["name", "age"],
      additionalProperties: false,
    };
    const strict = await client.chat.completions.create(
      ask("Return a JSON object with name Ada and age 36.", {
        response_format: { type: "json_schema", json_schema: { name: "person", strict: true, schema } },
        max_tokens: 80,
      }),
    );
    assert.deepEqual(JSON.parse(strict.choices[0].message.content), { name: "Ada", age: 36 });
  });

  it("lists the model and finds it by name", async () => {
    const [model] = (await client.models.list()).data;
    assert.equal(model.object, "model");
    assert.deepEqual(await client.models.retrieve(model.id), model);
    await assert.rejects(client.models.retrieve("no-such-model"), OpenAI.NotFoundError);
  });

  it("reports mistakes as the package's own error classes", async () => {
    const refused = (body) => client.chat.completions.create(body).then(() => assert.fail("accepted"), (error) => error);
    const missing = await refused({ model: "nano" });
    assert.ok(missing instanceof OpenAI.BadRequestError);
    assert.equal(missing.type, "invalid_request_error");
    assert.match(missing.message, /messages/);
    const role = await refused({ model: "nano", messages: [{ role: "wizard", content: "Hi" }] });
    assert.match(role.message, /role/);
    const range = await refused(ask("Hi", { temperature: "hot" }));
    assert.match(range.message, /temperature/);
    const long = await refused(ask("word ".repeat(200000)));
    assert.equal(long.code, "context_length_exceeded");
    assert.equal(long.param, "messages");
  });
});

describe("openai completions", () => {
  const prompt = { model: "nano", prompt: "What is the capital of France?", temperature: 0, max_tokens: 40 };

  it("answers a prompt, whole and streamed", async () => {
    const whole = await client.completions.create(prompt);
    assert.equal(whole.object, "text_completion");
    assert.match(whole.choices[0].text, /Paris/);
    let text = "", finish = null;
    for await (const chunk of await client.completions.create({ ...prompt, stream: true })) {
      text += chunk.choices[0]?.text ?? "";
      finish = chunk.choices[0]?.finish_reason ?? finish;
    }
    assert.equal(text, whole.choices[0].text);
    assert.equal(finish, whole.choices[0].finish_reason);
  });

  it("refuses options that it does not have", async () => {
    for (const option of [{ suffix: "x" }, { echo: true }, { best_of: 3 }]) {
      await assert.rejects(client.completions.create({ ...prompt, ...option }), OpenAI.BadRequestError);
    }
  });
});
