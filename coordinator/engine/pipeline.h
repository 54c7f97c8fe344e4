#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "worker/stage_executor.h"

namespace tandem {

using PipelineCheckpoint = std::vector<CheckpointId>;  // one a stage

/// The stages of a model in order, used as one. Nothing else differs between one stage in this
/// process and many elsewhere.
/// Threads: one owner.
class Pipeline {
 public:
  /// Errors: kInvalidArgument if the stages do not cover the layers in order, differ in banks,
  /// context or vocabulary, or take fewer rows than there are banks.
  static Result<Pipeline> create(std::vector<std::unique_ptr<StageExecutor>> stages);

  int64_t num_banks() const { return stages_.front()->info().num_banks; }
  int64_t context_tokens() const { return stages_.front()->info().context_tokens; }
  int64_t vocab_size() const { return stages_.back()->info().vocab_size; }
  int64_t max_rows() const { return max_rows_; }
  int64_t length(int64_t bank) const { return stages_.front()->length(bank); }

  /// Runs one step through all stages. Logits [rows that want them, vocab_size], valid until the
  /// next. Errors: as StageExecutor::submit and collect; kInternal if the logits have another
  /// shape.
  Result<ConstRows> run(const StepBatch& batch);

  /// On every stage; see BankStore. After an error the bank is reset.
  Status reset(int64_t bank);
  Status truncate(int64_t bank, int64_t length);
  Status fork(int64_t from, int64_t to);
  Result<PipelineCheckpoint> checkpoint(int64_t bank);
  Status restore(int64_t bank, const PipelineCheckpoint& checkpoint);
  void drop_checkpoint(const PipelineCheckpoint& checkpoint);
  Status save(int64_t bank, ByteSink& sink);
  Status load(int64_t bank, ByteSource& source);

 private:
  explicit Pipeline(std::vector<std::unique_ptr<StageExecutor>> stages);
  /// Calls fn on every stage; resets the bank everywhere if one fails with anything but kAborted
  /// before the first success.
  template <class Fn>
  Status on_all(int64_t bank, Fn&& fn);

  std::vector<std::unique_ptr<StageExecutor>> stages_;
  int64_t max_rows_ = 0;
};

}  // namespace tandem
