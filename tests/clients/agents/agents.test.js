// Real coding agents take one turn with a tool call against the scripted server: each with the
// settings of docs/clients.md, in a home of its own, without telemetry, and with no address to talk
// to but the server's.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";

import { exportedVariables, snippets } from "../support/docs.js";
import { startRecorder } from "../support/recorder.js";
import { scripted } from "../support/servers.js";

const modules = join(dirname(fileURLToPath(import.meta.url)), "node_modules");
const LIMIT_MS = 60000;
const SAID = "The command printed its line.";
const RAN = "agent-tool-ran";

/** The first file that exists; the platform's own packages hold the programs. */
function program(...candidates) {
  return candidates.map((path) => join(modules, path)).find(existsSync);
}

function codexProgram() {
  const vendor = join(modules, "@openai/codex-linux-x64/vendor");
  if (!existsSync(vendor)) return undefined;
  return readdirSync(vendor).map((target) => join(vendor, target, "bin/codex")).find(existsSync);
}

const skipWithout = (path) => (path ? false : "the agent is not installed; TANDEM_TEST_AGENTS=1 fetches it");

/** Runs an agent to its end; what it wrote, and its exit code. */
function runAgent(command, args, { home, env = {} }) {
  const work = join(home, "work");
  mkdirSync(work, { recursive: true });
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: work,
      env: { PATH: process.env.PATH, HOME: home, TERM: "dumb", NO_COLOR: "1", ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "", stderr = "";
    child.stdout.on("data", (data) => (stdout += data));
    child.stderr.on("data", (data) => (stderr += data));
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    });
  });
}

/** The JSON lines that an agent wrote. */
function jsonLines(text) {
  return text.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
}

function write(path, content) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

describe("agents", () => {
  let home, recorder;

  before(async () => {
    // Not under the temporary folder: codex refuses a home there.
    mkdirSync(join(homedir(), ".cache"), { recursive: true });
    home = mkdtempSync(join(homedir(), ".cache", "tandem-agents-"));
    recorder = await startRecorder(scripted.url);
  });
  after(() => {
    recorder?.close();
    rmSync(home, { recursive: true, force: true });
  });

  /** Every request was answered, and none was sent again. */
  function assertCleanTurn(result, path, numRequests) {
    const log = JSON.stringify(recorder.requests.map(({ method, path: at, status }) => [method, at, status]));
    assert.equal(result.signal, null, `killed after ${LIMIT_MS} ms; ${log}\n${result.stderr.slice(-2000)}`);
    assert.equal(result.code, 0, `${log}\n${result.stdout.slice(-2000)}\n${result.stderr.slice(-2000)}`);
    for (const request of recorder.requests) {
      assert.ok(request.status >= 200 && request.status < 300, `${request.method} ${request.path}: ${request.status} ${request.reply.slice(0, 500)}`);
    }
    const turns = recorder.requests.filter((request) => request.path.startsWith(path));
    assert.equal(turns.length, numRequests, log);
    assert.doesNotMatch(result.stderr, /retry|reconnect|unexpected|malformed|invalid/i);
  }

  const codex = codexProgram();
  it("codex runs a command through /v1/responses", { skip: skipWithout(codex) }, async () => {
    recorder.clear();
    const own = join(home, "codex");
    write(join(own, ".codex/config.toml"), snippets("Codex CLI", "toml", recorder.url)[0]);
    const result = await runAgent(
      codex,
      ["exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "codex: run the command"],
      { home: own },
    );
    assertCleanTurn(result, "/v1/responses", 2);
    const events = jsonLines(result.stdout);
    const ran = events.find((event) => event.type === "item.completed" && event.item.type === "command_execution");
    assert.equal(ran.item.exit_code, 0);
    assert.match(ran.item.aggregated_output, new RegExp(RAN));
    const said = events.filter((event) => event.item?.type === "agent_message").map((event) => event.item.text);
    assert.equal(said.at(-1), SAID);
    const end = events.at(-1);
    assert.equal(end.type, "turn.completed");
    assert.ok(end.usage.cached_input_tokens > 0, "the second request reused nothing");
  });

  const claude = program("@anthropic-ai/claude-code-linux-x64/claude");
  it("claude code runs a command through /v1/messages", { skip: skipWithout(claude) }, async () => {
    recorder.clear();
    const result = await runAgent(
      claude,
      ["-p", "claude: run the command", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash"],
      {
        home: join(home, "claude"),
        env: exportedVariables(snippets("Claude Code", "sh", recorder.url)[0]),
      },
    );
    assertCleanTurn(result, "/v1/messages?", 2);
    const events = jsonLines(result.stdout);
    const results = events.filter((event) => event.type === "user").flatMap((event) => event.message.content);
    assert.equal(results.length, 1);
    assert.equal(results[0].is_error, false);
    assert.match(results[0].content, new RegExp(RAN));
    const end = events.at(-1);
    assert.equal(end.type, "result");
    assert.equal(end.is_error, false);
    assert.equal(end.result, SAID);
    assert.ok(end.usage.cache_read_input_tokens > 0, "the second request reused nothing");
  });

  const opencode = program("opencode-linux-x64/bin/opencode");
  it("opencode runs a command through /v1/chat/completions", { skip: skipWithout(opencode) }, async () => {
    recorder.clear();
    const own = join(home, "opencode");
    write(join(own, ".config/opencode/opencode.json"), snippets("opencode", "json", recorder.url)[0]);
    const result = await runAgent(opencode, ["run", "--format", "json", "agent: run the command"], {
      home: own,
      env: {
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      },
    });
    // The turn's two, and one for the chat's title.
    assertCleanTurn(result, "/v1/chat/completions", 3);
    const events = jsonLines(result.stdout);
    const ran = events.find((event) => event.type === "tool_use").part;
    assert.equal(ran.state.status, "completed");
    assert.match(ran.state.output, new RegExp(RAN));
    assert.equal(events.filter((event) => event.type === "text").at(-1).part.text, SAID);
    const end = events.findLast((event) => event.type === "step_finish").part;
    assert.equal(end.reason, "stop");
    assert.ok(end.tokens.cache.read > 0, "the second request reused nothing");
  });

  const pi = program("@mariozechner/pi-coding-agent/dist/cli.js");
  it("pi runs a command through /v1/chat/completions", { skip: skipWithout(pi) }, async () => {
    recorder.clear();
    const own = join(home, "pi");
    write(join(own, ".pi/agent/models.json"), snippets("Pi", "json", recorder.url)[0]);
    const result = await runAgent(
      process.execPath,
      [pi, "--mode", "json", "-p", "--provider", "tandem", "--model", "nano", "agent: run the command"],
      { home: own, env: { PI_OFFLINE: "1", PI_SKIP_VERSION_CHECK: "1" } },
    );
    assertCleanTurn(result, "/v1/chat/completions", 2);
    const events = jsonLines(result.stdout);
    const ran = events.find((event) => event.type === "tool_execution_end");
    assert.equal(ran.isError, false);
    assert.match(ran.result.content[0].text, new RegExp(RAN));
    const last = events.findLast((event) => event.type === "message_end").message;
    assert.equal(last.stopReason, "stop");
    assert.equal(last.content.filter((part) => part.type === "text").map((part) => part.text).join(""), SAID);
    assert.ok(last.usage.cacheRead > 0, "the second request reused nothing");
  });
});
