#include "worker/cuda_stage.h"

#include <algorithm>
#include <cstring>

#include "base/limits.h"

namespace tandem {
namespace {

constexpr int64_t kDecodeRowsMax = 16;  // of one run; recorded
constexpr size_t kGraphsMax = 128;
constexpr int64_t kLogitsRowsMin = 16;

Status no_memory(const char* what, int64_t bytes) {
  return {
      StatusCode::kResourceExhausted,
      str_cat("no device memory for ", bytes, " bytes of ", what, "; lower --ctx or --chunk")};
}

Result<std::unique_ptr<Memory>> take(Allocator& allocator, const char* what, int64_t bytes) {
  auto memory = allocator.allocate(static_cast<size_t>(bytes));
  if (memory == nullptr) return no_memory(what, bytes);
  return memory;
}

// The arrays of a step, one after the other, each on 16 bytes.
struct StepLayout {
  int64_t token, pos, segment, logit_rows, segments, bytes;

  explicit StepLayout(const StepRows& step) {
    int64_t at = 0;
    const auto place = [&](int64_t count, int64_t size) {
      const int64_t begin = at;
      at += (count * size + 15) / 16 * 16;
      return begin;
    };
    token = place(step.num_rows, sizeof(int32_t));
    pos = place(step.num_rows, sizeof(int32_t));
    segment = place(step.num_rows, sizeof(int32_t));
    logit_rows = place(step.num_logits, sizeof(int32_t));
    segments = place(step.num_segments, sizeof(Segment));
    bytes = at;
  }

  /// Of the arrays of all runs of a step, however it is split: a run of r rows takes at most
  /// 4 * (4 r + 12) bytes for its integers and 16 r for its segments.
  static constexpr int64_t bytes_max(int64_t num_rows) { return num_rows * 80; }
};
static_assert(sizeof(Segment) == 16);

/// The rows from `begin` on that run together: of one phase, and of decode as many as one pass over
/// the weights takes.
std::span<const StepRow> next_run(std::span<const StepRow> rows, size_t begin) {
  const Phase phase = rows[begin].phase;
  const size_t rows_max =
      phase == Phase::kDecode ? static_cast<size_t>(kDecodeRowsMax) : rows.size();
  size_t end = begin + 1;
  while (end < rows.size() && end - begin < rows_max && rows[end].phase == phase) ++end;
  return rows.subspan(begin, end - begin);
}

template <class T>
void copy_in(std::byte* to, const T* from, int64_t count) {
  if (count > 0) std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
}

}  // namespace

class CudaStage::Side final : public SideQueue {
 public:
  static Result<std::unique_ptr<Side>> create(
      const Exec& main, const cuda::Stream& main_stream, Allocator& allocator) {
    TANDEM_TRY_ASSIGN(cuda::Stream stream, cuda::Stream::create());
    TANDEM_TRY_ASSIGN(cuda::Event forked, cuda::Event::create());
    TANDEM_TRY_ASSIGN(cuda::Event joined, cuda::Event::create());
    return std::unique_ptr<Side>(new Side(
        main, main_stream, std::move(stream), std::move(forked), std::move(joined), allocator));
  }

  const Exec& exec() const override { return exec_; }
  Status fork() override {
    TANDEM_TRY(forked_.record(main_stream_));
    return stream_.wait(forked_);
  }
  Status join() override {
    TANDEM_TRY(joined_.record(stream_));
    return main_stream_.wait(joined_);
  }
  size_t bytes() const { return scratch_.capacity_bytes(); }

 private:
  Side(
      const Exec& main, const cuda::Stream& main_stream, cuda::Stream stream, cuda::Event forked,
      cuda::Event joined, Allocator& allocator)
      : main_stream_(main_stream),
        stream_(std::move(stream)),
        forked_(std::move(forked)),
        joined_(std::move(joined)),
        scratch_(allocator),
        exec_(main) {
    exec_.stream = stream_.get();
    exec_.scratch = &scratch_;
  }

  const cuda::Stream& main_stream_;
  cuda::Stream stream_;
  cuda::Event forked_, joined_;
  Scratch scratch_;
  Exec exec_;
};

CudaStage::~CudaStage() = default;

CudaStage::CudaStage(std::shared_ptr<const Model> model, Program program, cuda::Stream stream)
    : model_(std::move(model)), program_(std::move(program)), stream_(std::move(stream)) {}

Result<std::unique_ptr<CudaStage>> CudaStage::create(
    std::shared_ptr<const Model> model, WeightSource& source, const LayerRange& range,
    const CudaStageOptions& options) {
  TANDEM_REQUIRE(
      options.stage.max_rows >= 1 && options.stage.max_rows <= kChunkTokensMax,
      str_cat("a step has 1 to ", kChunkTokensMax, " rows, not ", options.stage.max_rows));
  TANDEM_TRY_ASSIGN(Program program, model->program(range));
  TANDEM_TRY(cuda::use_device(options.device));
  TANDEM_TRY_ASSIGN(cuda::Stream stream, cuda::Stream::create());
  std::unique_ptr<CudaStage> stage(
      new CudaStage(std::move(model), std::move(program), std::move(stream)));
  TANDEM_TRY(stage->init(source, options));
  return stage;
}

Result<std::unique_ptr<CudaStage>> CudaStage::create(
    std::shared_ptr<const Model> model, const GgufFile& file, const LayerRange& range,
    const CudaStageOptions& options) {
  TANDEM_TRY(cuda::use_device(options.device));
  TANDEM_TRY_ASSIGN(const TensorTable tensors, bind_tensors(model->tensors(), file, range));
  TANDEM_TRY(model->check_contents(tensors));
  TANDEM_TRY_ASSIGN(auto source, FileWeightSource::create(model->tensors(), tensors));
  return create(std::move(model), *source, range, options);
}

Status CudaStage::init(WeightSource& source, const CudaStageOptions& options) {
  const ModelSpec& spec = model_->spec();
  const LocalStageOptions& stage = options.stage;
  info_.range = program_.range;
  info_.boundary_width = spec.num_streams * spec.hidden_dim;
  info_.vocab_size = spec.vocab_size;
  info_.num_banks = stage.num_banks;
  info_.context_tokens = stage.context_tokens;
  info_.max_rows = stage.max_rows;
  use_graphs_ = options.use_graphs;
  use_two_queues_ = options.use_two_queues;

  TANDEM_TRY_ASSIGN(
      weights_,
      DeviceWeights::load(model_->tensors(), program_.range, source, *device_, options.progress));
  TANDEM_TRY_ASSIGN(
      banks_, BankStore::create(
                  model_->state(program_.range, stage.state_dtype),
                  {stage.context_tokens, stage.rewind_tokens}, stage.num_banks, *device_));
  TANDEM_TRY_ASSIGN(values_, ValueTable::create(program_.values, stage.max_rows, *device_));
  arrays_.emplace(stage.max_rows);
  const int64_t step_bytes = StepLayout::bytes_max(stage.max_rows);
  TANDEM_TRY_ASSIGN(step_device_, take(*device_, "step arrays", step_bytes));
  TANDEM_TRY_ASSIGN(step_host_, take(*pinned_, "step arrays", step_bytes));
  if (!program_.range.embeds || !program_.range.emits_logits) {
    const int64_t bytes =
        stage.max_rows * info_.boundary_width * static_cast<int64_t>(sizeof(float));
    TANDEM_TRY_ASSIGN(boundary_host_, take(*pinned_, "boundary rows", bytes));
  }
  if (program_.range.emits_logits) {
    TANDEM_TRY(ensure_logits(std::min(stage.max_rows, kLogitsRowsMin)));
  }
  for (const RotarySpec& rotary : program_.rotaries) {
    const size_t bytes = rotary.frequencies.size() * sizeof(float);
    TANDEM_TRY_ASSIGN(
        auto memory, take(*device_, "rotary frequencies", static_cast<int64_t>(bytes)));
    TANDEM_TRY(device_->copy(
        memory->data(), reinterpret_cast<const std::byte*>(rotary.frequencies.data()), bytes));
    parts_.rotaries.push_back({reinterpret_cast<const float*>(memory->data()), rotary.dim});
    rotary_memory_.push_back(std::move(memory));
  }
  for (const Op& op : program_.ops) {
    if (const auto* select = std::get_if<IndexSelectOp>(&op.body)) {
      // From here on there are more rows than are taken, so that they are scored.
      bucket_starts_.push_back((select->top_k + 1) * select->ratio - 1);
    }
  }
  std::sort(bucket_starts_.begin(), bucket_starts_.end());
  bucket_starts_.erase(
      std::unique(bucket_starts_.begin(), bucket_starts_.end()), bucket_starts_.end());

  exec_.device = Device::kCuda;
  exec_.numerics = stage.numerics;
  exec_.stream = stream_.get();
  exec_.scratch = &scratch_;
  parts_.program = &program_;
  parts_.weights = &weights_->table();
  parts_.banks = &*banks_;
  parts_.values = &*values_;
  TANDEM_TRY_ASSIGN(side_, Side::create(exec_, stream_, *device_));
  return {};
}

Status CudaStage::ensure_logits(int64_t num_rows) {
  if (num_rows <= logits_rows_) return {};
  graphs_.clear();  // they hold the old place
  const int64_t bytes = num_rows * info_.vocab_size * static_cast<int64_t>(sizeof(float));
  logits_rows_ = 0;
  TANDEM_TRY_ASSIGN(logits_device_, take(*device_, "logits", bytes));
  TANDEM_TRY_ASSIGN(logits_host_, take(*pinned_, "logits", bytes));
  logits_rows_ = num_rows;
  return {};
}

Result<StepRows> CudaStage::upload_step(const StepRows& host, int64_t offset) {
  const StepLayout layout(host);
  std::byte* from = step_host_->data() + offset;
  std::byte* to = step_device_->data() + offset;
  copy_in(from + layout.token, host.token, host.num_rows);
  copy_in(from + layout.pos, host.pos, host.num_rows);
  copy_in(from + layout.segment, host.segment, host.num_rows);
  copy_in(from + layout.logit_rows, host.logit_rows, host.num_logits);
  copy_in(from + layout.segments, host.segments, host.num_segments);
  TANDEM_TRY(cuda::copy_async(to, from, static_cast<size_t>(layout.bytes), stream_));
  const auto ints = [&](int64_t at) { return reinterpret_cast<const int32_t*>(to + at); };
  StepRows step = host;
  step.token = ints(layout.token);
  step.pos = ints(layout.pos);
  step.segment = ints(layout.segment);
  step.logit_rows = ints(layout.logit_rows);
  step.segments = reinterpret_cast<const Segment*>(to + layout.segments);
  return step;
}

CudaStage::GraphKey CudaStage::key_of(const StepRows& host, const RunPlace& place) const {
  int64_t end = 0;
  for (int64_t i = 0; i < host.num_segments; ++i) {
    const Segment& segment = host.host_segments[i];
    end = std::max(end, int64_t{segment.first_pos} + segment.num_rows);
  }
  const auto reached = std::lower_bound(bucket_starts_.begin(), bucket_starts_.end(), end);
  return {host.num_rows,     host.num_segments, host.num_logits, reached - bucket_starts_.begin(),
          place.array_bytes, place.logits};
}

Rows CudaStage::logits_at(int64_t first, int64_t count) const {
  if (!program_.range.emits_logits) return {};
  return {
      reinterpret_cast<float*>(logits_device_->data()) + first * info_.vocab_size, count,
      info_.vocab_size, info_.vocab_size};
}

Status CudaStage::run(Phase phase, const StepRows& step, const RunPlace& place) {
  const Rows logits = logits_at(place.logits, step.num_logits);
  Exec exec = exec_;
  exec.phase = phase;
  const bool is_decode = phase == Phase::kDecode;
  // A step of few rows leaves most of the device idle; a long one fills it without a second queue.
  parts_.side = use_two_queues_ && is_decode ? side_.get() : nullptr;
  const auto queue_work = [&] { return run_program(exec, parts_, step, logits); };
  if (!use_graphs_ || !is_decode) return queue_work();
  const GraphKey key = key_of(step, place);
  const auto found = graphs_.find(key);
  if (found != graphs_.end()) return found->second.launch(stream_);
  // The direct run takes what scratch memory is missing, which a recording could not.
  TANDEM_TRY(queue_work());
  if (graphs_.size() >= kGraphsMax) graphs_.clear();
  TANDEM_TRY_ASSIGN(cuda::Graph graph, cuda::Graph::capture(stream_, queue_work));
  graphs_.emplace(key, std::move(graph));
  return {};
}

Status CudaStage::queue_run(std::span<const StepRow> rows, ConstRows boundary, RunPlace& place) {
  TANDEM_TRY(arrays_->fill(rows, *banks_, info_.vocab_size));
  const StepRows host = arrays_->view();
  TANDEM_TRY_ASSIGN(const StepRows step, upload_step(host, place.array_bytes));
  const Rows streams = values_->rows(program_.streams, host.num_rows);
  const auto boundary_bytes =
      static_cast<size_t>(host.num_rows * info_.boundary_width) * sizeof(float);
  auto* staged = boundary_host_ == nullptr ? nullptr
                                           : reinterpret_cast<float*>(boundary_host_->data()) +
                                                 place.rows * info_.boundary_width;
  if (!program_.range.embeds) {
    for (int64_t t = 0; t < host.num_rows; ++t) {
      std::copy_n(
          boundary.row(place.rows + t), info_.boundary_width, staged + t * info_.boundary_width);
    }
    TANDEM_TRY(cuda::copy_async(streams.data, staged, boundary_bytes, stream_));
  }
  TANDEM_TRY(run(rows.front().phase, step, place));
  if (!program_.range.emits_logits) {
    TANDEM_TRY(cuda::copy_async(staged, streams.data, boundary_bytes, stream_));
  }
  for (const Segment& segment : arrays_->segments()) {
    banks_->advance(segment.bank, segment.num_rows);
  }
  place.rows += host.num_rows;
  place.logits += host.num_logits;
  place.array_bytes += StepLayout(host).bytes;
  return {};
}

Status CudaStage::submit(const WorkItem& item) {
  TANDEM_REQUIRE(!has_result_, "collect the result of the last step first");
  const std::span<const StepRow> rows = item.batch->rows;
  TANDEM_TRY(arrays_->fill(rows, *banks_, info_.vocab_size));  // all is checked before any row runs
  const StepRows all = arrays_->view();
  const int64_t num_rows = all.num_rows;
  const int64_t num_logits = all.num_logits;
  if (!program_.range.embeds) {
    TANDEM_REQUIRE(
        item.boundary.rows == num_rows && item.boundary.cols == info_.boundary_width,
        str_cat(
            "boundary is [", item.boundary.rows, ", ", item.boundary.cols, "], needs [", num_rows,
            ", ", info_.boundary_width, "]"));
  }
  if (program_.range.emits_logits) TANDEM_TRY(ensure_logits(num_logits));
  RunPlace place;
  while (place.rows < num_rows) {
    TANDEM_TRY(queue_run(next_run(rows, static_cast<size_t>(place.rows)), item.boundary, place));
  }
  result_ = {};
  if (program_.range.emits_logits) {
    const Rows logits = logits_at(0, num_logits);
    const auto bytes = static_cast<size_t>(num_logits * info_.vocab_size) * sizeof(float);
    TANDEM_TRY(cuda::copy_async(logits_host_->data(), logits.data, bytes, stream_));
    result_.logits = {
        reinterpret_cast<const float*>(logits_host_->data()), num_logits, info_.vocab_size,
        info_.vocab_size};
  } else {
    result_.boundary = {
        reinterpret_cast<const float*>(boundary_host_->data()), num_rows, info_.boundary_width,
        info_.boundary_width};
  }
  has_result_ = true;
  return {};
}

Result<StageResult> CudaStage::collect() {
  TANDEM_REQUIRE(has_result_, "no step is in flight");
  has_result_ = false;
  TANDEM_TRY(stream_.synchronize());
  return result_;
}

Result<std::vector<float>> CudaStage::time_ops(const StepBatch& batch, int num_runs) {
  TANDEM_REQUIRE(!has_result_, "collect the result of the last step first");
  TANDEM_REQUIRE(
      program_.range.embeds && program_.range.emits_logits, "only a whole model is timed");
  TANDEM_TRY(arrays_->fill(batch.rows, *banks_, info_.vocab_size));
  const StepRows host = arrays_->view();
  TANDEM_TRY(ensure_logits(host.num_logits));
  TANDEM_TRY_ASSIGN(const StepRows step, upload_step(host, 0));
  const Rows logits = logits_at(0, host.num_logits);
  Exec exec = exec_;
  exec.phase = batch.rows.front().phase;
  parts_.side = nullptr;
  TANDEM_TRY(run_program(exec, parts_, step, logits));

  const size_t num_ops = program_.ops.size();
  std::vector<cuda::Event> events;
  for (size_t i = 0; i <= num_ops; ++i) {
    TANDEM_TRY_ASSIGN(cuda::Event event, cuda::Event::create());
    events.push_back(std::move(event));
  }
  Status recorded;
  const OpObserver before_op = [&](const Op&, size_t idx) {
    if (recorded.ok()) recorded = events[idx].record_in_graph(stream_);
  };
  TANDEM_TRY_ASSIGN(const cuda::Graph graph, cuda::Graph::capture(stream_, [&]() -> Status {
                      TANDEM_TRY(run_program(exec, parts_, step, logits, &before_op));
                      TANDEM_TRY(recorded);
                      return events[num_ops].record_in_graph(stream_);
                    }));
  std::vector<std::vector<float>> samples(num_ops);
  for (int run = 0; run < num_runs; ++run) {
    TANDEM_TRY(graph.launch(stream_));
    TANDEM_TRY(stream_.synchronize());
    for (size_t i = 0; i < num_ops; ++i) {
      TANDEM_TRY_ASSIGN(const float ms, events[i + 1].elapsed_ms_since(events[i]));
      samples[i].push_back(ms);
    }
  }
  std::vector<float> out;
  for (std::vector<float>& of_op : samples) {
    std::nth_element(of_op.begin(), of_op.begin() + num_runs / 2, of_op.end());
    out.push_back(of_op[static_cast<size_t>(num_runs / 2)]);
  }
  return out;
}

CudaStage::MemoryUse CudaStage::memory_use() const {
  MemoryUse use;
  use.weights_bytes = weights_->bytes();
  use.state_bytes = static_cast<int64_t>(banks_->bytes());
  use.work_bytes = static_cast<int64_t>(
      values_->bytes() + scratch_.capacity_bytes() + side_->bytes() + step_device_->size() +
      (logits_device_ == nullptr ? 0 : logits_device_->size()));
  return use;
}

Status CudaStage::check_bank(int64_t bank) const {
  TANDEM_REQUIRE(
      bank >= 0 && bank < info_.num_banks,
      str_cat("bank ", bank, ", this stage has ", info_.num_banks));
  return {};
}

Status CudaStage::reset(int64_t bank) {
  TANDEM_TRY(check_bank(bank));
  banks_->reset(bank);
  return {};
}

Status CudaStage::truncate(int64_t bank, int64_t length) {
  TANDEM_TRY(check_bank(bank));
  return banks_->truncate(bank, length);
}

Status CudaStage::fork(int64_t from, int64_t to) {
  TANDEM_TRY(check_bank(from));
  TANDEM_TRY(check_bank(to));
  return banks_->fork(from, to);
}

Result<CheckpointId> CudaStage::checkpoint(int64_t bank) {
  TANDEM_TRY(check_bank(bank));
  return banks_->checkpoint(bank);
}

Status CudaStage::restore(int64_t bank, CheckpointId id) {
  TANDEM_TRY(check_bank(bank));
  return banks_->restore(bank, id);
}

Status CudaStage::drop_checkpoint(CheckpointId id) {
  banks_->drop_checkpoint(id);
  return {};
}

Status CudaStage::save(int64_t bank, ByteSink& sink) {
  TANDEM_TRY(check_bank(bank));
  return banks_->save(bank, sink);
}

Status CudaStage::load(int64_t bank, ByteSource& source) {
  TANDEM_TRY(check_bank(bank));
  return banks_->load(bank, source);
}

}  // namespace tandem
