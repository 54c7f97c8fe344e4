#include "apps/runtime.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

#include "apps/terminal.h"
#include "kernels/cuda/device.h"

namespace tandem {
namespace {

constexpr const char* kBundledModel = "models/nano-q4_k.gguf";

constexpr int64_t kCpuChunkTokens = 512;
constexpr int64_t kCudaChunkTokens = 4096;

LocalStageOptions stage_options(
    const RuntimeOptions& options, const ModelSpec& spec, int64_t default_chunk) {
  LocalStageOptions stage;
  stage.numerics = options.exact ? Numerics::kExact : Numerics::kFast;
  stage.num_banks = options.num_banks;
  stage.context_tokens = std::min(options.context_tokens, spec.context_tokens_max);
  stage.max_rows = options.chunk_tokens == 0 ? default_chunk : options.chunk_tokens;
  return stage;
}

}  // namespace

int num_threads_of(const RuntimeOptions& options) {
  if (options.threads != 0) return options.threads;
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Result<bool> wants_cuda(const RuntimeOptions& options) {
  if (options.device == "cpu") return false;
  const bool must = options.device == "cuda";
  TANDEM_REQUIRE(!(must && options.exact), "--exact is float32 on the CPU: use --device cpu");
  const Result<int> count = cuda::device_count();
  if (must && !count.ok()) return count.status();
  return count.ok() && *count > 0 && !options.exact;
}

LocalStageOptions cpu_stage_options(const RuntimeOptions& options, const ModelSpec& spec) {
  return stage_options(options, spec, kCpuChunkTokens);
}

CudaStageOptions cuda_stage_options(
    const RuntimeOptions& options, const ModelSpec& spec, Terminal& terminal) {
  CudaStageOptions cuda;
  cuda.stage = stage_options(options, spec, kCudaChunkTokens);
  cuda.stage.state_dtype = DType::kF16;  // what attention multiplies
  cuda.progress = [&terminal](int64_t done, int64_t total) {
    constexpr int64_t kMib = 1 << 20;
    terminal.show_progress("loading MiB", done / kMib, total / kMib);
  };
  return cuda;
}

namespace {

/// Loads the weights to the first GPU.
Result<Pipeline> load_on_gpu(const LoadedModel& loaded, const RuntimeOptions& options) {
  Terminal err(stderr);
  Result<Pipeline> pipeline =
      make_cuda_pipeline(loaded, cuda_stage_options(options, loaded.model->spec(), err));
  err.clear_progress();
  return pipeline;
}

}  // namespace

void add_stage_options(CLI::App& command, RuntimeOptions& options) {
  command.add_option("-m,--model", options.model, "GGUF file; the bundled nano model if not given")
      ->type_name("FILE");
  command.add_option("-t,--threads", options.threads, "CPU threads; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command
      .add_option("--device", options.device, "Where the model runs; auto: a GPU if there is one")
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}))
      ->capture_default_str();
  command
      .add_option(
          "--chunk", options.chunk_tokens, "Prompt tokens of one step; 0: what suits the device")
      ->check(CLI::Range(int64_t{0}, kChunkTokensMax))
      ->capture_default_str();
  command.add_flag("--exact", options.exact, "Float32 reference arithmetic: slow, for checking");
}

void add_runtime_options(CLI::App& command, RuntimeOptions& options) {
  add_stage_options(command, options);
  command.add_option("-c,--ctx", options.context_tokens, "Context in tokens")
      ->check(CLI::Range(int64_t{1}, kContextTokensMax))
      ->capture_default_str();
  command
      .add_option(
          "--power", options.power_percent, "Share of the time in percent that steps may take")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

Result<std::string> resolve_model_path(const std::string& model) {
  if (!model.empty()) return model;
  std::error_code error;
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", error);
  while (!error && folder.has_relative_path()) {
    folder = folder.parent_path();
    const std::filesystem::path candidate = folder / kBundledModel;
    if (std::filesystem::exists(candidate, error)) return candidate.string();
  }
  return Status(
      StatusCode::kNotFound,
      str_cat("the bundled ", kBundledModel, " is not beside this program; name a model with -m"));
}

Result<std::unique_ptr<Runtime>> Runtime::create(const RuntimeOptions& options) {
  SystemClock clock;
  const Clock::Time started = clock.now();
  TANDEM_TRY_ASSIGN(const std::string path, resolve_model_path(options.model));
  TANDEM_TRY_ASSIGN(LoadedModel loaded, load_model(path));
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(loaded), num_threads_of(options)));

  TANDEM_TRY_ASSIGN(const bool on_gpu, wants_cuda(options));
  const LocalStageOptions stage = cpu_stage_options(options, runtime->loaded_.model->spec());
  TANDEM_TRY_ASSIGN(
      Pipeline pipeline, on_gpu ? load_on_gpu(runtime->loaded_, options)
                                : make_local_pipeline(runtime->loaded_, stage, runtime->pool_));
  runtime->pipeline_ = std::make_unique<Pipeline>(std::move(pipeline));

  EngineOptions engine;
  engine.power_percent = options.power_percent;
  engine.fingerprint = runtime->loaded_.model->spec().fingerprint;
  runtime->engine_ = std::make_unique<Engine>(
      *runtime->pipeline_, runtime->loaded_.tokenizer, *runtime->loaded_.protocol, runtime->clock_,
      engine);
  runtime->load_seconds_ = seconds_between(started, clock.now());
  return runtime;
}

}  // namespace tandem
