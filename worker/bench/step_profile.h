#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "worker/executor.h"
#include "worker/op_cost.h"

namespace tandem {

/// Time and cost of the operations of several steps, added up by kind.
/// Threads: one owner.
class StepProfile {
 public:
  struct Entry {
    std::string name;
    double seconds = 0;
    OpCost cost;
    int64_t calls = 0;
  };

  explicit StepProfile(const Clock& clock) : clock_(clock) {}

  /// Marks the beginning of an operation and so the end of the one before.
  void begin_op(const Op& op, const OpCost& cost);
  /// Marks the end of a step.
  void end_step();

  int64_t num_steps() const { return num_steps_; }
  /// Longest first.
  std::vector<Entry> entries() const;

 private:
  void close();

  const Clock& clock_;
  std::vector<Entry> entries_;
  int64_t open_ = -1;  // index into entries_ of the operation that runs
  Clock::Time started_;
  int64_t num_steps_ = 0;
};

}  // namespace tandem
