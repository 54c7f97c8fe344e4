#pragma once

#include <functional>
#include <vector>

#include "base/status.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kvstore/bank_store.h"
#include "model/spec/program.h"
#include "worker/value_table.h"
#include "worker/weight_table.h"

namespace tandem {

/// A second queue of the same device, beside an Exec's own, for operations that the next ones do
/// not wait for: compression and the storing of rows. Threads: those of the Exec.
class SideQueue {
 public:
  virtual ~SideQueue() = default;
  virtual const Exec& exec() const = 0;
  /// What is queued here from now on runs after all that the main queue holds now.
  virtual Status fork() = 0;
  /// What the main queue gets from now on runs after all that is queued here now.
  virtual Status join() = 0;
};

/// What a step works on; all in the memory of one device.
struct ExecutorParts {
  const Program* program = nullptr;
  const WeightTable* weights = nullptr;
  const BankStore* banks = nullptr;
  const ValueTable* values = nullptr;
  std::vector<RotaryView> rotaries;  // by RotaryId
  SideQueue* side = nullptr;         // or null: everything in order on one queue
};

/// Called before each operation; used by profilers.
using OpObserver = std::function<void(const Op& op, size_t op_idx)>;

/// Runs every operation of the program once over the rows of `step`. `logits` has step.num_logits
/// rows; unused if the program emits none. On CUDA the work is queued on exec.stream.
/// Errors: the first operation's that fails.
Status run_program(
    const Exec& exec, const ExecutorParts& parts, const StepRows& step, Rows logits,
    const OpObserver* observer = nullptr);

/// The operation's name, as the folder under kernels/ spells it.
const char* op_name(const Op& op);

}  // namespace tandem
