// How one run is answered: as a whole or as a stream.

#include "api/generation/run.h"
#include "api/server/api_server.h"
#include "api/server/replies.h"
#include "base/log.h"

namespace tandem::api {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// How soon a client's disappearance is noticed; well under the 200 ms that work may go on for it.
constexpr milliseconds kPeerCheckInterval{50};
// What an engine refuses, it refuses at once: then the status line can say so.
constexpr milliseconds kStatusWait{250};

const char* phase_name(Phase phase) {
  return kPhaseNames[static_cast<size_t>(phase)];
}

}  // namespace

void ApiServer::note_disconnect(const Run& run) {
  ServerMetrics::add(metrics_.disconnects, run.phase());
  ServerMetrics::add(metrics_.requests, Outcome::kCanceled);
  log_info("api", "client_gone", {{"phase", phase_name(run.phase())}});
}

void ApiServer::answer_whole(HttpExchange& exchange, const SurfaceRequest& request, Run& run) {
  const ErrorStyle style = error_style(exchange.request().path);
  std::vector<Delta> deltas;
  Run::State state = Run::State::kRunning;
  auto checked = steady_clock::now();
  while (state == Run::State::kRunning) {
    state = run.wait(deltas, kPeerCheckInterval);
    const auto now = steady_clock::now();
    if (state != Run::State::kRunning || now - checked < kPeerCheckInterval) continue;
    checked = now;
    if (!exchange.waits_for_reply()) return note_disconnect(run);
  }
  if (state == Run::State::kFailed) {
    ServerMetrics::add(metrics_.requests, Outcome::kFailed);
    return exchange.reply(error_reply(run.error(), style));
  }
  ServerMetrics::add(metrics_.requests, Outcome::kCompleted);
  exchange.reply(json_reply(request.write(run.completion())));
}

void ApiServer::answer_stream(
    HttpExchange& exchange, std::shared_ptr<SurfaceRequest> request, std::shared_ptr<Run> run) {
  auto first = std::make_shared<std::vector<Delta>>();
  if (run->wait(*first, kStatusWait) == Run::State::kFailed) {
    ServerMetrics::add(metrics_.requests, Outcome::kFailed);
    return exchange.reply(error_reply(run->error(), error_style(exchange.request().path)));
  }
  HttpReply reply;
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  exchange.reply(std::move(reply));
  exchange.stream(
      "text/event-stream", [this, &exchange, request, run, first](StreamWriter& writer) {
        stream(exchange, *request, *run, *first, writer);
      });
}

void ApiServer::stream(
    HttpExchange& exchange, const SurfaceRequest& request, Run& run, std::vector<Delta>& deltas,
    StreamWriter& writer) {
  const std::unique_ptr<StreamEncoder> encoder = request.encoder(run.completion().head);
  std::string out;
  encoder->begin(out);
  auto written = steady_clock::now();
  auto checked = written;
  // The first deltas have been waited for already.
  Run::State state = run.state();
  for (;;) {
    for (const Delta& delta : deltas) encoder->delta(delta, out);
    if (state == Run::State::kDone) encoder->end(run.completion(), out);
    if (state == Run::State::kFailed) encoder->error(run.error(), out);
    const auto now = steady_clock::now();
    if (out.empty() && now - written >= options_.heartbeat_interval) encoder->heartbeat(out);
    bool is_there = true;
    if (!out.empty()) {
      is_there = writer.write(out);
      out.clear();
      written = now;
    }
    if (state != Run::State::kRunning) break;
    if (is_there && now - checked >= kPeerCheckInterval) {
      checked = now;
      is_there = exchange.reads_stream();
    }
    if (!is_there) return note_disconnect(run);
    state = run.wait(deltas, kPeerCheckInterval);
  }
  ServerMetrics::add(
      metrics_.requests, state == Run::State::kDone ? Outcome::kCompleted : Outcome::kFailed);
}

}  // namespace tandem::api
