#include "tests/coordinator/sampling/json_vocabulary.h"

#include <utility>

namespace tandem::test {

JsonVocabulary json_vocabulary() {
  JsonVocabulary vocabulary;
  for (int byte = 0; byte < 256; ++byte) vocabulary.texts.emplace_back(1, static_cast<char>(byte));
  for (const char* piece :
       {"{\"",
        "\":",
        "\": \"",
        "\",\"",
        "\", \"",
        "\"}",
        "}}",
        "]}",
        "],",
        "true",
        "false",
        "null",
        "name",
        "na",
        "age",
        "hello",
        " world",
        "he said \\\"",
        "\\n",
        "\\u00",
        "12",
        "3.5",
        "e+1",
        "-0",
        "0.",
        "[[",
        "[]",
        "{}",
        "  ",
        "\n  ",
        "\xE4\xBD\xA0",
        "\xC3\xA9t\xC3\xA9",
        "red",
        "green\"",
        "\"red\"",
        "tags\":[\"",
        "],\"",
        "1,2",
        "1]"}) {
    vocabulary.texts.emplace_back(piece);
  }
  vocabulary.end_token = static_cast<int32_t>(vocabulary.texts.size());
  vocabulary.texts.emplace_back();
  auto trie = VocabularyTrie::create(
      static_cast<int64_t>(vocabulary.texts.size()),
      [&](int32_t id) -> std::string_view { return vocabulary.texts[static_cast<size_t>(id)]; });
  vocabulary.trie = std::make_shared<const VocabularyTrie>(std::move(trie).value());
  return vocabulary;
}

}  // namespace tandem::test
