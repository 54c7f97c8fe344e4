// Making a mask over a vocabulary of V4's size. The vocabulary is synthetic: all bytes, then words
// of 2 to 10 letters with a share of JSON punctuation such as a real one has.

#include "coordinator/sampling/json_constraint.h"

#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/random.h"

namespace tandem {
namespace {

constexpr int64_t kVocabSize = 129280;

std::shared_ptr<const VocabularyTrie> synthetic_vocabulary() {
  static const char* const kPunctuation[] = {"\"", "\":", "\",", "\\n", "\"}", "{\"", "],", "\\\""};
  Rng rng(5);
  std::vector<std::string> texts(kVocabSize);
  for (size_t id = 0; id + 1 < texts.size(); ++id) {
    if (id < 256) {
      texts[id] = std::string(1, static_cast<char>(id));
      continue;
    }
    if (rng.next() % 2 == 0) texts[id].push_back(' ');
    const uint64_t num_letters = 2 + rng.next() % 9;
    for (uint64_t i = 0; i < num_letters; ++i) {
      // Few letters at first, as in a language.
      texts[id] += static_cast<char>('a' + rng.next() % (i < 2 ? 26 : 12));
    }
    if (rng.next() % 64 == 0) texts[id] += kPunctuation[rng.next() % 8];
  }
  auto trie = VocabularyTrie::create(
      kVocabSize, [&](int32_t id) -> std::string_view { return texts[static_cast<size_t>(id)]; });
  TANDEM_CHECK(trie.ok());
  return std::make_shared<const VocabularyTrie>(std::move(trie).value());
}

const std::shared_ptr<const VocabularyTrie>& vocabulary() {
  static const auto trie = synthetic_vocabulary();
  return trie;
}

JsonConstraint after(std::string_view text) {
  auto grammar = std::make_shared<const JsonGrammar>(JsonGrammar::any_object());
  auto created = JsonConstraint::create(grammar, vocabulary(), {kVocabSize - 1});
  TANDEM_CHECK(created.ok());
  for (const char byte : text) created->accept(static_cast<unsigned char>(byte));
  return std::move(created).value();
}

void build_vocabulary(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(synthetic_vocabulary());
}
BENCHMARK(build_vocabulary)->Unit(benchmark::kMillisecond);

/// A mask for a state that was not met before.
void first_mask(benchmark::State& state, const char* text) {
  std::vector<float> logits(kVocabSize, 0.0f);
  for (auto _ : state) {
    state.PauseTiming();
    JsonConstraint constraint = after(text);
    state.ResumeTiming();
    constraint.mask(logits);
  }
}
BENCHMARK_CAPTURE(first_mask, in_string, "{\"a\":\"");
BENCHMARK_CAPTURE(first_mask, value_start, "{\"a\":");
BENCHMARK_CAPTURE(first_mask, in_number, "{\"a\":12");
BENCHMARK_CAPTURE(first_mask, after_value, "{\"a\":\"b\"");

void known_mask(benchmark::State& state) {
  std::vector<float> logits(kVocabSize, 0.0f);
  JsonConstraint constraint = after("{\"a\":\"");
  for (auto _ : state) constraint.mask(logits);
}
BENCHMARK(known_mask);

}  // namespace
}  // namespace tandem
