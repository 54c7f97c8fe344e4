// The lines of docs/clients.md that can be run as they stand. The agents' settings are tried by
// agents/agents.test.js.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { describe, it } from "node:test";

import { snippets } from "./support/docs.js";
import { nano } from "./support/servers.js";

/** Runs a command to its end with `input`; what it wrote. */
function run(command, args, input) {
  return new Promise((resolve) => {
    // In this folder, so that the packages are found.
    const child = spawn(command, args, { cwd: new URL(".", import.meta.url), timeout: 60000 });
    let stdout = "", stderr = "";
    child.stdout.on("data", (data) => (stdout += data));
    child.stderr.on("data", (data) => (stderr += data));
    child.on("close", (code) => resolve({ code, stdout, stderr }));
    child.stdin.end(input);
  });
}

describe("docs/clients.md", () => {
  const expected = { curl: [/"content":"The capital of France is Paris\."/, /data: \[DONE\]/, /"input_tokens":\d+/] };
  snippets("curl", "sh", nano.url).forEach((block, i) => {
    it(`curl snippet ${i + 1} works`, async () => {
      const { code, stdout, stderr } = await run("bash", ["-e"], block);
      assert.equal(code, 0, stderr);
      assert.match(stdout, expected.curl[i]);
    });
  });

  for (const [heading, answer] of [
    ["OpenAI SDK", /37 \+ 45 = 82\./],
    ["Anthropic SDK", /The capital of France is Paris\./],
    ["Vercel AI SDK", /Paris/],
  ]) {
    it(`the ${heading} snippet works`, async () => {
      const [block] = snippets(heading, "js", nano.url);
      const { code, stdout, stderr } = await run(process.execPath, ["--input-type=module"], block);
      assert.equal(code, 0, stderr);
      assert.match(stdout, answer);
    });
  }
});
