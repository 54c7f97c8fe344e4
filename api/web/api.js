// The server's surfaces that this page uses.

function headers(apiKey, more = {}) {
  return apiKey ? { ...more, Authorization: `Bearer ${apiKey}` } : more;
}

/** An answer of the server that is not a success; `message` is fit to be shown. */
export class ServerError extends Error {}

async function failure(response) {
  let text = `The server answered ${response.status}.`;
  try {
    const body = await response.json();
    if (body?.error?.message) text = body.error.message;
  } catch {
    // The status has to do.
  }
  if (response.status === 401) text += " Set the API key in the settings.";
  return new ServerError(text);
}

export async function fetchModel(apiKey) {
  const response = await fetch("/v1/models", { headers: headers(apiKey) });
  if (!response.ok) throw await failure(response);
  return (await response.json()).data?.[0] ?? null;
}

export async function fetchStats(apiKey) {
  const response = await fetch("/v1/stats", { headers: headers(apiKey, { Accept: "application/json" }) });
  if (!response.ok) throw await failure(response);
  return response.json();
}

/** Yields the data of each server-sent event; comments and other fields are skipped. */
async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      let end;
      while ((end = rest.indexOf("\n\n")) >= 0) {
        const data = rest
          .slice(0, end)
          .split("\n")
          .filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).trimStart());
        rest = rest.slice(end + 2);
        if (data.length > 0) yield data.join("\n");
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/**
 * Yields the chunks of a streamed chat completion. Throws a ServerError for what the server
 * refuses or breaks off, an AbortError once `signal` is aborted.
 */
export async function* streamChat(body, apiKey, signal) {
  const response = await fetch("/v1/chat/completions", {
    method: "POST",
    headers: headers(apiKey, { "Content-Type": "application/json" }),
    body: JSON.stringify({ ...body, stream: true, stream_options: { include_usage: true }, return_progress: true }),
    signal,
  });
  if (!response.ok) throw await failure(response);
  for await (const data of readEvents(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new ServerError(chunk.error.message ?? "The server broke off the answer.");
    yield chunk;
  }
  throw new ServerError("The connection was closed before the answer was complete.");
}
