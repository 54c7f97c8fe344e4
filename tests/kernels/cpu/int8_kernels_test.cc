#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/int8_panel.h"
#include "model/formats/blocks.h"
#include "model/formats/dequantize.h"
#include "tests/kernels/cpu/isa_cases.h"

namespace tandem {
namespace {

constexpr DType kBlockTypes[] = {DType::kQ8_0, DType::kQ2_K,    DType::kQ4_K,
                                 DType::kQ6_K, DType::kIQ2_XXS, DType::kMXFP4};

/// Any byte is a valid code or scale; only the f16 scales (or the MXFP4 exponent) are kept finite.
std::vector<std::byte> random_blocks(DType dtype, int64_t num_blocks, uint64_t seed) {
  Rng rng(seed);
  const int64_t bytes = block_bytes(dtype);
  std::vector<std::byte> out(static_cast<size_t>(num_blocks * bytes));
  for (std::byte& byte : out) byte = static_cast<std::byte>(rng.next() >> 56);
  const auto put_f16 = [&](int64_t at) {
    const auto bits = static_cast<uint16_t>(0x1000 + (rng.next() >> 51));  // 5e-4 ... 8
    std::memcpy(&out[static_cast<size_t>(at)], &bits, sizeof(bits));
  };
  for (int64_t b = 0; b < num_blocks; ++b) {
    switch (dtype) {
      case DType::kQ2_K:
        put_f16(b * bytes + 80);
        put_f16(b * bytes + 82);
        break;
      case DType::kQ4_K:
        put_f16(b * bytes);
        put_f16(b * bytes + 2);
        break;
      case DType::kQ6_K: put_f16(b * bytes + 208); break;
      case DType::kMXFP4:
        out[static_cast<size_t>(b * bytes)] = static_cast<std::byte>(120 + rng.next() % 10);
        break;
      default: put_f16(b * bytes); break;
    }
  }
  return out;
}

struct Activations {
  std::vector<float> x;
  std::vector<int8_t> q;
  std::vector<float> scale;
  std::vector<int32_t> factors;  // of every 32 values; 1 for the types that have none
  std::vector<int16_t> sums;
  Int8Rows view;

  int64_t place(int64_t row, int64_t i) const { return row * view.q_stride + i; }
  /// What one step of the int8 value i of a row stands for.
  float step(int64_t row, int64_t i) const {
    const int64_t group = view.k / view.scale_stride;
    return scale[static_cast<size_t>(row * view.scale_stride + i / group)] *
           static_cast<float>(factors[static_cast<size_t>((row * view.k + i) / kFactorValues)]);
  }
};

Activations quantize(
    const CpuKernels& kernels, DType dtype, std::vector<float> x, int64_t n, int64_t k) {
  Activations out;
  const int64_t group = group_values(int8_grouping(dtype));
  const int64_t stride = (k + 63) / 64 * 64;
  const int64_t runs = k / kFactorValues;
  out.x = std::move(x);
  out.q.resize(static_cast<size_t>(n * stride));
  out.scale.resize(static_cast<size_t>(n * (k / group)));
  out.factors.assign(static_cast<size_t>(n * runs), 1);
  out.sums.resize(static_cast<size_t>(n * (k / 16)));
  for (int64_t t = 0; t < n; ++t) {
    kernels.int8.quantize(
        &out.x[static_cast<size_t>(t * k)], k, int8_grouping(dtype),
        &out.q[static_cast<size_t>(t * stride)], &out.scale[static_cast<size_t>(t * (k / group))],
        &out.factors[static_cast<size_t>(t * runs)], &out.sums[static_cast<size_t>(t * (k / 16))]);
  }
  const bool has_factors = int8_grouping(dtype) == Int8Grouping::k256;
  out.view = {
      out.q.data(),
      out.scale.data(),
      has_factors ? out.factors.data() : nullptr,
      out.sums.data(),
      k,
      stride,
      k / group,
      has_factors ? runs : 0,
      k / 16};
  return out;
}

/// Runs of 32 values differ in size, so that every factor occurs.
Activations make_activations(const CpuKernels& kernels, DType dtype, int64_t n, int64_t k) {
  std::vector<float> x = random_values(n * k, 7);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= 1.0f / static_cast<float>(1 + i / 32 * 5 % 17);
  return quantize(kernels, dtype, std::move(x), n, k);
}

class Int8KernelsTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  const CpuKernels& kernels_ = cpu_kernels(GetParam());
  const CpuKernels& portable_ = cpu_kernels(CpuIsa::kPortable);
};

TEST_P(Int8KernelsTest, QuantizesAsPortable) {
  constexpr int64_t kRows = 3;
  constexpr int64_t k = 512;
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_K}) {
    const Activations got = make_activations(kernels_, dtype, kRows, k);
    const Activations want = make_activations(portable_, dtype, kRows, k);
    EXPECT_EQ(got.q, want.q);
    EXPECT_EQ(got.factors, want.factors);
    EXPECT_EQ(got.sums, want.sums);
    EXPECT_EQ(got.scale, want.scale);
    for (int64_t t = 0; t < kRows; ++t) {
      for (int64_t i = 0; i < k; ++i) {
        const float step = got.step(t, i);
        const float back = step * got.q[static_cast<size_t>(got.place(t, i))];
        // Half a step, and the rounding of the two scale computations over 127 steps.
        EXPECT_NEAR(got.x[static_cast<size_t>(t * k + i)], back, step * (0.5f + 127 * 0x1p-22f));
      }
    }
  }
}

TEST_P(Int8KernelsTest, FactorsAreTheLeastThatHoldTheirValues) {
  std::vector<float> x(256, 0.0f);
  x[3] = -8.0f;   // the largest: 16 units of a half
  x[40] = 0.2f;   // less than a unit
  x[70] = 0.51f;  // more than one
  x[100] = 4.0f;  // eight
  x[130] = 7.6f;  // more than fifteen
  const Activations got = quantize(kernels_, DType::kQ4_K, x, 1, 256);
  EXPECT_EQ(got.factors, (std::vector<int32_t>{16, 1, 2, 8, 16, 1, 1, 1}));
  EXPECT_EQ(got.scale[0], 8.0f / 2032.0f);
  EXPECT_EQ(got.q[3], -127);
  EXPECT_EQ(got.q[100], 127);
  EXPECT_EQ(got.sums[0], -127 * 16);
  EXPECT_EQ(got.sums[6], 127 * 8);
}

TEST_P(Int8KernelsTest, QuantizesZerosAndTinyValuesToZero) {
  std::vector<float> x(256, 0.0f);
  x[17] = 0x1p-120f;
  const Activations got = quantize(kernels_, DType::kQ4_K, x, 1, 256);
  EXPECT_EQ(got.scale[0], 0.0f);
  EXPECT_EQ(got.factors, std::vector<int32_t>(8, 1));
  EXPECT_EQ(got.q, std::vector<int8_t>(256, 0));
  EXPECT_EQ(got.sums, std::vector<int16_t>(16, 0));
}

TEST_P(Int8KernelsTest, ExtremeCodesDoNotSaturate) {
  // Every weight code at its largest magnitude against activations of +-127.
  for (const DType dtype : kBlockTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const int fill : {0xff, 0x80, 0x7f, 0x00}) {
      std::vector<std::byte> row(static_cast<size_t>(row_bytes(dtype, 256)), std::byte(fill));
      std::vector<float> x(256);
      for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? -1.0f : 1.0f;
      const Activations a = quantize(kernels_, dtype, x, 1, 256);
      float got = 0;
      float want = 0;
      kernels_.int8.gemv(dtype, row.data(), row_bytes(dtype, 256), 1, a.view, &got);
      portable_.int8.gemv(dtype, row.data(), row_bytes(dtype, 256), 1, a.view, &want);
      // A fill of 0xff is a NaN scale for some types: then both are NaN.
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " " << want;
    }
  }
}

TEST_P(Int8KernelsTest, TheLargestBlockOfAllTypesFitsThirtyTwoBits) {
  // Q6_K with scales of -128 and codes of -32 against 127 everywhere: 2,130,706,432.
  BlockQ6K block{};
  std::fill_n(block.scales, 16, int8_t{-128});
  block.d = 0x3c00;  // 1
  const auto* row = reinterpret_cast<const std::byte*>(&block);
  constexpr int64_t kBytes = sizeof(block);
  const Activations x =
      quantize(kernels_, DType::kQ6_K, std::vector<float>(256 * 16, 1.0f), 16, 256);
  constexpr float kWant = 32.0f * 128 * 256;
  float got = 0;
  kernels_.int8.gemv(DType::kQ6_K, row, kBytes, 1, x.view, &got);
  EXPECT_NEAR(got, kWant, kWant * 0x1p-22f);
  std::vector<std::byte> panel(static_cast<size_t>(panel_bytes(DType::kQ6_K, 256)));
  std::vector<float> all(16);
  kernels_.int8.pack(DType::kQ6_K, row, kBytes, 1, 256, panel.data());
  kernels_.int8.gemm(DType::kQ6_K, panel.data(), 1, x.view, nullptr, 16, all.data(), 1);
  EXPECT_EQ(all, std::vector<float>(16, got));
}

TEST_P(Int8KernelsTest, MatrixVectorEqualsPortableBitForBit) {
  for (const DType dtype : kBlockTypes) {
    for (const int64_t k : {256, 768, 288}) {  // 288: an odd number of blocks of 32
      if (k % block_values(dtype) != 0) continue;
      for (const int64_t m : {1, 7, 8, 29}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " k=" << k << " m=" << m);
        const auto w = random_blocks(dtype, m * (k / block_values(dtype)), 11);
        const Activations x = make_activations(kernels_, dtype, 1, k);
        std::vector<float> got(static_cast<size_t>(m), -1.0f);
        std::vector<float> want(static_cast<size_t>(m), -2.0f);
        kernels_.int8.gemv(dtype, w.data(), row_bytes(dtype, k), m, x.view, got.data());
        portable_.int8.gemv(dtype, w.data(), row_bytes(dtype, k), m, x.view, want.data());
        EXPECT_EQ(got, want);
      }
    }
  }
}

TEST_P(Int8KernelsTest, BlockedProductEqualsMatrixVectorBitForBit) {
  constexpr int64_t k = 512;
  for (const DType dtype : kBlockTypes) {
    for (const int64_t m : {1, 15, 16}) {
      for (const int64_t n : {1, 2, 9, 19}) {
        for (const bool gathers : {false, true}) {
          SCOPED_TRACE(
              ::testing::Message() << dtype_name(dtype) << " m=" << m << " n=" << n << gathers);
          const auto w = random_blocks(dtype, m * (k / block_values(dtype)), 12);
          const Activations x = make_activations(kernels_, dtype, n, k);
          std::vector<int32_t> ids;
          for (int32_t i = 0; i < n; ++i) ids.push_back((5 * i + 3) % static_cast<int32_t>(n));
          std::vector<std::byte> panel(static_cast<size_t>(panel_bytes(dtype, k)));
          kernels_.int8.pack(dtype, w.data(), row_bytes(dtype, k), m, k, panel.data());
          const int64_t stride = m + 3;
          std::vector<float> got(static_cast<size_t>(n * stride), -1.0f);
          kernels_.int8.gemm(
              dtype, panel.data(), m, x.view, gathers ? ids.data() : nullptr, n, got.data(),
              stride);
          std::vector<float> want(static_cast<size_t>(n * stride), -1.0f);
          for (int64_t r = 0; r < n; ++r) {
            const int64_t row = gathers ? ids[static_cast<size_t>(r)] : r;
            Int8Rows one = x.view;
            one.q += row * one.q_stride;
            one.scale += row * one.scale_stride;
            one.factors += row * one.factors_stride;
            one.sums += row * one.sums_stride;
            portable_.int8.gemv(
                dtype, w.data(), row_bytes(dtype, k), m, one,
                &want[static_cast<size_t>(r * stride)]);
          }
          EXPECT_EQ(got, want);
        }
      }
    }
  }
}

TEST_P(Int8KernelsTest, StaysNearFloat32) {
  constexpr int64_t k = 1024;
  for (const DType dtype : kBlockTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const auto w = random_blocks(dtype, 8 * (k / block_values(dtype)), 13);
    const Activations x = make_activations(kernels_, dtype, 1, k);
    float got[8];
    kernels_.int8.gemv(dtype, w.data(), row_bytes(dtype, k), 8, x.view, got);
    for (int64_t r = 0; r < 8; ++r) {
      std::vector<float> row(k);
      dequantize_row(dtype, w.data() + r * row_bytes(dtype, k), k, row.data());
      // Each activation is off by half a step of its group at most; the float32 roundings are of
      // the terms that the K-quants subtract, scale * code and min.
      double want = 0;
      double bound = 0;
      double magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double weight = row[static_cast<size_t>(i)];
        want += weight * x.x[static_cast<size_t>(i)];
        bound += std::fabs(weight) * 0.5001 * static_cast<double>(x.step(0, i));
        magnitude += std::fabs(weight * x.x[static_cast<size_t>(i)]);
      }
      EXPECT_NEAR(got[r], want, bound + 1e-5 * magnitude);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas, Int8KernelsTest, ::testing::ValuesIn(available_cpu_isas()), isa_case_name);

}  // namespace
}  // namespace tandem
