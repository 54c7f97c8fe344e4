#include "coordinator/sampling/sampling_params.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>

#include "base/limits.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr int64_t kVocabSize = 100;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Case {
  const char* text;  // what the message says
  std::function<void(SamplingParams*)> change;
};

TEST(SamplingParamsTest, AcceptsDefaultsAndBothEndsOfEachRange) {
  EXPECT_OK(validate(SamplingParams{}, kVocabSize));
  SamplingParams low{
      .temperature = 0.0f,
      .top_p = 0.0f,
      .min_p = 0.0f,
      .top_k = 0,
      .presence_penalty = -2.0f,
      .frequency_penalty = -2.0f,
      .repetition_penalty = 0.01f,
      .logit_bias = {{0, -100.0f}}};
  EXPECT_OK(validate(low, kVocabSize));
  SamplingParams high{
      .temperature = 100.0f,
      .top_p = 1.0f,
      .min_p = 1.0f,
      .top_k = kVocabMax,
      .presence_penalty = 2.0f,
      .frequency_penalty = 2.0f,
      .repetition_penalty = 100.0f,
      .logit_bias = {{0, 1.0f}, {kVocabSize - 1, 100.0f}},
      .logprobs = true,
      .num_logprobs = kLogprobsMax};
  EXPECT_OK(validate(high, kVocabSize));
}

TEST(SamplingParamsTest, NamesFieldValueAndRange) {
  const Case cases[] = {
      {"temperature is -0.5, must be from 0 to 100", [](auto* p) { p->temperature = -0.5f; }},
      {"temperature is 101, must be", [](auto* p) { p->temperature = 101.0f; }},
      {"temperature is nan, must be", [](auto* p) { p->temperature = kNan; }},
      {"top_p is 1.5, must be from 0 to 1", [](auto* p) { p->top_p = 1.5f; }},
      {"top_p is nan", [](auto* p) { p->top_p = kNan; }},
      {"min_p is -1, must be from 0 to 1", [](auto* p) { p->min_p = -1.0f; }},
      {"top_k is -1, must be from 0 to", [](auto* p) { p->top_k = -1; }},
      {"presence_penalty is 2.5, must be from -2 to 2",
       [](auto* p) { p->presence_penalty = 2.5f; }},
      {"frequency_penalty is -3", [](auto* p) { p->frequency_penalty = -3.0f; }},
      {"repetition_penalty is 0, must be from 0.01", [](auto* p) { p->repetition_penalty = 0.0f; }},
      {"logit_bias token id is 100, must be from 0 to 99",
       [](auto* p) {
         p->logit_bias = {{100, 1.0f}};
       }},
      {"logit_bias token id is -1",
       [](auto* p) {
         p->logit_bias = {{-1, 1.0f}};
       }},
      {"logit_bias has token id 3 after 3",
       [](auto* p) {
         p->logit_bias = {{3, 1.0f}, {3, 2.0f}};
       }},
      {"logit_bias value is 101",
       [](auto* p) {
         p->logit_bias = {{3, 101.0f}};
       }},
      {"logit_bias has 1025 entries",
       [](auto* p) { p->logit_bias.resize(static_cast<size_t>(kLogitBiasMax) + 1); }},
      {"num_logprobs is 129, must be from 0 to 128",
       [](auto* p) {
         p->logprobs = true;
         p->num_logprobs = 129;
       }},
      {"num_logprobs is 5, must be 0 unless logprobs", [](auto* p) { p->num_logprobs = 5; }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.text);
    SamplingParams params;
    c.change(&params);
    EXPECT_ERROR(validate(params, kVocabSize), StatusCode::kInvalidArgument, c.text);
  }
  EXPECT_ERROR(validate(SamplingParams{}, 0), StatusCode::kInvalidArgument, "vocabulary size is 0");
}

}  // namespace
}  // namespace tandem
