#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include "apps/bench_target.h"
#include "apps/commands.h"
#include "apps/runtime.h"
#include "base/file_stream.h"
#include "base/random.h"
#include "worker/bench/ceilings.h"
#include "worker/bench/frontier_bench.h"
#include "worker/bench/step_profile.h"

namespace tandem {
namespace {

constexpr size_t kTextBytesMax = size_t{256} << 20;

struct BenchOptions {
  BenchTargetOptions target;
  FrontierOptions frontiers;
  std::string prompt_file;
  std::string csv;
  bool profile = false;
};

/// The file's tokens; without a file, made-up ones: the time of a step does not depend on them.
std::vector<int32_t> prompt_tokens(BenchTarget& target, const BenchOptions& options) {
  std::vector<int32_t> tokens;
  if (!options.prompt_file.empty()) {
    if (target.loaded() == nullptr) {
      throw CommandFailed{Status(
          StatusCode::kInvalidArgument,
          "a made-up model has no tokenizer: leave out --prompt-file")};
    }
    const std::string text = require_ok(read_text_file(options.prompt_file, kTextBytesMax));
    require_ok(target.loaded()->tokenizer->encode_text(text, tokens));
    return tokens;
  }
  Rng rng(1);
  const auto vocab_size = static_cast<uint64_t>(target.stage().info().vocab_size);
  tokens.resize(static_cast<size_t>(options.frontiers.ctx_max));
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng.next() % vocab_size);
  return tokens;
}

/// Profiles of the steps of one token and of all others, printed at each frontier.
class Profiler {
 public:
  Profiler(LocalStage& stage, ThreadPool& pool, const Clock& clock)
      : stage_(stage), pool_(pool), clock_(clock) {
    stage_.observe(&before_op_, &after_step_);
  }
  ~Profiler() { stage_.observe(nullptr); }

  void print() {
    if (decode_.has_value()) print(*decode_, "decode", true);
    if (prefill_.has_value()) print(*prefill_, "prefill", false);
    decode_.reset();
    prefill_.reset();
  }

 private:
  std::optional<StepProfile>& current() {
    auto& profile = stage_.current_step().num_rows == 1 ? decode_ : prefill_;
    if (!profile.has_value()) profile.emplace(clock_);
    return profile;
  }

  void print(const StepProfile& profile, const char* phase, bool per_token) {
    double seconds = 0;
    int64_t bytes = 0;
    for (const StepProfile::Entry& entry : profile.entries()) {
      seconds += entry.seconds;
      bytes += entry.cost.weight_bytes + entry.cost.state_bytes;
    }
    const double steps = static_cast<double>(profile.num_steps());
    const Ceilings ceilings = measure_ceilings(
        pool_, CpuIsa::kBest, bytes / std::max<int64_t>(1, profile.num_steps()), clock_);
    std::fprintf(
        stderr,
        "%s: %lld steps of %.1f us. Ceilings: %.1f GB/s from memory, %.1f GB/s from a buffer of "
        "one step's bytes, %.0f int8 and %.0f float32 GMAC/s\n",
        phase, static_cast<long long>(profile.num_steps()), 1e6 * seconds / steps,
        1e-9 * ceilings.memory_bytes_per_s, 1e-9 * ceilings.cached_bytes_per_s,
        1e-9 * ceilings.int8_macs_per_s, 1e-9 * ceilings.f32_macs_per_s);
    std::fprintf(
        stderr, "  %-16s %10s %6s %9s %8s %8s %9s %8s\n", "operation", "us/step", "time", "MB/step",
        "GB/s", "of mem", "GMAC/s", "of int8");
    for (const StepProfile::Entry& entry : profile.entries()) {
      const double moved = static_cast<double>(entry.cost.weight_bytes + entry.cost.state_bytes);
      const double rate = moved / entry.seconds;
      const double mac_rate = static_cast<double>(entry.cost.macs) / entry.seconds;
      std::fprintf(
          stderr, "  %-16s %10.1f %5.1f%% %9.2f %8.1f %7.0f%% %9.1f %7.0f%%\n", entry.name.c_str(),
          1e6 * entry.seconds / steps, 100 * entry.seconds / seconds, 1e-6 * moved / steps,
          1e-9 * rate, 100 * rate / ceilings.memory_bytes_per_s, 1e-9 * mac_rate,
          100 * mac_rate / ceilings.int8_macs_per_s);
    }
    if (per_token) {
      std::fprintf(
          stderr, "  %-16s %.1f GB/s over all, %.0f %% of memory, %.0f %% of the cached rate\n", "",
          1e-9 * static_cast<double>(bytes) / seconds,
          100 * static_cast<double>(bytes) / seconds / ceilings.memory_bytes_per_s,
          100 * static_cast<double>(bytes) / seconds / ceilings.cached_bytes_per_s);
    }
  }

  LocalStage& stage_;
  ThreadPool& pool_;
  const Clock& clock_;
  std::optional<StepProfile> decode_;
  std::optional<StepProfile> prefill_;
  OpObserver before_op_ = [this](const Op& op, size_t) {
    current()->begin_op(op, stage_.current_cost(op));
  };
  std::function<void()> after_step_ = [this] { current()->end_step(); };
};

void print_row(std::FILE* csv, const FrontierResult& row) {
  std::fprintf(
      csv, "%lld,%lld,%.2f,%lld,%.2f,%lld,%.2f,%.3f\n", static_cast<long long>(row.ctx_tokens),
      static_cast<long long>(row.prefill_tokens), row.prefill_tps(),
      static_cast<long long>(row.gen_tokens), row.gen_tps(),
      static_cast<long long>(row.state_bytes), row.gen_tps_steady(), 1e3 * row.first_token_seconds);
  std::fflush(csv);
}

void bench(const BenchOptions& options) {
  const SystemClock clock;
  BenchTargetOptions target_options = options.target;
  if (target_options.context_tokens == 0) {  // what the last frontier needs
    target_options.context_tokens = options.frontiers.ctx_max + options.frontiers.gen_tokens + 1;
  }
  const auto target = require_ok(BenchTarget::create(target_options));
  if (options.profile && target->local() == nullptr) {
    throw CommandFailed{Status(
        StatusCode::kInvalidArgument,
        "--profile times operations on the CPU: use --device cpu, or tandem-gpu-bench")};
  }
  const std::vector<int32_t> tokens = prompt_tokens(*target, options);
  if (static_cast<int64_t>(tokens.size()) < options.frontiers.ctx_max) {
    throw CommandFailed{Status(
        StatusCode::kInvalidArgument, str_cat(
                                          "the prompt has ", tokens.size(), " tokens, --ctx-max ",
                                          options.frontiers.ctx_max, " needs as many"))};
  }
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(nullptr, std::fclose);
  if (!options.csv.empty()) {
    file.reset(std::fopen(options.csv.c_str(), "w"));
    if (file == nullptr) {
      throw CommandFailed{
          Status(StatusCode::kInvalidArgument, str_cat("cannot write ", options.csv))};
    }
  }
  std::FILE* csv = file != nullptr ? file.get() : stdout;
  std::fprintf(
      csv,
      "ctx_tokens,prefill_tokens,prefill_tps,gen_tokens,gen_tps,kvcache_bytes,gen_tps_ss,"
      "first_token_ms\n");
  std::optional<Profiler> profiler;
  if (options.profile) profiler.emplace(*target->local(), target->pool(), clock);
  constexpr int32_t kEosToken = 1;
  require_ok(run_frontiers(
      target->stage(), tokens, options.frontiers, kEosToken, clock, [&](const FrontierResult& row) {
        print_row(csv, row);
        if (profiler.has_value()) profiler->print();
      }));
}

}  // namespace

void add_bench_command(CLI::App& program) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* command = program.add_subcommand(
      "bench", "Prefill and decode speed at growing context lengths, as CSV");
  FrontierOptions& frontiers = options->frontiers;
  add_stage_options(*command, options->target.runtime);
  command
      ->add_option(
          "--synthetic", options->target.synthetic,
          "Random weights on a GPU in place of a file: flash-q2, -q4, -mxfp4, pro-q2, ...")
      ->type_name("NAME");
  command->add_option("--layers", options->target.layers, "First layers of --synthetic; 0: all")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_option("--prompt-file", options->prompt_file, "Text to read; made-up tokens without")
      ->type_name("FILE");
  command->add_option("--ctx-start", frontiers.ctx_start, "First context length")
      ->capture_default_str();
  command->add_option("--ctx-max", frontiers.ctx_max, "Last context length")->capture_default_str();
  command->add_option(
      "--ctx-alloc", options->target.context_tokens, "Context to set up; 0: what is needed");
  command->add_option("--step-mul", frontiers.step_mul, "Factor to the next context length")
      ->capture_default_str();
  command->add_option("--step-incr", frontiers.step_incr, "Tokens to the next context length")
      ->capture_default_str();
  command->add_option("--gen-tokens", frontiers.gen_tokens, "Tokens to decode; 0: prefill only")
      ->capture_default_str();
  command->add_option("--csv", options->csv, "Where to write the rows; standard output without")
      ->type_name("FILE");
  command->add_flag(
      "--profile", options->profile,
      "Time, bytes and share of the measured ceilings by operation, on standard error");
  command->callback([options] { bench(*options); });
}

}  // namespace tandem
