#include "worker/op_cost.h"

#include <algorithm>
#include <initializer_list>

namespace tandem {
namespace {

/// Adds up one operation; the overloads list what each kind reads.
class CostOf {
 public:
  CostOf(const ExecutorParts& parts, const StepRows& step) : parts_(parts), step_(step) {}

  OpCost operator()(const EmbedOp& op) const {
    const WeightView table = parts_.weights->weight(op.table);
    return {step_.num_rows * table.row_bytes, 0, 0};
  }
  OpCost operator()(const HcPreOp& op) const { return products({op.fn}, step_.num_rows); }
  OpCost operator()(const HcPostOp& op) const {
    const int64_t width = parts_.values->rows(op.branch, step_.num_rows).cols;
    return {0, 0, step_.num_rows * op.num_streams * (op.num_streams + 1) * width};
  }
  OpCost operator()(const QkvOp& op) const {
    return products({op.q_a, op.q_b, op.kv}, step_.num_rows);
  }
  OpCost operator()(const CompressOp& op) const {
    return products({op.kv, op.gate}, step_.num_rows);
  }
  OpCost operator()(const IndexSelectOp& op) const {
    const SlabView rows = parts_.banks->slab(op.rows);
    OpCost cost;
    int64_t num_scored = 0;  // rows that have to score at all
    for (int64_t t = 0; t < step_.num_rows; ++t) {
      const int64_t count = (step_.pos[t] + 1) / op.ratio;
      if (count <= op.top_k) continue;
      ++num_scored;
      cost.state_bytes += count * rows.row_bytes;
      cost.macs += count * op.num_heads * op.head_dim;
    }
    if (num_scored == 0) return cost;
    return add(cost, products({op.q_b, op.weights}, num_scored));
  }
  OpCost operator()(const AttendOp& op) const {
    const SlabView window = parts_.banks->slab(op.window_rows);
    OpCost cost;
    for (int64_t t = 0; t < step_.num_rows; ++t) {
      const int64_t near = std::min<int64_t>(step_.pos[t] + 1, op.window);
      int64_t far = op.compressed_rows == kNone ? 0 : (step_.pos[t] + 1) / op.ratio;
      if (op.selection != kNone) {
        far = std::min(far, parts_.values->ints(op.selection, step_.num_rows).cols);
      }
      cost.state_bytes += (near + far) * window.row_bytes;
      cost.macs += 2 * (near + far) * op.num_heads * op.head_dim;
    }
    return cost;
  }
  OpCost operator()(const RingAppendOp&) const { return {}; }
  OpCost operator()(const OutputProjectOp& op) const {
    return products({op.o_a, op.o_b}, step_.num_rows);
  }
  OpCost operator()(const RouteOp& op) const { return products({op.gate}, step_.num_rows); }
  OpCost operator()(const ExpertsOp& op) const {
    const int64_t top_k = parts_.values->ints(op.expert_ids, step_.num_rows).cols;
    OpCost cost = products({op.shared_gate, op.shared_up, op.shared_down}, step_.num_rows);
    for (const TensorId id : {op.gate, op.up, op.down}) {
      const ExpertWeightView w = parts_.weights->experts(id);
      const int64_t chosen = std::min(w.experts, step_.num_rows * top_k);
      cost.weight_bytes += chosen * w.first.rows * w.first.row_bytes;
      cost.macs += step_.num_rows * top_k * w.first.rows * w.first.cols;
    }
    return cost;
  }
  OpCost operator()(const HeadOp& op) const {
    if (step_.num_logits == 0) return {};
    return products({op.fn, op.output}, step_.num_logits);
  }

 private:
  OpCost products(std::initializer_list<TensorId> ids, int64_t num_rows) const {
    OpCost cost;
    for (const TensorId id : ids) {
      const WeightView w = parts_.weights->weight(id);
      cost.weight_bytes += w.rows * w.row_bytes;
      cost.macs += num_rows * w.rows * w.cols;
    }
    return cost;
  }
  static OpCost add(const OpCost& a, const OpCost& b) {
    return {a.weight_bytes + b.weight_bytes, a.state_bytes + b.state_bytes, a.macs + b.macs};
  }

  const ExecutorParts& parts_;
  const StepRows& step_;
};

}  // namespace

OpCost op_cost(const Op& op, const ExecutorParts& parts, const StepRows& step) {
  return std::visit(CostOf(parts, step), op.body);
}

}  // namespace tandem
