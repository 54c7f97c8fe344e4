#include "kernels/attend/attend.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/bounds.h"
#include "tests/support/naive_ops.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kNumBanks = 3;

struct Case {
  int64_t num_heads = 2;
  int64_t head_dim = 64;
  int64_t rotary_dim = 16;
  int64_t window = 128;
  int64_t ring_capacity = 128;
  int64_t ratio = 0;  // 0: no compressed rows
  int64_t top_k = 0;  // 0: every visible compressed row
  DType rows = DType::kF32;
  std::vector<HostStep::Part> parts;
};

struct Tensors {
  HostStep step;
  Tensor q, kv_row;
  HostSlab ring, compressed;
  IntTensor selection;
  std::vector<float> sinks, frequencies;
};

uint64_t seed_of(int64_t bank, int64_t pos) {
  return static_cast<uint64_t>(bank * 3000017 + pos + 1);
}

/// Whole sequences, of which the step is a part. Ring rows and compressed rows that the step must
/// not read are NaN.
Tensors random_tensors(const Case& c) {
  HostStep step;
  step.parts = c.parts;
  int64_t end = 0;
  for (const HostStep::Part& part : c.parts) {
    end = std::max<int64_t>(end, part.first_pos + part.num_rows);
  }
  const int64_t n = step.num_rows();
  const int64_t num_compressed = c.ratio == 0 ? 0 : end / c.ratio;
  Tensors out{
      step,
      random_tensor(n, c.num_heads * c.head_dim, 141),
      Tensor(n, c.head_dim),
      HostSlab(c.rows, kNumBanks, c.ring_capacity, c.head_dim),
      HostSlab(c.rows, kNumBanks, num_compressed + 1, c.head_dim),
      IntTensor(n, c.top_k),
      random_vector(c.num_heads, 142, 0, 1),
      naive::plain_frequencies(10000, c.rotary_dim)};
  int64_t row = 0;
  for (const HostStep::Part& part : c.parts) {
    const int64_t begin =
        std::max<int64_t>(0, part.first_pos - std::min(c.ring_capacity, c.window - 1));
    for (int64_t pos = begin; pos < part.first_pos; ++pos) {
      const Tensor values = random_tensor(1, c.head_dim, seed_of(part.bank, pos));
      out.ring.set(part.bank, pos % c.ring_capacity, values.row(0));
    }
    for (int64_t i = 0; i < part.num_rows; ++i, ++row) {
      const int64_t pos = part.first_pos + i;
      const Tensor values = random_tensor(1, c.head_dim, seed_of(part.bank, pos));
      std::copy_n(values.row(0), c.head_dim, out.kv_row.row(row));
      if (c.top_k == 0) continue;
      // Every third visible row from the first, up to top_k.
      const int64_t count = (pos + 1) / c.ratio;
      const int64_t stride = count > c.top_k ? std::min<int64_t>(3, count / c.top_k) : 1;
      for (int64_t k = 0; k < c.top_k; ++k) {
        out.selection.at(row, k) = k < count ? static_cast<int32_t>(k * stride) : -1;
      }
    }
    for (int64_t t = 0; c.ratio != 0 && t < (part.first_pos + part.num_rows) / c.ratio; ++t) {
      const Tensor values = random_tensor(1, c.head_dim, seed_of(part.bank + 7, t));
      out.compressed.set(part.bank, t, values.row(0));
    }
  }
  return out;
}

naive::Vector widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Everything the row at `pos` of `bank` sees. A row of the step is what the ring will hold.
std::vector<naive::Vector> visible_rows(
    const Case& c, const Tensors& tensors, int64_t t, int64_t bank, int64_t pos) {
  std::vector<naive::Vector> rows;
  HostSlab stored(c.rows, 1, 1, c.head_dim);
  for (int64_t p = std::max<int64_t>(0, pos - c.window + 1); p <= pos; ++p) {
    stored.set(0, 0, random_tensor(1, c.head_dim, seed_of(bank, p)).row(0));
    rows.push_back(widened(stored.get(0, 0)));
  }
  if (c.ratio == 0) return rows;
  const int64_t count = (pos + 1) / c.ratio;
  for (int64_t k = 0; k < (c.top_k == 0 ? count : c.top_k); ++k) {
    const int64_t idx = c.top_k == 0 ? k : tensors.selection.at(t, k);
    if (idx < 0) break;
    rows.push_back(widened(tensors.compressed.get(bank, idx)));
  }
  return rows;
}

class AttendTest : public OpTest {
 protected:
  AttendArgs args_of(const Case& c, const Tensors& tensors) {
    AttendArgs args;
    args.step = bench_.step(tensors.step);
    args.q = bench_.input(tensors.q);
    args.kv_row = bench_.input(tensors.kv_row);
    args.window_rows = bench_.slab(tensors.ring);
    if (c.ratio != 0) args.compressed_rows = bench_.slab(tensors.compressed);
    if (c.top_k != 0) args.selection = bench_.input(tensors.selection);
    args.sinks = bench_.vector(tensors.sinks);
    args.rotary = bench_.rotary(tensors.frequencies);
    args.out = bench_.output(tensors.q.rows, tensors.q.cols);
    args.num_heads = c.num_heads;
    args.head_dim = c.head_dim;
    args.window = c.window;
    args.ratio = c.ratio;
    return args;
  }

  Tensor run(const Case& c, const Tensors& tensors) {
    const AttendArgs args = args_of(c, tensors);
    EXPECT_OK(attend(bench_.exec(), args));
    return bench_.fetch(args.out);
  }

  /// Relative to a head's output. Exact: scores are sums of head_dim products of size
  /// 1 / sqrt(head_dim); p inherits their absolute error; the output is a mean of rows, smaller
  /// than they are by up to sqrt(rows). Fast: rows and queries in bf16, 2^-8 each, scores of a few.
  double bound() const { return GetParam().exact() ? 1e-4 : 0.03; }

  void expect_matches_float64(const Case& c) {
    SCOPED_TRACE(str_cat(
        "head_dim=", c.head_dim, " window=", c.window, " ring=", c.ring_capacity,
        " ratio=", c.ratio, " top_k=", c.top_k, " rows ", dtype_name(c.rows),
        " first_pos=", c.parts.empty() ? -1 : c.parts[0].first_pos));
    expect_matches_float64(c, random_tensors(c));
  }

  void expect_matches_float64(const Case& c, const Tensors& tensors) {
    const Tensor actual = run(c, tensors);
    Tensor64 expected(actual.rows, actual.cols);
    const std::vector<int32_t> banks = tensors.step.banks();
    const std::vector<int32_t> positions = tensors.step.positions();
    for (int64_t t = 0; t < actual.rows; ++t) {
      const auto row = static_cast<size_t>(t);
      const auto seen = visible_rows(c, tensors, t, banks[row], positions[row]);
      for (int64_t h = 0; h < c.num_heads; ++h) {
        const float* from = tensors.q.row(t) + h * c.head_dim;
        const naive::Vector q(from, from + c.head_dim);
        naive::Vector out =
            naive::attend(q, seen, static_cast<double>(tensors.sinks[static_cast<size_t>(h)]));
        naive::rotate(out, tensors.frequencies, positions[row], true);
        std::copy(out.begin(), out.end(), expected.row(t) + h * c.head_dim);
      }
    }
    EXPECT_TRUE(near_rows(actual, expected, bound()));
  }

  /// The number of rows that a query of zeros averages: all of them, and the sink as one more.
  double rows_seen(const Case& c) {
    Tensors tensors = random_tensors(c);
    std::fill(tensors.q.values.begin(), tensors.q.values.end(), 0.0f);
    std::fill(tensors.sinks.begin(), tensors.sinks.end(), 0.0f);
    const std::vector<float> ones(static_cast<size_t>(c.head_dim), 1.0f);
    std::fill(tensors.kv_row.values.begin(), tensors.kv_row.values.end(), 1.0f);
    for (int64_t b = 0; b < kNumBanks; ++b) {
      for (int64_t r = 0; r < tensors.ring.capacity_rows; ++r) tensors.ring.set(b, r, ones.data());
      for (int64_t r = 0; r < tensors.compressed.capacity_rows; ++r) {
        tensors.compressed.set(b, r, ones.data());
      }
    }
    const double share = run(c, tensors).at(0, 0);  // rows / (rows + 1); dim 0 is not rotated
    return share / (1 - share);
  }
};

TEST_P(AttendTest, AveragesHandWorkedRows) {
  // q = 0 and a sink of 0: the two rows and the sink weigh 1/3 each. The second pair is turned back
  // by position 1 times frequency 1/2.
  Case c;
  c.num_heads = 1;
  c.head_dim = 4;
  c.rotary_dim = 2;
  c.parts = {{0, 0, 2}};
  Tensors tensors = random_tensors(c);
  std::fill(tensors.q.values.begin(), tensors.q.values.end(), 0.0f);
  tensors.kv_row = Tensor(2, 4, {1, 2, 3, 4, 5, 6, 7, 8});
  tensors.sinks = {0};
  tensors.frequencies = {0.5f};
  const double cosine = std::cos(0.5);
  const double sine = std::sin(0.5);
  const Tensor64 expected(
      2, 4,
      {0.5, 1, 1.5, 2, 2, 8 / 3.0, 10 / 3.0 * cosine + 4 * sine, -10 / 3.0 * sine + 4 * cosine});
  EXPECT_TRUE(near_all(run(c, tensors), expected, GetParam().exact() ? 2e-6 : 0.03));
}

TEST_P(AttendTest, SeesTheRowsOfTheSpecification) {
  const auto at = [](int64_t ratio, int32_t pos) {
    Case c;
    c.ratio = ratio;
    c.parts = {{0, pos, 1}};
    return c;
  };
  // The share n / (n + 1) is a sum of n terms, so it is known to n times 2^-24 (2^-8 in bf16), and
  // n to n^2 times that.
  const auto expect_seen = [&](const Case& c, double n) {
    const double error = n * n * n * (GetParam().exact() ? 0x1p-24 : 0x1p-8 / n);
    EXPECT_NEAR(rows_seen(c), n, error) << "ratio " << c.ratio << " pos " << c.parts[0].first_pos;
  };
  expect_seen(at(0, 0), 1);
  expect_seen(at(4, 2), 3);
  expect_seen(at(4, 3), 4 + 1);
  expect_seen(at(4, 7), 8 + 2);
  if (!GetParam().exact()) return;  // too few bits to count to 128
  expect_seen(at(128, 126), 127);
  expect_seen(at(128, 127), 128 + 1);
  expect_seen(at(128, 255), 128 + 2);
  expect_seen(at(0, 127), 128);
  expect_seen(at(0, 128), 128);
  expect_seen(at(0, 1000), 128);
}

TEST_P(AttendTest, MatchesFloat64AroundTheWindow) {
  for (const int64_t capacity : {127, 128, 129, 192}) {
    for (const int32_t pos : {0, 1, 126, 127, 128, 129, 255, 256, 1000}) {
      Case c;
      c.ring_capacity = capacity;
      c.parts = {{1, pos, 1}};
      expect_matches_float64(c);
      c.parts = {{1, pos, 3}};
      expect_matches_float64(c);
    }
    Case c;
    c.ring_capacity = capacity;
    c.parts = {{0, 100, 160}};  // longer than the window
    expect_matches_float64(c);
  }
}

TEST_P(AttendTest, MatchesFloat64WithSmallWindows) {
  for (const int64_t window : {1, 2, 5}) {
    for (const int64_t capacity : {std::max<int64_t>(1, window - 1), window, window + 3}) {
      for (const int32_t first_pos : {0, 1, 4, 5, 23}) {
        Case c;
        c.window = window;
        c.ring_capacity = capacity;
        c.parts = {{2, first_pos, 7}};
        expect_matches_float64(c);
      }
    }
  }
}

TEST_P(AttendTest, MatchesFloat64WithEveryCompressedRow) {
  for (const int32_t first_pos : {0, 126, 127, 128, 254, 255, 256, 700}) {
    Case c;
    c.ratio = 128;
    c.parts = {{0, first_pos, 3}};
    expect_matches_float64(c);
  }
}

TEST_P(AttendTest, MatchesFloat64WithSelectedRows) {
  for (const int64_t top_k : {1, 7, 8, 9}) {
    for (const int32_t first_pos : {0, 2, 3, 30, 31, 32, 400}) {
      Case c;
      c.ratio = 4;
      c.top_k = top_k;
      c.parts = {{0, first_pos, 5}};
      expect_matches_float64(c);
    }
  }
}

TEST_P(AttendTest, AnEarlyEndOfTheSelectionEndsIt) {
  Case c;
  c.ratio = 4;
  c.top_k = 4;
  c.parts = {{0, 100, 2}};
  Tensors tensors = random_tensors(c);
  tensors.selection = IntTensor(2, 4, {5, 9, -1, -1, -1, -1, -1, -1});
  expect_matches_float64(c, tensors);
}

TEST_P(AttendTest, MatchesFloat64OverBanksTypesAndShapes) {
  const std::vector<HostStep::Part> parts = {{2, 130, 3}, {0, 0, 5}, {1, 1021, 2}};
  for (const DType rows : {DType::kF32, DType::kF16, DType::kBF16}) {
    Case c;
    c.rows = rows;
    c.parts = parts;
    expect_matches_float64(c);
    c.ratio = 4;
    c.top_k = 6;
    expect_matches_float64(c);
  }
  Case full;  // a head of V4
  full.num_heads = 4;
  full.head_dim = 512;
  full.rotary_dim = 64;
  full.ratio = 4;
  full.top_k = 64;
  full.parts = {{0, 300, 4}};
  expect_matches_float64(full);
  Case odd;
  odd.num_heads = 3;
  odd.head_dim = 34;
  odd.rotary_dim = 2;
  odd.parts = parts;
  if (GetParam().device == Device::kCpu) expect_matches_float64(odd);
}

TEST_P(AttendTest, SinksAndScoresMayBeLarge) {
  Case c;
  c.parts = {{0, 20, 2}};
  Tensors tensors = random_tensors(c);
  for (float& v : tensors.q.values) v *= 30;  // scores beyond what exp takes in float32
  tensors.sinks = {200, -1e30f};
  const Tensor out = run(c, tensors);
  for (const float v : out.values) EXPECT_TRUE(std::isfinite(v));
  if (GetParam().exact()) expect_matches_float64(c, tensors);
}

TEST_P(AttendTest, TakesNoRows) {
  const Case c;
  EXPECT_EQ(run(c, random_tensors(c)).rows, 0);
}

TEST_P(AttendTest, RefusesWhatTheContractExcludes) {
  Case c;
  c.ratio = 4;
  c.top_k = 2;
  c.parts = {{0, 20, 2}};
  const AttendArgs good = args_of(c, random_tensors(c));
  const auto refuses = [&](const auto& change, const char* text) {
    AttendArgs args = good;
    change(args);
    EXPECT_ERROR(attend(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](AttendArgs& a) { a.window = 0; }, "window");
  refuses([](AttendArgs& a) { a.window = 130; }, "ring");
  refuses([](AttendArgs& a) { a.q.cols = 127; }, "q");
  refuses([](AttendArgs& a) { a.q.rows = 1; }, "q");
  refuses([](AttendArgs& a) { a.kv_row.cols = 63; }, "kv_row");
  refuses([](AttendArgs& a) { a.out.cols = 64; }, "out");
  refuses([](AttendArgs& a) { a.sinks.size = 1; }, "sinks");
  refuses([](AttendArgs& a) { a.window_rows.row_values = 32; }, "window_rows");
  refuses([](AttendArgs& a) { a.window_rows.data = nullptr; }, "window_rows");
  refuses([](AttendArgs& a) { a.compressed_rows.row_values = 32; }, "compressed_rows");
  refuses([](AttendArgs& a) { a.compressed_rows.data = nullptr; }, "compressed_rows");
  refuses([](AttendArgs& a) { a.ratio = 0; }, "ratio");
  refuses([](AttendArgs& a) { a.selection.rows = 1; }, "selection");
  refuses([](AttendArgs& a) { a.rotary.dim = 66; }, "rotary");
  refuses([](AttendArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, AttendTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
