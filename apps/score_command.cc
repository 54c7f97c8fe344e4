#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/runtime.h"
#include "apps/terminal.h"
#include "base/file_stream.h"
#include "coordinator/engine/score.h"

namespace tandem {
namespace {

constexpr size_t kTextBytesMax = size_t{256} << 20;

struct ScoreOptions {
  RuntimeOptions runtime;
  std::string file;
  bool raw = false;
  bool bos = false;
  int64_t num_context = 0;
  bool json = false;
  bool per_token = false;
};

std::vector<int32_t> tokens_of_file(const LoadedModel& loaded, const ScoreOptions& options) {
  const std::string text = require_ok(read_text_file(options.file, kTextBytesMax));
  std::vector<int32_t> tokens;
  if (options.bos) {
    require_ok(loaded.tokenizer->encode_raw(loaded.protocol->bos(), tokens));
  }
  require_ok(
      options.raw ? loaded.tokenizer->encode_raw(text, tokens)
                  : loaded.tokenizer->encode_text(text, tokens));
  return tokens;
}

/// Sums the log-probabilities of tokens[num_context ...], each given all before it.
class Scorer {
 public:
  Scorer(const ScoreOptions& options, const Tokenizer& tokenizer, std::vector<int32_t> tokens)
      : options_(options), tokenizer_(tokenizer), tokens_(std::move(tokens)) {}

  const std::vector<int32_t>& tokens() const { return tokens_; }

  void take(int64_t pos, std::span<const float> logits) {
    const int64_t next = pos + 1;
    err_.show_progress("scoring", next, static_cast<int64_t>(tokens_.size()));
    if (next >= static_cast<int64_t>(tokens_.size()) || next < options_.num_context) return;
    const double logprob = log_probability(logits, tokens_[next]);
    sum_ += logprob;
    ++num_scored_;
    if (!options_.per_token) return;
    err_.clear_progress();
    nlohmann::ordered_json line;
    line["pos"] = next;
    line["token"] = tokens_[next];
    line["text"] = std::string(tokenizer_.token_bytes(tokens_[next]));
    line["logprob"] = logprob;
    std::printf(
        "%s\n",
        line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }

  void print() {
    err_.clear_progress();
    const double average = num_scored_ == 0 ? 0 : -sum_ / static_cast<double>(num_scored_);
    if (options_.json) {
      nlohmann::ordered_json out;
      out["tokens"] = tokens_.size();
      out["scored"] = num_scored_;
      out["nll"] = -sum_;
      out["avg_nll"] = average;
      out["ppl"] = std::exp(average);
      std::printf("%s\n", out.dump().c_str());
      return;
    }
    std::printf(
        "tokens=%zu scored=%lld nll=%.6f avg_nll=%.6f ppl=%.6f\n", tokens_.size(),
        static_cast<long long>(num_scored_), -sum_, average, std::exp(average));
  }

 private:
  const ScoreOptions& options_;
  const Tokenizer& tokenizer_;
  std::vector<int32_t> tokens_;
  Terminal err_{stderr};
  double sum_ = 0;
  int64_t num_scored_ = 0;
};

void score(const ScoreOptions& options) {
  auto runtime = require_ok(Runtime::create(options.runtime));
  Scorer scorer(options, *runtime->loaded().tokenizer, tokens_of_file(runtime->loaded(), options));
  require_ok(for_each_logits(
      runtime->pipeline(), scorer.tokens(), LogitsWanted::kAll,
      [&](int64_t pos, std::span<const float> logits) { scorer.take(pos, logits); }));
  scorer.print();
}

}  // namespace

void add_score_command(CLI::App& program) {
  auto options = std::make_shared<ScoreOptions>();
  CLI::App* command =
      program.add_subcommand("score", "Log-probabilities and perplexity of a text file");
  add_runtime_options(*command, options->runtime);
  command->add_option("file", options->file, "Text to score")->required()->type_name("FILE");
  command->add_flag("--raw", options->raw, "Special-token text in the file counts");
  command->add_flag("--bos", options->bos, "Put the begin-of-sentence token in front");
  command->add_option("--context", options->num_context, "Leading tokens that are context only")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command->add_flag("--per-token", options->per_token, "One JSON line for each scored token");
  command->add_flag("--json", options->json, "Print the totals as JSON");
  command->callback([options] { score(*options); });
}

}  // namespace tandem
