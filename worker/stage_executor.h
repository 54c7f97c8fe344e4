#pragma once

#include <cstdint>

#include "base/byte_stream.h"
#include "base/status.h"
#include "kernels/core/views.h"
#include "kvstore/bank_store.h"
#include "model/spec/program.h"
#include "worker/step_batch.h"

namespace tandem {

/// What a stage is and can take.
struct StageInfo {
  LayerRange range;
  int64_t boundary_width = 0;  // values of a row that crosses a cut
  int64_t vocab_size = 0;
  int64_t num_banks = 0;
  int64_t context_tokens = 0;
  int64_t max_rows = 0;  // of one step
};

/// One step for a stage. A stage that does not embed takes the rows of the stage before.
struct WorkItem {
  const StepBatch* batch = nullptr;
  ConstRows boundary;  // [num_rows, boundary_width] in host memory; empty if the stage embeds
};

/// Valid until the next submit. In host memory.
struct StageResult {
  ConstRows boundary;  // if the stage does not emit logits
  ConstRows logits;    // [rows that want logits, vocab_size], in row order
};

/// A range of layers, here or on another machine: the one interface between coordinator and layers.
/// Items are executed in the order they are submitted; results come back in that order.
/// Threads: one owner.
class StageExecutor {
 public:
  virtual ~StageExecutor() = default;
  virtual const StageInfo& info() const = 0;

  /// Errors: kInvalidArgument if the batch breaks StepBatch's rules, names a token outside the
  /// vocabulary or runs past the context: nothing ran. kInternal: the stage is lost.
  virtual Status submit(const WorkItem& item) = 0;
  /// The oldest result not yet collected. Errors: kInvalidArgument if there is none.
  virtual Result<StageResult> collect() = 0;

  /// See BankStore for the meaning and the errors of these.
  virtual int64_t length(int64_t bank) const = 0;
  virtual Status reset(int64_t bank) = 0;
  virtual Status truncate(int64_t bank, int64_t length) = 0;
  virtual Status fork(int64_t from, int64_t to) = 0;
  virtual Result<CheckpointId> checkpoint(int64_t bank) = 0;
  virtual Status restore(int64_t bank, CheckpointId id) = 0;
  virtual Status drop_checkpoint(CheckpointId id) = 0;
  virtual Status save(int64_t bank, ByteSink& sink) = 0;
  virtual Status load(int64_t bank, ByteSource& source) = 0;
};

}  // namespace tandem
