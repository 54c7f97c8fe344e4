#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "model/formats/quantize.h"
#include "tests/kernels/cpu/isa_cases.h"

namespace tandem {
namespace {

constexpr DType kFloatTypes[] = {DType::kF32, DType::kF16, DType::kBF16};

std::vector<std::byte> random_rows(DType dtype, int64_t rows, int64_t k, uint64_t seed) {
  const std::vector<float> values = random_values(rows * k, seed);
  std::vector<std::byte> out(static_cast<size_t>(rows * row_bytes(dtype, k)));
  quantize_row(dtype, values.data(), rows * k, out.data());
  return out;
}

class FloatKernelsTest : public ::testing::TestWithParam<CpuIsa> {
 protected:
  /// Runs `body` with the kernels under test and with the portable ones; the results are equal
  /// bits.
  void expect_same(
      int64_t count, const std::function<void(const FloatKernels&, std::vector<float>&)>& body) {
    std::vector<float> got(static_cast<size_t>(count), -1.0f);
    std::vector<float> want = got;
    body(cpu_kernels(GetParam()).f32, got);
    body(cpu_kernels(CpuIsa::kPortable).f32, want);
    ASSERT_EQ(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)), 0)
        << ::testing::PrintToString(got) << "\n"
        << ::testing::PrintToString(want);
    result_ = want;
  }
  std::vector<float> result_;
};

TEST_P(FloatKernelsTest, ProductsEqualPortableAtEveryTail) {
  for (const DType dtype : kFloatTypes) {
    for (const int64_t k : {1, 15, 16, 31, 256}) {
      for (const int64_t m : {1, 4, 9}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " k=" << k << " m=" << m);
        const auto w = random_rows(dtype, m, k, 3);
        const auto x = random_values(5 * k, 4);
        expect_same(m, [&](const FloatKernels& f, std::vector<float>& out) {
          f.gemv(dtype, w.data(), row_bytes(dtype, k), m, k, x.data(), out.data());
        });
        const std::vector<float> first_row = result_;
        for (const int64_t n : {1, 4, 5}) {
          expect_same(n * m, [&](const FloatKernels& f, std::vector<float>& out) {
            std::vector<float> wide(static_cast<size_t>(m * k));
            for (int64_t r = 0; r < m; ++r) {
              f.expand(
                  dtype, w.data() + r * row_bytes(dtype, k), k, &wide[static_cast<size_t>(r * k)]);
            }
            f.gemm(wide.data(), m, k, x.data(), k, nullptr, n, out.data(), m);
          });
          EXPECT_TRUE(std::equal(first_row.begin(), first_row.end(), result_.begin()));
        }
      }
    }
  }
}

TEST_P(FloatKernelsTest, SigmoidIsAccurateAndSaturates) {
  std::vector<float> x = {-200.0f, -88.5f, -20.0f, -1.0f, -1e-3f, 0.0f, 1e-3f, 1.0f, 20.0f, 200.0f};
  for (int i = 0; i < 500; ++i) x.push_back(-25.0f + 0.1f * static_cast<float>(i));
  expect_same(static_cast<int64_t>(x.size()), [&](const FloatKernels& f, std::vector<float>& out) {
    f.sigmoid(x.data(), static_cast<int64_t>(x.size()), out.data());
  });
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = 1.0 / (1.0 + std::exp(-double{x[i]}));
    // exp to 2 ulp, one addition, one division; below e^-87 the result is 0 or tiny.
    EXPECT_NEAR(result_[i], want, 4 * 0x1p-23 * want + 1e-37) << x[i];
  }
}

TEST_P(FloatKernelsTest, SoftmaxEqualsPortableAndSumsToOne) {
  for (const int64_t n : {1, 15, 16, 17, 200}) {
    for (const float sink : {-5.0f, 30.0f}) {
      const auto scores = random_values(n, 5, 10.0f);
      expect_same(n + 1, [&](const FloatKernels& f, std::vector<float>& out) {
        std::copy(scores.begin(), scores.end(), out.begin());
        out[static_cast<size_t>(n)] = f.softmax(out.data(), n, sink);
      });
      double largest = sink;
      for (const float s : scores) largest = std::max(largest, double{s});
      double total = std::exp(sink - largest);
      for (const float s : scores) total += std::exp(s - largest);
      for (int64_t j = 0; j < n; ++j) {
        const double want = std::exp(scores[static_cast<size_t>(j)] - largest) / total;
        const double got =
            double{result_[static_cast<size_t>(j)]} * result_[static_cast<size_t>(n)];
        EXPECT_NEAR(got, want, 1e-5 * want + 1e-30);
      }
    }
  }
}

TEST_P(FloatKernelsTest, AttentionPartsEqualPortableWhateverTheTile) {
  constexpr int64_t kHeadDim = 512;
  for (const DType dtype : kFloatTypes) {
    for (const int64_t heads : {1, 4, 6}) {
      for (const int64_t count : {1, 4, 7, 33}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << heads << "x" << count);
        const auto rows = random_rows(dtype, count, kHeadDim, 6);
        std::vector<const std::byte*> pointers;
        for (int64_t j = 0; j < count; ++j) {
          pointers.push_back(rows.data() + j * row_bytes(dtype, kHeadDim));
        }
        const RowPointers view{pointers.data(), count, dtype};
        const auto q = random_values(heads * kHeadDim, 8);
        const int64_t stride = count + 1;
        expect_same(heads * stride, [&](const FloatKernels& f, std::vector<float>& out) {
          f.attend_scores(q.data(), heads, kHeadDim, view, 0.044f, out.data(), stride);
        });
        // One head alone gives what it gives among others.
        float alone = 0;
        cpu_kernels(GetParam())
            .f32.attend_scores(
                q.data() + (heads - 1) * kHeadDim, 1, kHeadDim,
                {pointers.data() + count - 1, 1, dtype}, 0.044f, &alone, 1);
        EXPECT_EQ(alone, result_[static_cast<size_t>((heads - 1) * stride + count - 1)]);
        const auto p = random_values(heads * stride, 9);
        expect_same(heads * kHeadDim, [&](const FloatKernels& f, std::vector<float>& out) {
          f.attend_mix(p.data(), stride, heads, kHeadDim, view, out.data());
        });
      }
    }
  }
}

TEST_P(FloatKernelsTest, IndexScoresEqualPortable) {
  constexpr int64_t kHeadDim = 128;
  for (const int64_t heads : {3, 4, 64}) {
    for (const int64_t count : {1, 6, 40}) {
      const auto rows = random_rows(DType::kF32, count, kHeadDim, 10);
      const auto q = random_values(heads * kHeadDim, 11);
      const auto weights = random_values(heads, 12);
      expect_same(count, [&](const FloatKernels& f, std::vector<float>& out) {
        f.index_scores(
            q.data(), weights.data(), heads, kHeadDim, rows.data(), 4 * kHeadDim, DType::kF32,
            count, out.data());
      });
    }
  }
}

TEST_P(FloatKernelsTest, RowOperationsEqualPortable) {
  for (const int64_t n : {1, 16, 40, 257}) {
    SCOPED_TRACE(n);
    const auto x = random_values(8 * n, 13);
    const auto w = random_values(n, 14);
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      f.rms_norm(x.data(), w.data(), n, 1e-6f, out.data());
    });
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      f.rms_norm(x.data(), nullptr, n, 1e-6f, out.data());
    });
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      f.swiglu(x.data(), x.data() + n, n, 10.0f, 0.7f, out.data());
    });
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      std::copy_n(x.begin(), n, out.begin());
      f.scale(out.data(), n, 0.3f);
    });
    expect_same(1, [&](const FloatKernels& f, std::vector<float>& out) {
      out[0] = f.dot(x.data(), w.data(), n);
    });
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      const float* values[3] = {x.data(), x.data() + n, x.data() + 2 * n};
      const float* gates[3] = {x.data() + 3 * n, x.data() + 4 * n, x.data() + 5 * n};
      f.pool(values, gates, 3, n, out.data());
    });
    expect_same(n, [&](const FloatKernels& f, std::vector<float>& out) {
      f.mix_streams(x.data(), w.data(), 1, n, out.data());
    });
    expect_same(4 * n, [&](const FloatKernels& f, std::vector<float>& out) {
      std::copy_n(x.begin(), 4 * n, out.begin());
      const auto comb = random_values(16, 15);
      const auto post = random_values(4, 16);
      f.hc_post(out.data(), w.data(), post.data(), comb.data(), 4, n);
    });
  }
}

TEST_P(FloatKernelsTest, SinkhornBalancesRowsAndColumns) {
  for (const int64_t s : {2, 4, 8}) {
    const auto start = random_values(s * s, 17, 3.0f);
    expect_same(s * s, [&](const FloatKernels& f, std::vector<float>& out) {
      out = start;
      f.sinkhorn(out.data(), s, 20, 1e-6f);
    });
    for (int64_t k = 0; k < s; ++k) {
      double column = 0;
      for (int64_t j = 0; j < s; ++j) column += result_[static_cast<size_t>(j * s + k)];
      EXPECT_NEAR(column, 1.0, 1e-5);
    }
  }
}

TEST_P(FloatKernelsTest, RotaryAnglesAreAccurateToTheLastTrainedPosition) {
  std::vector<float> frequencies;
  for (int i = 0; i < 32; ++i) frequencies.push_back(std::pow(10000.0f, -2.0f * float(i) / 64.0f));
  for (const int pos : {0, 1, 2, 3, 4, 5, 100, 4095, 65536, 524287, 1048575}) {
    expect_same(64, [&](const FloatKernels& f, std::vector<float>& out) {
      f.rotary_angles(frequencies.data(), 32, float(pos), out.data(), out.data() + 32);
    });
    for (size_t i = 0; i < 32; ++i) {
      const double angle = float(pos) * frequencies[i];
      // The reduced angle is off by half an ulp of 0.8 and what pi / 2 lacks; the polynomials by 1
      // ulp.
      EXPECT_NEAR(result_[i], std::cos(angle), 2.5e-7) << pos << " " << i;
      EXPECT_NEAR(result_[32 + i], std::sin(angle), 2.5e-7) << pos << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Isas, FloatKernelsTest, ::testing::ValuesIn(available_cpu_isas()), isa_case_name);

}  // namespace
}  // namespace tandem
