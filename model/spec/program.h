#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "model/formats/row_rounding.h"

namespace tandem {

// A program is the forward pass of a range of layers as data: a list of coarse operations over
// named values, tensors and slabs. The same program serves prefill, decode and verification. Each
// operation here has one folder under kernels/, with the same fields and the arithmetic spelled
// out.

using ValueId = int32_t;   // index into Program::values
using TensorId = int32_t;  // index into the family's TensorPlan
using SlabId = int32_t;    // index into the family's StatePlan
using RotaryId = int32_t;  // index into Program::rotaries

inline constexpr int32_t kNone = -1;

enum class ValueType { kF32, kI32 };

/// A [num_rows, width] array that operations of one step read and write.
struct ValueSpec {
  std::string name;
  ValueType type = ValueType::kF32;
  int64_t width = 0;
};

/// Rotation frequencies of one kind of layer, in radians per position: frequencies[dim / 2].
struct RotarySpec {
  int64_t dim = 0;
  std::vector<float> frequencies;
};

struct EmbedOp {
  TensorId table = kNone;
  ValueId streams = kNone;
  int64_t num_streams = 1;
};

struct HcPreOp {
  ValueId streams = kNone;
  TensorId fn = kNone, scale = kNone, base = kNone, norm = kNone;
  ValueId normed = kNone;  // [hidden_dim]
  ValueId mix = kNone;     // [num_streams post, num_streams * num_streams comb]
  int64_t num_streams = 1;
  int32_t sinkhorn_iterations = 0;
  float hc_eps = 0, rms_eps = 0;
};

struct HcPostOp {
  ValueId streams = kNone;  // read and replaced
  ValueId branch = kNone;   // [hidden_dim]
  ValueId mix = kNone;
  int64_t num_streams = 1;
};

struct QkvOp {
  ValueId x = kNone;
  TensorId q_a = kNone, q_a_norm = kNone, q_b = kNone, kv = kNone, kv_norm = kNone;
  ValueId q_latent = kNone;  // [q_lora_rank], normed
  ValueId q = kNone;         // [num_heads * head_dim]
  ValueId kv_row = kNone;    // [head_dim]
  int64_t num_heads = 0, head_dim = 0;
  RotaryId rotary = kNone;
  float rms_eps = 0;
  RowRounding rounding = RowRounding::kNone;
};

struct CompressOp {
  ValueId x = kNone;
  TensorId kv = kNone, gate = kNone, ape = kNone, norm = kNone;
  ValueId projected = kNone;  // [2 * coff * row_dim]: u, then g with ape added
  SlabId history = kNone;     // ring of `projected` rows
  SlabId rows = kNone;        // pooled rows, one for each `ratio` tokens
  int64_t ratio = 0, row_dim = 0;
  RotaryId rotary = kNone;
  float rms_eps = 0;
  RowRounding rounding = RowRounding::kNone;
};

struct IndexSelectOp {
  ValueId x = kNone, q_latent = kNone;
  TensorId q_b = kNone, weights = kNone;
  SlabId rows = kNone;
  ValueId selection = kNone;  // i32 [top_k]
  int64_t num_heads = 0, head_dim = 0, ratio = 0, top_k = 0;
  RotaryId rotary = kNone;
  RowRounding rounding = RowRounding::kNone;
};

struct AttendOp {
  ValueId q = kNone, kv_row = kNone;
  SlabId window_rows = kNone;      // ring
  SlabId compressed_rows = kNone;  // or kNone: window only
  ValueId selection = kNone;       // or kNone: every visible compressed row
  TensorId sinks = kNone;
  ValueId out = kNone;  // [num_heads * head_dim]
  int64_t num_heads = 0, head_dim = 0, window = 0, ratio = 0;
  RotaryId rotary = kNone;
};

/// Stores the step's rows of a value in a ring, after everything that reads the ring's older rows.
struct RingAppendOp {
  ValueId value = kNone;
  SlabId ring = kNone;
};

struct OutputProjectOp {
  ValueId heads = kNone;
  TensorId o_a = kNone, o_b = kNone;
  ValueId out = kNone;  // [hidden_dim]
  int64_t num_groups = 0;
};

struct RouteOp {
  ValueId x = kNone;
  TensorId gate = kNone;
  TensorId bias = kNone;           // one of bias and token_experts
  TensorId token_experts = kNone;  // i32 [vocab, top_k]
  ValueId expert_ids = kNone;      // i32 [top_k]
  ValueId expert_weights = kNone;  // [top_k]
  int64_t top_k = 0;
  float scale = 1;
};

struct ExpertsOp {
  ValueId x = kNone, expert_ids = kNone, expert_weights = kNone;
  TensorId gate = kNone, up = kNone, down = kNone;
  TensorId shared_gate = kNone, shared_up = kNone, shared_down = kNone;
  ValueId out = kNone;  // [hidden_dim]
  float swiglu_limit = 0, shared_swiglu_limit = 0;
};

struct HeadOp {
  ValueId streams = kNone;
  TensorId fn = kNone, scale = kNone, base = kNone, norm = kNone, output = kNone;
  int64_t num_streams = 1, vocab_size = 0;
  float hc_eps = 0, rms_eps = 0;
};

using OpBody = std::variant<
    EmbedOp, HcPreOp, HcPostOp, QkvOp, CompressOp, IndexSelectOp, AttendOp, RingAppendOp,
    OutputProjectOp, RouteOp, ExpertsOp, HeadOp>;

struct Op {
  int32_t layer = -1;  // -1: embedding or head
  OpBody body;
};

/// Layers [begin, end); a pipeline stage. The first stage embeds, the last emits logits.
struct LayerRange {
  int32_t begin = 0;
  int32_t end = 0;
  bool embeds = true;
  bool emits_logits = true;
};

struct Program {
  LayerRange range;
  std::vector<ValueSpec> values;
  std::vector<RotarySpec> rotaries;
  std::vector<Op> ops;
  ValueId streams = kNone;  // what crosses a cut: [num_streams * hidden_dim]
  int64_t vocab_size = 0;
};

}  // namespace tandem
