#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/int8_panel.h"
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
  std::vector<int16_t> sums;
  Int8Rows view;
};

Activations make_activations(const CpuKernels& kernels, DType dtype, int64_t n, int64_t k) {
  Activations out;
  const int64_t group = block_values(dtype);
  const int64_t stride = (k + 63) / 64 * 64;
  out.x = random_values(n * k, 7);
  out.q.resize(static_cast<size_t>(n * stride));
  out.scale.resize(static_cast<size_t>(n * (k / group)));
  out.sums.resize(static_cast<size_t>(n * (k / 16)));
  for (int64_t t = 0; t < n; ++t) {
    kernels.int8.quantize(
        &out.x[static_cast<size_t>(t * k)], k, int8_grouping(dtype),
        &out.q[static_cast<size_t>(t * stride)], &out.scale[static_cast<size_t>(t * (k / group))],
        &out.sums[static_cast<size_t>(t * (k / 16))]);
  }
  out.view = {out.q.data(), out.scale.data(), out.sums.data(), k, stride, k / group, k / 16};
  return out;
}

class Int8KernelsTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  const CpuKernels& kernels_ = cpu_kernels(GetParam());
  const CpuKernels& portable_ = cpu_kernels(CpuIsa::kPortable);
};

TEST_P(Int8KernelsTest, QuantizesAsPortable) {
  for (const DType dtype : {DType::kQ8_0, DType::kQ4_K}) {
    const Activations got = make_activations(kernels_, dtype, 3, 512);
    const Activations want = make_activations(portable_, dtype, 3, 512);
    EXPECT_EQ(got.q, want.q);
    EXPECT_EQ(got.sums, want.sums);
    EXPECT_EQ(got.scale, want.scale);
    const int64_t group = block_values(dtype);
    for (int64_t i = 0; i < 3 * 512; ++i) {
      const float step = got.scale[static_cast<size_t>(i / group)];
      const float back = step * got.q[static_cast<size_t>(i)];
      // Half a step, and the rounding of the two scale computations over 127 steps.
      EXPECT_NEAR(got.x[static_cast<size_t>(i)], back, step * (0.5f + 127 * 0x1p-22f));
    }
  }
}

TEST_P(Int8KernelsTest, QuantizesZerosAndTinyValuesToZero) {
  std::vector<float> x(256, 0.0f);
  x[17] = 0x1p-120f;
  int8_t q[256];
  float scale = 1;
  int16_t sums[16];
  kernels_.int8.quantize(x.data(), 256, Int8Grouping::k256, q, &scale, sums);
  EXPECT_EQ(scale, 0.0f);
  EXPECT_TRUE(std::all_of(q, q + 256, [](int8_t v) { return v == 0; }));
  EXPECT_TRUE(std::all_of(sums, sums + 16, [](int16_t v) { return v == 0; }));
}

TEST_P(Int8KernelsTest, ExtremeCodesDoNotSaturate) {
  // Every weight code at its largest magnitude against activations of +-127.
  for (const DType dtype : kBlockTypes) {
    SCOPED_TRACE(dtype_name(dtype));
    for (const int fill : {0xff, 0x80, 0x7f, 0x00}) {
      std::vector<std::byte> row(static_cast<size_t>(row_bytes(dtype, 256)), std::byte(fill));
      std::vector<float> x(256);
      for (size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? -1.0f : 1.0f;
      int8_t q[256];
      float scale[8];
      int16_t sums[16];
      kernels_.int8.quantize(x.data(), 256, int8_grouping(dtype), q, scale, sums);
      const Int8Rows view{q, scale, sums, 256, 256, 256 / block_values(dtype), 16};
      float got = 0;
      float want = 0;
      kernels_.int8.gemv(dtype, row.data(), row_bytes(dtype, 256), 1, view, &got);
      portable_.int8.gemv(dtype, row.data(), row_bytes(dtype, 256), 1, view, &want);
      // A fill of 0xff is a NaN scale for some types: then both are NaN.
      EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " " << want;
    }
  }
}

TEST_P(Int8KernelsTest, MatrixVectorEqualsPortableBitForBit) {
  for (const DType dtype : kBlockTypes) {
    for (const int64_t k : {256, 768}) {
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
        bound += std::fabs(weight) * 0.5001 * x.scale[static_cast<size_t>(i / block_values(dtype))];
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
