// One message of a chat on the page. A view is updated in place while its message grows.

import { copyText, renderMarkdown } from "./markdown.js";

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function button(label, onClick, className = "text-button") {
  const node = element("button", className, label);
  node.type = "button";
  node.addEventListener("click", () => onClick(node));
  return node;
}

const number = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const seconds = (ms) => (ms < 1000 ? `${Math.round(ms)} ms` : `${number.format(ms / 1000)} s`);

function prettyJson(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // still incomplete
  }
}

/** "24 tokens · 31.2 tokens/s · first after 120 ms · prompt 94% reused" */
function describeMetrics({ usage, timings, live, stopped, finish }) {
  const parts = [];
  if (live) parts.push(`${live.tokens} tokens`, `${number.format(live.rate)} tokens/s`);
  if (usage && !live) parts.push(`${usage.completion_tokens} tokens`);
  if (timings && !live) {
    if (timings.decode_tok_s) parts.push(`${number.format(timings.decode_tok_s)} tokens/s`);
    if (timings.ttft_ms) parts.push(`first after ${seconds(timings.ttft_ms)}`);
  }
  const cached = usage?.prompt_tokens_details?.cached_tokens;
  const reused = Math.round((100 * (cached ?? 0)) / usage?.prompt_tokens);
  if (reused > 0 && !live) parts.push(`prompt ${reused}% reused`);
  if (stopped) parts.push("stopped");
  if (finish === "length") parts.push("cut at the token limit");
  return parts.join(" · ");
}

/** A tool call's card; `result` is the tool message that answers it, if there is one. */
function toolCard(call, result, onResult) {
  const card = element("section", "tool-card");
  card.setAttribute("aria-label", `Call of ${call.function.name}`);
  const head = element("header");
  head.append(element("span", "tool-badge", "tool"), element("code", "tool-name", call.function.name));
  const args = element("pre", "tool-args");
  args.tabIndex = 0;
  args.textContent = prettyJson(call.function.arguments) || "{}";
  card.append(head, args);
  if (result) {
    const output = element("pre", "tool-result", result.content);
    output.tabIndex = 0;
    card.append(element("p", "tool-label", "Result"), output);
  } else if (onResult) {
    const id = `result-${call.id}`;
    const label = element("label", "tool-label", "Result");
    label.htmlFor = id;
    const input = element("textarea");
    input.id = id;
    input.rows = 2;
    input.placeholder = "What the tool returns";
    card.append(label, input, button("Send result", () => onResult(call, input.value), "button"));
  }
  return card;
}

export class MessageView {
  /** `actions`: {toolResult(call, text), retry()}; retry may be absent. */
  constructor(message, actions = {}) {
    this.message = message;
    this.actions = actions;
    this.node = element("article", `message ${message.role}`);
    this.node.append(element("h3", "visually-hidden", message.role === "user" ? "You" : "Assistant"));
    if (message.role === "user") {
      this.node.append(element("div", "bubble", message.content));
      return;
    }
    this.thinking = element("details", "thinking");
    this.thinkingSummary = element("summary");
    this.thinkingText = element("div", "thinking-text");
    this.thinking.append(this.thinkingSummary, this.thinkingText);
    this.progress = element("div", "progress");
    this.content = element("div", "content");
    this.tools = element("div", "tools");
    this.error = element("div", "error");
    this.error.setAttribute("role", "alert");
    this.footer = element("footer");
    this.metrics = element("span", "metrics");
    this.footer.append(this.metrics);
    const buttons = element("span", "message-actions");
    this.copy = button("Copy", (node) => copyText(node, this.message.content));
    buttons.append(this.copy);
    if (actions.retry) buttons.append(button("Answer again", () => actions.retry()));
    this.footer.append(buttons);
    this.node.append(this.thinking, this.progress, this.content, this.tools, this.error, this.footer);
  }

  /** `busy`: the message still grows. `results`: tool messages by call id. */
  update({ busy = false, results = new Map(), progress = null } = {}) {
    const { message } = this;
    if (message.role === "user") return;
    const isReasoning = busy && !message.content && !message.tool_calls?.length;
    this.thinking.hidden = !message.reasoning_content;
    this.thinkingText.textContent = message.reasoning_content ?? "";
    const took = message.meta?.thinkingMs;
    this.thinkingSummary.textContent = isReasoning ? "Thinking…" : took ? `Thought for ${seconds(took)}` : "Thoughts";
    this.thinking.classList.toggle("live", isReasoning);

    this.showProgress(busy, progress);
    renderMarkdown(this.content, message.content ?? "");
    this.content.classList.toggle("live", busy && Boolean(message.content));
    this.showTools(busy, results);
    this.error.hidden = !message.meta?.error;
    this.error.textContent = message.meta?.error ?? "";
    this.copy.hidden = !message.content;
    this.metrics.textContent = describeMetrics(message.meta ?? {});
    this.footer.classList.toggle("quiet", busy);
  }

  showProgress(busy, progress) {
    const { message } = this;
    const isWaiting = busy && !message.content && !message.reasoning_content && !message.tool_calls?.length;
    this.progress.hidden = !isWaiting;
    if (!isWaiting) return;
    const share = progress?.total ? Math.round((100 * progress.processed) / progress.total) : 0;
    this.progress.textContent = share > 0 && share < 100 ? `Reading the prompt: ${share}%` : "Waiting for the first token";
  }

  showTools(busy, results) {
    const calls = this.message.tool_calls ?? [];
    const key = JSON.stringify([busy, calls, calls.map((call) => results.get(call.id)?.content ?? null)]);
    if (key === this.shownTools) return; // what is typed into a result box stays
    this.shownTools = key;
    const canAnswer = !busy && this.actions.toolResult;
    this.tools.replaceChildren(
      ...calls.map((call) => toolCard(call, results.get(call.id), canAnswer ? this.actions.toolResult : null)),
    );
  }
}
