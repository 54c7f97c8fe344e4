// Encoding and decoding throughput on one core. Aim: at least 10 MB/s.
//
// The vocabulary is the nano model's and, where TANDEM_TEST_DEEPSEEK_TOKENIZER names one, the real
// one of 128k tokens. Texts are 1 MB: the repository's own sources, and sentences of English and of
// mixed Chinese, Japanese and English in random order.
#include "coordinator/tokenizer/tokenizer.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "tests/support/environment.h"
#include "tests/support/paths.h"

namespace tandem {
namespace {

constexpr size_t kTextBytes = 1 << 20;

constexpr std::string_view kEnglish[] = {
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, ",
    "must be in want of a wife. ",
    "However little known the feelings or views of such a man may be on his first entering a "
    "neighbourhood, this truth is so well fixed in the minds of the surrounding families, ",
    "that he is considered the rightful property of some one or other of their daughters.\n\n",
    "\"My dear Mr. Bennet,\" said his lady to him one day, ",
    "\"have you heard that Netherfield Park is let at last?\"\n",
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in "
    "my purse, and nothing particular to interest me on shore, ",
    "I thought I would sail about a little and see the watery part of the world. ",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age "
    "of foolishness, it was the epoch of belief, it was the epoch of incredulity. ",
    "Whenever I find myself growing grim about the mouth; whenever it is a damp, drizzly November "
    "in my soul, I account it high time to get to sea as soon as I can.\n",
};

constexpr std::string_view kMixed[] = {
    "天下大势，分久必合，合久必分。",
    "学而时习之，不亦说乎？有朋自远方来，不亦乐乎？\n",
    "服务器在第 3 次重试后返回了 503 错误，请检查 GPU 内存是否足够。",
    "吾輩は猫である。名前はまだ無い。",
    "どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所でニャーニャー泣いていた事だけは記"
    "憶している。\n",
    "道可道，非常道；名可名，非常名。",
    "模型的权重直接从内存映射的文件中读取，不会再复制一份。",
    "The tokenizer（分词器）把文本切成 token，速度约为 10 MB/s。\n",
    "山路を登りながら、こう考えた。智に働けば角が立つ。情に棹させば流される。",
    "故天将降大任于是人也，必先苦其心志，劳其筋骨，饿其体肤，空乏其身。\n\n",
    "请用 Python 写一个函数：def add(a, b): return a + b，并解释它的时间复杂度。",
    "コンテキスト長は1,048,576トークンまで対応しています。",
};

template <size_t kCount>
std::string shuffled(const std::string_view (&sentences)[kCount]) {
  Rng rng(1);
  std::string text;
  while (text.size() < kTextBytes) text += sentences[(rng.next() >> 32) % kCount];
  return text;
}

// Sources in the order of their paths, again and again.
std::string code() {
  std::vector<std::string> paths;
  for (const char* folder : {"base", "model", "kernels", "coordinator", "worker"}) {
    const std::string root = test::repo_path(folder);
    if (!std::filesystem::exists(root)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
      const auto extension = entry.path().extension();
      if (extension == ".h" || extension == ".cc") paths.push_back(entry.path());
    }
  }
  TANDEM_CHECK(!paths.empty());
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (size_t i = 0; text.size() < kTextBytes; ++i)
    text += test::read_text(paths[i % paths.size()]);
  return text;
}

using SharedTokenizer = std::shared_ptr<const Tokenizer>;

void encode(benchmark::State& state, const SharedTokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  TANDEM_CHECK(tokenizer->encode_text(text, ids).ok());
  TANDEM_CHECK(tokenizer->decode(ids, /*skip_special=*/false) == text);
  state.counters["bytes_per_token"] =
      static_cast<double>(text.size()) / static_cast<double>(ids.size());
  for (auto _ : state) {
    ids.clear();
    benchmark::DoNotOptimize(tokenizer->encode_text(text, ids).ok());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

void decode(benchmark::State& state, const SharedTokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  TANDEM_CHECK(tokenizer->encode_text(text, ids).ok());
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer->decode(ids, /*skip_special=*/false));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

void load(benchmark::State& state, const std::string& json) {
  for (auto _ : state) benchmark::DoNotOptimize(Tokenizer::from_hf_json(json).ok());
}

double percentile_99(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  return sorted[(sorted.size() * 99 - 1) / 100];
}

void settle(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond)->MinTime(0.05)->Repetitions(20);
  bench->ReportAggregatesOnly()->ComputeStatistics("p99", percentile_99);
}

void add_cases(const std::string& vocabulary, const std::string& path) {
  const std::string json = test::read_text(path);
  auto tokenizer = Tokenizer::from_hf_json(json);
  TANDEM_CHECK(tokenizer.ok());
  settle(benchmark::RegisterBenchmark(("load/" + vocabulary).c_str(), load, json));
  const std::pair<const char*, std::string> texts[] = {
      {"/code", code()},
      {"/english", shuffled(kEnglish)},
      {"/mixed_cjk", shuffled(kMixed)},
      {"/one_letter", std::string(kTextBytes, 'a')}};
  for (const auto& [name, text] : texts) {
    settle(benchmark::RegisterBenchmark(
        ("encode/" + vocabulary + name).c_str(), encode, *tokenizer, text));
    settle(benchmark::RegisterBenchmark(
        ("decode/" + vocabulary + name).c_str(), decode, *tokenizer, text));
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  tandem::add_cases("nano", tandem::test::golden_path("tokenizer/nano-tokenizer.json"));
  if (const auto path = tandem::test::deepseek_tokenizer_path(); path.has_value()) {
    tandem::add_cases("deepseek", *path);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
