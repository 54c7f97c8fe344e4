// A proxy that notes each request and its answer, and changes nothing.

import http from "node:http";

/** Starts one before `target`. {url, requests, clear(), close()}. */
export async function startRecorder(target) {
  const { hostname, port } = new URL(target);
  const requests = [];
  const server = http.createServer((request, response) => {
    const entry = { method: request.method, path: request.url, status: 0, reply: "" };
    requests.push(entry);
    const upstream = http.request(
      { hostname, port, method: request.method, path: request.url, headers: request.headers, agent: false },
      (answer) => {
        entry.status = answer.statusCode;
        const headers = { ...answer.headers };
        delete headers.connection;
        response.writeHead(answer.statusCode, headers);
        answer.on("data", (data) => {
          if (entry.reply.length < 1 << 20) entry.reply += data;
          response.write(data);
        });
        answer.on("end", () => response.end());
      },
    );
    upstream.on("error", (error) => { entry.reply = String(error); response.destroy(error); });
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    requests,
    clear: () => requests.splice(0),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
