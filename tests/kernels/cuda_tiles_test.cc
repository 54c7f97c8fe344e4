// The tensor-core kernels of the models' shapes against the CPU's float32 references, around the
// edges of their tiles. The tests of each operation cover the rest.

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "kernels/attend/attend.h"
#include "kernels/experts/experts.h"
#include "kernels/index_select/index_select.h"
#include "kernels/index_select/select_top_k.h"
#include "kernels/linear/linear.h"
#include "kernels/output_project/output_project.h"
#include "tests/support/backend.h"
#include "tests/support/near.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr Backend kGpu = {Device::kCuda, Numerics::kFast, CpuIsa::kBest, Phase::kPrefill};
constexpr Backend kGpuAnyChip = {
    Device::kCuda, Numerics::kFast, CpuIsa::kBest, Phase::kPrefill, true};
constexpr Backend kGpuDecode = {Device::kCuda, Numerics::kFast};
constexpr Backend kGpuDecodeAnyChip = {
    Device::kCuda, Numerics::kFast, CpuIsa::kBest, Phase::kDecode, true};
constexpr Backend kReference = {Device::kCpu, Numerics::kExact};

Tensor64 widened(const Tensor& tensor) {
  Tensor64 out(tensor.rows, tensor.cols);
  std::copy(tensor.values.begin(), tensor.values.end(), out.values.begin());
  return out;
}

class CudaTilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<int> num_devices = cuda::device_count();
    if (!num_devices.ok() || *num_devices == 0) GTEST_SKIP() << "no CUDA device";
  }
};

// Of a row's norm. Rounding to f16 moves a value by 2^-11 of itself at most and by 2.0e-4 in the
// mean (square). A product has three such errors: of x, of the weight's scale and of the weight.
// They are independent, so a row of many sums is off by sqrt(3) * 2.0e-4 = 3.5e-4 of its norm; a
// row of 40 sums may be off by 1.5 times that, and Q2_K rounds its minimum, about as large as the
// values, as well: sqrt(3 + 2) * 2.0e-4 * 1.5.
constexpr double kHalfProductBound = 1e-3;

// The same for codes of 16 bits: a code is off by half a unit of 1 / 32512 of the largest of its
// 256 values, 0.29 units in the mean, and the largest of 256 normal values is about 3.5 deviations:
// 0.29 * 3.5 / 32512 = 3.1e-5 of a value's deviation. Three times that.
constexpr double kCodeProductBound = 1e-4;

TEST_F(CudaTilesTest, ProductsMatchTheReferenceAroundTileEdges) {
  struct Shape {
    int64_t n, m, k;
  };
  for (const DType dtype : kWeightDTypes) {
    for (const Shape shape :
         {Shape{17, 64, 256}, Shape{127, 255, 512}, Shape{128, 256, 256}, Shape{129, 257, 768},
          Shape{300, 40, 1024}}) {
      SCOPED_TRACE(str_cat(dtype_name(dtype), " n=", shape.n, " m=", shape.m, " k=", shape.k));
      const HostWeight weight = random_weight(dtype, shape.m, shape.k, 11);
      const Tensor x = random_tensor(shape.n, shape.k, 12);
      const auto run = [&](const Backend& backend) {
        OpBench bench(backend);
        const Rows out = bench.output(shape.n, shape.m);
        EXPECT_OK(linear(bench.exec(), {bench.input(x), bench.weight(weight), out}));
        return bench.fetch(out);
      };
      const Tensor64 expected = widened(run(kReference));
      EXPECT_TRUE(near_rows(run(kGpu), expected, kHalfProductBound));
      EXPECT_TRUE(near_rows(run(kGpuAnyChip), expected, kHalfProductBound));
    }
  }
}

TEST_F(CudaTilesTest, AProductRowDoesNotDependOnItsTile) {
  for (const DType dtype : {DType::kF16, DType::kQ8_0, DType::kIQ2_XXS}) {
    SCOPED_TRACE(dtype_name(dtype));
    const HostWeight weight = random_weight(dtype, 300, 512, 21);
    const Tensor x = random_tensor(200, 512, 22);
    const auto run = [&](int64_t begin, int64_t count) {
      OpBench bench(kGpu);
      Tensor part(count, 512);
      std::copy_n(x.row(begin), count * 512, part.row(0));
      const Rows out = bench.output(count, 300);
      EXPECT_OK(linear(bench.exec(), {bench.input(part), bench.weight(weight), out}));
      return bench.fetch(out).values;
    };
    const std::vector<float> all = run(0, 200);
    for (const int64_t begin : {0, 1, 100, 183}) {
      EXPECT_EQ(
          run(begin, 17),
          std::vector<float>(all.begin() + begin * 300, all.begin() + (begin + 17) * 300))
          << "rows from " << begin;
      EXPECT_EQ(
          run(begin, 1),
          std::vector<float>(all.begin() + begin * 300, all.begin() + (begin + 1) * 300))
          << "row " << begin;
    }
  }
}

// A row that no longer fits the shared memory of every chip beside the weights is packed first.
TEST_F(CudaTilesTest, LongRowsHaveTheSameProductsWhereverTheyArePacked) {
  for (const DType dtype : {DType::kF16, DType::kQ8_0, DType::kQ4_K, DType::kIQ2_XXS}) {
    for (const int64_t k : {4096, 16384, 32768}) {
      SCOPED_TRACE(str_cat(dtype_name(dtype), " k=", k));
      const HostWeight weight = random_weight(dtype, 48, k, 23);
      const Tensor x = random_tensor(1, k, 24);
      const auto run = [&](const Backend& backend) {
        OpBench bench(backend);
        const Rows out = bench.output(1, 48);
        EXPECT_OK(linear(bench.exec(), {bench.input(x), bench.weight(weight), out}));
        return bench.fetch(out);
      };
      const Tensor here = run(kGpuDecode);
      EXPECT_EQ(run(kGpuDecodeAnyChip).values, here.values);
      EXPECT_TRUE(near_rows(here, widened(run(kReference)), kCodeProductBound));
    }
  }
}

TEST_F(CudaTilesTest, ExpertsMatchTheReferenceHoweverRowsAreSpread) {
  constexpr int64_t kExperts = 9, kHidden = 512, kDim = 256, kTopK = 2;
  for (const DType dtype : {DType::kQ4_K, DType::kQ2_K, DType::kIQ2_XXS, DType::kMXFP4}) {
    std::vector<HostWeight> gate, up, down;
    for (uint64_t e = 0; e < kExperts; ++e) {
      gate.push_back(random_weight(dtype, kDim, kHidden, 100 + e, 0.05f));
      up.push_back(random_weight(dtype, kDim, kHidden, 200 + e, 0.05f));
      down.push_back(random_weight(dtype, kHidden, kDim, 300 + e, 0.05f));
    }
    const HostWeight shared_gate = random_weight(DType::kQ8_0, kDim, kHidden, 400, 0.05f);
    const HostWeight shared_up = random_weight(DType::kQ8_0, kDim, kHidden, 401, 0.05f);
    const HostWeight shared_down = random_weight(DType::kQ8_0, kHidden, kDim, 402, 0.05f);
    for (const int64_t n : {17, 128, 291}) {
      SCOPED_TRACE(str_cat(dtype_name(dtype), " n=", n));
      const Tensor x = random_tensor(n, kHidden, 31);
      IntTensor ids(n, kTopK);
      Tensor weights(n, kTopK);
      for (int64_t t = 0; t < n; ++t) {  // expert 0 takes every row, 1 and 2 nearly none
        ids.at(t, 0) = 0;
        ids.at(t, 1) = t == 3 ? 1 : t == 5 ? 2 : static_cast<int32_t>(3 + t % (kExperts - 3));
        weights.at(t, 0) = 0.25f;
        weights.at(t, 1) = 0.5f + static_cast<float>(t % 7) / 8;
      }
      const auto run = [&](const Backend& backend) {
        OpBench bench(backend);
        ExpertsArgs args;
        args.x = bench.input(x);
        args.expert_ids = bench.input(ids);
        args.expert_weights = bench.input(weights);
        args.gate = bench.experts(gate);
        args.up = bench.experts(up);
        args.down = bench.experts(down);
        args.shared_gate = bench.weight(shared_gate);
        args.shared_up = bench.weight(shared_up);
        args.shared_down = bench.weight(shared_down);
        args.out = bench.output(n, kHidden);
        args.swiglu_limit = args.shared_swiglu_limit = 10;
        EXPECT_OK(experts(bench.exec(), args));
        return bench.fetch(args.out);
      };
      // Two products, and their factors multiplied.
      const Tensor64 expected = widened(run(kReference));
      EXPECT_TRUE(near_rows(run(kGpu), expected, 3 * kHalfProductBound));
      EXPECT_TRUE(near_rows(run(kGpuAnyChip), expected, 3 * kHalfProductBound));
    }
  }
}

TEST_F(CudaTilesTest, GroupsMatchTheReference) {
  for (const int64_t rank : {64, 128, 256}) {  // groups within and across tiles of weight rows
    SCOPED_TRACE(str_cat("rank=", rank));
    constexpr int64_t kGroups = 4, kGroupDim = 192, kHidden = 256, kRows = 130;
    const HostWeight o_a = random_weight(DType::kF16, kGroups * rank, kGroupDim, 41, 0.1f);
    const HostWeight o_b = random_weight(DType::kQ8_0, kHidden, kGroups * rank, 42, 0.1f);
    const Tensor heads = random_tensor(kRows, kGroups * kGroupDim, 43);
    const auto run = [&](const Backend& backend) {
      OpBench bench(backend);
      const Rows out = bench.output(kRows, kHidden);
      EXPECT_OK(output_project(
          bench.exec(), {bench.input(heads), bench.weight(o_a), bench.weight(o_b), out, kGroups}));
      return bench.fetch(out);
    };
    const Tensor64 expected = widened(run(kReference));
    EXPECT_TRUE(near_rows(run(kGpu), expected, 2 * kHalfProductBound));
    EXPECT_TRUE(near_rows(run(kGpuAnyChip), expected, 2 * kHalfProductBound));
  }
}

struct AttendCase {
  int64_t num_heads, ratio, top_k;
  DType rows;
  HostStep::Part part;
};

/// Values by position, so that chunks of one sequence fit together.
Tensor values_at(int64_t first_pos, int64_t count, int64_t width, uint64_t kind) {
  Tensor out(count, width);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor row =
        random_tensor(1, width, kind * 1000003 + static_cast<uint64_t>(first_pos + i));
    std::copy_n(row.row(0), width, out.row(i));
  }
  return out;
}

Tensor run_attend(const Backend& backend, const AttendCase& c) {
  OpBench bench(backend);
  constexpr int64_t kHeadDim = 512, kRing = 192, kBanks = 2;
  const int64_t n = c.part.num_rows;
  const int64_t end = c.part.first_pos + n;
  HostSlab ring(c.rows, kBanks, kRing, kHeadDim);
  for (int64_t pos = std::max<int64_t>(0, c.part.first_pos - 127); pos < c.part.first_pos; ++pos) {
    ring.set(c.part.bank, pos % kRing, values_at(pos, 1, kHeadDim, 1).row(0));
  }
  const int64_t num_compressed = c.ratio == 0 ? 0 : end / c.ratio;
  HostSlab compressed(c.rows, kBanks, num_compressed + 1, kHeadDim);
  const Tensor compressed_values = values_at(0, num_compressed, kHeadDim, 2);
  for (int64_t t = 0; t < num_compressed; ++t) {
    compressed.set(c.part.bank, t, compressed_values.row(t));
  }
  IntTensor selection(n, c.top_k);
  for (int64_t r = 0; r < n && c.top_k != 0; ++r) {
    const int64_t count = (c.part.first_pos + r + 1) / c.ratio;
    for (int64_t k = 0; k < c.top_k; ++k) {
      selection.at(r, k) =
          k >= count ? -1 : static_cast<int32_t>(count <= c.top_k ? k : k * count / c.top_k);
    }
  }
  std::vector<float> frequencies;
  for (int i = 0; i < 32; ++i) {
    frequencies.push_back(std::pow(10000.0f, -static_cast<float>(i) / 32));
  }
  AttendArgs args;
  HostStep step;
  step.parts = {c.part};
  args.step = bench.step(step);
  args.q = bench.input(values_at(c.part.first_pos, n, c.num_heads * kHeadDim, 3));
  args.kv_row = bench.input(values_at(c.part.first_pos, n, kHeadDim, 1));
  args.window_rows = bench.slab(ring);
  if (c.ratio != 0) args.compressed_rows = bench.slab(compressed);
  if (c.top_k != 0) args.selection = bench.input(selection);
  args.sinks = bench.vector(random_vector(c.num_heads, 55, 0, 1));
  args.rotary = bench.rotary(frequencies);
  args.out = bench.output(n, c.num_heads * kHeadDim);
  args.num_heads = c.num_heads;
  args.head_dim = kHeadDim;
  args.window = 128;
  args.ratio = c.ratio;
  EXPECT_OK(attend(bench.exec(), args));
  return bench.fetch(args.out);
}

TEST_F(CudaTilesTest, AttentionMatchesTheReferenceAroundTileEdges) {
  std::vector<AttendCase> cases;
  for (const int64_t num_heads : {1, 16, 17, 64, 65}) {
    for (const int32_t rows : {2, 20}) {
      cases.push_back({num_heads, 0, 0, DType::kF16, {1, 55, rows}});      // lists of 56 to 75 rows
      cases.push_back({num_heads, 128, 0, DType::kF16, {1, 8170, rows}});  // 128 + 63 and 64 rows
    }
  }
  for (const DType rows : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int32_t count : {3, 40}) {
      cases.push_back({64, 4, 64, rows, {1, 245, count}});
      cases.push_back({64, 4, 512, rows, {0, 2040, count}});
    }
  }
  for (const AttendCase& c : cases) {
    SCOPED_TRACE(str_cat(
        c.num_heads, " heads, ratio ", c.ratio, " top_k ", c.top_k, " ", dtype_name(c.rows),
        " pos ", c.part.first_pos, " rows ", c.part.num_rows));
    // q, rows and probabilities in the 16-bit type; scores of size 1 inherit the errors of q.
    const double bound = c.rows == DType::kBF16 ? 1e-2 : 2e-3;
    const Tensor64 expected = widened(run_attend(kReference, c));
    EXPECT_TRUE(near_rows(run_attend(kGpu, c), expected, bound));
    EXPECT_TRUE(near_rows(run_attend(kGpuAnyChip, c), expected, bound));
    EXPECT_TRUE(near_rows(run_attend(kGpuDecode, c), expected, bound));
  }
}

TEST_F(CudaTilesTest, AttentionOfARowDoesNotDependOnTheChunk) {
  for (const DType rows : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(dtype_name(rows));
    const auto chunk = [&](int32_t first_pos, int32_t num_rows) {
      return run_attend(kGpu, {64, 4, 64, rows, {1, first_pos, num_rows}}).values;
    };
    std::vector<float> parts = chunk(256, 128);
    const std::vector<float> rest = chunk(384, 32);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(chunk(256, 160), parts);
  }
}

// The right index set at every length, and not only where a short list fits a kernel's first pass.
TEST_F(CudaTilesTest, B032TopKSelectsTheReferencesSetAtEveryLength) {
  constexpr int64_t kTopK = 512;
  for (const int64_t count : {512, 513, 2048, 6144, 10240, 16384, 16385, 32768, 84480}) {
    for (const bool ties : {false, true}) {
      SCOPED_TRACE(str_cat("count=", count, " ties=", ties));
      Tensor scores = random_tensor(2, count, 61);
      if (ties) {
        for (float& score : scores.values) score = std::round(score * 4) / 4;
      }
      IntTensor positions(1, 2);
      positions.values = {static_cast<int32_t>(4 * count - 1), static_cast<int32_t>(4 * count - 5)};
      OpBench bench(kGpu);
      const IntRows selection = bench.int_output(2, kTopK);
      EXPECT_OK(detail::select_top_k_cuda(
          bench.exec(), {bench.input(scores), bench.input(positions).data, 4, selection}));
      const IntTensor actual = bench.fetch(selection);
      for (int64_t r = 0; r < 2; ++r) {
        const int64_t visible = count - r;
        std::vector<int32_t> expected(static_cast<size_t>(visible));
        std::iota(expected.begin(), expected.end(), 0);
        std::stable_sort(expected.begin(), expected.end(), [&](int32_t a, int32_t b) {
          return scores.at(r, a) > scores.at(r, b);
        });
        expected.resize(static_cast<size_t>(std::min(visible, kTopK)));
        std::sort(expected.begin(), expected.end());
        expected.resize(kTopK, -1);
        EXPECT_EQ(std::vector<int32_t>(actual.row(r), actual.row(r) + kTopK), expected);
      }
    }
  }
}

}  // namespace
}  // namespace tandem::test
