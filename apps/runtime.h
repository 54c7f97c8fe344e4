#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"

namespace CLI {
class App;
}

namespace tandem {

class Terminal;

/// Options of every subcommand that runs a model.
struct RuntimeOptions {
  std::string model;  // empty: the bundled nano model
  int64_t context_tokens = 32768;
  int threads = 0;              // 0: one for each core
  int64_t chunk_tokens = 0;     // 0: what suits the device
  std::string device = "auto";  // "auto", "cpu" or "cuda"
  int64_t num_banks = 1;
  int power_percent = 100;
  bool exact = false;
};

/// Adds -m, -t, --device, --chunk, --exact to a subcommand.
void add_stage_options(CLI::App& command, RuntimeOptions& options);

/// Those, -c and --power.
void add_runtime_options(CLI::App& command, RuntimeOptions& options);

/// options.model, or the bundled model's path. Errors: kNotFound says how to name a model.
Result<std::string> resolve_model_path(const std::string& model);

/// options.threads, or one for each core.
int num_threads_of(const RuntimeOptions& options);

/// Whether to use a GPU. Errors: kInvalidArgument for --exact on a GPU, and, if one was asked for,
/// why there is none.
Result<bool> wants_cuda(const RuntimeOptions& options);

LocalStageOptions cpu_stage_options(const RuntimeOptions& options, const ModelSpec& spec);

/// With a bar on `terminal` while the weights are loaded; it outlives the loading.
CudaStageOptions cuda_stage_options(
    const RuntimeOptions& options, const ModelSpec& spec, Terminal& terminal);

/// Everything that generates, built and joined: one process, one local stage.
class Runtime {
 public:
  static Result<std::unique_ptr<Runtime>> create(const RuntimeOptions& options);

  const LoadedModel& loaded() const { return loaded_; }
  Pipeline& pipeline() { return *pipeline_; }
  Engine& engine() { return *engine_; }
  Clock& clock() { return clock_; }
  double load_seconds() const { return load_seconds_; }

 private:
  Runtime(LoadedModel loaded, int threads) : loaded_(std::move(loaded)), pool_(threads) {}

  SystemClock clock_;
  LoadedModel loaded_;
  ThreadPool pool_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
  double load_seconds_ = 0;
};

}  // namespace tandem
