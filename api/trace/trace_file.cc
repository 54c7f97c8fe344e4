#include "api/trace/trace_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <sstream>

#include "base/log.h"

namespace tandem::api {
namespace {

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, size);
}

void write_sampling(const ChatRequest& request, std::ostream& out) {
  out << "model: " << request.model << "\nstream: " << request.stream
      << "\ntools: " << request.tools.size() << "\nmessages: " << request.messages.size()
      << "\nmax_tokens: " << request.max_tokens.value_or(-1)
      << "\ntemperature: " << request.sampling.temperature << "\ntop_k: " << request.sampling.top_k
      << "\ntop_p: " << request.sampling.top_p << "\nmin_p: " << request.sampling.min_p
      << "\nseed: " << request.sampling.seed.value_or(0)
      << "\nstream_include_usage: " << request.include_usage << "\n";
}

void write_answer(const Completion& completion, std::ostream& out) {
  out << "--- cache decision ---\nprompt_tokens: " << completion.usage.prompt_tokens
      << "\ncached_tokens: " << completion.usage.cached_tokens
      << "\ncache_source: " << (completion.usage.cached_tokens > 0 ? "memory-token" : "none")
      << "\n";
  for (const Answer& answer : completion.choices) {
    out << "--- parsed message ---\nfinish: " << finish_reason_name(answer.finish)
        << "\ngenerated_tokens: " << completion.usage.completion_tokens
        << "\nreasoning: " << answer.reasoning << "\ncontent: " << answer.content << "\n";
    for (const AnswerCall& call : answer.calls) {
      out << "tool call " << call.id << ": " << call.name << " " << call.arguments << "\n";
    }
  }
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) {
    return Status(StatusCode::kUnavailable, str_cat(path, ": ", errno_text(errno)));
  }
  return std::unique_ptr<TraceFile>(new TraceFile(file));
}

void TraceFile::write(const TraceRecord& record) {
  std::ostringstream out;
  out << "kind: " << record.surface << "\n";
  write_sampling(*record.request, out);
  if (record.completion != nullptr) write_answer(*record.completion, out);
  out << "elapsed_sec: " << record.elapsed_s << "\noutcome: " << record.outcome
      << "\n--- raw request ---\n"
      << record.raw_request << "\n--- rendered prompt ---\n"
      << record.rendered_prompt << "\n--- generated text ---\n"
      << record.sampled_text << "\n--- trace: parser events ---\n"
      << record.events << "===== end =====\n\n";
  const std::string text = out.str();
  const std::lock_guard lock(mutex_);
  std::ostringstream head;
  head << "===== request " << ++num_records_ << " " << time_now() << " =====\n";
  const std::string first = head.str();
  if (std::fwrite(first.data(), 1, first.size(), file_.get()) != first.size() ||
      std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0) {
    log_warning("api", "trace_failed", {{"error", errno_text(errno)}});
  }
}

}  // namespace tandem::api
