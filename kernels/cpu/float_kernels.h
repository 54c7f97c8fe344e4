#pragma once

// The float32 kernels, once for all instruction sets: templates over a Lanes type (lanes_*.h). Only
// the kernels_<isa>.cc files include this, each with its own Lanes, so that no two of them share a
// symbol that was compiled with different flags. For the same reason nothing here calls an inline
// function of another header.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/cpu_kernels.h"

namespace tandem::cpu {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2High = 0.693359375f;  // 10 bits: n * kLn2High is exact
inline constexpr float kLn2Low = -2.12194440e-4f;
inline constexpr float kExpMin = -87.0f;  // below, 0
inline constexpr float kExpMax = 88.0f;   // above, e^88

template <class L, int kRows, int kOutputs>
struct FloatKernelsOf {
  /// e^x to about 1 ulp: x = n ln 2 + r, the Taylor polynomial of degree 7 in r, times 2^n.
  static L exp(L x) {
    const L bounded = L::min(L::max(x, L::set1(kExpMin)), L::set1(kExpMax));
    const L n = L::round(bounded * L::set1(kLog2E));
    L r = L::fma(n, L::set1(-kLn2High), bounded);
    r = L::fma(n, L::set1(-kLn2Low), r);
    L p = L::set1(1.0f / 5040.0f);
    p = L::fma(p, r, L::set1(1.0f / 720.0f));
    p = L::fma(p, r, L::set1(1.0f / 120.0f));
    p = L::fma(p, r, L::set1(1.0f / 24.0f));
    p = L::fma(p, r, L::set1(1.0f / 6.0f));
    p = L::fma(p, r, L::set1(0.5f));
    p = L::fma(p, r, L::set1(1.0f));
    p = L::fma(p, r, L::set1(1.0f));
    return L::select_ge(x, kExpMin, p * L::exp2_int(n), L::zero());
  }

  static L sigmoid(L x) { return L::set1(1.0f) / (L::set1(1.0f) + exp(L::zero() - x)); }

  template <DType kType>
  static L load(const std::byte* row, int64_t i) {
    if constexpr (kType == DType::kF16) return L::load_f16(row + 2 * i);
    if constexpr (kType == DType::kBF16) return L::load_bf16(row + 2 * i);
    if constexpr (kType == DType::kF32) {
      return L::load(reinterpret_cast<const float*>(row + 4 * i));
    }
  }

  template <DType kType>
  static L load_part(const std::byte* row, int64_t i, int64_t n) {
    if constexpr (kType == DType::kF32) {
      return L::load_part(reinterpret_cast<const float*>(row + 4 * i), n);
    } else {
      alignas(32) uint16_t bits[16] = {};
      __builtin_memcpy(bits, row + 2 * i, static_cast<size_t>(n) * 2);
      if constexpr (kType == DType::kF16) return L::load_f16(bits);
      return L::load_bf16(bits);
    }
  }

  /// Calls fn with the type as a template value.
  template <class Fn>
  static auto with_type(DType dtype, const Fn& fn) {
    if (dtype == DType::kF16) return fn.template operator()<DType::kF16>();
    if (dtype == DType::kBF16) return fn.template operator()<DType::kBF16>();
    return fn.template operator()<DType::kF32>();
  }

  /// Adds row[i] . x over i in [0, k) to `kCount` accumulators, one for each row.
  template <DType kType, int kCount>
  static void gemv_rows(
      const std::byte* rows, int64_t row_bytes, int64_t k, const float* x, float* out) {
    L sum[kCount];
    for (int r = 0; r < kCount; ++r) sum[r] = L::zero();
    int64_t i = 0;
    for (; i + 16 <= k; i += 16) {
      const L xi = L::load(x + i);
      for (int r = 0; r < kCount; ++r)
        sum[r] = L::fma(load<kType>(rows + r * row_bytes, i), xi, sum[r]);
    }
    if (i < k) {
      const L xi = L::load_part(x + i, k - i);
      for (int r = 0; r < kCount; ++r) {
        sum[r] = L::fma(load_part<kType>(rows + r * row_bytes, i, k - i), xi, sum[r]);
      }
    }
    for (int r = 0; r < kCount; ++r) out[r] = sum[r].sum();
  }

  static void gemv(
      DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
      const float* x, float* out) {
    with_type(dtype, [&]<DType kType>() {
      constexpr int kCount = 8;
      int64_t r = 0;
      for (; r + kCount <= num_rows; r += kCount) {
        gemv_rows<kType, kCount>(rows + r * row_bytes, row_bytes, k, x, out + r);
      }
      for (; r < num_rows; ++r) gemv_rows<kType, 1>(rows + r * row_bytes, row_bytes, k, x, out + r);
    });
  }

  static void expand(DType dtype, const std::byte* row, int64_t k, float* out) {
    with_type(dtype, [&]<DType kType>() {
      int64_t i = 0;
      for (; i + 16 <= k; i += 16) load<kType>(row, i).store(out + i);
      if (i < k) load_part<kType>(row, i, k - i).store_part(out + i, k - i);
    });
  }

  /// out[r][o] = x[r] . w[o] for a tile held in registers.
  template <int kTileR, int kTileO>
  static void gemm_tile(
      const float* w, int64_t k, const float* const* x, float* out, int64_t out_stride) {
    L sum[kTileR * kTileO > 16 ? kTileR * kTileO : 16];
    for (int i = 0; i < kTileR * kTileO; ++i) sum[i] = L::zero();
    int64_t i = 0;
    for (; i + 16 <= k; i += 16) {
      L wi[kTileO];
      for (int o = 0; o < kTileO; ++o) wi[o] = L::load(w + o * k + i);
      for (int r = 0; r < kTileR; ++r) {
        const L xi = L::load(x[r] + i);
        for (int o = 0; o < kTileO; ++o)
          sum[r * kTileO + o] = L::fma(wi[o], xi, sum[r * kTileO + o]);
      }
    }
    if (i < k) {
      for (int r = 0; r < kTileR; ++r) {
        const L xi = L::load_part(x[r] + i, k - i);
        for (int o = 0; o < kTileO; ++o) {
          sum[r * kTileO + o] = L::fma(L::load_part(w + o * k + i, k - i), xi, sum[r * kTileO + o]);
        }
      }
    }
    if constexpr (kTileR * kTileO == 16) {
      float sums[16];
      L::sums(sum).store(sums);
      for (int r = 0; r < kTileR; ++r) {
        for (int o = 0; o < kTileO; ++o) out[r * out_stride + o] = sums[r * kTileO + o];
      }
    } else {
      for (int r = 0; r < kTileR; ++r) {
        for (int o = 0; o < kTileO; ++o) out[r * out_stride + o] = sum[r * kTileO + o].sum();
      }
    }
  }

  /// Rows first ... first + kTileR - 1 of the product.
  template <int kTileR>
  static void gemm_outputs(
      const float* w, int64_t num_rows, int64_t k, const float* x, int64_t x_stride,
      const int32_t* row_ids, int64_t first, float* out, int64_t out_stride) {
    const float* rows[kTileR];
    for (int r = 0; r < kTileR; ++r) {
      rows[r] = x + (row_ids != nullptr ? row_ids[first + r] : first + r) * x_stride;
    }
    float* y = out + first * out_stride;
    int64_t o = 0;
    for (; o + kOutputs <= num_rows; o += kOutputs) {
      gemm_tile<kTileR, kOutputs>(w + o * k, k, rows, y + o, out_stride);
    }
    for (; o < num_rows; ++o) gemm_tile<kTileR, 1>(w + o * k, k, rows, y + o, out_stride);
  }

  static void gemm(
      const float* w, int64_t num_rows, int64_t k, const float* x, int64_t x_stride,
      const int32_t* row_ids, int64_t n, float* out, int64_t out_stride) {
    int64_t r = 0;
    for (; r + kRows <= n; r += kRows) {
      gemm_outputs<kRows>(w, num_rows, k, x, x_stride, row_ids, r, out, out_stride);
    }
    for (; r < n; ++r) {
      gemm_outputs<1>(w, num_rows, k, x, x_stride, row_ids, r, out, out_stride);
    }
  }

  static float dot(const float* a, const float* b, int64_t n) {
    L sum = L::zero();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) sum = L::fma(L::load(a + i), L::load(b + i), sum);
    if (i < n) sum = L::fma(L::load_part(a + i, n - i), L::load_part(b + i, n - i), sum);
    return sum.sum();
  }

  /// Applies fn to every group of 16 of the n values (the last one padded with zeros).
  template <class Fn>
  static void map(const float* x, int64_t n, float* out, const Fn& fn) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) fn(L::load(x + i), i, int64_t{16}).store(out + i);
    if (i < n) fn(L::load_part(x + i, n - i), i, n - i).store_part(out + i, n - i);
  }

  static void rms_norm(const float* x, const float* weight, int64_t n, float eps, float* out) {
    const float mean = dot(x, x, n) / static_cast<float>(n);
    const L scale = L::set1(1.0f / __builtin_sqrtf(mean + eps));
    map(x, n, out, [&](L v, int64_t i, int64_t count) {
      if (weight == nullptr) return v * scale;
      return v * scale * (count == 16 ? L::load(weight + i) : L::load_part(weight + i, count));
    });
  }

  static void swiglu(
      const float* gate, const float* up, int64_t n, float limit, float weight, float* out) {
    map(gate, n, out, [&](L g, int64_t i, int64_t count) {
      g = L::min(g, L::set1(limit));
      L u = count == 16 ? L::load(up + i) : L::load_part(up + i, count);
      u = L::max(L::min(u, L::set1(limit)), L::set1(-limit));
      return g * sigmoid(g) * u * L::set1(weight);
    });
  }

  /// Scores of kHeads heads with kCount rows.
  template <DType kType, int kHeads, int kCount>
  static void score_tile(
      const float* q, int64_t head_dim, const std::byte* const* rows, float scale, float* scores,
      int64_t scores_stride) {
    L sum[kHeads * kCount > 16 ? kHeads * kCount : 16];
    for (int i = 0; i < kHeads * kCount; ++i) sum[i] = L::zero();
    for (int64_t i = 0; i < head_dim; i += 16) {
      L row[kCount];
      for (int j = 0; j < kCount; ++j) row[j] = load<kType>(rows[j], i);
      for (int h = 0; h < kHeads; ++h) {
        const L qh = L::load(q + h * head_dim + i);
        for (int j = 0; j < kCount; ++j)
          sum[h * kCount + j] = L::fma(row[j], qh, sum[h * kCount + j]);
      }
    }
    if constexpr (kHeads * kCount == 16) {
      float sums[16];
      (L::sums(sum) * L::set1(scale)).store(sums);
      for (int h = 0; h < kHeads; ++h) {
        for (int j = 0; j < kCount; ++j) scores[h * scores_stride + j] = sums[h * kCount + j];
      }
    } else {
      for (int h = 0; h < kHeads; ++h) {
        for (int j = 0; j < kCount; ++j) {
          scores[h * scores_stride + j] = sum[h * kCount + j].sum() * scale;
        }
      }
    }
  }

  template <DType kType, int kHeads>
  static void score_rows(
      const float* q, int64_t head_dim, RowPointers rows, float scale, float* scores,
      int64_t scores_stride) {
    int64_t j = 0;
    for (; j + kOutputs <= rows.count; j += kOutputs) {
      score_tile<kType, kHeads, kOutputs>(
          q, head_dim, rows.rows + j, scale, scores + j, scores_stride);
    }
    for (; j < rows.count; ++j) {
      score_tile<kType, kHeads, 1>(q, head_dim, rows.rows + j, scale, scores + j, scores_stride);
    }
  }

  static void attend_scores(
      const float* q, int64_t num_heads, int64_t head_dim, RowPointers rows, float scale,
      float* scores, int64_t scores_stride) {
    with_type(rows.dtype, [&]<DType kType>() {
      int64_t h = 0;
      for (; h + kRows <= num_heads; h += kRows) {
        score_rows<kType, kRows>(
            q + h * head_dim, head_dim, rows, scale, scores + h * scores_stride, scores_stride);
      }
      for (; h + 2 <= num_heads; h += 2) {
        score_rows<kType, 2>(
            q + h * head_dim, head_dim, rows, scale, scores + h * scores_stride, scores_stride);
      }
      for (; h < num_heads; ++h) {
        score_rows<kType, 1>(
            q + h * head_dim, head_dim, rows, scale, scores + h * scores_stride, scores_stride);
      }
    });
  }

  static float softmax(float* scores, int64_t count, float sink) {
    L most = L::set1(sink);
    int64_t j = 0;
    for (; j + 16 <= count; j += 16) most = L::max(most, L::load(scores + j));
    float largest = most.largest();
    for (; j < count; ++j) largest = scores[j] > largest ? scores[j] : largest;

    const L shift = L::set1(largest);
    L sum = L::zero();
    for (j = 0; j + 16 <= count; j += 16) {
      const L e = exp(L::load(scores + j) - shift);
      e.store(scores + j);
      sum = sum + e;
    }
    if (j < count) {
      // The padding is made small enough to vanish: e^{-inf} would need an infinity of its own.
      float padded[16];
      for (int i = 0; i < 16; ++i)
        padded[i] = j + i < count ? scores[j + i] - largest : kExpMin - 1;
      const L e = exp(L::load(padded));
      e.store_part(scores + j, count - j);
      sum = sum + e;
    }
    float sink_term[16];
    exp(L::set1(sink - largest)).store(sink_term);
    return 1.0f / (sum.sum() + sink_term[0]);
  }

  /// 16 * kParts values of kHeads heads.
  template <DType kType, int kHeads, int kParts>
  static void mix_tile(
      const float* p, int64_t p_stride, int64_t head_dim, RowPointers rows, int64_t begin,
      float* out) {
    L sum[kHeads * kParts];
    for (int h = 0; h < kHeads; ++h) {
      for (int c = 0; c < kParts; ++c) {
        sum[h * kParts + c] = L::load(out + h * head_dim + begin + 16 * c);
      }
    }
    for (int64_t j = 0; j < rows.count; ++j) {
      L row[kParts];
      for (int c = 0; c < kParts; ++c) row[c] = load<kType>(rows.rows[j], begin + 16 * c);
      for (int h = 0; h < kHeads; ++h) {
        const L weight = L::set1(p[h * p_stride + j]);
        for (int c = 0; c < kParts; ++c) {
          sum[h * kParts + c] = L::fma(weight, row[c], sum[h * kParts + c]);
        }
      }
    }
    for (int h = 0; h < kHeads; ++h) {
      for (int c = 0; c < kParts; ++c) {
        sum[h * kParts + c].store(out + h * head_dim + begin + 16 * c);
      }
    }
  }

  template <DType kType, int kHeads>
  static void mix_heads(
      const float* p, int64_t p_stride, int64_t head_dim, RowPointers rows, float* out) {
    int64_t i = 0;
    for (; i + 16 * kOutputs <= head_dim; i += 16 * kOutputs) {
      mix_tile<kType, kHeads, kOutputs>(p, p_stride, head_dim, rows, i, out);
    }
    for (; i < head_dim; i += 16) mix_tile<kType, kHeads, 1>(p, p_stride, head_dim, rows, i, out);
  }

  static void attend_mix(
      const float* p, int64_t p_stride, int64_t num_heads, int64_t head_dim, RowPointers rows,
      float* out) {
    with_type(rows.dtype, [&]<DType kType>() {
      int64_t h = 0;
      for (; h + kRows <= num_heads; h += kRows) {
        mix_heads<kType, kRows>(p + h * p_stride, p_stride, head_dim, rows, out + h * head_dim);
      }
      for (; h + 2 <= num_heads; h += 2) {
        mix_heads<kType, 2>(p + h * p_stride, p_stride, head_dim, rows, out + h * head_dim);
      }
      for (; h < num_heads; ++h) {
        mix_heads<kType, 1>(p + h * p_stride, p_stride, head_dim, rows, out + h * head_dim);
      }
    });
  }

  static void scale(float* x, int64_t n, float factor) {
    map(x, n, x, [&](L v, int64_t, int64_t) { return v * L::set1(factor); });
  }

  template <DType kType, int kHeads, int kCount>
  static void index_tile(
      const float* q, const float* weights, int64_t head_dim, const std::byte* rows,
      int64_t row_bytes, float* scores) {
    float matches[kHeads * kCount];
    const std::byte* pointers[kCount];
    for (int j = 0; j < kCount; ++j) pointers[j] = rows + j * row_bytes;
    score_tile<kType, kHeads, kCount>(q, head_dim, pointers, 1.0f, matches, kCount);
    for (int h = 0; h < kHeads; ++h) {
      for (int j = 0; j < kCount; ++j) {
        const float match = matches[h * kCount + j];
        scores[j] = __builtin_fmaf(match > 0.0f ? match : 0.0f, weights[h], scores[j]);
      }
    }
  }

  template <DType kType, int kCount>
  static void index_heads(
      const float* q, const float* weights, int64_t num_heads, int64_t head_dim,
      const std::byte* rows, int64_t row_bytes, float* scores) {
    for (int j = 0; j < kCount; ++j) scores[j] = 0.0f;
    int64_t h = 0;
    for (; h + kRows <= num_heads; h += kRows) {
      index_tile<kType, kRows, kCount>(
          q + h * head_dim, weights + h, head_dim, rows, row_bytes, scores);
    }
    for (; h < num_heads; ++h) {
      index_tile<kType, 1, kCount>(
          q + h * head_dim, weights + h, head_dim, rows, row_bytes, scores);
    }
  }

  static void index_scores(
      const float* q, const float* weights, int64_t num_heads, int64_t head_dim,
      const std::byte* rows, int64_t row_bytes, DType dtype, int64_t count, float* scores) {
    with_type(dtype, [&]<DType kType>() {
      int64_t j = 0;
      for (; j + kOutputs <= count; j += kOutputs) {
        index_heads<kType, kOutputs>(
            q, weights, num_heads, head_dim, rows + j * row_bytes, row_bytes, scores + j);
      }
      for (; j < count; ++j) {
        index_heads<kType, 1>(
            q, weights, num_heads, head_dim, rows + j * row_bytes, row_bytes, scores + j);
      }
    });
  }

  static void pool(
      const float* const* value, const float* const* gate, int64_t num_slots, int64_t n,
      float* pooled) {
    const auto get = [](const float* x, int64_t i, int64_t count) {
      return count == 16 ? L::load(x + i) : L::load_part(x + i, count);
    };
    map(gate[0], n, pooled, [&](L first, int64_t i, int64_t count) {
      L largest = first;
      for (int64_t r = 1; r < num_slots; ++r) largest = L::max(largest, get(gate[r], i, count));
      L sum = L::zero();
      L weighted = L::zero();
      for (int64_t r = 0; r < num_slots; ++r) {
        const L weight = exp(get(gate[r], i, count) - largest);
        sum = sum + weight;
        weighted = L::fma(weight, get(value[r], i, count), weighted);
      }
      return weighted / sum;
    });
  }

  static void sigmoid_values(const float* x, int64_t n, float* out) {
    map(x, n, out, [](L v, int64_t, int64_t) { return sigmoid(v); });
  }

  static void mix_streams(
      const float* x, const float* weights, int64_t num_streams, int64_t n, float* out) {
    map(x, n, out, [&](L first, int64_t i, int64_t count) {
      L sum = first * L::set1(weights[0]);
      for (int64_t j = 1; j < num_streams; ++j) {
        const float* stream = x + j * n + i;
        const L v = count == 16 ? L::load(stream) : L::load_part(stream, count);
        sum = L::fma(L::set1(weights[j]), v, sum);
      }
      return sum;
    });
  }

  static void hc_post(
      float* streams, const float* branch, const float* post, const float* comb, int64_t s,
      int64_t n) {
    for (int64_t i = 0; i < n; i += 16) {
      const int64_t count = n - i < 16 ? n - i : 16;
      const L b = count == 16 ? L::load(branch + i) : L::load_part(branch + i, count);
      L in[8];
      for (int64_t j = 0; j < s; ++j) {
        const float* stream = streams + j * n + i;
        in[j] = count == 16 ? L::load(stream) : L::load_part(stream, count);
      }
      for (int64_t k = 0; k < s; ++k) {
        L sum = L::set1(post[k]) * b;
        for (int64_t j = 0; j < s; ++j) sum = L::fma(L::set1(comb[j * s + k]), in[j], sum);
        sum.store_part(streams + k * n + i, count);
      }
    }
  }

  static void sinkhorn(float* comb, int64_t s, int32_t iterations, float eps) {
    // Lane k of columns[j] is comb[j][k]; lanes past s stay 0 and eps keeps their sums from zero.
    L rows[8];
    for (int64_t j = 0; j < s; ++j) {
      float* row = comb + j * s;
      float largest = row[0];
      for (int64_t k = 1; k < s; ++k) largest = row[k] > largest ? row[k] : largest;
      float padded[16];
      for (int64_t k = 0; k < 16; ++k) padded[k] = k < s ? row[k] - largest : kExpMin - 1;
      const L e = exp(L::load(padded));
      (e / L::set1(e.sum())).store(padded);
      for (int64_t k = 0; k < s; ++k) padded[k] += eps;
      rows[j] = L::load(padded);
    }
    const L least = L::set1(eps);
    const auto divide_columns = [&] {
      L sum = least;
      for (int64_t j = 0; j < s; ++j) sum = sum + rows[j];
      const L factor = L::set1(1.0f) / sum;
      for (int64_t j = 0; j < s; ++j) rows[j] = rows[j] * factor;
    };
    divide_columns();
    for (int32_t i = 1; i < iterations; ++i) {
      for (int64_t j = 0; j < s; ++j) {
        rows[j] = rows[j] * L::set1(1.0f / (rows[j].sum() + eps));
      }
      divide_columns();
    }
    for (int64_t j = 0; j < s; ++j) rows[j].store_part(comb + j * s, s);
  }

  /// Of angles x = pos * frequency, up to 2^21: x = n pi / 2 + r, Taylor polynomials in r.
  static void rotary_angles(
      const float* frequencies, int64_t count, float pos, float* cosines, float* sines) {
    constexpr float kTwoOverPi = 0.636619772f;
    // pi / 2 in three parts; with a fused multiply-add the first subtraction is exact.
    constexpr float kPart1 = 1.57079637f;
    constexpr float kPart2 = -4.37113883e-8f;
    constexpr float kPart3 = -1.71512489e-15f;
    for (int64_t i = 0; i < count; i += 16) {
      const int64_t part = count - i < 16 ? count - i : 16;
      const L x = L::set1(pos) * L::load_part(frequencies + i, part);
      const L n = L::round(x * L::set1(kTwoOverPi));
      L r = L::fma(n, L::set1(-kPart1), x);
      r = L::fma(n, L::set1(-kPart2), r);
      r = L::fma(n, L::set1(-kPart3), r);
      const L r2 = r * r;
      L s = L::fma(L::set1(1.0f / 362880.0f), r2, L::set1(-1.0f / 5040.0f));
      s = L::fma(s, r2, L::set1(1.0f / 120.0f));
      s = L::fma(s, r2, L::set1(-1.0f / 6.0f));
      s = L::fma(s * r2, r, r);
      L c = L::fma(L::set1(-1.0f / 3628800.0f), r2, L::set1(1.0f / 40320.0f));
      c = L::fma(c, r2, L::set1(-1.0f / 720.0f));
      c = L::fma(c, r2, L::set1(1.0f / 24.0f));
      c = L::fma(c, r2, L::set1(-0.5f));
      c = L::fma(c, r2, L::set1(1.0f));
      // The quadrant is n mod 4, as -2 ... 2.
      const L quadrant = L::fma(L::round(n * L::set1(0.25f)), L::set1(-4.0f), n);
      const L size = L::abs(quadrant);
      const L zero = L::zero();
      // size 1: sine and cosine change places; 2: both change sign; and then 1 or -1 flips one.
      const L sine = L::select_ge(size, 1.5f, zero - s, L::select_ge(size, 0.5f, c, s));
      const L cosine = L::select_ge(size, 1.5f, zero - c, L::select_ge(size, 0.5f, s, c));
      const L odd_sign = L::select_ge(size, 1.5f, L::set1(0.0f), quadrant);
      L::select_ge(zero - odd_sign, 0.5f, zero - sine, sine).store_part(sines + i, part);
      L::select_ge(odd_sign, 0.5f, zero - cosine, cosine).store_part(cosines + i, part);
    }
  }

  /// Magnitudes below are too small to divide by; such values vanish against anything.
  static constexpr float kSmallestGroup = 0x1p-100f;

  /// q = round(x * inverse) of 32 values, and what their two runs of 16 add up to, times `factor`.
  static void quantize_run(
      const float* x, float inverse, int32_t factor, int8_t* q, int16_t* sums) {
    for (int run = 0; run < 2; ++run) {
      L::store_int8(L::round(L::load(x + 16 * run) * L::set1(inverse)), q + 16 * run);
      sums[run] = static_cast<int16_t>(factor * L::sum_int8(q + 16 * run));
    }
  }

  static L magnitudes(const float* x) {
    return L::max(L::abs(L::load(x)), L::abs(L::load(x + 16)));
  }

  static void quantize32(const float* x, int64_t k, int8_t* q, float* scale, int16_t* sums) {
    for (int64_t g = 0; g < k / 32; ++g) {
      const float largest = magnitudes(x + 32 * g).largest();
      const bool vanishes = !(largest >= kSmallestGroup);
      scale[g] = vanishes ? largest * 0.0f : largest / 127.0f;
      quantize_run(x + 32 * g, vanishes ? 0.0f : 127.0f / largest, 1, q + 32 * g, sums + 2 * g);
    }
  }

  static void quantize256(
      const float* x, int64_t k, int8_t* q, float* scale, int32_t* factors, int16_t* sums) {
    constexpr float kSteps = 127.0f * kFactorMax;
    for (int64_t b = 0; b < k / 256; ++b) {
      L most = L::zero();
      float of_run[8];
      for (int g = 0; g < 8; ++g) {
        const L run = magnitudes(x + 256 * b + 32 * g);
        of_run[g] = run.largest();
        most = L::max(most, run);
      }
      const float largest = most.largest();
      const bool vanishes = !(largest >= kSmallestGroup);
      scale[b] = vanishes ? largest * 0.0f : largest / kSteps;
      const float inverse = vanishes ? 0.0f : kSteps / largest;
      const float to_factor = vanishes ? 0.0f : kFactorMax / largest;
      for (int64_t g = 0; g < 8; ++g) {
        // Rounded up, so that no value of the run is beyond 127; a NaN gives 1.
        const float wanted = of_run[g] * to_factor;
        int32_t factor = 1;
        if (wanted > kFactorMax - 1) {
          factor = kFactorMax;
        } else if (wanted > 1) {
          factor = static_cast<int32_t>(wanted);
          factor += static_cast<float>(factor) < wanted ? 1 : 0;
        }
        const int64_t run = 8 * b + g;
        factors[run] = factor;
        quantize_run(
            x + 32 * run, inverse / static_cast<float>(factor), factor, q + 32 * run,
            sums + 2 * run);
      }
    }
  }

  static void quantize(
      const float* x, int64_t k, Int8Grouping grouping, int8_t* q, float* scale, int32_t* factors,
      int16_t* sums) {
    if (grouping == Int8Grouping::k32) {
      quantize32(x, k, q, scale, sums);
    } else {
      quantize256(x, k, q, scale, factors, sums);
    }
  }

  static constexpr FloatKernels table() {
    FloatKernels out;
    out.gemv = gemv;
    out.expand = expand;
    out.gemm = gemm;
    out.dot = dot;
    out.rms_norm = rms_norm;
    out.swiglu = swiglu;
    out.attend_scores = attend_scores;
    out.softmax = softmax;
    out.attend_mix = attend_mix;
    out.scale = scale;
    out.index_scores = index_scores;
    out.pool = pool;
    out.sigmoid = sigmoid_values;
    out.mix_streams = mix_streams;
    out.hc_post = hc_post;
    out.sinkhorn = sinkhorn;
    out.rotary_angles = rotary_angles;
    return out;
  }
};

}  // namespace tandem::cpu
