#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "coordinator/sampling/candidates.h"
#include "coordinator/sampling/sampling_params.h"
#include "coordinator/sampling/token_constraint.h"
#include "coordinator/sampling/weight_buckets.h"

namespace tandem {

/// One listed alternative. The log-probability is natural and may be minus infinity.
struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0.0f;
};

struct Choice {
  int32_t token = 0;
  /// Of the token under the model's own distribution: the logits as given, before penalties,
  /// biases, a constraint, temperature and filters. Only with SamplingParams::logprobs.
  std::optional<float> logprob;
  /// The num_logprobs most probable tokens of that distribution, most probable first.
  std::vector<TokenLogprob> top;
};

/// Draws the tokens of one sequence.
///
/// Logits are adjusted in this order: repetition penalty (a positive logit divided, another
/// multiplied), presence and frequency penalty, logit bias, constraint. Then, with p relative to
/// the most probable token:
///   - temperature 0, or greedy: the largest adjusted logit, lowest id on ties;
///   - top_k 0 and top_p 1: tokens with p >= min_p, walked by ascending id;
///   - otherwise: the top_k tokens by descending logit (lowest id on ties), cut at the first with
///     p < min_p and after the one whose cumulative share of those top_k reaches top_p; walked in
///     that order.
/// A walk subtracts weights from r = U * (sum of weights kept) and returns the token at which r is
/// no longer positive. A token of weight 0 is never drawn.
///
/// Threads: one owner.
/// Cost:    each choice is O(vocab_size). After the first choice with the same kind of arguments
///          nothing is allocated unless alternatives are listed.
class Sampler {
 public:
  /// `fallback_seed` is used when params.seed is empty; take it from a source of chance.
  ///
  /// Errors: those of validate(params, vocab_size).
  static Result<Sampler> create(SamplingParams params, int64_t vocab_size, uint64_t fallback_seed);

  Sampler(Sampler&&) = default;
  Sampler& operator=(Sampler&&) = default;

  /// Adds prompt tokens to what the repetition penalty counts. May be called more than once.
  ///
  /// Errors: kInvalidArgument if an id is outside the vocabulary, with nothing added.
  Status add_prompt(std::span<const int32_t> tokens);

  /// Chooses the next token and leaves the history as it is.
  ///
  /// `greedy` is for tokens that belong to the structure of a tool call: temperature 0 and, since
  /// punctuation has to repeat, no penalties; logit bias and constraint hold. Neither that nor
  /// temperature 0 takes a number from the generator. `constraint` may be null.
  ///
  /// Shapes: logits [vocab_size]. Minus infinity excludes a token.
  /// Errors: kInvalidArgument if the length is wrong; kDataLoss if a logit is a NaN or plus
  /// infinity
  ///         or none is finite; kInternal if the adjustments leave no token.
  Result<Choice> choose(
      std::span<const float> logits, bool greedy, TokenConstraint* constraint = nullptr);

  /// Counts a generated token for the penalties.
  ///
  /// Errors: kInvalidArgument if the id is outside the vocabulary.
  Status accept(int32_t token);

  const SamplingParams& params() const { return params_; }

 private:
  Sampler(SamplingParams params, int64_t vocab_size, uint64_t seed);

  bool has_penalties() const;
  std::span<const float> adjust(
      std::span<const float> logits, bool greedy, TokenConstraint* constraint);
  void apply_penalties();
  void count(int32_t token, uint32_t occurrences);

  int32_t draw(std::span<const float> logits, float peak);
  int32_t draw_by_id(std::span<const float> logits, float peak);
  int32_t draw_above_floor(std::span<const float> logits, float peak);
  int32_t draw_from_top_k(std::span<const float> logits, float peak);
  int32_t draw_from_nucleus(std::span<const float> logits, float peak);

  void list_logprobs(std::span<const float> logits, float peak, Choice* choice);

  SamplingParams params_;
  size_t vocab_size_;
  Rng rng_;

  // seen_ lists the tokens that penalties touch; marks_[id] is 0 for the others and 1 + the number
  // of generated occurrences for these. Both are empty without penalties.
  std::vector<int32_t> seen_;
  std::vector<uint32_t> marks_;

  std::vector<float> adjusted_;
  std::vector<float> weights_;
  std::vector<double> run_sums_;
  WeightBuckets buckets_;
  std::vector<Candidate> candidates_;
};

}  // namespace tandem
