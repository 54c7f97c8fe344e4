#include "worker/local_stage.h"

#include <algorithm>
#include <cstring>

#include "base/limits.h"

namespace tandem {
namespace {

Status check_options(const LocalStageOptions& options) {
  TANDEM_REQUIRE(
      options.max_rows >= 1 && options.max_rows <= kChunkTokensMax,
      str_cat("a step has 1 to ", kChunkTokensMax, " rows, not ", options.max_rows));
  TANDEM_REQUIRE(
      options.state_dtype == DType::kF32 || options.state_dtype == DType::kF16 ||
          options.state_dtype == DType::kBF16,
      str_cat("state is stored as F32, F16 or BF16, not ", dtype_name(options.state_dtype)));
  return {};
}

}  // namespace

Result<std::unique_ptr<LocalStage>> LocalStage::create(
    std::shared_ptr<const Model> model, std::shared_ptr<const GgufFile> file,
    const LayerRange& range, const LocalStageOptions& options, ThreadPool& pool) {
  TANDEM_TRY(check_options(options));
  TANDEM_TRY_ASSIGN(Program program, model->program(range));
  TANDEM_TRY_ASSIGN(const TensorTable tensors, bind_tensors(model->tensors(), *file, range));
  TANDEM_TRY(model->check_contents(tensors));
  std::unique_ptr<Allocator> allocator = host_allocator();
  TANDEM_TRY_ASSIGN(
      BankStore banks,
      BankStore::create(
          model->state(range, options.state_dtype), {options.context_tokens, options.rewind_tokens},
          options.num_banks, *allocator));
  TANDEM_TRY_ASSIGN(
      ValueTable values, ValueTable::create(program.values, options.max_rows, *allocator));
  WeightTable weights = map_weights(model->tensors(), tensors);
  std::unique_ptr<LocalStage> stage(new LocalStage(
      std::move(model), std::move(file), std::move(allocator), std::move(program), std::move(banks),
      std::move(values), options, pool));
  stage->weights_ = std::move(weights);
  return stage;
}

LocalStage::LocalStage(
    std::shared_ptr<const Model> model, std::shared_ptr<const GgufFile> file,
    std::unique_ptr<Allocator> allocator, Program program, BankStore banks, ValueTable values,
    const LocalStageOptions& options, ThreadPool& pool)
    : model_(std::move(model)),
      file_(std::move(file)),
      allocator_(std::move(allocator)),
      program_(std::move(program)),
      banks_(std::move(banks)),
      values_(std::move(values)),
      arrays_(options.max_rows) {
  const ModelSpec& spec = model_->spec();
  info_.range = program_.range;
  info_.boundary_width = spec.num_streams * spec.hidden_dim;
  info_.vocab_size = spec.vocab_size;
  info_.num_banks = options.num_banks;
  info_.context_tokens = options.context_tokens;
  info_.max_rows = options.max_rows;
  exec_.device = Device::kCpu;
  exec_.numerics = options.numerics;
  exec_.pool = &pool;
  exec_.scratch = &scratch_;
  parts_.program = &program_;
  parts_.weights = &weights_;
  parts_.banks = &banks_;
  parts_.values = &values_;
  for (const RotarySpec& rotary : program_.rotaries) {
    parts_.rotaries.push_back({rotary.frequencies.data(), rotary.dim});
  }
}

Status LocalStage::submit(const WorkItem& item) {
  TANDEM_REQUIRE(!has_result_, "collect the result of the last step first");
  TANDEM_TRY(arrays_.fill(item.batch->rows, banks_, info_.vocab_size));
  const StepRows step = arrays_.view();
  const Rows streams = values_.rows(program_.streams, step.num_rows);
  if (!program_.range.embeds) {
    TANDEM_REQUIRE(
        item.boundary.rows == step.num_rows && item.boundary.cols == info_.boundary_width,
        str_cat(
            "boundary is [", item.boundary.rows, ", ", item.boundary.cols, "], needs [",
            step.num_rows, ", ", info_.boundary_width, "]"));
    for (int64_t t = 0; t < step.num_rows; ++t) {
      std::copy_n(item.boundary.row(t), info_.boundary_width, streams.row(t));
    }
  }
  Rows logits;
  if (program_.range.emits_logits) {
    TANDEM_TRY_ASSIGN(logits, logits_for(step.num_logits));
  }
  TANDEM_TRY(run_program(exec_, parts_, step, logits, observer_));
  if (after_step_ != nullptr) (*after_step_)();
  for (const Segment& segment : arrays_.segments()) banks_.advance(segment.bank, segment.num_rows);
  result_ = {};
  if (program_.range.emits_logits) {
    result_.logits = logits;
  } else {
    result_.boundary = streams;
  }
  has_result_ = true;
  return {};
}

Result<Rows> LocalStage::logits_for(int64_t num_rows) {
  if (num_rows > logits_rows_) {
    logits_ =
        allocator_->allocate(static_cast<size_t>(num_rows * info_.vocab_size) * sizeof(float));
    logits_rows_ = logits_ == nullptr ? 0 : num_rows;
    if (logits_ == nullptr) {
      return Status(
          StatusCode::kResourceExhausted,
          str_cat("no memory for the logits of ", num_rows, " rows"));
    }
  }
  float* data = logits_ == nullptr ? nullptr : reinterpret_cast<float*>(logits_->data());
  return Rows{data, num_rows, info_.vocab_size, info_.vocab_size};
}

Result<StageResult> LocalStage::collect() {
  TANDEM_REQUIRE(has_result_, "no step is in flight");
  has_result_ = false;
  return result_;
}

Status LocalStage::check_bank(int64_t bank) const {
  TANDEM_REQUIRE(
      bank >= 0 && bank < info_.num_banks,
      str_cat("bank ", bank, ", this stage has ", info_.num_banks));
  return {};
}

Status LocalStage::reset(int64_t bank) {
  TANDEM_TRY(check_bank(bank));
  banks_.reset(bank);
  return {};
}

Status LocalStage::truncate(int64_t bank, int64_t length) {
  TANDEM_TRY(check_bank(bank));
  return banks_.truncate(bank, length);
}

Status LocalStage::fork(int64_t from, int64_t to) {
  TANDEM_TRY(check_bank(from));
  TANDEM_TRY(check_bank(to));
  return banks_.fork(from, to);
}

Result<CheckpointId> LocalStage::checkpoint(int64_t bank) {
  TANDEM_TRY(check_bank(bank));
  return banks_.checkpoint(bank);
}

Status LocalStage::restore(int64_t bank, CheckpointId id) {
  TANDEM_TRY(check_bank(bank));
  return banks_.restore(bank, id);
}

Status LocalStage::drop_checkpoint(CheckpointId id) {
  banks_.drop_checkpoint(id);
  return {};
}

Status LocalStage::save(int64_t bank, ByteSink& sink) {
  TANDEM_TRY(check_bank(bank));
  return banks_.save(bank, sink);
}

Status LocalStage::load(int64_t bank, ByteSource& source) {
  TANDEM_TRY(check_bank(bank));
  return banks_.load(bank, source);
}

}  // namespace tandem
