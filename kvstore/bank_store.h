#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/byte_stream.h"
#include "base/status.h"
#include "kernels/core/scratch.h"
#include "kernels/core/views.h"
#include "model/spec/state_plan.h"

namespace tandem {

using CheckpointId = int64_t;

/// The state of `num_banks` sequences on one stage: every slab of the plan, in one device's memory.
/// Nothing here knows a family; all of it is written by slab kind.
/// Threads: one owner.
class BankStore {
 public:
  /// Errors: kInvalidArgument for limits out of range, kResourceExhausted if the memory is not
  /// there.
  static Result<BankStore> create(
      StatePlan plan, StateLimits limits, int64_t num_banks, Allocator& allocator);

  const StatePlan& plan() const { return plan_; }
  const StateLimits& limits() const { return limits_; }
  int64_t num_banks() const { return static_cast<int64_t>(banks_.size()); }
  SlabView slab(int32_t slab_id) const { return views_[slab_id]; }
  size_t bytes() const;

  /// Tokens that the bank holds.
  int64_t length(int64_t bank) const { return banks_[bank].length; }

  /// Forgets the sequence.
  void reset(int64_t bank);
  /// Notes that a step wrote `num_tokens` more. Limits: length + num_tokens <= context_tokens.
  void advance(int64_t bank, int64_t num_tokens);
  /// Sets the length without writing rows. Only for timing on made-up state.
  void assume_length(int64_t bank, int64_t length);

  /// Takes back the tokens from `length` on.
  /// Errors: kInvalidArgument if length is beyond the bank's; kAborted if a ring no longer holds
  /// the rows before `length`: restore a checkpoint or reset, and replay.
  Status truncate(int64_t bank, int64_t length);

  /// Makes `to` an equal sequence. Errors: kInvalidArgument if the banks are one.
  Status fork(int64_t from, int64_t to);

  /// Keeps what truncate cannot get back: a copy of the rings. Dropped by reset, load and fork into
  /// the bank, and when the bank is truncated below it.
  Result<CheckpointId> checkpoint(int64_t bank);
  /// Takes the bank back to the checkpoint, which stays. It can be truncated from there as it could
  /// be when the checkpoint was made.
  /// Errors: kNotFound if it was dropped.
  Status restore(int64_t bank, CheckpointId id);
  void drop_checkpoint(CheckpointId id);

  /// Writes the bank, self-describing: slab names, kinds, types, rows. Errors: the sink's.
  Status save(int64_t bank, ByteSink& sink) const;
  /// Replaces the bank by a saved one. On an error the bank is empty.
  /// Errors: kInvalidArgument if it was saved under another plan or does not fit, kDataLoss if it
  /// is cut short or inconsistent.
  Status load(int64_t bank, ByteSource& source);

 private:
  struct Bank {
    int64_t length = 0;
    int64_t rewind_left = 0;  // tokens that truncate can take back
  };
  struct Checkpoint {
    CheckpointId id = 0;
    int64_t bank = 0;
    Bank state;
    std::vector<std::byte> rings;  // kept_rows of each ring
  };
  /// Rows [begin, end) of a slab that a bank of `length` tokens needs.
  struct RowRange {
    int64_t begin = 0;
    int64_t end = 0;
  };

  BankStore(StatePlan plan, StateLimits limits, Allocator& allocator)
      : plan_(std::move(plan)), limits_(limits), allocator_(&allocator) {}
  RowRange live_rows(const SlabSpec& slab, int64_t length) const;
  /// live_rows, and before them what truncate can still go back to.
  RowRange kept_rows(const SlabSpec& slab, const Bank& bank) const;
  /// Calls fn(pointer, bytes) for each contiguous part of the rows, in order.
  template <class Fn>
  Status for_each_part(int32_t slab_id, int64_t bank, RowRange rows, Fn&& fn) const;
  void drop_checkpoints_above(int64_t bank, int64_t length);

  StatePlan plan_;
  StateLimits limits_;
  Allocator* allocator_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<SlabView> views_;
  std::vector<Bank> banks_;
  std::vector<Checkpoint> checkpoints_;
  CheckpointId next_checkpoint_ = 1;
};

}  // namespace tandem
