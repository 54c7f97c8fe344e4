// The servers under test: run.sh starts them and says where they are.

function required(name) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; start the tests through run.sh`);
  return value;
}

/** `tandem serve` with the bundled nano model. */
export const nano = { url: required("TANDEM_NANO_URL"), pid: Number(required("TANDEM_NANO_PID")) };
/** A server whose model plays script.json. */
export const scripted = { url: required("TANDEM_SCRIPTED_URL"), pid: Number(required("TANDEM_SCRIPTED_PID")) };

/** Posts JSON; returns {status, headers, body}, the body parsed if it is JSON. */
export async function post(server, path, body, headers = {}) {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
  return read(response);
}

export async function get(server, path, headers = {}) {
  return read(await fetch(server.url + path, { headers }));
}

async function read(response) {
  const text = await response.text();
  let body = text;
  try {
    body = JSON.parse(text);
  } catch {
    // Not JSON: the text itself.
  }
  return { status: response.status, headers: response.headers, body };
}

/** The events of a stream in order: [{event, data}], the data parsed if it is JSON. */
export async function streamEvents(server, path, body) {
  const response = await fetch(server.url + path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...body, stream: true }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return text
    .split("\n\n")
    .map((block) => block.split("\n"))
    .filter((lines) => lines.some((line) => line.startsWith("data:")))
    .map((lines) => {
      const event = lines.find((line) => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      return { event, data: data === "[DONE]" ? data : JSON.parse(data) };
    });
}

/** Waits until `condition()` holds; fails after `limitMs`. */
export async function until(condition, limitMs, what) {
  const end = Date.now() + limitMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`after ${limitMs} ms still not: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The requests that a server works on now. */
export async function numRunning(server) {
  const stats = await get(server, "/v1/stats", { Accept: "application/json" });
  return stats.body.requests.running;
}
