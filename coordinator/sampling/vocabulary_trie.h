#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tandem {

/// The tokens of a vocabulary by their bytes, laid out for a walk: nodes in depth-first order, each
/// knowing where its subtree ends.
///
/// Threads: immutable, free to share.
class VocabularyTrie {
 public:
  struct Node {
    uint32_t end = 0;          // index of the first node after the subtree
    uint32_t first_token = 0;  // tokens() of the subtree start here and end at nodes()[end]'s
    uint16_t depth = 0;        // bytes from the root
    uint8_t byte = 0;          // the last of them
    bool plain_below = false;  // no byte below needs care inside a JSON string
  };

  /// `token_bytes` gives the text of each id; an empty one, as of a control token, is left out.
  ///
  /// Limits: vocab_size from 1 to kVocabMax, a token at most 65535 bytes.
  /// Errors: kInvalidArgument if a limit is broken or no token is one byte long for some printable
  ///         ASCII character: an output could then get stuck.
  /// Cost:   a sort of the vocabulary; about 12 bytes for each distinct prefix.
  static Result<VocabularyTrie> create(
      int64_t vocab_size, const std::function<std::string_view(int32_t)>& token_bytes);

  /// The first is the root; one more than there are prefixes closes the list.
  std::span<const Node> nodes() const { return nodes_; }
  /// Ids in depth-first order. Those that end at a node come before those of its children.
  std::span<const int32_t> tokens() const { return tokens_; }
  int64_t vocab_size() const { return static_cast<int64_t>(texts_.size()) - 1; }

  /// The bytes of a token; empty for an id that is left out or outside the vocabulary.
  std::string_view text(int32_t token) const;

 private:
  VocabularyTrie() = default;

  std::vector<Node> nodes_;
  std::vector<int32_t> tokens_;
  std::vector<char> bytes_;
  std::vector<uint32_t> texts_;  // token i is bytes_ [texts_[i], texts_[i + 1])
};

/// Whether a byte ends or changes the state of a JSON string: a quote, a backslash or a control.
inline bool needs_care_in_json_string(uint8_t byte) {
  return byte < 0x20 || byte == '"' || byte == '\\';
}

}  // namespace tandem
