// Speed of a made-up model on one GPU: decode at several contexts and batch sizes, prefill, and a
// table of the operations. Needs nothing but the driver.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/worker/op_cost.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/device_weights.h"
#include "worker/cuda_stage.h"
#include "worker/synthetic_weights.h"

namespace tandem::bench {
namespace {

struct Options {
  std::string model = "flash-q2";
  int64_t layers = 0;
  int64_t context = 65536 + 512;
  int64_t chunk = 4096;
  std::vector<int64_t> positions = {2048, 65536};
  std::vector<int64_t> batches = {1, 2, 4, 8, 16};
  std::vector<int64_t> prompts = {8192, 65536};
  int steps = 50;
  bool table = true;
  bool direct = false;
  bool one_queue = false;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class GpuBench {
 public:
  explicit GpuBench(const Options& options) : options_(options) {}

  Status run() {
    TANDEM_TRY_ASSIGN(info_, cuda::device_info(0));
    std::printf(
        "device %s, %d SMs, %.1f GB, %.1f GB free\n", info_.name.c_str(), info_.num_sms,
        static_cast<double>(info_.memory_bytes) * 1e-9,
        static_cast<double>(info_.free_bytes) * 1e-9);
    TANDEM_TRY(load());
    for (const int64_t position : options_.positions) {
      for (const int64_t batch : options_.batches) TANDEM_TRY(time_decode(position, batch));
    }
    if (options_.table) {
      TANDEM_TRY(print_table(options_.positions.front(), options_.batches.front()));
      TANDEM_TRY(print_table(options_.positions.back(), options_.batches.front()));
      TANDEM_TRY(print_table(options_.positions.front(), 8));
    }
    for (const int64_t length : options_.prompts) TANDEM_TRY(time_prefill(length));
    if (options_.table && !options_.prompts.empty()) {
      TANDEM_TRY(print_table(options_.chunk, options_.chunk));
    }
    const CudaStage::MemoryUse use = stage_->memory_use();
    TANDEM_TRY_ASSIGN(const cuda::DeviceInfo after, cuda::device_info(0));
    std::printf(
        "memory: weights %.2f GB, state %.2f GB, work %.2f GB, taken from the device %.2f GB\n",
        static_cast<double>(use.weights_bytes) * 1e-9, static_cast<double>(use.state_bytes) * 1e-9,
        static_cast<double>(use.work_bytes) * 1e-9,
        static_cast<double>(info_.free_bytes - after.free_bytes) * 1e-9);
    return {};
  }

 private:
  Status load() {
    const auto start = std::chrono::steady_clock::now();
    TANDEM_TRY_ASSIGN(
        const SyntheticModel synthetic, make_synthetic_model(options_.model, options_.layers));
    TANDEM_TRY(cuda::use_device(0));
    TANDEM_TRY_ASSIGN(
        auto source, SyntheticWeightSource::create(synthetic.model->tensors(), synthetic.mix));
    CudaStageOptions options;
    options.use_graphs = !options_.direct;
    options.use_two_queues = !options_.one_queue;
    options.stage.state_dtype = DType::kF16;
    options.stage.num_banks = *std::max_element(options_.batches.begin(), options_.batches.end());
    options.stage.context_tokens = options_.context;
    options.stage.max_rows = options_.chunk;
    TANDEM_TRY_ASSIGN(
        stage_,
        CudaStage::create(synthetic.model, *source, whole_model(synthetic.model->spec()), options));
    // Rows that decode reads at any position without a prefill.
    const StatePlan& plan = stage_->banks().plan();
    for (size_t i = 0; i < plan.slabs.size(); ++i) {
      const SlabView slab = stage_->banks().slab(static_cast<int32_t>(i));
      const WeightView rows = {
          slab.data, slab.dtype, stage_->info().num_banks * slab.capacity_rows, slab.row_values,
          slab.row_bytes};
      TANDEM_TRY(cuda::fill_random_weight(rows, i, 1.0f, stage_->stream()));
    }
    TANDEM_TRY(stage_->stream().synchronize());
    std::printf(
        "%s, %d layers, filled in %.1f s\n", options_.model.c_str(),
        synthetic.model->spec().num_layers, seconds_since(start));
    std::fflush(stdout);
    return {};
  }

  StepBatch decode_batch(int64_t position, int64_t batch) {
    StepBatch out;
    for (int64_t b = 0; b < batch; ++b) {
      token_ = (token_ * 1103515245 + 12345) & 0x7fffffff;
      out.rows.push_back(
          {static_cast<int32_t>(b), static_cast<int32_t>(position),
           static_cast<int32_t>(token_ % 100000), true});
    }
    return out;
  }

  Status step(const StepBatch& batch) {
    WorkItem item;
    item.batch = &batch;
    TANDEM_TRY(stage_->submit(item));
    TANDEM_TRY_ASSIGN(last_, stage_->collect());
    return {};
  }

  Status time_decode(int64_t position, int64_t batch) {
    constexpr int kWarmUp = 4;
    for (int64_t b = 0; b < batch; ++b) stage_->banks().assume_length(b, position);
    std::vector<double> seconds;
    for (int i = 0; i < kWarmUp + options_.steps; ++i) {
      const StepBatch rows = decode_batch(position + i, batch);
      const auto start = std::chrono::steady_clock::now();
      TANDEM_TRY(step(rows));
      if (i >= kWarmUp) seconds.push_back(seconds_since(start));
    }
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    const double p99 = seconds[seconds.size() * 99 / 100];
    bool finite = true;
    for (int64_t i = 0; i < last_.logits.cols; ++i) {
      finite = finite && last_.logits.row(0)[i] - last_.logits.row(0)[i] == 0;
    }
    std::printf(
        "decode  context %6ld  batch %2ld  %8.3f ms/step (p99 %.3f)  %8.1f tokens/s%s\n",
        static_cast<long>(position), static_cast<long>(batch), median * 1e3, p99 * 1e3,
        static_cast<double>(batch) / median, finite ? "" : "  LOGITS ARE NOT FINITE");
    std::fflush(stdout);
    return {};
  }

  Status time_prefill(int64_t length) {
    for (int run = 0; run < 2; ++run) {  // the first takes scratch memory
      stage_->banks().reset(0);
      const auto start = std::chrono::steady_clock::now();
      for (int64_t begin = 0; begin < length; begin += options_.chunk) {
        const int64_t end = std::min(length, begin + options_.chunk);
        StepBatch batch;
        for (int64_t pos = begin; pos < end; ++pos) {
          batch.rows.push_back(
              {0, static_cast<int32_t>(pos), static_cast<int32_t>(pos * 7919 % 100000),
               pos + 1 == length, Phase::kPrefill});
        }
        TANDEM_TRY(step(batch));
      }
      const double seconds = seconds_since(start);
      if (run == 0) continue;
      std::printf(
          "prefill %6ld tokens in chunks of %ld: %.3f s, %.0f tokens/s\n",
          static_cast<long>(length), static_cast<long>(options_.chunk), seconds,
          static_cast<double>(length) / seconds);
      std::fflush(stdout);
    }
    return {};
  }

  // A decode step of `rows` banks, or a chunk of `rows` rows of one bank if there are more.
  Status print_table(int64_t position, int64_t rows) {
    const bool is_prefill = rows > stage_->info().num_banks;
    StepBatch batch;
    if (is_prefill) {
      stage_->banks().assume_length(0, position);
      for (int64_t i = 0; i < rows; ++i) {
        batch.rows.push_back(
            {0, static_cast<int32_t>(position + i), static_cast<int32_t>(i * 7919 % 100000),
             i + 1 == rows, Phase::kPrefill});
      }
    } else {
      for (int64_t b = 0; b < rows; ++b) stage_->banks().assume_length(b, position);
      batch = decode_batch(position, rows);
    }
    TANDEM_TRY_ASSIGN(const std::vector<float> ms, stage_->time_ops(batch, is_prefill ? 3 : 20));
    struct Line {
      int count = 0;
      double ms = 0;
      double bytes = 0;
    };
    std::map<std::string, Line> lines;
    Line total;
    for (size_t i = 0; i < ms.size(); ++i) {
      const Op& op = stage_->program().ops[i];
      const auto bytes = static_cast<double>(weight_bytes(op, stage_->weights(), rows));
      for (Line* line : {&lines[op_name(op)], &total}) {
        ++line->count;
        line->ms += static_cast<double>(ms[i]);
        line->bytes += bytes;
      }
    }
    std::printf(
        "\noperations at position %ld, %ld rows\n%-16s %5s %9s %9s %10s %9s %7s\n",
        static_cast<long>(position), static_cast<long>(rows), "operation", "calls", "ms", "us/call",
        "weights MB", "GB/s", "of step");
    const auto print = [&](const char* name, const Line& line) {
      std::printf(
          "%-16s %5d %9.3f %9.2f %10.1f %9.0f %6.1f%%\n", name, line.count, line.ms,
          line.ms * 1e3 / line.count, line.bytes * 1e-6, line.bytes * 1e-6 / line.ms,
          100 * line.ms / total.ms);
    };
    for (const auto& [name, line] : lines) print(name.c_str(), line);
    print("total", total);
    std::fflush(stdout);
    return {};
  }

  Options options_;
  cuda::DeviceInfo info_;
  std::unique_ptr<CudaStage> stage_;
  StageResult last_;
  int64_t token_ = 1;
};

}  // namespace
}  // namespace tandem::bench

int main(int argc, char** argv) {
  tandem::bench::Options options;
  CLI::App app("Speed of a made-up model on one GPU", "tandem-gpu-bench");
  app.add_option("--synthetic", options.model, "flash-q2, flash-q4, flash-mxfp4, pro-q2, ...");
  app.add_option("--layers", options.layers, "the first N layers; 0: all");
  app.add_option("--ctx", options.context, "tokens that a bank can hold");
  app.add_option("--chunk", options.chunk, "rows of a prefill step");
  app.add_option("--positions", options.positions, "contexts at which decode is timed")
      ->delimiter(',');
  app.add_option("--batches", options.batches, "rows of a decode step")->delimiter(',');
  app.add_option("--prompts", options.prompts, "prompt lengths; 0: none")->delimiter(',');
  app.add_option("--steps", options.steps, "timed steps");
  app.add_flag("--table,!--no-table", options.table, "the table of operations");
  app.add_flag("--one-queue", options.one_queue, "no second queue beside the main one");
  app.add_flag("--direct", options.direct, "launch every kernel instead of replaying a graph");
  CLI11_PARSE(app, argc, argv);
  std::erase(options.prompts, 0);
  const tandem::Status status = tandem::bench::GpuBench(options).run();
  if (status.ok()) return 0;
  std::fprintf(
      stderr, "%s: %s\n", tandem::status_code_name(status.code()), status.message().c_str());
  return 2;
}
