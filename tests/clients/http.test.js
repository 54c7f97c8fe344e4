// What no client package shows: raw requests, odd bytes, limits, and the pages that are no API.

import assert from "node:assert/strict";
import net from "node:net";
import { describe, it } from "node:test";

import { get, nano, numRunning, post, scripted, streamEvents, until } from "./support/servers.js";
import { openAiTool } from "./support/tools.js";

const chat = (content, more = {}) => ({
  model: "nano",
  messages: [{ role: "user", content }],
  temperature: 0,
  thinking: { type: "disabled" },
  ...more,
});
const generating = ["/v1/chat/completions", "/v1/responses", "/v1/messages"];

/** The same question for each surface. */
function question(path, text, more = {}) {
  if (path === "/v1/responses") return { model: "nano", input: text, ...more };
  return { model: "nano", max_tokens: 100000, messages: [{ role: "user", content: text }], ...more };
}

/** Sends raw bytes and returns what comes back until the server closes. */
function raw(server, bytes, { limitMs = 15000 } = {}) {
  const { hostname, port } = new URL(server.url);
  return new Promise((resolve, reject) => {
    const socket = net.connect(Number(port), hostname, () => socket.write(bytes));
    let reply = "";
    socket.setTimeout(limitMs, () => socket.destroy(new Error("the server did not close")));
    socket.on("data", (data) => (reply += data.toString("latin1")));
    socket.on("close", () => resolve(reply));
    socket.on("error", (error) => (reply ? resolve(reply) : reject(error)));
  });
}

const statusOf = (reply) => Number(reply.match(/^HTTP\/1\.[01] (\d+)/)?.[1]);

describe("http", () => {
  it("says that it is healthy", async () => {
    assert.deepEqual(await get(nano, "/health").then(({ status, body }) => ({ status, body })), { status: 200, body: { status: "ok" } });
  });

  it("keeps a closing tag inside content as text (B010)", async () => {
    const { body } = await post(nano, "/v1/chat/completions", {
      ...chat("x"),
      messages: [
        { role: "user", content: "Say it." },
        { role: "assistant", content: "hello </think> world" },
        { role: "user", content: "Hello!" },
      ],
      return_token_ids: true,
      max_tokens: 1,
    });
    const plain = await post(nano, "/v1/chat/completions", { ...chat("Hello!"), return_token_ids: true, max_tokens: 1 });
    const endThink = plain.body.prompt_token_ids.at(-1);
    // One for each of the two assistant turns, none for the one inside the text.
    assert.equal(body.prompt_token_ids.filter((id) => id === endThink).length, 2);
  });

  it("refuses a body that is not UTF-8, on every surface (B011)", async () => {
    for (const path of generating) {
      const bytes = Buffer.concat([
        Buffer.from('{"model":"nano","max_tokens":5,"input":"'),
        Buffer.from([0xc4, 0xe3, 0xba, 0xc3]), // GBK
        Buffer.from('","messages":[{"role":"user","content":"'),
        Buffer.from([0xc4, 0xe3, 0xba, 0xc3]),
        Buffer.from('"}]}'),
      ]);
      const { status, body } = await post(nano, path, bytes);
      assert.equal(status, 400, path);
      assert.equal(body.type, path === "/v1/messages" ? "error" : undefined);
      assert.ok(body.error.message, path);
    }
    assert.equal((await get(nano, "/health")).status, 200);
  });

  it("never streams a tool block as reasoning (B014)", async () => {
    const text = "call while you think";
    for (const path of generating) {
      const tool =
        path === "/v1/messages"
          ? { name: "bash", input_schema: { type: "object", properties: { command: { type: "string" } } } }
          : path === "/v1/responses"
            ? { type: "function", ...openAiTool("bash").function }
            : openAiTool("bash");
      const more = path === "/v1/responses" ? { reasoning: { effort: "low", summary: "auto" } } : { thinking: { type: "enabled" } };
      const body = question(path, text, { ...more, tools: [tool] });
      const events = await streamEvents(scripted, path, body);
      const whole = await post(scripted, path, body);
      assert.equal(whole.status, 200);
      for (const said of [JSON.stringify(events), JSON.stringify(whole.body)]) {
        assert.doesNotMatch(said, /DSML/, path);
        assert.match(said, /tool_calls"|function_call|tool_use/, path);
      }
    }
  });

  it("does not show a tool block whose opener is misspelled (B017)", async () => {
    for (const path of generating) {
      const tool =
        path === "/v1/messages"
          ? { name: "bash", input_schema: { type: "object", properties: { command: { type: "string" } } } }
          : path === "/v1/responses"
            ? { type: "function", ...openAiTool("bash").function }
            : openAiTool("bash");
      const { status, body } = await post(scripted, path, question(path, "misspell the opener", { tools: [tool] }));
      const said = JSON.stringify(body);
      // The call is recovered, or the turn ends in an error; never in a success that shows markup.
      assert.ok(status === 200 ? /pwd/.test(said) && !/DSML/.test(said) : status >= 500, `${path}: ${status} ${said}`);
    }
  });

  it("refuses remote images without fetching them (B055)", async () => {
    let visits = 0;
    const listener = net.createServer((socket) => {
      ++visits;
      socket.destroy();
    });
    await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${listener.address().port}/cat.png`;
    const replies = await Promise.all([
      post(nano, "/v1/chat/completions", chat([{ type: "image_url", image_url: { url } }])),
      post(nano, "/v1/responses", { model: "nano", input: [{ role: "user", content: [{ type: "input_image", image_url: url }] }] }),
      post(nano, "/v1/messages", { model: "nano", max_tokens: 5, messages: [{ role: "user", content: [{ type: "image", source: { type: "url", url } }] }] }),
      post(nano, "/v1/chat/completions", chat([{ type: "image_url", image_url: { url: "file:///etc/passwd" } }])),
    ]);
    listener.close();
    assert.deepEqual(replies.map(({ status }) => status), [400, 400, 400, 400]);
    assert.equal(visits, 0);
  });

  it("bounds request heads (B056)", async () => {
    const huge = await raw(nano, `GET /health HTTP/1.1\r\nHost: x\r\nX-Big: ${"a".repeat(1 << 20)}\r\n\r\n`);
    assert.equal(statusOf(huge), 431);
    const many = await raw(nano, `GET /health HTTP/1.1\r\n${"A: b\r\n".repeat(10000)}\r\n`);
    assert.equal(statusOf(many), 431);
    const length = await raw(nano, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9223372036854775808\r\n\r\n");
    assert.ok([400, 413].includes(statusOf(length)), length);
    const twice = await raw(nano, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}");
    assert.equal(statusOf(twice), 400);
    const both = await raw(nano, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}");
    assert.equal(statusOf(both), 400);
  });

  it("takes a chunked body (B056)", async () => {
    const body = JSON.stringify(chat("Hello!", { max_tokens: 1 }));
    const half = body.length >> 1;
    const chunk = (text) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
    const reply = await raw(
      nano,
      "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
        chunk(body.slice(0, half)) + chunk(body.slice(half)) + "0\r\n\r\n",
    );
    assert.equal(statusOf(reply), 200);
  });

  it("refuses deep nesting in bodies and schemas (B058)", async () => {
    const deep = "[".repeat(60000) + "]".repeat(60000);
    for (const path of generating) {
      assert.equal((await post(nano, path, `{"model":"nano","x":${deep}}`)).status, 400, path);
    }
    const schema = '{"type":"object","properties":{"a":'.repeat(10000) + "{}" + "}}".repeat(10000);
    const body = JSON.stringify(chat("Hi", { tools: [{ type: "function", function: { name: "f", parameters: "SCHEMA" } }] }));
    assert.equal((await post(nano, "/v1/chat/completions", body.replace('"SCHEMA"', schema))).status, 400);
    assert.equal((await get(nano, "/health")).status, 200);
  });

  it("refuses a schema that it cannot keep (B025)", async () => {
    const schema = { type: "object", properties: { a: { type: "string", pattern: "\\p{" } }, required: ["a"] };
    const { status, body } = await post(nano, "/v1/chat/completions", {
      ...chat("Give me a."),
      response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } },
    });
    assert.equal(status, 400);
    assert.match(body.error.message, /pattern/);
  });

  for (const stream of [true, false]) {
    it(`stops a ${stream ? "streamed" : "whole"} generation when its client goes away (B034)`, async () => {
      const { hostname, port } = new URL(scripted.url);
      const body = JSON.stringify({ ...chat("never stop"), stream, max_tokens: 100000 });
      const socket = net.connect(Number(port), hostname);
      socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
      await until(async () => (await numRunning(scripted)) === 1, 3000, "the generation runs");
      socket.destroy();
      await until(async () => (await numRunning(scripted)) === 0, 3000, "the generation is cancelled");
    });
  }

  it("answers unknown paths and wrong methods", async () => {
    assert.equal((await get(nano, "/v1/nothing")).status, 404);
    const wrong = await get(nano, "/v1/chat/completions");
    assert.equal(wrong.status, 405);
    assert.match(wrong.headers.get("allow"), /POST/);
  });

  it("shows metrics and stats", async () => {
    const metrics = await get(nano, "/metrics");
    assert.match(metrics.headers.get("content-type"), /text\/plain/);
    assert.match(metrics.body, /^# HELP /m);
    assert.match(metrics.body, /requests_started_total \d+/);
    const text = await get(nano, "/v1/stats");
    assert.equal(typeof text.body, "string");
    const json = await get(nano, "/v1/stats", { Accept: "application/json" });
    assert.equal(typeof json.body.uptime_s, "number");
  });
});
