#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/model.h"
#include "tests/support/memory_stream.h"
#include "tests/support/tensor.h"
#include "worker/local_stage.h"

namespace tandem::test {

/// A model file, opened; the test fails if that is impossible.
struct OpenModel {
  std::shared_ptr<const GgufFile> file;
  std::shared_ptr<const Model> model;
};
OpenModel open_test_model(const std::string& path);
/// models/nano-q4_k.gguf
OpenModel open_nano();

/// Part of a batch: tokens that follow what the bank holds.
struct Feed {
  int32_t bank = 0;
  std::vector<int32_t> tokens;
};

/// The layers of a model as local stages cut before the layers `cuts`, driven as one. Any error
/// fails the test.
class Stages {
 public:
  Stages(
      const OpenModel& opened, const std::vector<int32_t>& cuts, const LocalStageOptions& options,
      int num_threads = 2);

  /// One step; logits of every row.
  Tensor step(const std::vector<Feed>& feeds);
  /// The tokens of one bank in steps of at most `chunk` tokens; logits of every row.
  Tensor feed(int32_t bank, const std::vector<int32_t>& tokens, int64_t chunk);

  size_t num_stages() const { return stages_.size(); }
  LocalStage& stage(size_t idx) { return *stages_[idx]; }
  int64_t length(int64_t bank) const { return stages_[0]->length(bank); }
  /// The same call on every stage, from the last to the first; the first error.
  template <class Fn>
  Status each(const Fn& fn) {
    for (const auto& stage : stages_) {
      const Status status = fn(*stage);
      if (!status.ok()) return status;
    }
    return {};
  }

 private:
  ThreadPool pool_;
  std::vector<std::unique_ptr<LocalStage>> stages_;
  int64_t vocab_size_ = 0;
};

/// tokens[begin, end)
std::vector<int32_t> slice(const std::vector<int32_t>& tokens, size_t begin, size_t end);

}  // namespace tandem::test
