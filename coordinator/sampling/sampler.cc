#include "coordinator/sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/limits.h"
#include "coordinator/sampling/logit_scan.h"

namespace tandem {
namespace {

float weight_of(float logit, float peak, float temperature) {
  return exp_weight((logit - peak) / temperature);
}

/// Walks `candidates` in the order they lie in.
int32_t walk(std::span<const Candidate> candidates, double r) {
  for (const Candidate& candidate : candidates) {
    r -= static_cast<double>(candidate.weight);
    if (r <= 0.0) return candidate.id;
  }
  return candidates.back().id;  // rounding left a remainder
}

}  // namespace

Result<Sampler> Sampler::create(SamplingParams params, int64_t vocab_size, uint64_t fallback_seed) {
  TANDEM_TRY(validate(params, vocab_size));
  const uint64_t seed = params.seed.value_or(fallback_seed);
  return Sampler(std::move(params), vocab_size, seed);
}

Sampler::Sampler(SamplingParams params, int64_t vocab_size, uint64_t seed)
    : params_(std::move(params)), vocab_size_(static_cast<size_t>(vocab_size)), rng_(seed) {
  if (has_penalties()) {
    seen_.reserve(vocab_size_);
    marks_.resize(vocab_size_);
  }
  if (has_penalties() || !params_.logit_bias.empty()) adjusted_.resize(vocab_size_);
  if (params_.temperature <= 0.0f) return;

  const auto top_k = static_cast<size_t>(std::min(params_.top_k, kTopKMax));
  candidates_.reserve(top_k > 0 ? select_top_room(top_k) : vocab_size_);
  const bool weighs_all = top_k == 0 && (params_.top_p < 1.0f || params_.min_p <= 0.0f);
  if (weighs_all) {
    weights_.resize(vocab_size_);
    run_sums_.resize((vocab_size_ + kScanRun - 1) / kScanRun);
  }
}

bool Sampler::has_penalties() const {
  return params_.presence_penalty != 0.0f || params_.frequency_penalty != 0.0f ||
         params_.repetition_penalty != 1.0f;
}

Status Sampler::add_prompt(std::span<const int32_t> tokens) {
  for (const int32_t token : tokens) {
    TANDEM_REQUIRE(
        token >= 0 && static_cast<size_t>(token) < vocab_size_,
        str_cat("prompt token ", token, " is outside the vocabulary of ", vocab_size_));
  }
  for (const int32_t token : tokens) count(token, 0);
  return {};
}

Status Sampler::accept(int32_t token) {
  TANDEM_REQUIRE(
      token >= 0 && static_cast<size_t>(token) < vocab_size_,
      str_cat("token ", token, " is outside the vocabulary of ", vocab_size_));
  count(token, 1);
  return {};
}

void Sampler::count(int32_t token, uint32_t occurrences) {
  if (marks_.empty()) return;
  uint32_t& mark = marks_[static_cast<size_t>(token)];
  if (mark == 0) {
    seen_.push_back(token);
    mark = 1;
  }
  mark += occurrences;
}

Result<Choice> Sampler::choose(
    std::span<const float> logits, bool greedy, TokenConstraint* constraint) {
  TANDEM_REQUIRE(
      logits.size() == vocab_size_,
      str_cat("got ", logits.size(), " logits for a vocabulary of ", vocab_size_));
  const LogitPeak raw_peak = find_peak(logits);
  if (raw_peak.id < 0) {
    return Status(
        StatusCode::kDataLoss, "the logits hold a NaN or plus infinity, or no finite value");
  }
  const std::span<const float> adjusted = adjust(logits, greedy, constraint);
  const bool changed = adjusted.data() != logits.data();
  const LogitPeak peak = changed ? find_peak(adjusted) : raw_peak;
  if (peak.id < 0) {
    return Status(StatusCode::kInternal, "penalties, biases and constraint leave no finite logit");
  }

  Choice choice;
  const bool takes_peak = greedy || params_.temperature <= 0.0f;
  choice.token = takes_peak ? peak.id : draw(adjusted, peak.logit);
  if (params_.logprobs) list_logprobs(logits, raw_peak.logit, &choice);
  return choice;
}

std::span<const float> Sampler::adjust(
    std::span<const float> logits, bool greedy, TokenConstraint* constraint) {
  const bool penalise = !greedy && !seen_.empty();
  if (!penalise && params_.logit_bias.empty() && constraint == nullptr) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  if (penalise) apply_penalties();
  for (const TokenBias& entry : params_.logit_bias) {
    adjusted_[static_cast<size_t>(entry.id)] += entry.bias;
  }
  if (constraint != nullptr) constraint->mask(adjusted_);
  return adjusted_;
}

void Sampler::apply_penalties() {
  for (const int32_t token : seen_) {
    float& logit = adjusted_[static_cast<size_t>(token)];
    logit = logit > 0.0f ? logit / params_.repetition_penalty : logit * params_.repetition_penalty;
    const uint32_t occurrences = marks_[static_cast<size_t>(token)] - 1;
    if (occurrences > 0) {
      logit -= params_.presence_penalty;
      logit -= params_.frequency_penalty * static_cast<float>(occurrences);
    }
  }
}

int32_t Sampler::draw(std::span<const float> logits, float peak) {
  if (params_.top_k > 0) return draw_from_top_k(logits, peak);
  if (params_.top_p < 1.0f) return draw_from_nucleus(logits, peak);
  return params_.min_p > 0.0f ? draw_above_floor(logits, peak) : draw_by_id(logits, peak);
}

int32_t Sampler::draw_by_id(std::span<const float> logits, float peak) {
  const double total = exp_weights(logits, peak, params_.temperature, weights_, run_sums_);
  double r = static_cast<double>(rng_.uniform()) * total;
  // The run in which r ends, then the token inside it. A run that sums to 0 has no token to draw.
  size_t last = 0;
  for (size_t run_idx = 0; run_idx < run_sums_.size(); ++run_idx) {
    if (run_sums_[run_idx] <= 0.0) continue;
    last = run_idx;
    if (r - run_sums_[run_idx] <= 0.0) break;
    r -= run_sums_[run_idx];
  }
  const size_t begin = last * kScanRun;
  const size_t end = std::min(begin + kScanRun, weights_.size());
  size_t chosen = begin;
  for (size_t i = begin; i < end; ++i) {
    if (weights_[i] <= 0.0f) continue;
    chosen = i;
    r -= static_cast<double>(weights_[i]);
    if (r <= 0.0) break;
  }
  return static_cast<int32_t>(chosen);
}

int32_t Sampler::draw_above_floor(std::span<const float> logits, float peak) {
  // A first cut by logit, a little below the exact one, saves the exponentials of what is far
  // below.
  const float gap = std::log(params_.min_p) * params_.temperature * 1.0001f;
  const float logit_floor = std::nextafter(peak + gap, -std::numeric_limits<float>::infinity());
  candidates_.clear();
  double total = 0.0;
  for_each_at_least(logits, logit_floor, [&](int32_t id, float logit) {
    const float weight = weight_of(logit, peak, params_.temperature);
    if (weight <= 0.0f || weight < params_.min_p) return;
    candidates_.push_back({logit, weight, id});
    total += static_cast<double>(weight);
  });
  return walk(candidates_, static_cast<double>(rng_.uniform()) * total);
}

int32_t Sampler::draw_from_top_k(std::span<const float> logits, float peak) {
  select_top(logits, static_cast<size_t>(std::min(params_.top_k, kTopKMax)), &candidates_);
  double total = 0.0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = weight_of(candidate.logit, peak, params_.temperature);
    total += static_cast<double>(candidate.weight);
  }
  const double target = static_cast<double>(params_.top_p) * total;
  size_t num_kept = 0;
  double kept_sum = 0.0;
  for (const Candidate& candidate : candidates_) {
    if (candidate.weight <= 0.0f || candidate.weight < params_.min_p) break;
    ++num_kept;
    kept_sum += static_cast<double>(candidate.weight);
    if (params_.top_p < 1.0f && kept_sum >= target) break;
  }
  const double r = static_cast<double>(rng_.uniform()) * kept_sum;
  return walk(std::span(candidates_).first(num_kept), r);
}

int32_t Sampler::draw_from_nucleus(std::span<const float> logits, float peak) {
  const double total = exp_weights(logits, peak, params_.temperature, weights_, run_sums_);
  for (float& weight : weights_) weight = weight >= params_.min_p ? weight : 0.0f;
  buckets_.fill(weights_);
  const double target = static_cast<double>(params_.top_p) * total;
  const double kept_sum = buckets_.find(logits, weights_, target, &candidates_).sum_to;
  const double r = static_cast<double>(rng_.uniform()) * kept_sum;
  return buckets_.find(logits, weights_, r, &candidates_).id;
}

void Sampler::list_logprobs(std::span<const float> logits, float peak, Choice* choice) {
  const double norm = log_sum_exp(logits, peak);
  const auto logprob = [&](int32_t token) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(token)]) - norm);
  };
  choice->logprob = logprob(choice->token);
  if (params_.num_logprobs == 0) return;
  select_top(logits, static_cast<size_t>(params_.num_logprobs), &candidates_);
  choice->top.reserve(candidates_.size());
  for (const Candidate& candidate : candidates_) {
    choice->top.push_back({candidate.id, logprob(candidate.id)});
  }
}

}  // namespace tandem
