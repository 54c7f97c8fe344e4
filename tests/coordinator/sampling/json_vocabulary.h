#pragma once

#include <memory>
#include <string>
#include <vector>

#include "coordinator/sampling/vocabulary_trie.h"

namespace tandem::test {

/// A byte-level vocabulary: every byte alone, then pieces as a model has them, some of which cross
/// the borders of JSON tokens, then an end token without text.
struct JsonVocabulary {
  std::vector<std::string> texts;
  std::shared_ptr<const VocabularyTrie> trie;
  int32_t end_token = 0;
};

JsonVocabulary json_vocabulary();

}  // namespace tandem::test
