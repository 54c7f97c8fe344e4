#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "coordinator/engine/pipeline.h"

namespace tandem {

/// Which bank holds which tokens, and which bank a prompt should run in. The token history is
/// authoritative: a bank is reused only up to where its tokens equal the prompt's.
/// Threads: one owner.
class BankDirectory {
 public:
  /// `pipeline` outlives it.
  explicit BankDirectory(Pipeline& pipeline);

  struct Lease {
    int64_t bank = 0;
    int64_t num_reused = 0;  // leading tokens of the prompt that the bank holds
  };

  /// Takes an idle bank for the prompt: the one that saves most work, else an empty one, else the
  /// least recently used. At least the prompt's last token is left to compute.
  /// Errors: kResourceExhausted if every bank is busy; the pipeline's if it cannot empty the bank.
  Result<Lease> acquire(std::span<const int32_t> prompt);
  /// Notes tokens that a step wrote.
  void append(int64_t bank, std::span<const int32_t> tokens);
  /// Keeps a way back to the present length; the oldest is dropped beyond a few.
  Status keep_checkpoint(int64_t bank);
  /// The bank's history stays for reuse.
  void release(int64_t bank);
  /// Forgets the history of a bank whose state is unknown after an error.
  void discard(int64_t bank);

  bool has_idle() const;
  /// What a bank holds, for people who watch.
  struct BankInfo {
    bool busy = false;
    int64_t num_tokens = 0;
    uint64_t last_used = 0;  // larger is later; 0: never
  };
  void describe(std::vector<BankInfo>& out) const;
  std::span<const int32_t> tokens(int64_t bank) const { return banks_[bank].tokens; }
  /// The idle bank with the longest common prefix with `tokens`, of several the one with least
  /// behind it; -1 if all are busy.
  int64_t find(std::span<const int32_t> tokens) const;

 private:
  struct Checkpoint {
    int64_t length = 0;
    PipelineCheckpoint ids;
  };
  struct Bank {
    std::vector<int32_t> tokens;
    std::vector<Checkpoint> checkpoints;  // ascending length
    bool busy = false;
    uint64_t last_used = 0;
  };

  int64_t choose(std::span<const int32_t> prompt, int64_t& num_common) const;
  /// Makes the bank hold `length` of its tokens or fewer; returns how many. Errors: only if the
  /// bank cannot even be emptied.
  Result<int64_t> cut(int64_t bank, int64_t length);
  /// Takes the pipeline back from the checkpoints, nearest first; returns the length reached, 0 if
  /// none helps.
  int64_t rewind_to_checkpoint(int64_t bank, int64_t length);
  void drop_checkpoints_above(Bank& bank, int64_t length);

  Pipeline& pipeline_;
  std::vector<Bank> banks_;
  uint64_t now_ = 0;
};

}  // namespace tandem
