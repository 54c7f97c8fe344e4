#include "benchmarks/worker/op_cost.h"

#include <cmath>

namespace tandem::bench {
namespace {

struct WeightBytes {
  const WeightTable& weights;
  int64_t num_rows;

  int64_t one(TensorId id) const {
    const WeightView view = weights.weight(id);
    return view.rows * view.row_bytes;
  }
  int64_t sum(std::initializer_list<TensorId> ids) const {
    int64_t total = 0;
    for (const TensorId id : ids) total += one(id);
    return total;
  }

  int64_t operator()(const EmbedOp& op) const {
    return num_rows * weights.weight(op.table).row_bytes;
  }
  int64_t operator()(const HcPreOp& op) const { return one(op.fn); }
  int64_t operator()(const HcPostOp&) const { return 0; }
  int64_t operator()(const QkvOp& op) const { return sum({op.q_a, op.q_b, op.kv}); }
  int64_t operator()(const CompressOp& op) const { return sum({op.kv, op.gate}); }
  int64_t operator()(const IndexSelectOp& op) const { return sum({op.q_b, op.weights}); }
  int64_t operator()(const AttendOp&) const { return 0; }
  int64_t operator()(const RingAppendOp&) const { return 0; }
  int64_t operator()(const OutputProjectOp& op) const { return sum({op.o_a, op.o_b}); }
  int64_t operator()(const RouteOp& op) const { return one(op.gate); }
  int64_t operator()(const ExpertsOp& op) const {
    const ExpertWeightView gate = weights.experts(op.gate);
    const auto experts = static_cast<double>(gate.experts);
    const double top_k = 6;
    const double chosen =
        experts * (1 - std::pow(1 - top_k / experts, static_cast<double>(num_rows)));
    const int64_t of_one = gate.expert_bytes + weights.experts(op.up).expert_bytes +
                           weights.experts(op.down).expert_bytes;
    return static_cast<int64_t>(chosen * static_cast<double>(of_one)) +
           sum({op.shared_gate, op.shared_up, op.shared_down});
  }
  int64_t operator()(const HeadOp& op) const { return sum({op.fn, op.output}); }
};

}  // namespace

int64_t weight_bytes(const Op& op, const WeightTable& weights, int64_t num_rows) {
  return std::visit(WeightBytes{weights, num_rows}, op.body);
}

}  // namespace tandem::bench
