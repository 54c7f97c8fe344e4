#include "coordinator/tokenizer/merges.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>

namespace tandem {
namespace {

constexpr int32_t kMergedAway = -1;

}  // namespace

MergeTable::MergeTable(size_t num_merges) {
  TANDEM_CHECK(num_merges <= static_cast<size_t>(kMergesMax));
  const size_t num_slots = std::bit_ceil(2 * num_merges + 2);  // at most half full
  slots_.assign(num_slots, kEmpty);
  mask_ = num_slots - 1;
  shift_ = 64 - std::countr_zero(num_slots);
  merged_.reserve(num_merges);
}

bool MergeTable::add(int32_t left, int32_t right, int32_t merged) {
  TANDEM_CHECK(2 * merged_.size() < slots_.size());
  const uint64_t key = pair_key(left, right);
  size_t slot = slot_of(key);
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & mask_) {
    if (slots_[slot] >> kRankBits == key) return false;
  }
  slots_[slot] = key << kRankBits | merged_.size();
  merged_.push_back(merged);
  return true;
}

void MergeTable::set_bytes(const std::array<int32_t, 256>& byte_ids) {
  byte_ids_ = byte_ids;
  byte_ranks_.clear();
  byte_ranks_.reserve(size_t{1} << 16);
  for (const int32_t left : byte_ids) {
    for (const int32_t right : byte_ids) byte_ranks_.push_back(rank(left, right));
  }
}

void PieceMerger::merge(std::string_view piece, std::vector<int32_t>& out) {
  if (piece.size() <= kScanBytesMax) {
    merge_by_scan(piece, out);
  } else {
    merge_by_heap(piece, out);
  }
}

void PieceMerger::merge_by_scan(std::string_view piece, std::vector<int32_t>& out) {
  if (piece.empty()) return;
  std::array<int32_t, kScanBytesMax> ids;
  std::array<int32_t, kScanBytesMax> ranks;  // of the pair that starts here
  size_t n = piece.size();
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(piece[i]); };
  for (size_t i = 0; i < n; ++i) ids[i] = merges_.byte_id(byte_at(i));
  for (size_t i = 0; i + 1 < n; ++i) ranks[i] = merges_.byte_rank(byte_at(i), byte_at(i + 1));
  while (n > 1) {
    int32_t best = MergeTable::kNoMerge;
    for (size_t i = 0; i + 1 < n; ++i) best = std::min(best, ranks[i]);
    if (best == MergeTable::kNoMerge) break;
    const auto i = static_cast<size_t>(
        std::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(n) - 1, best) -
        ranks.begin());
    ids[i] = merges_.merged(best);
    std::copy(ids.begin() + i + 2, ids.begin() + n, ids.begin() + i + 1);
    std::copy(ranks.begin() + i + 1, ranks.begin() + n - 1, ranks.begin() + i);
    --n;
    if (i > 0) ranks[i - 1] = merges_.rank(ids[i - 1], ids[i]);
    if (i + 1 < n) ranks[i] = merges_.rank(ids[i], ids[i + 1]);
  }
  out.insert(out.end(), ids.begin(), ids.begin() + n);
}

// Rank of the symbol with its right neighbour.
inline int32_t PieceMerger::rank_at(uint32_t at) const {
  const uint32_t next = next_[at];
  return next == ids_.size() ? MergeTable::kNoMerge : merges_.rank(ids_[at], ids_[next]);
}

inline void PieceMerger::push_pair(uint32_t at, int32_t rank) {
  if (rank == MergeTable::kNoMerge) return;
  heap_.push_back(static_cast<uint64_t>(rank) << 32 | at);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

void PieceMerger::merge_by_heap(std::string_view piece, std::vector<int32_t>& out) {
  TANDEM_CHECK(piece.size() <= static_cast<size_t>(kEncodeBytesMax));
  const auto n = static_cast<uint32_t>(piece.size());
  ids_.resize(n);
  next_.resize(n);
  prev_.resize(n);  // prev_[0] is never read
  heap_.clear();
  for (uint32_t i = 0; i < n; ++i) {
    ids_[i] = merges_.byte_id(static_cast<uint8_t>(piece[i]));
    next_[i] = i + 1;
    prev_[i] = i - 1;
  }
  for (uint32_t i = 0; i + 1 < n; ++i) {
    push_pair(
        i, merges_.byte_rank(static_cast<uint8_t>(piece[i]), static_cast<uint8_t>(piece[i + 1])));
  }
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    const auto rank = static_cast<int32_t>(heap_.back() >> 32);
    const auto at = static_cast<uint32_t>(heap_.back());
    heap_.pop_back();
    // A key is stale once either side has changed; then the pair has another rank or none.
    if (ids_[at] == kMergedAway || rank_at(at) != rank) continue;
    const uint32_t right = next_[at];
    ids_[at] = merges_.merged(rank);
    ids_[right] = kMergedAway;
    next_[at] = next_[right];
    if (next_[at] != n) prev_[next_[at]] = at;
    if (at != 0) push_pair(prev_[at], rank_at(prev_[at]));
    push_pair(at, rank_at(at));
  }
  for (uint32_t i = 0; i < n; i = next_[i]) out.push_back(ids_[i]);
}

}  // namespace tandem
