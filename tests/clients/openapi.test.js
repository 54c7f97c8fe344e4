// What the server answers, against the OpenAPI document that it serves.

import assert from "node:assert/strict";
import { describe, it } from "node:test";

import Ajv2020 from "ajv/dist/2020.js";

import { get, nano, post, scripted, streamEvents } from "./support/servers.js";
import { anthropicTool, openAiTool, responsesTool } from "./support/tools.js";

const document = (await get(nano, "/openapi.json")).body;
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
ajv.addSchema(document, "api");

/** Fails unless `value` fits the schema at `pointer` ("paths/...", with / in a name as ~1). */
function assertFits(pointer, value) {
  const validate = ajv.getSchema(`api#/${pointer}`);
  assert.ok(validate, `the document has no ${pointer}`);
  assert.ok(validate(value), `${JSON.stringify(validate.errors, null, 1)}\n${JSON.stringify(value).slice(0, 2000)}`);
}

const escaped = (path) => path.replaceAll("/", "~1").replaceAll("{", "%7B").replaceAll("}", "%7D");
const responsePointer = (path, method, status) =>
  `paths/${escaped(path)}/${method}/responses/${status}/content/application~1json/schema`;

const thinking = { reasoning_effort: "low" };
const said = (text) => [{ role: "user", content: text }];
/** Requests that bring out each shape of an answer, by surface. */
const cases = {
  "/v1/chat/completions": {
    text: [nano, { messages: said("Hello!"), temperature: 0, max_tokens: 20, thinking: { type: "disabled" } }],
    "text with log-probabilities and ids": [
      nano,
      { messages: said("Hello!"), temperature: 0, max_tokens: 5, logprobs: true, top_logprobs: 2, return_token_ids: true, thinking: { type: "disabled" } },
    ],
    "reasoning, text and a call": [scripted, { messages: said("think, talk and call"), tools: [openAiTool("bash")], ...thinking, stream_options: { include_usage: true } }],
    "several choices": [nano, { messages: said("Hello!"), n: 2, max_tokens: 3 }],
  },
  "/v1/completions": {
    text: [nano, { prompt: "Hello!", max_tokens: 10, temperature: 0, reasoning_effort: "none" }],
    "text with log-probabilities": [nano, { prompt: "Hello!", max_tokens: 5, logprobs: 2, reasoning_effort: "none" }],
  },
  "/v1/responses": {
    text: [nano, { input: "Hello!", temperature: 0, max_output_tokens: 20, reasoning: { effort: "none" } }],
    "reasoning, text and a call": [scripted, { input: "think, talk and call", tools: [responsesTool("bash")], reasoning: { effort: "low", summary: "auto" } }],
    "an answer that is cut": [nano, { input: "Hello!", max_output_tokens: 2, reasoning: { effort: "none" } }],
  },
  "/v1/messages": {
    text: [nano, { messages: said("Hello!"), temperature: 0, max_tokens: 20, thinking: { type: "disabled" } }],
    "thinking, text and a call": [scripted, { messages: said("think, talk and call"), max_tokens: 500, tools: [anthropicTool("bash")], thinking: { type: "enabled", budget_tokens: 1024 } }],
  },
};

describe("openapi", () => {
  it("is a document of OpenAPI 3.1 whose references all lead somewhere", () => {
    assert.match(document.openapi, /^3\.1\./);
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map((match) => match[1]);
    assert.ok(references.length > 10);
    for (const reference of new Set(references)) {
      const target = reference.split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/")], document);
      assert.ok(target, reference);
    }
  });

  for (const [path, requests] of Object.entries(cases)) {
    const content = document.paths?.[path]?.post;
    for (const [name, [server, request]] of Object.entries(requests)) {
      const body = { model: "nano", ...request };

      it(`describes ${path}: ${name}`, async () => {
        assertFits(`paths/${escaped(path)}/post/requestBody/content/application~1json/schema`, body);
        const answer = await post(server, path, body);
        assert.equal(answer.status, 200, JSON.stringify(answer.body));
        assertFits(responsePointer(path, "post", 200), answer.body);
      });

      it(`describes the events of ${path}: ${name}`, async () => {
        assert.ok(content.responses[200].content["text/event-stream"]["x-event-schema"]);
        const pointer = `paths/${escaped(path)}/post/responses/200/content/text~1event-stream/x-event-schema`;
        const events = await streamEvents(server, path, body);
        assert.ok(events.length > 3);
        for (const { data } of events) if (data !== "[DONE]") assertFits(pointer, data);
      });
    }

    it(`describes the errors of ${path}`, async () => {
      const answer = await post(nano, path, { model: "nano" });
      assert.equal(answer.status, 400);
      assertFits(responsePointer(path, "post", 400), answer.body);
    });
  }

  it("describes the other paths", async () => {
    const [model] = (await get(nano, "/v1/models")).body.data;
    for (const [path, at, headers] of [
      ["/v1/models", "/v1/models"],
      ["/v1/models/{id}", `/v1/models/${model.id}`],
      ["/v1/stats", "/v1/stats", { Accept: "application/json" }],
      ["/health", "/health"],
    ]) {
      const answer = await get(nano, at, headers);
      assert.equal(answer.status, 200, path);
      assertFits(responsePointer(path, "get", 200), answer.body);
    }
    const count = await post(nano, "/v1/messages/count_tokens", { model: "nano", messages: said("Hello!") });
    assertFits(responsePointer("/v1/messages/count_tokens", "post", 200), count.body);
  });
});
