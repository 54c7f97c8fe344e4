#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/limits.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem {

/// Encodes rendered prompts and remembers the ids of their longer texts: each prompt of a
/// conversation repeats the one before it. What stands between two control pieces is tokenized
/// apart from all else, so the ids are those of Tokenizer::encode. The least recently used texts go
/// first.
/// Threads: any.
class EncodeCache {
 public:
  /// `bytes_max` bounds texts and ids together.
  explicit EncodeCache(
      std::shared_ptr<const Tokenizer> tokenizer, int64_t bytes_max = kEncodeCacheBytesMax)
      : tokenizer_(std::move(tokenizer)), bytes_max_(bytes_max) {}

  /// Errors: as Tokenizer::encode.
  /// Cost: for a text that is remembered, a hash, a comparison and a copy.
  Status encode(std::span<const Piece> pieces, std::vector<int32_t>& out);

  struct Stats {
    int64_t num_texts = 0;
    int64_t bytes = 0;
    int64_t hits = 0;
    int64_t misses = 0;  // of texts that are long enough
  };
  Stats stats() const;

 private:
  struct Entry {
    std::string text;
    std::vector<int32_t> ids;
  };
  using Place = std::list<std::shared_ptr<const Entry>>::iterator;

  std::shared_ptr<const Entry> find(std::string_view text);
  void add(std::shared_ptr<const Entry> entry);
  Status encode_run(std::span<const Piece> run, std::vector<int32_t>& out);

  std::shared_ptr<const Tokenizer> tokenizer_;
  const int64_t bytes_max_;
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<const Entry>> order_;        // least recently used first
  std::unordered_map<std::string_view, Place> by_text_;  // keys are the entries' own texts
  Stats stats_;
};

}  // namespace tandem
