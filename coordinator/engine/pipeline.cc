#include "coordinator/engine/pipeline.h"

#include <algorithm>

namespace tandem {

Result<Pipeline> Pipeline::create(std::vector<std::unique_ptr<StageExecutor>> stages) {
  TANDEM_REQUIRE(!stages.empty(), "a pipeline needs at least one stage");
  const StageInfo& first = stages.front()->info();
  TANDEM_REQUIRE(first.range.embeds, "the first stage does not embed");
  TANDEM_REQUIRE(stages.back()->info().range.emits_logits, "the last stage emits no logits");
  for (size_t i = 1; i < stages.size(); ++i) {
    const StageInfo& before = stages[i - 1]->info();
    const StageInfo& info = stages[i]->info();
    TANDEM_REQUIRE(
        info.range.begin == before.range.end,
        str_cat("stage ", i, " starts at layer ", info.range.begin, ", not ", before.range.end));
    TANDEM_REQUIRE(
        info.num_banks == first.num_banks && info.context_tokens == first.context_tokens &&
            info.vocab_size == first.vocab_size && info.boundary_width == first.boundary_width,
        str_cat("stage ", i, " differs from the first in banks, context, vocabulary or width"));
  }
  Pipeline made(std::move(stages));
  TANDEM_REQUIRE(
      made.max_rows() >= made.num_banks(),
      str_cat(
          "a step takes ", made.max_rows(), " rows, fewer than the ", made.num_banks(),
          " banks; raise --chunk"));
  return made;
}

Pipeline::Pipeline(std::vector<std::unique_ptr<StageExecutor>> stages)
    : stages_(std::move(stages)), max_rows_(stages_.front()->info().max_rows) {
  for (const auto& stage : stages_) max_rows_ = std::min(max_rows_, stage->info().max_rows);
}

Result<ConstRows> Pipeline::run(const StepBatch& batch) {
  StageResult result;
  for (const auto& stage : stages_) {
    TANDEM_TRY(stage->submit({&batch, result.boundary}));
    TANDEM_TRY_ASSIGN(result, stage->collect());
  }
  const auto wanted = std::count_if(
      batch.rows.begin(), batch.rows.end(), [](const StepRow& row) { return row.wants_logits; });
  if (result.logits.rows != wanted || (wanted > 0 && result.logits.cols != vocab_size())) {
    return Status(
        StatusCode::kInternal,
        str_cat(
            "the last stage returned logits [", result.logits.rows, ", ", result.logits.cols,
            "], asked for [", wanted, ", ", vocab_size(), "]"));
  }
  return result.logits;
}

template <class Fn>
Status Pipeline::on_all(int64_t bank, Fn&& fn) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    Status status = fn(*stages_[i], i);
    if (status.ok()) continue;
    // A refusal by the first stage left everything as it was; later the stages disagree.
    if (i == 0 && status.code() == StatusCode::kAborted) return status;
    (void)reset(bank);  // `status` says more; a stage that cannot reset fails the next step
    return status;
  }
  return {};
}

Status Pipeline::reset(int64_t bank) {
  Status first_error;
  for (const auto& stage : stages_) {
    const Status status = stage->reset(bank);
    if (first_error.ok()) first_error = status;
  }
  return first_error;
}

Status Pipeline::truncate(int64_t bank, int64_t length) {
  return on_all(bank, [&](StageExecutor& stage, size_t) { return stage.truncate(bank, length); });
}

Status Pipeline::fork(int64_t from, int64_t to) {
  return on_all(to, [&](StageExecutor& stage, size_t) { return stage.fork(from, to); });
}

Result<PipelineCheckpoint> Pipeline::checkpoint(int64_t bank) {
  PipelineCheckpoint made;
  for (const auto& stage : stages_) {
    const Result<CheckpointId> id = stage->checkpoint(bank);
    if (!id.ok()) {
      drop_checkpoint(made);
      return id.status();
    }
    made.push_back(*id);
  }
  return made;
}

Status Pipeline::restore(int64_t bank, const PipelineCheckpoint& checkpoint) {
  return on_all(
      bank, [&](StageExecutor& stage, size_t i) { return stage.restore(bank, checkpoint[i]); });
}

void Pipeline::drop_checkpoint(const PipelineCheckpoint& checkpoint) {
  for (size_t i = 0; i < checkpoint.size(); ++i) {
    // A lost stage has nothing to drop; the next step reports the loss.
    (void)stages_[i]->drop_checkpoint(checkpoint[i]);
  }
}

Status Pipeline::save(int64_t bank, ByteSink& sink) {
  for (const auto& stage : stages_) TANDEM_TRY(stage->save(bank, sink));
  return {};
}

Status Pipeline::load(int64_t bank, ByteSource& source) {
  return on_all(bank, [&](StageExecutor& stage, size_t) { return stage.load(bank, source); });
}

}  // namespace tandem
