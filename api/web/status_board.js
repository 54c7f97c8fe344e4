// The live board of /v1/stats: polled often while it is open, now and then for the dot otherwise.

import { fetchStats } from "./api.js";

const POLL_OPEN_MS = 1000;
const POLL_CLOSED_MS = 10000;
const SAMPLES_MAX = 60;

const whole = new Intl.NumberFormat("en");
const decimal = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

function element(name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function duration(s) {
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return s < 172800 ? `${decimal.format(s / 3600)} h` : `${decimal.format(s / 86400)} days`;
}

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; ++unit) n /= 1024;
  return `${decimal.format(n)} ${units[unit]}`;
}

/** A card with a heading and rows of [name, value]; rows without a value are left out. */
function card(title, rows) {
  const shown = rows.filter(([, value]) => value !== undefined && value !== null && value !== "");
  if (shown.length === 0) return null;
  const node = element("section", "status-card");
  const list = element("dl");
  for (const [name, value] of shown) {
    list.append(element("dt", "", name), element("dd", "", typeof value === "number" ? whole.format(value) : String(value)));
  }
  node.append(element("h3", "", title), list);
  return node;
}

function sparkline(values) {
  const width = 300, height = 44;
  const top = Math.max(1, ...values);
  const points = values.map((value, i) => {
    const x = width - (values.length - 1 - i) * (width / (SAMPLES_MAX - 1));
    return `${x.toFixed(1)},${(height - 2 - (value / top) * (height - 6)).toFixed(1)}`;
  });
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "spark");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(namespace, "polyline");
  line.setAttribute("points", points.join(" "));
  line.setAttribute("fill", "none");
  line.setAttribute("stroke", "currentColor");
  line.setAttribute("stroke-width", "2");
  line.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(line);
  return svg;
}

function speedCard(samples) {
  const node = element("section", "status-card");
  node.append(element("h3", "", "Generation, all chats"));
  const figure = element("p", "figure");
  figure.append(element("strong", "", decimal.format(samples.at(-1) ?? 0)), element("span", "muted", "tokens/s"));
  node.append(figure, sparkline(samples));
  return node;
}

function banksCard(banks, contextTokens) {
  if (!banks?.length) return null;
  const node = element("section", "status-card");
  node.append(element("h3", "", "Sequences in memory"));
  for (const [i, bank] of banks.entries()) {
    const share = contextTokens ? Math.min(1, bank.tokens / contextTokens) : 0;
    const row = element("div", "bank");
    const text = element("div");
    text.append(
      element("span", "", `${bank.index ?? i} · ${bank.state}`),
      element("span", "muted", contextTokens ? `${whole.format(bank.tokens)} of ${whole.format(contextTokens)}` : whole.format(bank.tokens)),
    );
    const meter = element("div", "meter");
    const fill = element("div", share > 0.85 ? "high" : "");
    fill.style.width = `${100 * share}%`;
    meter.append(fill);
    row.append(text, meter);
    node.append(row);
  }
  return node;
}

export class StatusBoard {
  /** `onStats(stats | null, error | null)` hears of every poll. */
  constructor(panel, content, getApiKey, onStats) {
    this.panel = panel;
    this.content = content;
    this.getApiKey = getApiKey;
    this.onStats = onStats;
    this.samples = [];
    this.timer = null;
    document.addEventListener("visibilitychange", () => this.poll());
    this.poll();
  }

  get isOpen() {
    return !this.panel.hidden;
  }

  setOpen(open) {
    this.panel.hidden = !open;
    this.poll();
  }

  async poll() {
    clearTimeout(this.timer);
    if (document.hidden) return;
    const round = (this.round = (this.round ?? 0) + 1);
    let stats = null, failure = null;
    try {
      stats = await fetchStats(this.getApiKey());
    } catch (error) {
      failure = error;
    }
    if (round !== this.round) return; // a later poll has begun
    if (stats) this.addSample(stats);
    this.onStats(stats, failure);
    if (this.isOpen) this.render(stats, failure);
    this.timer = setTimeout(() => this.poll(), this.isOpen ? POLL_OPEN_MS : POLL_CLOSED_MS);
  }

  addSample(stats) {
    const now = performance.now();
    const generated = stats.tokens?.generated ?? 0;
    if (this.last && generated >= this.last.generated && now > this.last.now) {
      this.samples.push((1000 * (generated - this.last.generated)) / (now - this.last.now));
      if (this.samples.length > SAMPLES_MAX) this.samples.shift();
    }
    this.last = { now, generated };
  }

  render(stats, failure) {
    if (!stats) {
      this.content.replaceChildren(element("div", "error", failure instanceof TypeError ? "The server does not answer." : failure.message));
      return;
    }
    const { requests = {}, tokens = {} } = stats;
    const read = (tokens.prompt_computed ?? 0) + (tokens.prompt_cached ?? 0);
    const disk = stats.kv_disk;
    this.content.replaceChildren(
      ...[
        speedCard(this.samples),
        card("Requests", [
          ["Running", requests.running],
          ["Waiting", stats.queue_depth],
          ["Finished", requests.completed],
          ["Failed", requests.failed],
          ["Cancelled", requests.canceled],
          ["Connections", stats.clients],
        ]),
        card("Tokens", [
          ["Generated", tokens.generated],
          ["Prompt, computed", tokens.prompt_computed],
          ["Prompt, reused", read > 0 ? `${whole.format(tokens.prompt_cached)} (${Math.round((100 * tokens.prompt_cached) / read)}%)` : undefined],
        ]),
        banksCard(stats.banks, stats.context_length),
        disk?.dir ? card("Disk cache", [["Files", disk.files], ["Used", `${bytes(disk.bytes)} of ${bytes(disk.budget)}`]]) : null,
        ...(stats.workers ?? []).map((worker) =>
          card(`Worker ${worker.addr}`, [["Layers", worker.layers], ["Connected", duration(worker.connected_s ?? 0)]]),
        ),
        card("Server", [
          ["Model", stats.model],
          ["Context", stats.context_length ? `${whole.format(stats.context_length)} tokens` : undefined],
          ["Version", stats.version],
          ["Up", stats.uptime_s === undefined ? undefined : duration(stats.uptime_s)],
        ]),
      ].filter(Boolean),
    );
  }
}
