#include "apps/runtime.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <thread>

namespace tandem {
namespace {

constexpr const char* kBundledModel = "models/nano-q4_k.gguf";

int default_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

void add_runtime_options(CLI::App& command, RuntimeOptions& options) {
  command.add_option("-m,--model", options.model, "GGUF file; the bundled nano model if not given")
      ->type_name("FILE");
  command.add_option("-c,--ctx", options.context_tokens, "Context in tokens")
      ->check(CLI::Range(int64_t{1}, kContextTokensMax))
      ->capture_default_str();
  command.add_option("-t,--threads", options.threads, "CPU threads; 0: one for each core")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command.add_option("--chunk", options.chunk_tokens, "Prompt tokens of one step")
      ->check(CLI::Range(kChunkGridTokens, kChunkTokensMax))
      ->capture_default_str();
  command
      .add_option(
          "--power", options.power_percent, "Share of the time in percent that steps may take")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_flag("--exact", options.exact, "Float32 reference arithmetic: slow, for checking");
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
  const int threads = options.threads == 0 ? default_threads() : options.threads;
  std::unique_ptr<Runtime> runtime(new Runtime(std::move(loaded), threads));

  LocalStageOptions stage;
  stage.numerics = options.exact ? Numerics::kExact : Numerics::kFast;
  stage.num_banks = options.num_banks;
  stage.context_tokens =
      std::min(options.context_tokens, runtime->loaded_.model->spec().context_tokens_max);
  stage.max_rows = std::min(options.chunk_tokens, kChunkTokensMax);
  TANDEM_TRY_ASSIGN(
      Pipeline pipeline, make_local_pipeline(runtime->loaded_, stage, runtime->pool_));
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
