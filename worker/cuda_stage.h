#pragma once

#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/scratch.h"
#include "kernels/cuda/device.h"
#include "model/spec/model.h"
#include "worker/device_weights.h"
#include "worker/executor.h"
#include "worker/local_stage.h"
#include "worker/stage_executor.h"
#include "worker/step_arrays.h"

namespace tandem {

struct CudaStageOptions {
  LocalStageOptions stage;
  int device = 0;
  bool use_two_queues = true;  // for steps of few rows; see SideQueue
  bool use_graphs = true;      // steps of few rows are recorded once and replayed
  LoadProgress progress;       // of the weights
};

/// A range of layers on one GPU. submit() queues a step and returns; collect() waits for it.
/// Threads: one owner, which made it.
class CudaStage final : public StageExecutor {
 public:
  ~CudaStage() override;

  /// Errors: those of LocalStage::create; kUnavailable, kNotFound or kUnimplemented without a
  /// usable GPU.
  static Result<std::unique_ptr<CudaStage>> create(
      std::shared_ptr<const Model> model, WeightSource& source, const LayerRange& range,
      const CudaStageOptions& options);

  /// The same with the weights of a file, which may be closed afterwards.
  static Result<std::unique_ptr<CudaStage>> create(
      std::shared_ptr<const Model> model, const GgufFile& file, const LayerRange& range,
      const CudaStageOptions& options);

  const StageInfo& info() const override { return info_; }
  Status submit(const WorkItem& item) override;
  Result<StageResult> collect() override;
  int64_t length(int64_t bank) const override { return banks_->length(bank); }
  Status reset(int64_t bank) override;
  Status truncate(int64_t bank, int64_t length) override;
  Status fork(int64_t from, int64_t to) override;
  Result<CheckpointId> checkpoint(int64_t bank) override;
  Status restore(int64_t bank, CheckpointId id) override;
  Status drop_checkpoint(CheckpointId id) override;
  Status save(int64_t bank, ByteSink& sink) override;
  Status load(int64_t bank, ByteSource& source) override;

  /// Milliseconds that each operation of the program takes for such a step, the median of
  /// `num_runs`, launch gaps included. The state's rows of the step are overwritten; no bank grows.
  Result<std::vector<float>> time_ops(const StepBatch& batch, int num_runs);

  const Program& program() const { return program_; }
  const WeightTable& weights() const { return weights_->table(); }
  const cuda::Stream& stream() const { return stream_; }
  BankStore& banks() { return *banks_; }

  struct MemoryUse {
    int64_t weights_bytes = 0;
    int64_t state_bytes = 0;
    int64_t work_bytes = 0;  // values, scratch memory, step arrays, logits
  };
  MemoryUse memory_use() const;

 private:
  /// What a recorded step depends on besides the contents of its arrays.
  struct GraphKey {
    int64_t num_rows;
    int64_t num_segments;
    int64_t num_logits;
    int64_t bucket;       // how many of bucket_starts_ the longest row has reached
    int64_t array_bytes;  // RunPlace
    int64_t first_logits;

    friend auto operator<=>(const GraphKey&, const GraphKey&) = default;
  };

  /// What the runs before took of a step's rows, arrays and logits.
  struct RunPlace {
    int64_t rows = 0;
    int64_t logits = 0;
    int64_t array_bytes = 0;
  };

  /// Its stream and scratch memory are its own, so that the two queues never share a buffer.
  class Side;

  CudaStage(std::shared_ptr<const Model> model, Program program, cuda::Stream stream);
  Status init(WeightSource& source, const CudaStageOptions& options);
  Status check_bank(int64_t bank) const;
  /// Copies arrays to the device, `offset` bytes into those of the step, and gives views of them
  /// there.
  Result<StepRows> upload_step(const StepRows& host, int64_t offset);
  Status ensure_logits(int64_t num_rows);
  Rows logits_at(int64_t first, int64_t count) const;
  /// Queues rows of one phase, and moves `place` behind them. A step that has both phases is a run
  /// for each, so that a row's result does not depend on which rows it shares a step with.
  Status queue_run(std::span<const StepRow> rows, ConstRows boundary, RunPlace& place);
  Status run(Phase phase, const StepRows& step, const RunPlace& place);
  GraphKey key_of(const StepRows& host, const RunPlace& place) const;

  std::shared_ptr<const Model> model_;
  Program program_;
  cuda::Stream stream_;
  std::unique_ptr<Allocator> device_ = cuda::device_allocator();
  std::unique_ptr<Allocator> pinned_ = cuda::pinned_allocator();
  Scratch scratch_{*device_};
  std::optional<DeviceWeights> weights_;
  std::optional<BankStore> banks_;
  std::optional<ValueTable> values_;
  std::optional<StepArrays> arrays_;
  std::vector<std::unique_ptr<Memory>> rotary_memory_;
  std::unique_ptr<Memory> step_device_, step_host_;
  std::unique_ptr<Memory> logits_device_, logits_host_;
  std::unique_ptr<Memory> boundary_host_;
  int64_t logits_rows_ = 0;
  std::vector<int64_t> bucket_starts_;  // positions where a step's operations change, ascending
  std::map<GraphKey, cuda::Graph> graphs_;
  bool use_graphs_ = true;
  bool use_two_queues_ = true;
  StageInfo info_;
  Exec exec_;
  ExecutorParts parts_;
  std::unique_ptr<Side> side_;
  StageResult result_;
  bool has_result_ = false;
};

}  // namespace tandem
