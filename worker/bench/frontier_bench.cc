#include "worker/bench/frontier_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/limits.h"

namespace tandem {
namespace {

/// Counts what is written to it.
class CountingSink final : public ByteSink {
 public:
  Status write(std::span<const std::byte> bytes) override {
    count_ += static_cast<int64_t>(bytes.size());
    return {};
  }
  int64_t count() const { return count_; }

 private:
  int64_t count_ = 0;
};

/// The first of the largest values, `excluded` left out. Two passes without an index: it must not
/// add to a GPU's step, whose vocabulary has 129,000 tokens.
int32_t likeliest(const float* logits, int64_t vocab_size, int32_t excluded) {
  constexpr int64_t kLanes = 16;
  const auto largest = [&](int64_t begin, int64_t end) {
    float lanes[kLanes];
    std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int64_t l = 0; l < kLanes; ++l) {
        lanes[l] = logits[i + l] > lanes[l] ? logits[i + l] : lanes[l];
      }
    }
    for (; i < end; ++i) lanes[0] = std::max(lanes[0], logits[i]);
    return *std::max_element(lanes, lanes + kLanes);
  };
  const float peak = std::max(largest(0, excluded), largest(excluded + 1, vocab_size));
  int32_t id = 0;
  while (id == excluded || logits[id] != peak) {
    if (++id == vocab_size) return excluded == 0 ? 1 : 0;  // no number among them
  }
  return id;
}

class FrontierRun {
 public:
  FrontierRun(StageExecutor& stage, int32_t excluded_token, const Clock& clock)
      : stage_(stage), excluded_token_(excluded_token), clock_(clock) {}

  /// Appends tokens in chunks that end on the grid; next_ is the likeliest token after them.
  Status prefill(std::span<const int32_t> tokens) {
    while (!tokens.empty()) {
      const int64_t begin = stage_.length(0);
      int64_t end =
          begin + std::min<int64_t>(stage_.info().max_rows, static_cast<int64_t>(tokens.size()));
      const int64_t grid_end = end / kChunkGridTokens * kChunkGridTokens;
      if (grid_end > begin && end - begin < static_cast<int64_t>(tokens.size())) end = grid_end;
      const auto count = static_cast<size_t>(end - begin);
      TANDEM_TRY(step(tokens.first(count), count == tokens.size(), Phase::kPrefill));
      tokens = tokens.subspan(count);
    }
    return {};
  }

  Status decode(int64_t num_tokens, FrontierResult& out) {
    const Clock::Time start = clock_.now();
    for (int64_t i = 0; i < num_tokens; ++i) {
      const int32_t token = next_;
      TANDEM_TRY(step({&token, 1}, true, Phase::kDecode));
      if (i == 0) out.first_token_seconds = seconds_between(start, clock_.now());
    }
    out.gen_tokens = num_tokens;
    out.gen_seconds = seconds_between(start, clock_.now());
    return {};
  }

 private:
  Status step(std::span<const int32_t> tokens, bool wants_logits, Phase phase) {
    const auto pos = static_cast<int32_t>(stage_.length(0));
    batch_.rows.clear();
    for (size_t i = 0; i < tokens.size(); ++i) {
      batch_.rows.push_back(
          {0, pos + static_cast<int32_t>(i), tokens[i], wants_logits && i + 1 == tokens.size(),
           phase});
    }
    TANDEM_TRY(stage_.submit({&batch_, {}}));
    TANDEM_TRY_ASSIGN(const StageResult result, stage_.collect());
    if (wants_logits) {
      next_ = likeliest(result.logits.row(0), stage_.info().vocab_size, excluded_token_);
    }
    return {};
  }

  StageExecutor& stage_;
  int32_t excluded_token_;
  const Clock& clock_;
  StepBatch batch_;
  int32_t next_ = 0;
};

}  // namespace

double FrontierResult::gen_tps_steady() const {
  if (gen_tokens < 2) return 0;
  return double(gen_tokens - 1) / (gen_seconds - first_token_seconds);
}

Result<std::vector<int64_t>> list_frontiers(
    const FrontierOptions& options, int64_t context_tokens) {
  TANDEM_REQUIRE(options.ctx_start >= 1, "the first context length must be at least 1");
  TANDEM_REQUIRE(
      options.ctx_max >= options.ctx_start,
      str_cat("context lengths from ", options.ctx_start, " to ", options.ctx_max));
  TANDEM_REQUIRE(options.step_incr >= 1 || options.step_mul > 1, "context lengths would not grow");
  TANDEM_REQUIRE(
      options.step_mul >= 1 && options.step_mul <= 1e6, "the step factor must be 1 to 1e6");
  TANDEM_REQUIRE(options.gen_tokens >= 0, "the number of tokens to generate is negative");
  TANDEM_REQUIRE(
      options.ctx_max + options.gen_tokens <= context_tokens,
      str_cat(
          "needs a context of ", options.ctx_max + options.gen_tokens, " tokens, has ",
          context_tokens));
  std::vector<int64_t> out;
  for (int64_t ctx = options.ctx_start;;) {
    out.push_back(ctx);
    if (ctx == options.ctx_max) return out;
    const double next = options.step_mul > 1 ? std::ceil(double(ctx) * options.step_mul)
                                             : double(ctx) + double(options.step_incr);
    ctx = std::max<int64_t>(ctx + 1, static_cast<int64_t>(std::min(next, double(options.ctx_max))));
  }
}

Status run_frontiers(
    StageExecutor& stage, std::span<const int32_t> tokens, const FrontierOptions& options,
    int32_t excluded_token, const Clock& clock,
    const std::function<void(const FrontierResult&)>& report) {
  TANDEM_REQUIRE(
      stage.info().range.embeds && stage.info().range.emits_logits,
      "a benchmark needs a stage that holds the whole model");
  TANDEM_TRY_ASSIGN(
      const std::vector<int64_t> frontiers, list_frontiers(options, stage.info().context_tokens));
  TANDEM_REQUIRE(
      static_cast<int64_t>(tokens.size()) >= frontiers.back(),
      str_cat("the prompt has ", tokens.size(), " tokens, ", frontiers.back(), " are needed"));
  TANDEM_TRY(stage.reset(0));
  FrontierRun run(stage, excluded_token, clock);
  for (const int64_t frontier : frontiers) {
    FrontierResult result;
    result.ctx_tokens = frontier;
    const int64_t begin = stage.length(0);
    result.prefill_tokens = frontier - begin;
    const Clock::Time start = clock.now();
    TANDEM_TRY(run.prefill(
        tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(result.prefill_tokens))));
    result.prefill_seconds = seconds_between(start, clock.now());
    CountingSink sink;
    TANDEM_TRY(stage.save(0, sink));
    result.state_bytes = sink.count();
    if (options.gen_tokens > 0) {
      TANDEM_TRY_ASSIGN(const CheckpointId checkpoint, stage.checkpoint(0));
      TANDEM_TRY(run.decode(options.gen_tokens, result));
      TANDEM_TRY(stage.restore(0, checkpoint));
      TANDEM_TRY(stage.drop_checkpoint(checkpoint));
    }
    report(result);
  }
  return stage.reset(0);
}

}  // namespace tandem
