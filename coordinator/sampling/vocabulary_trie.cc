#include "coordinator/sampling/vocabulary_trie.h"

#include <algorithm>
#include <limits>

#include "base/limits.h"

namespace tandem {

Result<VocabularyTrie> VocabularyTrie::create(
    int64_t vocab_size, const std::function<std::string_view(int32_t)>& token_bytes) {
  TANDEM_REQUIRE(
      vocab_size >= 1 && vocab_size <= kVocabMax,
      str_cat("vocabulary size is ", vocab_size, ", must be from 1 to ", kVocabMax));
  VocabularyTrie trie;
  trie.texts_.push_back(0);
  for (int32_t id = 0; id < vocab_size; ++id) {
    const std::string_view text = token_bytes(id);
    TANDEM_REQUIRE(
        text.size() <= std::numeric_limits<uint16_t>::max(),
        str_cat("token ", id, " has ", text.size(), " bytes, must be at most 65535"));
    trie.bytes_.insert(trie.bytes_.end(), text.begin(), text.end());
    TANDEM_REQUIRE(
        trie.bytes_.size() <= std::numeric_limits<uint32_t>::max(),
        "the vocabulary's bytes exceed 4 GiB");
    trie.texts_.push_back(static_cast<uint32_t>(trie.bytes_.size()));
    if (!text.empty()) trie.tokens_.push_back(id);
  }
  std::sort(trie.tokens_.begin(), trie.tokens_.end(), [&](int32_t a, int32_t b) {
    const int order = trie.text(a).compare(trie.text(b));
    return order != 0 ? order < 0 : a < b;
  });

  // The path from the root to the node in hand; a node's end is known when it leaves the path.
  std::vector<uint32_t> path = {0};
  trie.nodes_.push_back({});
  const auto close_to = [&](size_t depth) {
    while (path.size() > depth + 1) {
      trie.nodes_[path.back()].end = static_cast<uint32_t>(trie.nodes_.size());
      path.pop_back();
    }
  };
  std::string_view previous;
  for (uint32_t i = 0; i < trie.tokens_.size(); ++i) {
    const std::string_view text = trie.text(trie.tokens_[i]);
    const auto mismatch = std::mismatch(text.begin(), text.end(), previous.begin(), previous.end());
    close_to(static_cast<size_t>(mismatch.first - text.begin()));
    while (path.size() <= text.size()) {
      const auto byte = static_cast<uint8_t>(text[path.size() - 1]);
      const auto depth = static_cast<uint16_t>(path.size());
      path.push_back(static_cast<uint32_t>(trie.nodes_.size()));
      trie.nodes_.push_back({0, i, depth, byte, false});
    }
    previous = text;
  }
  close_to(0);
  trie.nodes_[0].end = static_cast<uint32_t>(trie.nodes_.size());
  const auto num_tokens = static_cast<uint32_t>(trie.tokens_.size());
  trie.nodes_.push_back({static_cast<uint32_t>(trie.nodes_.size()) + 1, num_tokens, 0, 0, false});

  // From the back, a subtree is judged before the node above it.
  bool found[128] = {};
  for (size_t i = trie.nodes_.size() - 1; i-- > 0;) {
    Node& node = trie.nodes_[i];
    node.plain_below = true;
    for (uint32_t child = static_cast<uint32_t>(i) + 1; child < node.end;
         child = trie.nodes_[child].end) {
      const Node& below = trie.nodes_[child];
      if (!below.plain_below || needs_care_in_json_string(below.byte)) node.plain_below = false;
    }
    const bool ends_token = trie.nodes_[i + 1].first_token > node.first_token;
    if (node.depth == 1 && node.byte < 128 && ends_token) found[node.byte] = true;
  }
  for (int byte = 0x20; byte < 0x7F; ++byte) {
    TANDEM_REQUIRE(
        found[byte], str_cat("the vocabulary has no token for the byte ", byte, " alone"));
  }
  return trie;
}

std::string_view VocabularyTrie::text(int32_t token) const {
  if (token < 0 || static_cast<size_t>(token) + 1 >= texts_.size()) return {};
  const uint32_t begin = texts_[static_cast<size_t>(token)];
  const uint32_t end = texts_[static_cast<size_t>(token) + 1];
  return {bytes_.data() + begin, end - begin};
}

}  // namespace tandem
