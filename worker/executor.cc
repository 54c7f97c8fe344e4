#include "worker/executor.h"

#include <optional>

#include "kernels/attend/attend.h"
#include "kernels/compress/compress.h"
#include "kernels/embed/embed.h"
#include "kernels/experts/experts.h"
#include "kernels/hc_post/hc_post.h"
#include "kernels/hc_pre/hc_post_pre.h"
#include "kernels/hc_pre/hc_pre.h"
#include "kernels/head/head.h"
#include "kernels/index_select/index_select.h"
#include "kernels/output_project/output_project.h"
#include "kernels/qkv/qkv.h"
#include "kernels/ring_append/ring_append.h"
#include "kernels/route/route.h"

namespace tandem {
namespace {

/// Turns each operation's ids into views and calls it.
class OpRunner {
 public:
  OpRunner(const Exec& exec, const ExecutorParts& parts, const StepRows& step, Rows logits)
      : exec_(exec),
        weights_(*parts.weights),
        values_(*parts.values),
        banks_(*parts.banks),
        parts_(parts),
        step_(step),
        logits_(logits),
        n_(step.num_rows) {}

  Status operator()(const EmbedOp& op) const {
    return embed(
        exec_, {step_, weights_.weight(op.table), op.num_streams, values_.rows(op.streams, n_)});
  }

  Status operator()(const HcPreOp& op) const { return hc_pre(exec_, args_of(op)); }

  HcPreArgs args_of(const HcPreOp& op) const {
    HcPreArgs args;
    args.streams = values_.rows(op.streams, n_);
    args.fn = weights_.weight(op.fn);
    args.scale = weights_.vector(op.scale);
    args.base = weights_.vector(op.base);
    args.norm = weights_.vector(op.norm);
    args.normed = values_.rows(op.normed, n_);
    args.mix = values_.rows(op.mix, n_);
    args.num_streams = op.num_streams;
    args.sinkhorn_iterations = op.sinkhorn_iterations;
    args.hc_eps = op.hc_eps;
    args.rms_eps = op.rms_eps;
    return args;
  }

  Status operator()(const HcPostOp& op) const { return hc_post(exec_, args_of(op)); }

  HcPostArgs args_of(const HcPostOp& op) const {
    return {
        values_.rows(op.streams, n_), values_.rows(op.branch, n_), values_.rows(op.mix, n_),
        op.num_streams};
  }

  /// Runs `op` and `next` as one if they can be; true if it did.
  Result<bool> run_pair(const Op& op, const Op& next) const {
    const auto* post = std::get_if<HcPostOp>(&op.body);
    const auto* pre = std::get_if<HcPreOp>(&next.body);
    if (post == nullptr || pre == nullptr) return false;
    const HcPostArgs post_args = args_of(*post);
    const HcPreArgs pre_args = args_of(*pre);
    if (!can_fuse_hc(exec_, post_args, pre_args)) return false;
    TANDEM_TRY(hc_post_pre(exec_, post_args, pre_args));
    return true;
  }

  Status operator()(const QkvOp& op) const {
    QkvArgs args;
    args.step = step_;
    args.x = values_.rows(op.x, n_);
    args.q_a = weights_.weight(op.q_a);
    args.q_a_norm = weights_.vector(op.q_a_norm);
    args.q_b = weights_.weight(op.q_b);
    args.kv = weights_.weight(op.kv);
    args.kv_norm = weights_.vector(op.kv_norm);
    args.q_latent = values_.rows(op.q_latent, n_);
    args.q = values_.rows(op.q, n_);
    args.kv_row = values_.rows(op.kv_row, n_);
    args.rotary = parts_.rotaries[op.rotary];
    args.num_heads = op.num_heads;
    args.head_dim = op.head_dim;
    args.rms_eps = op.rms_eps;
    args.rounding = op.rounding;
    return qkv(exec_, args);
  }

  Status operator()(const CompressOp& op) const {
    CompressArgs args;
    args.step = step_;
    args.x = values_.rows(op.x, n_);
    args.kv = weights_.weight(op.kv);
    args.gate = weights_.weight(op.gate);
    args.ape = weights_.weight(op.ape);
    args.norm = weights_.vector(op.norm);
    args.projected = values_.rows(op.projected, n_, 2 * compress_width(op.ratio, op.row_dim));
    args.history = banks_.slab(op.history);
    args.rows = banks_.slab(op.rows);
    args.rotary = parts_.rotaries[op.rotary];
    args.ratio = op.ratio;
    args.row_dim = op.row_dim;
    args.rms_eps = op.rms_eps;
    args.rounding = op.rounding;
    return compress(exec_, args);
  }

  Status operator()(const IndexSelectOp& op) const {
    IndexSelectArgs args;
    args.step = step_;
    args.x = values_.rows(op.x, n_);
    args.q_latent = values_.rows(op.q_latent, n_);
    args.q_b = weights_.weight(op.q_b);
    args.weights = weights_.weight(op.weights);
    args.rows = banks_.slab(op.rows);
    args.rotary = parts_.rotaries[op.rotary];
    args.selection = values_.ints(op.selection, n_);
    args.num_heads = op.num_heads;
    args.head_dim = op.head_dim;
    args.ratio = op.ratio;
    args.top_k = op.top_k;
    args.rounding = op.rounding;
    return index_select(exec_, args);
  }

  Status operator()(const AttendOp& op) const {
    AttendArgs args;
    args.step = step_;
    args.q = values_.rows(op.q, n_);
    args.kv_row = values_.rows(op.kv_row, n_);
    args.window_rows = banks_.slab(op.window_rows);
    if (op.compressed_rows != kNone) args.compressed_rows = banks_.slab(op.compressed_rows);
    if (op.selection != kNone) args.selection = values_.ints(op.selection, n_);
    args.sinks = weights_.vector(op.sinks);
    args.rotary = parts_.rotaries[op.rotary];
    args.out = values_.rows(op.out, n_);
    args.num_heads = op.num_heads;
    args.head_dim = op.head_dim;
    args.window = op.window;
    args.ratio = op.ratio;
    return attend(exec_, args);
  }

  Status operator()(const RingAppendOp& op) const {
    const SlabView ring = banks_.slab(op.ring);
    return ring_append(exec_, {step_, values_.rows(op.value, n_, ring.row_values), ring});
  }

  Status operator()(const OutputProjectOp& op) const {
    return output_project(
        exec_, {values_.rows(op.heads, n_), weights_.weight(op.o_a), weights_.weight(op.o_b),
                values_.rows(op.out, n_), op.num_groups});
  }

  Status operator()(const RouteOp& op) const {
    RouteArgs args;
    args.step = step_;
    args.x = values_.rows(op.x, n_);
    args.gate = weights_.weight(op.gate);
    args.bias = weights_.vector(op.bias);
    args.token_experts = weights_.weight(op.token_experts);
    args.expert_ids = values_.ints(op.expert_ids, n_);
    args.expert_weights = values_.rows(op.expert_weights, n_);
    args.top_k = op.top_k;
    args.scale = op.scale;
    return route(exec_, args);
  }

  Status operator()(const ExpertsOp& op) const {
    ExpertsArgs args;
    args.x = values_.rows(op.x, n_);
    args.expert_ids = values_.ints(op.expert_ids, n_);
    args.expert_weights = values_.rows(op.expert_weights, n_);
    args.gate = weights_.experts(op.gate);
    args.up = weights_.experts(op.up);
    args.down = weights_.experts(op.down);
    args.shared_gate = weights_.weight(op.shared_gate);
    args.shared_up = weights_.weight(op.shared_up);
    args.shared_down = weights_.weight(op.shared_down);
    args.out = values_.rows(op.out, n_);
    args.swiglu_limit = op.swiglu_limit;
    args.shared_swiglu_limit = op.shared_swiglu_limit;
    return experts(exec_, args);
  }

  Status operator()(const HeadOp& op) const {
    HeadArgs args;
    args.step = step_;
    args.streams = values_.rows(op.streams, n_);
    args.fn = weights_.weight(op.fn);
    args.scale = weights_.vector(op.scale);
    args.base = weights_.vector(op.base);
    args.norm = weights_.vector(op.norm);
    args.output = weights_.weight(op.output);
    args.logits = logits_;
    args.num_streams = op.num_streams;
    args.hc_eps = op.hc_eps;
    args.rms_eps = op.rms_eps;
    return head(exec_, args);
  }

 private:
  const Exec& exec_;
  const WeightTable& weights_;
  const ValueTable& values_;
  const BankStore& banks_;
  const ExecutorParts& parts_;
  const StepRows& step_;
  Rows logits_;
  int64_t n_;
};

struct OpNames {
  const char* operator()(const EmbedOp&) const { return "embed"; }
  const char* operator()(const HcPreOp&) const { return "hc_pre"; }
  const char* operator()(const HcPostOp&) const { return "hc_post"; }
  const char* operator()(const QkvOp&) const { return "qkv"; }
  const char* operator()(const CompressOp&) const { return "compress"; }
  const char* operator()(const IndexSelectOp&) const { return "index_select"; }
  const char* operator()(const AttendOp&) const { return "attend"; }
  const char* operator()(const RingAppendOp&) const { return "ring_append"; }
  const char* operator()(const OutputProjectOp&) const { return "output_project"; }
  const char* operator()(const RouteOp&) const { return "route"; }
  const char* operator()(const ExpertsOp&) const { return "experts"; }
  const char* operator()(const HeadOp&) const { return "head"; }
};

// Runs a program on two queues. The side queue takes what a layer's main line does not wait for:
// pooling, until a selection or attention reads the pooled rows; and the storing of rows, until the
// next layer's projections overwrite them.
class TwoQueues {
 public:
  TwoQueues(const OpRunner& main, const OpRunner& side, SideQueue& queue)
      : main_(main), side_(side), queue_(queue) {}

  Status run(const Op& op) {
    if (std::holds_alternative<CompressOp>(op.body) ||
        std::holds_alternative<RingAppendOp>(op.body)) {
      is_behind_ = true;
      return std::visit(side_, op.body);
    }
    const bool is_attend = std::holds_alternative<AttendOp>(op.body);
    const bool is_qkv = std::holds_alternative<QkvOp>(op.body);
    if (is_attend || is_qkv || std::holds_alternative<IndexSelectOp>(op.body)) {
      TANDEM_TRY(catch_up());
    }
    if (is_qkv) TANDEM_TRY(queue_.fork());  // pooling needs what the projections need
    TANDEM_TRY(std::visit(main_, op.body));
    return is_attend ? queue_.fork() : Status();
  }

  Status catch_up() {
    if (!is_behind_) return {};
    is_behind_ = false;
    return queue_.join();
  }

 private:
  const OpRunner& main_;
  const OpRunner& side_;
  SideQueue& queue_;
  bool is_behind_ = false;
};

}  // namespace

Status run_program(
    const Exec& exec, const ExecutorParts& parts, const StepRows& step, Rows logits,
    const OpObserver* observer) {
  const OpRunner runner(exec, parts, step, logits);
  const std::vector<Op>& ops = parts.program->ops;
  const OpRunner side(parts.side != nullptr ? parts.side->exec() : exec, parts, step, logits);
  std::optional<TwoQueues> queues;
  if (parts.side != nullptr) queues.emplace(runner, side, *parts.side);
  for (size_t i = 0; i < ops.size(); ++i) {
    if (observer != nullptr) (*observer)(ops[i], i);
    if (i + 1 < ops.size()) {
      TANDEM_TRY_ASSIGN(const bool ran_both, runner.run_pair(ops[i], ops[i + 1]));
      if (ran_both) {
        ++i;
        if (observer != nullptr) (*observer)(ops[i], i);
        continue;
      }
    }
    TANDEM_TRY(queues.has_value() ? queues->run(ops[i]) : std::visit(runner, ops[i].body));
  }
  return queues.has_value() ? queues->catch_up() : Status();
}

const char* op_name(const Op& op) {
  return std::visit(OpNames{}, op.body);
}

}  // namespace tandem
