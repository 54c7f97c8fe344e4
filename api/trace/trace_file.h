#pragma once

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/generation/answer.h"
#include "api/generation/chat_request.h"
#include "base/status.h"

namespace tandem::api {

/// What a trace says about one request. Everything, word for word: nothing is left out of it.
struct TraceRecord {
  std::string_view surface;
  std::string_view raw_request;
  std::string_view rendered_prompt;
  std::string_view sampled_text;
  std::string_view events;  // lines
  std::string_view outcome;
  const ChatRequest* request = nullptr;
  const Completion* completion = nullptr;  // null if it was not completed
  double elapsed_s = 0;
};

/// The file of --trace. Threads: any.
class TraceFile {
 public:
  /// Appends to `path`. Errors: kUnavailable names the file.
  static Result<std::unique_ptr<TraceFile>> open(const std::string& path);

  /// Writes one record in one piece; records of requests that ran together do not mix.
  void write(const TraceRecord& record);

 private:
  struct Close {
    void operator()(std::FILE* file) const { (void)std::fclose(file); }
  };
  explicit TraceFile(std::FILE* file) : file_(file) {}

  std::unique_ptr<std::FILE, Close> file_;
  std::mutex mutex_;
  int64_t num_records_ = 0;
};

}  // namespace tandem::api
