#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/random.h"
#include "tests/support/naive_v4.h"
#include "tests/support/near.h"
#include "tests/support/paths.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

using naive::V4;
using naive::V4Shape;
using naive::V4Types;
using naive::V4Weights;

// Past the window, the second HCA row (256), and the count of 8 at which the index selects.
constexpr size_t kNumTokens = 300;

std::vector<int32_t> random_tokens(int64_t vocab, uint64_t seed) {
  Rng rng(seed);
  std::vector<int32_t> out;
  for (size_t i = 0; i < kNumTokens; ++i) {
    out.push_back(static_cast<int32_t>(rng.next() % static_cast<uint64_t>(vocab)));
  }
  return out;
}

LocalStageOptions options_of(Numerics numerics) {
  LocalStageOptions options;
  options.numerics = numerics;
  options.context_tokens = 512;
  options.max_rows = 512;
  return options;
}

/// Relative Euclidean difference of each row.
std::vector<double> row_errors(const Tensor& actual, const Tensor64& expected) {
  std::vector<double> out;
  for (int64_t t = 0; t < expected.rows; ++t) {
    double norm = 0;
    double difference = 0;
    for (int64_t i = 0; i < expected.cols; ++i) {
      const double d = static_cast<double>(actual.at(t, i)) - expected.at(t, i);
      norm += expected.at(t, i) * expected.at(t, i);
      difference += d * d;
    }
    out.push_back(std::sqrt(difference / norm));
  }
  return out;
}

struct Spread {
  double median = 0;
  double worst = 0;
  size_t worst_row = 0;
};

Spread spread_of(std::vector<double> errors) {
  Spread out;
  const auto worst = std::max_element(errors.begin(), errors.end());
  out.worst = *worst;
  out.worst_row = static_cast<size_t>(worst - errors.begin());
  std::nth_element(errors.begin(), errors.begin() + errors.size() / 2, errors.end());
  out.median = errors[errors.size() / 2];
  return out;
}

/// A random model as a file and as the float64 model of the same numbers.
class TinyModel {
 public:
  TinyModel(const V4Shape& shape, const V4Types& types, uint64_t seed)
      : shape_(shape), weights_(naive::random_v4_weights(shape, types, seed)) {
    const std::string path = temp_path("tiny_v4.gguf");
    naive::write_v4_gguf(path, shape, weights_);
    opened_ = open_test_model(path);
    std::filesystem::remove(path);  // the mapping keeps it
  }

  const OpenModel& opened() const { return opened_; }
  V4 reference() const { return V4(shape_, weights_); }

 private:
  V4Shape shape_;
  V4Weights weights_;
  OpenModel opened_;
};

/// What each layer of the engine puts out, and the logits, for the whole sequence in one step: a
/// stage for each layer.
std::vector<Tensor> run_by_layer(const OpenModel& opened, const std::vector<int32_t>& tokens) {
  const int32_t num_layers = opened.model->spec().num_layers;
  ThreadPool pool(2);
  StepBatch batch;
  for (const int32_t token : tokens) {
    batch.rows.push_back({0, static_cast<int32_t>(batch.rows.size()), token, true});
  }
  std::vector<Tensor> out;
  for (int32_t il = 0; il < num_layers; ++il) {
    const LayerRange range{il, il + 1, il == 0, il + 1 == num_layers};
    auto stage =
        LocalStage::create(opened.model, opened.file, range, options_of(Numerics::kExact), pool);
    EXPECT_OK(stage);
    ConstRows boundary;
    if (il > 0) {
      const Tensor& before = out.back();
      boundary = {before.values.data(), before.rows, before.cols, before.cols};
    }
    EXPECT_OK((*stage)->submit({&batch, boundary}));
    const Result<StageResult> result = (*stage)->collect();
    EXPECT_OK(result);
    const ConstRows rows = il + 1 == num_layers ? result->logits : result->boundary;
    Tensor copy(rows.rows, rows.cols);
    for (int64_t t = 0; t < rows.rows; ++t) std::copy_n(rows.row(t), rows.cols, copy.row(t));
    out.push_back(std::move(copy));
  }
  return out;
}

/// Layer by layer: the float64 layer gets what the engine's layer got, so that a difference shows
/// where it arises and a value that rounds to the other side is not carried on.
///
/// Without official rounding a layer is a chain of a dozen float32 sums of up to 2048 terms, each
/// 2^-24 sqrt(terms) = 3e-6 off at most if errors add up as random ones do.
/// With it, a value of a K/V row within float32's error of a tie may take the neighbouring e4m3
/// code (every second row has a chance of one in fifty), which is 1/16 of that one value; as one of
/// 512 dims of one of 100 rows that a head averages it moves the output by less than 1/16 /
/// sqrt(512) = 3e-3 at most, as a rule by 1 % of that. Few rows see one, so the median stays at
/// float32's.
void expect_every_layer_matches(const TinyModel& tiny, const V4Shape& shape, uint64_t seed) {
  const std::vector<int32_t> tokens = random_tokens(shape.V, seed);
  const V4 reference = tiny.reference();
  const std::vector<Tensor> actual = run_by_layer(tiny.opened(), tokens);
  Tensor64 before = reference.embed(tokens);
  for (int64_t il = 0; il < shape.layers(); ++il) {
    Tensor64 expected = reference.layer(il, before, tokens);
    const bool last = il + 1 == shape.layers();
    if (last) expected = reference.head(expected);
    const Tensor& out = actual[static_cast<size_t>(il)];
    ASSERT_EQ(out.rows, expected.rows);
    ASSERT_EQ(out.cols, expected.cols);
    const Spread spread = spread_of(row_errors(out, expected));
    std::printf(
        "layer %d ratio %3d%s: median %.1e, worst %.1e at position %zu\n", static_cast<int>(il),
        shape.ratios[static_cast<size_t>(il)], last ? " and head" : "", spread.median, spread.worst,
        spread.worst_row);
    EXPECT_LE(spread.median, shape.official_rounding ? 2e-5 : 3e-6) << "layer " << il;
    EXPECT_LE(spread.worst, shape.official_rounding ? 3e-3 : 3e-6) << "layer " << il;
    before = widen(out);
  }
}

Tensor64 whole_reference(
    const V4& reference, const V4Shape& shape, const std::vector<int32_t>& tokens) {
  Tensor64 streams = reference.embed(tokens);
  for (int64_t il = 0; il < shape.layers(); ++il) streams = reference.layer(il, streams, tokens);
  return reference.head(streams);
}

TEST(NaiveModelTest, EveryLayerMatchesWithOfficialRounding) {
  const V4Shape shape;
  expect_every_layer_matches(TinyModel(shape, {}, 1), shape, 11);
}

TEST(NaiveModelTest, EveryLayerMatchesWithoutRounding) {
  V4Shape shape;
  shape.official_rounding = false;
  expect_every_layer_matches(TinyModel(shape, {}, 2), shape, 12);
}

TEST(NaiveModelTest, EveryLayerMatchesWithStoredTypes) {
  V4Shape shape;
  shape.X = 6;
  shape.K = 6;               // every expert
  shape.swiglu_limit = 0.8;  // active
  shape.expert_scale = 2.5;
  shape.G = 4;
  shape.ratios = {128, 4, 0, 4};
  shape.hash_layers = 1;
  const V4Types types{DType::kQ8_0, DType::kMXFP4, DType::kF16, DType::kQ8_0};
  expect_every_layer_matches(TinyModel(shape, types, 3), shape, 13);
}

TEST(NaiveModelTest, AllLayersTogetherMatchWithoutRounding) {
  // Errors of six layers add up; nothing rounds, and no choice of an expert or a row of this seed
  // is within them of a tie.
  V4Shape shape;
  shape.official_rounding = false;
  const TinyModel tiny(shape, {}, 4);
  const std::vector<int32_t> tokens = random_tokens(shape.V, 14);
  Stages stages(tiny.opened(), {}, options_of(Numerics::kExact));
  const Spread spread = spread_of(
      row_errors(stages.feed(0, tokens, 128), whole_reference(tiny.reference(), shape, tokens)));
  std::printf("logits: median %.1e, worst %.1e\n", spread.median, spread.worst);
  EXPECT_LE(spread.worst, 1e-5);
}

TEST(NaiveModelTest, AllLayersTogetherFollowWithOfficialRounding) {
  // One e4m3 code to the other side makes later ones more likely, so the two drift to about what a
  // code is worth; a row that takes another expert or compressed row differs more. Random weights
  // have no confident predictions, so near-ties are as common as they can be.
  const V4Shape shape;
  const TinyModel tiny(shape, {}, 5);
  const std::vector<int32_t> tokens = random_tokens(shape.V, 15);
  Stages stages(tiny.opened(), {}, options_of(Numerics::kExact));
  const Tensor actual = stages.feed(0, tokens, 128);
  const Tensor64 expected = whole_reference(tiny.reference(), shape, tokens);
  const Spread spread = spread_of(row_errors(actual, expected));
  int64_t same = 0;
  for (int64_t t = 0; t < actual.rows; ++t) {
    const auto a = std::max_element(actual.row(t), actual.row(t) + actual.cols) - actual.row(t);
    const auto e =
        std::max_element(expected.row(t), expected.row(t) + expected.cols) - expected.row(t);
    same += a == e ? 1 : 0;
  }
  std::printf(
      "logits: median %.1e, worst %.1e, same argmax at %lld of %lld\n", spread.median, spread.worst,
      static_cast<long long>(same), static_cast<long long>(actual.rows));
  EXPECT_LE(spread.median, 0.01);
  EXPECT_GE(static_cast<double>(same), 0.97 * static_cast<double>(actual.rows));
}

}  // namespace
}  // namespace tandem::test
