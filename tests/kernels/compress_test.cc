#include "kernels/compress/compress.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/near.h"
#include "tests/support/rounded.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kNumBanks = 3;

struct Case {
  int64_t ratio = 4;
  int64_t hidden_dim = 64;
  int64_t row_dim = 128;
  int64_t rotary_dim = 64;
  int64_t history_capacity = 8;
  DType weights = DType::kF32;
  DType rows = DType::kF32;
  RowRounding rounding = RowRounding::kNone;
  std::vector<HostStep::Part> parts;

  int64_t halves() const { return ratio == 4 ? 2 : 1; }
  int64_t width() const { return halves() * row_dim; }
};

double storage_unit(DType dtype) {
  return dtype == DType::kF32 ? 0.0 : (dtype == DType::kF16 ? 0x1p-11 : 0x1p-8);
}

/// Whole sequences, one for each bank, of which the step is a part.
class Sequences {
 public:
  explicit Sequences(const Case& c)
      : c_(c),
        kv_(random_weight(c.weights, c.width(), c.hidden_dim, 121, deviation(c))),
        gate_(random_weight(c.weights, c.width(), c.hidden_dim, 122, deviation(c))),
        ape_(random_weight(DType::kF16, c.ratio, c.width(), 123, 0.5f)),
        norm_(random_vector(c.row_dim, 124, 1, 0.3f)),
        frequencies_(naive::yarn_frequencies(160000, c.rotary_dim, 16, 65536, 32, 1)) {}

  const HostWeight& kv() const { return kv_; }
  const HostWeight& gate() const { return gate_; }
  const HostWeight& ape() const { return ape_; }
  const std::vector<float>& norm() const { return norm_; }
  const std::vector<float>& frequencies() const { return frequencies_; }

  Tensor x(int64_t bank, int64_t pos) const {
    return random_tensor(1, c_.hidden_dim, static_cast<uint64_t>(bank * 2000003 + pos + 1));
  }

  /// u, then g with ape.
  const naive::Vector& projected(int64_t bank, int64_t pos) {
    naive::Vector& row = projected_[{bank, pos}];
    if (!row.empty()) return row;
    const Tensor64 in = widen(x(bank, pos));
    const std::span<const double> values(in.row(0), static_cast<size_t>(c_.hidden_dim));
    row = naive::linear(values, kv_.values);
    naive::Vector g = naive::linear(values, gate_.values);
    for (size_t i = 0; i < g.size(); ++i) g[i] += ape_.values.row(pos % c_.ratio)[i];
    row.insert(row.end(), g.begin(), g.end());
    return row;
  }

  /// The pooled row of window t before the FP8 or FP4 rounding.
  naive::Vector pooled(int64_t bank, int64_t t) {
    const auto d = static_cast<size_t>(c_.row_dim);
    const auto width = static_cast<size_t>(c_.width());
    std::vector<naive::Vector> u;
    std::vector<naive::Vector> g;
    const auto add = [&](int64_t pos, size_t half) {
      const naive::Vector& row = projected(bank, pos);
      const auto from = row.begin() + static_cast<int64_t>(half);
      u.emplace_back(from, from + c_.row_dim);
      g.emplace_back(from + static_cast<int64_t>(width), from + static_cast<int64_t>(width + d));
    };
    if (c_.ratio == 4 && t > 0) {
      for (int64_t r = 0; r < 4; ++r) add(4 * (t - 1) + r, 0);
    }
    for (int64_t r = 0; r < c_.ratio; ++r) add(c_.ratio * t + r, c_.ratio == 4 ? d : 0);
    naive::Vector row = naive::rms_norm(naive::pool(u, g), norm_, 1e-6);
    naive::rotate(row, frequencies_, t * c_.ratio, false);
    if (c_.rounding == RowRounding::kHadamardFp4) naive::hadamard(row);
    return row;
  }

 private:
  static float deviation(const Case& c) {
    return 1.0f / std::sqrt(static_cast<float>(c.hidden_dim));
  }

  Case c_;
  HostWeight kv_, gate_, ape_;
  std::vector<float> norm_, frequencies_;
  std::map<std::pair<int64_t, int64_t>, naive::Vector> projected_;
};

class CompressTest : public OpTest {
 protected:
  CompressArgs args_of(const Case& c, Sequences& sequences) {
    HostStep step;
    step.parts = c.parts;
    const int64_t n = step.num_rows();
    Tensor x(n, c.hidden_dim);
    int64_t end = 0;
    for (int64_t t = 0; t < n; ++t) {
      const auto row = static_cast<size_t>(t);
      const int64_t pos = step.positions()[row];
      const Tensor from = sequences.x(step.banks()[row], pos);
      std::copy_n(from.row(0), c.hidden_dim, x.row(t));
      end = std::max(end, pos + 1);
    }
    CompressArgs args;
    args.step = bench_.step(step);
    args.x = bench_.input(x);
    args.kv = bench_.weight(sequences.kv());
    args.gate = bench_.weight(sequences.gate());
    args.ape = bench_.weight(sequences.ape());
    args.norm = bench_.vector(sequences.norm());
    args.projected = bench_.output(n, 2 * c.width());
    args.history = bench_.slab(history(c, sequences));
    args.rows = bench_.slab(HostSlab(c.rows, kNumBanks, end / c.ratio + 1, c.row_dim));
    args.rotary = bench_.rotary(sequences.frequencies());
    args.ratio = c.ratio;
    args.row_dim = c.row_dim;
    args.rounding = c.rounding;
    return args;
  }

  /// What ring_append left of the positions before the step.
  static HostSlab history(const Case& c, Sequences& sequences) {
    HostSlab out(DType::kF32, kNumBanks, c.history_capacity, 2 * c.width());
    for (const HostStep::Part& part : c.parts) {
      const int64_t begin = std::max<int64_t>(0, part.first_pos - c.history_capacity);
      for (int64_t pos = begin; pos < part.first_pos; ++pos) {
        const naive::Vector& row = sequences.projected(part.bank, pos);
        const std::vector<float> narrow(row.begin(), row.end());
        out.set(part.bank, pos % c.history_capacity, narrow.data());
      }
    }
    return out;
  }

  void expect_matches_float64(const Case& c) {
    SCOPED_TRACE(str_cat(
        "ratio=", c.ratio, " row_dim=", c.row_dim, " history=", c.history_capacity, " weights ",
        dtype_name(c.weights), " rows ", dtype_name(c.rows), " first_pos=",
        c.parts.empty() ? -1 : c.parts[0].first_pos, " rounding ", static_cast<int>(c.rounding)));
    Sequences sequences(c);
    const CompressArgs args = args_of(c, sequences);
    ASSERT_OK(compress(bench_.exec(), args));
    const double bound = chain_bound(GetParam(), 1, c.hidden_dim);

    HostStep step;
    step.parts = c.parts;
    const std::vector<int32_t> banks = step.banks();
    const std::vector<int32_t> positions = step.positions();
    Tensor64 projected(step.num_rows(), 2 * c.width());
    std::map<std::pair<int64_t, int64_t>, naive::Vector> made;
    for (int64_t t = 0; t < projected.rows; ++t) {
      const auto row = static_cast<size_t>(t);
      const naive::Vector& from = sequences.projected(banks[row], positions[row]);
      std::copy(from.begin(), from.end(), projected.row(t));
      if ((positions[row] + 1) % c.ratio == 0) {
        const int64_t idx = positions[row] / c.ratio;
        made[{banks[row], idx}] = sequences.pooled(banks[row], idx);
      }
    }
    EXPECT_TRUE(near_rows(bench_.fetch(args.projected), projected, bound));
    expect_rows(c, bench_.fetch(args.rows, kNumBanks), made, bound);
  }

  void expect_rows(
      const Case& c, const HostSlab& actual,
      const std::map<std::pair<int64_t, int64_t>, naive::Vector>& made, double bound) {
    for (int64_t bank = 0; bank < kNumBanks; ++bank) {
      for (int64_t idx = 0; idx < actual.capacity_rows; ++idx) {
        const std::vector<float> row = actual.get(bank, idx);
        const auto found = made.find({bank, idx});
        if (found == made.end()) {
          EXPECT_TRUE(std::isnan(row[0])) << "bank " << bank << " row " << idx << " was written";
          continue;
        }
        RoundedRow expected;
        expected.unrounded = found->second;
        // u and g are off by `bound` of their size, which is 1; a gate's error moves a weight by
        // as much relative to it. Then the norm; values of the row are of size 1.
        expected.tolerance = 8 * 3 * bound;
        expected.rounding = c.rounding;
        expected.num_rounded = c.row_dim - c.rotary_dim;
        expected.storage_unit = storage_unit(c.rows);
        EXPECT_TRUE(is_rounding_of(row, expected)) << "bank " << bank << " row " << idx;
      }
    }
  }
};

TEST_P(CompressTest, PoolsAHandWorkedWindow) {
  // x is a one-hot of the token, so u and g are columns of the weights. Ratio 2 would do, but 4 is
  // the overlapping one: width 2 of row_dim 1. Gates of 0 make it a mean; the previous window's
  // first halves and this window's second halves.
  Case c;
  c.hidden_dim = 8;
  c.row_dim = 2;
  c.rotary_dim = 2;
  c.history_capacity = 7;
  c.parts = {{0, 0, 8}};
  Tensor kv(4, 8);
  for (int64_t p = 0; p < 8; ++p) {
    kv.at(0, p) = static_cast<float>(p + 1);  // first half: 1 ... 8
    kv.at(1, p) = 0;
    kv.at(2, p) = static_cast<float>(10 * (p + 1));  // second half: 10 ... 80
    kv.at(3, p) = static_cast<float>(p % 2);
  }
  Tensor x(8, 8);
  for (int64_t p = 0; p < 8; ++p) x.at(p, p) = 1;
  Sequences sequences(c);
  CompressArgs args = args_of(c, sequences);
  args.x = bench_.input(x);
  args.kv = bench_.weight(make_weight(DType::kF32, kv));
  args.gate = bench_.weight(make_weight(DType::kF32, Tensor(4, 8)));
  args.ape = bench_.weight(make_weight(DType::kF32, Tensor(4, 4)));
  args.norm = bench_.vector({1, 1});
  args.rotary = bench_.rotary({0.25f});
  ASSERT_OK(compress(bench_.exec(), args));
  const HostSlab rows = bench_.fetch(args.rows, kNumBanks);
  const auto expect_row = [&](int64_t idx, double a, double b, double angle) {
    const double scale = 1 / std::sqrt((a * a + b * b) / 2 + 1e-6);
    const std::vector<float> row = rows.get(0, idx);
    const double tolerance = GetParam().exact() ? 3e-6 : 0.02;
    EXPECT_NEAR(row[0], scale * (a * std::cos(angle) - b * std::sin(angle)), tolerance);
    EXPECT_NEAR(row[1], scale * (a * std::sin(angle) + b * std::cos(angle)), tolerance);
  };
  expect_row(0, (10 + 20 + 30 + 40) / 4.0, 2 / 4.0, 0);
  // Window 1: first halves of tokens 0-3, second halves of 4-7; rotated by position 4.
  expect_row(1, (1 + 2 + 3 + 4 + 50 + 60 + 70 + 80) / 8.0, 2 / 8.0, 1);
}

TEST_P(CompressTest, MatchesFloat64WithOverlappingWindows) {
  const std::vector<std::vector<HostStep::Part>> steps = {
      {{0, 0, 1}}, {{0, 0, 3}}, {{0, 0, 4}},     {{0, 3, 1}},
      {{0, 3, 2}}, {{0, 4, 4}}, {{0, 0, 17}},    {{1, 5, 3}},
      {{2, 6, 7}}, {{0, 7, 1}}, {{0, 1021, 11}}, {{2, 7, 1}, {0, 0, 5}, {1, 14, 6}}};
  for (const int64_t capacity : {7, 8, 11}) {
    for (const auto& parts : steps) {
      Case c;
      c.history_capacity = capacity;
      c.parts = parts;
      expect_matches_float64(c);
      c.rounding = RowRounding::kFp8;
      expect_matches_float64(c);
      c.rounding = RowRounding::kHadamardFp4;
      expect_matches_float64(c);
    }
  }
}

TEST_P(CompressTest, MatchesFloat64WithWindowsOf128) {
  const std::vector<std::vector<HostStep::Part>> steps = {
      {{0, 0, 127}},
      {{0, 0, 128}},
      {{0, 127, 1}},
      {{1, 100, 60}},
      {{2, 0, 300}},
      {{0, 1023, 130}},
      {{0, 255, 1}, {2, 126, 2}, {1, 384, 128}}};
  for (const int64_t capacity : {127, 128, 161}) {
    for (const auto& parts : steps) {
      Case c;
      c.ratio = 128;
      c.hidden_dim = 32;
      c.history_capacity = capacity;
      c.rounding = RowRounding::kFp8;
      c.parts = parts;
      expect_matches_float64(c);
    }
  }
}

TEST_P(CompressTest, MatchesFloat64OverTypesAndShapes) {
  for (const DType rows : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const DType weights : {DType::kF16, DType::kBF16, DType::kQ8_0}) {
      Case c;
      c.weights = weights;
      c.rows = rows;
      c.parts = {{1, 2, 9}};
      expect_matches_float64(c);
      c.row_dim = 512;
      c.hidden_dim = 96;
      c.rounding = RowRounding::kFp8;
      expect_matches_float64(c);
    }
  }
  Case odd;
  odd.hidden_dim = 31;
  odd.row_dim = 6;
  odd.rotary_dim = 2;
  odd.parts = {{0, 0, 9}};
  expect_matches_float64(odd);
  odd.ratio = 1;
  odd.history_capacity = 1;
  expect_matches_float64(odd);
  odd.ratio = 8;
  odd.history_capacity = 7;
  odd.parts = {{0, 3, 14}};
  expect_matches_float64(odd);
}

TEST_P(CompressTest, TakesNoRows) {
  expect_matches_float64(Case());
}

TEST_P(CompressTest, RefusesWhatTheContractExcludes) {
  Case c;
  c.parts = {{0, 0, 2}};
  Sequences sequences(c);
  const CompressArgs good = args_of(c, sequences);
  const auto refuses = [&](const auto& change, const char* text) {
    CompressArgs args = good;
    change(args);
    EXPECT_ERROR(compress(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](CompressArgs& a) { a.ratio = 0; }, "ratio");
  refuses([](CompressArgs& a) { a.ratio = 3; }, "ratio");
  refuses([](CompressArgs& a) { a.ratio = 256; }, "ratio");
  refuses([](CompressArgs& a) { a.ratio = 8; }, "compress");
  refuses([](CompressArgs& a) { a.x.cols = 63; }, "x");
  refuses([](CompressArgs& a) { a.x.rows = 1; }, "x");
  refuses([](CompressArgs& a) { a.kv.rows = 255; }, "kv");
  refuses([](CompressArgs& a) { a.gate.rows = 255; }, "gate");
  refuses([](CompressArgs& a) { a.gate.cols = 32; }, "gate");
  refuses([](CompressArgs& a) { a.ape.rows = 3; }, "ape");
  refuses([](CompressArgs& a) { a.ape.cols = 255; }, "ape");
  refuses([](CompressArgs& a) { a.norm.size = 127; }, "norm");
  refuses([](CompressArgs& a) { a.projected.cols = 511; }, "projected");
  refuses([](CompressArgs& a) { a.history.row_values = 256; }, "history");
  refuses([](CompressArgs& a) { a.history.capacity_rows = 6; }, "history");
  refuses([](CompressArgs& a) { a.rows.row_values = 64; }, "rows");
  refuses(
      [](CompressArgs& a) {
        a.rounding = RowRounding::kFp8;
        a.rotary.dim = 62;
      },
      "64");
  refuses([](CompressArgs& a) { a.rotary.dim = 130; }, "rotary");
  refuses([](CompressArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, CompressTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
