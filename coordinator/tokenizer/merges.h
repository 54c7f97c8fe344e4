#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/limits.h"

namespace tandem {

/// Merge rules: a pair of token ids gives its rank, a rank the merged id. Also knows the tokens of
/// single bytes, with which merging starts. Immutable once filled.
/// Threads: reads from any.
class MergeTable {
 public:
  static constexpr int32_t kNoMerge = INT32_MAX;  // ranks above every rule

  /// For up to `num_merges` rules, at most kMergesMax.
  explicit MergeTable(size_t num_merges = 0);

  /// Adds a rule with the next rank. False, with nothing added, if the pair has a rule already.
  /// Limits: ids in [0, kVocabMax).
  bool add(int32_t left, int32_t right, int32_t merged);
  /// Sets the token of each byte, after the last add().
  void set_bytes(const std::array<int32_t, 256>& byte_ids);
  bool has_bytes() const { return !byte_ranks_.empty(); }

  /// Rank of a pair, or kNoMerge.
  int32_t rank(int32_t left, int32_t right) const {
    const uint64_t key = pair_key(left, right);
    for (size_t slot = slot_of(key);; slot = (slot + 1) & mask_) {
      const uint64_t entry = slots_[slot];
      if (entry == kEmpty) return kNoMerge;
      if (entry >> kRankBits == key) return static_cast<int32_t>(entry & kRankMask);
    }
  }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }
  /// rank() of the tokens of two bytes.
  int32_t byte_rank(uint8_t left, uint8_t right) const {
    return byte_ranks_[static_cast<size_t>(left) << 8 | right];
  }
  int32_t merged(int32_t rank) const { return merged_[static_cast<size_t>(rank)]; }
  size_t size() const { return merged_.size(); }

 private:
  // One slot is a word: 20 bits for each id, 24 for the rank. Half the memory of a plain struct,
  // and a table of 128k rules then fits a second-level cache.
  static constexpr int kIdBits = 20;
  static constexpr int kRankBits = 64 - 2 * kIdBits;
  static constexpr uint64_t kRankMask = (uint64_t{1} << kRankBits) - 1;
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static_assert(kVocabMax <= int64_t{1} << kIdBits);
  static_assert(kMergesMax < int64_t{1} << kRankBits, "no rule looks like an empty slot");

  static uint64_t pair_key(int32_t left, int32_t right) {
    return static_cast<uint64_t>(left) << kIdBits | static_cast<uint64_t>(right);
  }
  size_t slot_of(uint64_t key) const {
    return static_cast<size_t>((key * 0x9E3779B97F4A7C15ULL) >> shift_);
  }

  std::vector<uint64_t> slots_;
  std::vector<int32_t> merged_;
  // Every piece starts with pairs of bytes, and text has few different ones: this table stays in a
  // near cache where the other does not.
  std::vector<int32_t> byte_ranks_;
  std::array<int32_t, 256> byte_ids_{};
  size_t mask_ = 0;
  int shift_ = 0;
};

/// Byte-pair merging of one piece: starting from single bytes, the adjacent pair of the lowest rank
/// is merged, the leftmost of equal ones, until no pair has a rule. Holds its scratch memory.
/// Threads: one owner; the table is shared.
class PieceMerger {
 public:
  /// The table is borrowed and has its bytes.
  explicit PieceMerger(const MergeTable& merges) : merges_(merges) {
    TANDEM_CHECK(merges.has_bytes());
  }

  /// Appends the ids of `piece`, at most kEncodeBytesMax bytes.
  /// Cost: O(n^2) with a tiny constant up to kScanBytesMax bytes, O(n log n) above.
  void merge(std::string_view piece, std::vector<int32_t>& out);

 private:
  // Up to here a scan over all ranks is faster than a heap.
  static constexpr size_t kScanBytesMax = 256;

  void merge_by_scan(std::string_view piece, std::vector<int32_t>& out);
  void merge_by_heap(std::string_view piece, std::vector<int32_t>& out);
  void push_pair(uint32_t at, int32_t rank);
  int32_t rank_at(uint32_t at) const;

  const MergeTable& merges_;
  // Of merge_by_heap: symbols as a linked list, and (rank, position) keys.
  std::vector<int32_t> ids_;
  std::vector<uint32_t> next_;
  std::vector<uint32_t> prev_;
  std::vector<uint64_t> heap_;
};

}  // namespace tandem
