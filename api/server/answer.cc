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

void ApiServer::note_end(const HttpExchange& exchange, const Job& job, Outcome outcome) {
  ServerMetrics::add(metrics_.requests, outcome);
  if (trace_ == nullptr) return;
  TraceRecord record;
  record.surface = kSurfaceNames[static_cast<size_t>(job.surface->kind())];
  record.raw_request = exchange.request().body;
  record.rendered_prompt = job.rendered_prompt;
  record.sampled_text = job.run->sampled_text();
  record.events = job.run->event_log();
  record.outcome = kOutcomeNames[static_cast<size_t>(outcome)];
  record.request = &job.request->chat;
  if (outcome == Outcome::kCompleted) record.completion = &job.run->completion();
  record.elapsed_s = std::chrono::duration<double>(steady_clock::now() - job.started).count();
  trace_->write(record);
}

void ApiServer::note_disconnect(const HttpExchange& exchange, const Job& job) {
  ServerMetrics::add(metrics_.disconnects, job.run->phase());
  log_info("api", "client_gone", {{"phase", phase_name(job.run->phase())}});
  note_end(exchange, job, Outcome::kCanceled);
}

void ApiServer::answer_whole(HttpExchange& exchange, Job& job) {
  Run& run = *job.run;
  Run::State state = Run::State::kRunning;
  auto checked = steady_clock::now();
  while (state == Run::State::kRunning) {
    state = run.wait(job.deltas, kPeerCheckInterval);
    const auto now = steady_clock::now();
    if (state != Run::State::kRunning || now - checked < kPeerCheckInterval) continue;
    checked = now;
    if (!exchange.waits_for_reply()) return note_disconnect(exchange, job);
  }
  if (state == Run::State::kFailed) {
    note_end(exchange, job, Outcome::kFailed);
    return exchange.reply(error_reply(run.error(), job.surface->error_style()));
  }
  note_end(exchange, job, Outcome::kCompleted);
  exchange.reply(json_reply(job.request->write(run.completion())));
}

void ApiServer::answer_stream(HttpExchange& exchange, std::shared_ptr<Job> job) {
  if (job->run->wait(job->deltas, kStatusWait) == Run::State::kFailed) {
    note_end(exchange, *job, Outcome::kFailed);
    return exchange.reply(error_reply(job->run->error(), job->surface->error_style()));
  }
  HttpReply reply;
  reply.headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}};
  exchange.reply(std::move(reply));
  exchange.stream(
      "text/event-stream", [this, &exchange, job = std::move(job)](StreamWriter& writer) {
        stream(exchange, *job, writer);
      });
}

void ApiServer::stream(HttpExchange& exchange, Job& job, StreamWriter& writer) {
  Run& run = *job.run;
  const std::unique_ptr<StreamEncoder> encoder = job.request->encoder(run.completion().head);
  std::string out;
  encoder->begin(out);
  auto written = steady_clock::now();
  auto checked = written;
  // The first deltas have been waited for already.
  Run::State state = run.state();
  for (;;) {
    for (const Delta& delta : job.deltas) encoder->delta(delta, out);
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
    if (!is_there) return note_disconnect(exchange, job);
    state = run.wait(job.deltas, kPeerCheckInterval);
  }
  note_end(exchange, job, state == Run::State::kDone ? Outcome::kCompleted : Outcome::kFailed);
}

}  // namespace tandem::api
