// The page: chats, the composer, the settings.

import { fetchModel, streamChat } from "./api.js";
import { MessageView } from "./message_view.js";
import { StatusBoard } from "./status_board.js";
import { deleteChat, loadChats, loadSettings, newChat, saveChat, saveSettings } from "./store.js";

const $ = (id) => document.getElementById(id);
const whole = new Intl.NumberFormat("en");

const EXAMPLES = [
  "Write a short story about a fox and a lamp.",
  "What is 37 + 45?",
  "What is the capital of France?",
  "List 5 animals, one per line.",
];

const settings = loadSettings();
let chat = newChat();
let model = null;
let views = [];
let running = null; // {chat, controller} while an answer comes

// ---- The conversation ---------------------------------------------------------------------------

function resultsById() {
  return new Map(chat.messages.filter((m) => m.role === "tool").map((m) => [m.tool_call_id, m]));
}

function isBusy() {
  return running?.chat === chat;
}

function renderMessages() {
  const shown = chat.messages.filter((message) => message.role !== "tool");
  const last = chat.messages.at(-1);
  views = shown.map((message) => {
    const actions = { toolResult: addToolResult };
    if (message === last) actions.retry = answerAgain;
    return new MessageView(message, actions);
  });
  $("messages").replaceChildren(...views.map((view) => view.node));
  $("welcome").hidden = shown.length > 0;
  updateMessages();
}

function updateMessages() {
  const results = resultsById();
  for (const [i, view] of views.entries()) {
    view.update({ busy: isBusy() && i === views.length - 1, results, progress: running?.progress });
  }
}

function renderChrome() {
  const title = chat.title || "New chat";
  $("chat-title").textContent = title;
  document.title = chat.title ? `${title} · Tandem` : "Tandem";
  const list = loadChats();
  $("chat-list").replaceChildren(...(list.length > 0 ? list.map(chatListItem) : [emptyListItem()]));
  renderComposer();
}

function emptyListItem() {
  const item = document.createElement("li");
  item.className = "empty";
  item.textContent = "No chats yet";
  return item;
}

function chatListItem(entry) {
  const item = document.createElement("li");
  const open = document.createElement("button");
  open.type = "button";
  open.className = "open";
  open.textContent = entry.title || "New chat";
  open.addEventListener("click", () => openChat(entry));
  if (entry.id === chat.id) {
    item.className = "current";
    open.setAttribute("aria-current", "true");
  }
  const remove = document.createElement("button");
  remove.type = "button";
  remove.className = "delete";
  remove.textContent = "✕";
  remove.setAttribute("aria-label", `Delete the chat ${entry.title}`);
  remove.addEventListener("click", () => {
    if (running?.chat.id === entry.id) stop();
    deleteChat(entry.id);
    if (entry.id === chat.id) openChat(newChat());
    else renderChrome();
  });
  item.append(open, remove);
  return item;
}

function openChat(next) {
  // A chat whose answer is still coming is the one in memory, not its stored copy.
  chat = running?.chat.id === next.id ? running.chat : next;
  setSidebar(false);
  renderMessages();
  renderChrome();
  scrollToEnd();
  $("prompt").focus();
}

// ---- Asking the server --------------------------------------------------------------------------

/** The chat as the server wants it. What failed before any text is left out. */
function requestMessages() {
  const messages = [];
  if (settings.system.trim()) messages.push({ role: "system", content: settings.system });
  for (const message of chat.messages) {
    const { role, content, reasoning_content, tool_calls, tool_call_id } = message;
    if (role !== "assistant") {
      messages.push(role === "tool" ? { role, content, tool_call_id } : { role, content });
    } else if (content || tool_calls?.length) {
      const entry = { role, content };
      if (reasoning_content) entry.reasoning_content = reasoning_content;
      if (tool_calls?.length) entry.tool_calls = tool_calls;
      messages.push(entry);
    }
  }
  return messages;
}

function parseTools(text) {
  if (!text.trim()) return [];
  const tools = JSON.parse(text);
  if (!Array.isArray(tools)) throw new SyntaxError("The tools must be a JSON array.");
  return tools.map((tool) => (tool.type === "function" ? tool : { type: "function", function: tool }));
}

function requestBody() {
  const body = {
    model: model?.id ?? "default",
    messages: requestMessages(),
    thinking: { type: settings.thinking ? "enabled" : "disabled" },
  };
  if (settings.temperature !== null) body.temperature = settings.temperature;
  if (settings.maxTokens !== null) body.max_tokens = settings.maxTokens;
  const tools = parseTools(settings.tools);
  if (tools.length > 0) body.tools = tools;
  return body;
}

function addToolDelta(message, delta) {
  message.tool_calls ??= [];
  const call = (message.tool_calls[delta.index] ??= { id: "", type: "function", function: { name: "", arguments: "" } });
  if (delta.id) call.id = delta.id;
  if (delta.function?.name) call.function.name = delta.function.name;
  call.function.arguments += delta.function?.arguments ?? "";
}

function addChunk(message, chunk, times) {
  const { meta } = message;
  if (chunk.prompt_progress) running.progress = chunk.prompt_progress;
  if (chunk.usage) meta.usage = chunk.usage;
  if (chunk.timings) meta.timings = chunk.timings;
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const { content, reasoning_content, tool_calls } = choice.delta ?? {};
  const now = performance.now();
  if (content || reasoning_content || tool_calls) {
    times.first ??= now;
    times.tokens += 1;
    if (now > times.first) meta.live = { tokens: times.tokens, rate: (1000 * (times.tokens - 1)) / (now - times.first) };
  }
  if (reasoning_content) message.reasoning_content = (message.reasoning_content ?? "") + reasoning_content;
  if ((content || tool_calls) && message.reasoning_content && !meta.thinkingMs) meta.thinkingMs = now - times.first;
  if (content) message.content += content;
  for (const delta of tool_calls ?? []) addToolDelta(message, delta);
  if (choice.finish_reason) meta.finish = choice.finish_reason;
}

/** Lets the model answer the chat as it stands. */
async function answer() {
  const owner = chat;
  const message = { role: "assistant", content: "", meta: {} };
  const controller = new AbortController();
  const run = { chat: owner, controller, progress: null };
  let body;
  try {
    body = requestBody();
  } catch (error) {
    body = null;
    message.meta.error = `The tools in the settings are not usable: ${error.message}`;
  }
  owner.messages.push(message);
  running = run;
  renderMessages();
  renderChrome();
  scrollToEnd();
  announce("The model is answering.");

  const times = { first: null, tokens: 0 };
  let frame = 0;
  const redraw = () => {
    frame = 0;
    if (chat === owner) updateMessages(), keepAtEnd();
  };
  try {
    if (body) {
      for await (const chunk of streamChat(body, settings.apiKey, controller.signal)) {
        addChunk(message, chunk, times);
        frame ||= requestAnimationFrame(redraw);
      }
    }
  } catch (error) {
    if (controller.signal.aborted) message.meta.stopped = true;
    else message.meta.error = error instanceof TypeError ? "The server cannot be reached." : error.message;
  }
  cancelAnimationFrame(frame);
  finishAnswer(run, message);
}

function finishAnswer(run, message) {
  delete message.meta.live;
  // A call that was cut off cannot be answered or replayed.
  if (message.meta.stopped || message.meta.error) delete message.tool_calls;
  if (running === run) running = null;
  const isDeleted = !loadChats().some((entry) => entry.id === run.chat.id);
  if (!isDeleted) saveChat(run.chat);
  if (chat === run.chat) {
    renderMessages();
    keepAtEnd();
  }
  renderChrome();
  board.poll();
  announce(message.meta.error ? `Failed: ${message.meta.error}` : message.meta.stopped ? "Stopped." : "The answer is complete.");
}

function send(text) {
  if (running || !text.trim()) return;
  chat.messages.push({ role: "user", content: text });
  if (!chat.title) chat.title = text.trim().replace(/\s+/g, " ").slice(0, 60);
  saveChat(chat);
  answer();
}

function answerAgain() {
  if (running) return;
  while (chat.messages.length > 0 && chat.messages.at(-1).role !== "user" && chat.messages.at(-1).role !== "tool") chat.messages.pop();
  answer();
}

/** Answers once every call of the last assistant message has its result. */
function addToolResult(call, text) {
  if (running) return;
  chat.messages.push({ role: "tool", tool_call_id: call.id, content: text });
  saveChat(chat);
  const results = resultsById();
  const caller = chat.messages.findLast((message) => message.role === "assistant");
  if (caller.tool_calls.every((other) => results.has(other.id))) answer();
  else updateMessages();
}

function stop() {
  running?.controller.abort();
}

// ---- Composer, scrolling, announcements ---------------------------------------------------------

function contextTokens() {
  const usage = chat.messages.findLast((message) => message.meta?.usage)?.meta.usage;
  return usage ? usage.prompt_tokens + usage.completion_tokens : 0;
}

function renderComposer() {
  $("send").hidden = Boolean(running);
  $("stop").hidden = !running;
  $("send").disabled = !$("prompt").value.trim();
  $("thinking").setAttribute("aria-pressed", String(settings.thinking));
  const used = contextTokens();
  const limit = model?.context_length ?? 0;
  const share = limit ? Math.min(1, used / limit) : 0;
  $("context-text").textContent = limit ? `${whole.format(used)} of ${whole.format(limit)} tokens` : "";
  $("context-fill").style.width = `${100 * share}%`;
  $("context-fill").classList.toggle("high", share > 0.85);
}

function growPrompt() {
  const prompt = $("prompt");
  if (CSS.supports("field-sizing", "content")) return;
  prompt.style.height = "auto";
  prompt.style.height = `${prompt.scrollHeight}px`;
}

let isAtEnd = true;

function scrollToEnd() {
  isAtEnd = true;
  keepAtEnd();
}

function keepAtEnd() {
  const scroller = $("scroller");
  if (isAtEnd) scroller.scrollTop = scroller.scrollHeight;
  $("to-end").hidden = isAtEnd;
}

function announce(text) {
  $("announcer").textContent = text;
}

function setSidebar(open) {
  $("sidebar").classList.toggle("open", open);
  $("scrim").hidden = !open;
  if (open) $("new-chat").focus();
}

function setStatus(open) {
  board.setOpen(open);
  for (const id of ["toggle-status", "open-status"]) $(id).setAttribute("aria-expanded", String(open));
  if (open) {
    setSidebar(false);
    $("close-status").focus();
  } else {
    $("toggle-status").focus();
  }
}

// ---- Settings -----------------------------------------------------------------------------------

function applyTheme() {
  if (settings.theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
}

function toggleTheme() {
  const isDark = settings.theme === "auto" ? matchMedia("(prefers-color-scheme: dark)").matches : settings.theme === "dark";
  settings.theme = isDark ? "light" : "dark";
  saveSettings(settings);
  applyTheme();
}

function numberOrNull(input) {
  return input.value === "" || !input.checkValidity() ? null : input.valueAsNumber;
}

function showSettings() {
  $("set-system").value = settings.system;
  $("set-temperature").value = settings.temperature ?? "";
  $("set-max-tokens").value = settings.maxTokens ?? "";
  $("set-tools").value = settings.tools;
  $("set-key").value = settings.apiKey;
  checkTools();
  $("settings").showModal();
}

function checkTools() {
  let problem = "";
  try {
    parseTools($("set-tools").value);
  } catch (error) {
    problem = error.message;
  }
  $("set-tools-error").textContent = problem;
}

function readSettings() {
  const keyChanged = settings.apiKey !== $("set-key").value;
  settings.system = $("set-system").value;
  settings.temperature = numberOrNull($("set-temperature"));
  settings.maxTokens = numberOrNull($("set-max-tokens"));
  settings.tools = $("set-tools").value;
  settings.apiKey = $("set-key").value;
  saveSettings(settings);
  if (keyChanged) board.poll();
}

// ---- The server's state -------------------------------------------------------------------------

async function loadModel() {
  try {
    model = await fetchModel(settings.apiKey);
  } catch {
    model = null;
  }
  $("server-model").textContent = model?.id ?? "No model";
  renderComposer();
}

function showServerState(stats, error) {
  const dot = $("server-dot");
  if (error) {
    dot.className = "dot down";
    $("server-state").textContent = error instanceof TypeError ? "Not reachable" : error.message;
    if (!model) $("server-model").textContent = "No connection";
    return;
  }
  if (!model) loadModel();
  const active = stats.requests?.running ?? 0;
  dot.className = active > 0 ? "dot busy" : "dot ok";
  const waiting = stats.queue_depth > 0 ? `, ${stats.queue_depth} waiting` : "";
  $("server-state").textContent = active > 0 ? `${active} running${waiting}` : "Ready";
}

// ---- Wiring -------------------------------------------------------------------------------------

function onPromptKey(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("composer").requestSubmit();
  }
}

function onEscape(event) {
  if (event.key !== "Escape" || $("settings").open) return;
  if ($("sidebar").classList.contains("open")) setSidebar(false);
  else if (running) stop();
  else if (board.isOpen) setStatus(false);
}

function wire() {
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("prompt").value;
    if (running || !text.trim()) return;
    $("prompt").value = "";
    growPrompt();
    send(text);
  });
  $("prompt").addEventListener("keydown", onPromptKey);
  $("prompt").addEventListener("input", () => (growPrompt(), renderComposer()));
  $("stop").addEventListener("click", stop);
  $("thinking").addEventListener("click", () => {
    settings.thinking = !settings.thinking;
    saveSettings(settings);
    renderComposer();
  });
  $("new-chat").addEventListener("click", () => openChat(newChat()));
  $("open-sidebar").addEventListener("click", () => setSidebar(true));
  $("scrim").addEventListener("click", () => setSidebar(false));
  $("toggle-status").addEventListener("click", () => setStatus(!board.isOpen));
  $("open-status").addEventListener("click", () => setStatus(!board.isOpen));
  $("close-status").addEventListener("click", () => setStatus(false));
  $("toggle-theme").addEventListener("click", toggleTheme);
  $("open-settings").addEventListener("click", showSettings);
  $("settings").addEventListener("close", readSettings);
  $("set-tools").addEventListener("input", checkTools);
  $("delete-chats").addEventListener("click", () => {
    if (!confirm("Delete all chats in this browser?")) return;
    stop();
    for (const entry of loadChats()) deleteChat(entry.id);
    openChat(newChat());
  });
  $("to-end").addEventListener("click", scrollToEnd);
  $("scroller").addEventListener("scroll", () => {
    const scroller = $("scroller");
    isAtEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 48;
    $("to-end").hidden = isAtEnd;
  });
  document.addEventListener("keydown", onEscape);
  for (const text of EXAMPLES) {
    const example = document.createElement("button");
    example.type = "button";
    example.textContent = text;
    example.addEventListener("click", () => send(text));
    $("examples").append(example);
  }
}

applyTheme();
wire();
renderMessages();
renderChrome();
const board = new StatusBoard($("status-board"), $("status-content"), () => settings.apiKey, showServerState);
loadModel();
if (!matchMedia("(max-width: 720px)").matches) $("prompt").focus();
