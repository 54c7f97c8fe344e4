#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/support/naive_math.h"
#include "tests/support/tensor.h"
#include "tests/support/weights.h"

namespace tandem::test::naive {

/// A small model of the V4 architecture, in the letters of the specification's section 1.
struct V4Shape {
  int64_t E = 256, V = 64, H = 4, QL = 64, G = 2, OL = 32;
  int64_t IH = 4, TK = 8;        // indexer heads, rows that it selects
  int64_t X = 8, K = 3, F = 64;  // experts, used for each token, their width
  int64_t hash_layers = 3;
  std::vector<int32_t> ratios = {0, 0, 4, 128, 4, 128};
  double expert_scale = 1.5, swiglu_limit = 10;
  bool official_rounding = true;

  static constexpr int64_t D = 512, R = 64, ID = 128, W = 128, S = 4;
  int64_t layers() const { return static_cast<int64_t>(ratios.size()); }
};

/// Which type each kind of tensor is stored in.
struct V4Types {
  DType matrices = DType::kF32;  // attention and shared expert
  DType experts = DType::kF32;
  DType side = DType::kF32;  // compressors, indexer, router, hyper-connections, embedding
  DType output = DType::kF32;
};

/// The tensors of section 3 under their names in a file.
using V4Weights = std::map<std::string, std::vector<HostWeight>>;  // one, or one for each expert
V4Weights random_v4_weights(const V4Shape& shape, const V4Types& types, uint64_t seed);

/// Writes `weights` as a GGUF with the metadata of section 2.1.
void write_v4_gguf(const std::string& path, const V4Shape& shape, const V4Weights& weights);

/// Section 5 in float64, a whole sequence at a time from position 0: no state, no steps.
class V4 {
 public:
  V4(V4Shape shape, const V4Weights& weights);

  /// [n, 4 E]
  Tensor64 embed(const std::vector<int32_t>& tokens) const;
  /// The streams behind layer `il`, from those before it.
  Tensor64 layer(int64_t il, const Tensor64& streams, const std::vector<int32_t>& tokens) const;
  /// Logits of every position.
  Tensor64 head(const Tensor64& streams) const;

 private:
  struct Compressed;
  const Tensor64& matrix(int64_t il, const std::string& name) const;
  std::vector<float> vector(int64_t il, const std::string& name) const;
  std::vector<Vector> attention(int64_t il, const std::vector<Vector>& x) const;
  std::vector<Vector> compress(
      int64_t il, const std::string& prefix, const std::vector<Vector>& x, int64_t d) const;
  std::vector<int32_t> select(
      int64_t il, const Vector& x, const Vector& qr, const std::vector<Vector>& index_rows,
      int64_t pos) const;
  Vector moe(int64_t il, const Vector& x, int32_t token) const;
  const std::vector<float>& frequencies(int64_t il) const;

  V4Shape shape_;
  const V4Weights& weights_;
  std::vector<float> plain_, yarn_;
};

}  // namespace tandem::test::naive
