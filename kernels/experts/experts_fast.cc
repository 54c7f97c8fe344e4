#include <algorithm>
#include <array>

#include "kernels/cpu/products.h"
#include "kernels/cpu/units.h"
#include "kernels/experts/experts_impl.h"

namespace tandem::detail {
namespace {

using cpu::Activations;
using cpu::Dealing;
using cpu::kBlockedRowsMin;
using cpu::kChunkRows;
using cpu::kVectorUnitRows;
using cpu::Product;
using cpu::UnitRange;

constexpr int64_t kSerialBytes = 48 << 10;

/// One expert with its rows. Pair p of them is row row_ids[p] of x, and has the slot first_slot + p
/// in `mid` and `results`.
struct Job {
  WeightView gate, up, down;
  float limit = 0;
  const int32_t* row_ids = nullptr;
  const float* weights = nullptr;  // by pair; null: 1
  int64_t num_pairs = 0;
  int64_t first_slot = 0;
  bool shared = false;
};

struct Plan {
  Job* jobs = nullptr;
  int64_t num_jobs = 0;
  int64_t num_slots = 0;
  int32_t* slots = nullptr;  // [n * (top_k + 1)]: where the k-th addend of a row is; shared last
};

/// Sorts the (row, expert) pairs by expert; the shared expert's rows come last.
Plan make_plan(const Exec& exec, const ExpertsArgs& args) {
  const int64_t n = args.x.rows;
  const int64_t top_k = args.expert_ids.cols;
  const int64_t num_experts = args.gate.experts;
  const bool has_shared = args.shared_gate.rows != 0;
  Plan plan;
  plan.jobs = exec.scratch->take<Job>(num_experts + 1);
  plan.slots = exec.scratch->take<int32_t>(n * (top_k + 1));
  int32_t* row_ids = exec.scratch->take<int32_t>(n * (top_k + 1));
  float* weights = exec.scratch->take<float>(n * top_k);
  int64_t* next = exec.scratch->take<int64_t>(num_experts + 1);
  std::fill_n(next, num_experts + 1, int64_t{0});

  for (int64_t t = 0; t < n; ++t) {
    for (int64_t k = 0; k < top_k; ++k) ++next[args.expert_ids.row(t)[k] + 1];
  }
  for (int64_t e = 0; e < num_experts; ++e) {
    const int64_t count = next[e + 1];
    next[e + 1] += next[e];
    if (count == 0) continue;
    plan.jobs[plan.num_jobs++] = {
        args.gate.expert(e),
        args.up.expert(e),
        args.down.expert(e),
        args.swiglu_limit,
        row_ids + next[e],
        weights + next[e],
        count,
        next[e],
        false};
  }
  // next[e] is now the first slot of expert e.
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t k = 0; k < top_k; ++k) {
      const int64_t slot = next[args.expert_ids.row(t)[k]]++;
      row_ids[slot] = static_cast<int32_t>(t);
      weights[slot] = args.expert_weights.row(t)[k];
      plan.slots[t * (top_k + 1) + k] = static_cast<int32_t>(slot);
    }
  }
  plan.num_slots = n * top_k;
  if (has_shared) {
    plan.jobs[plan.num_jobs++] = {
        args.shared_gate,
        args.shared_up,
        args.shared_down,
        args.shared_swiglu_limit,
        nullptr,
        nullptr,
        n,
        plan.num_slots,
        true};
    for (int64_t t = 0; t < n; ++t) {
      plan.slots[t * (top_k + 1) + top_k] = static_cast<int32_t>(plan.num_slots + t);
    }
    plan.num_slots += n;
  }
  return plan;
}

/// Where a unit of a job's product lies.
struct UnitPlace {
  int64_t first, count;           // weight rows
  int64_t first_pair, num_pairs;  // activation rows
};

int64_t unit_rows(const Job& job) {
  return job.num_pairs < kBlockedRowsMin ? kVectorUnitRows : 2 * kPanelRows;
}

UnitRange count_units(const Job& job, int64_t weight_rows, int64_t bytes_per_row) {
  const int64_t chunks = (job.num_pairs + kChunkRows - 1) / kChunkRows;
  return {
      (weight_rows + unit_rows(job) - 1) / unit_rows(job) * chunks,
      unit_rows(job) * bytes_per_row * std::min(job.num_pairs, kChunkRows)};
}

UnitPlace place_unit(const Job& job, int64_t weight_rows, int64_t unit) {
  const int64_t per_chunk = (weight_rows + unit_rows(job) - 1) / unit_rows(job);
  UnitPlace place;
  place.first = unit % per_chunk * unit_rows(job);
  place.count = std::min(unit_rows(job), weight_rows - place.first);
  place.first_pair = unit / per_chunk * kChunkRows;
  place.num_pairs = std::min(kChunkRows, job.num_pairs - place.first_pair);
  return place;
}

/// The two steps of one call and what they share.
class ExpertsRun {
 public:
  ExpertsRun(const Exec& exec, const CpuKernels& kernels, const ExpertsArgs& args)
      : exec_(exec), kernels_(kernels), args_(args), plan_(make_plan(exec, args)) {
    mid_dim_ = args.gate.first.rows;
    shared_dim_ = args.shared_gate.rows;
    const auto& routed = args.gate.first;
    for (const WeightView* w :
         {&routed, &args.up.first, &args.down.first, &args.shared_gate, &args.shared_up,
          &args.shared_down}) {
      if (w->rows != 0) panel_ = std::max(panel_, cpu::panel_scratch_bytes(*w));
    }
    panels_ = exec.scratch->take<std::byte>(panel_ * exec.pool->num_threads());
    products_ =
        exec.scratch->take<float>(exec.pool->num_threads() * 2 * kChunkRows * kVectorUnitRows);
    units_ = exec.scratch->take<UnitRange>(plan_.num_jobs);
    dealing_ = args.x.rows < kBlockedRowsMin ? Dealing::kByCost : Dealing::kOnDemand;
  }

  void run() {
    const int64_t num_routed = plan_.num_slots - (shared_dim_ != 0 ? args_.x.rows : 0);
    const int64_t num_shared = plan_.num_slots - num_routed;
    const Rows mid{
        exec_.scratch->take<float>(num_routed * mid_dim_), num_routed, mid_dim_, mid_dim_};
    const Rows shared_mid{
        exec_.scratch->take<float>(num_shared * shared_dim_), num_shared, shared_dim_, shared_dim_};
    cpu::ActivationForms forms;
    forms.add(args_.gate.first).add(args_.up.first).add(args_.shared_gate).add(args_.shared_up);
    const Activations x = cpu::prepare(exec_, kernels_, args_.x, forms);
    activate(x, mid, shared_mid);

    const Activations routed_input =
        cpu::prepare(exec_, kernels_, mid, cpu::ActivationForms{}.add(args_.down.first));
    const Activations shared_input =
        cpu::prepare(exec_, kernels_, shared_mid, cpu::ActivationForms{}.add(args_.shared_down));
    project(routed_input, shared_input, num_routed);
  }

 private:
  std::byte* panel(int thread_idx) const { return panels_ + thread_idx * panel_; }

  /// mid[slot] = silu(gate x) * up x * weight.
  void activate(const Activations& x, Rows mid, Rows shared_mid) {
    for (int64_t j = 0; j < plan_.num_jobs; ++j) {
      const Job& job = plan_.jobs[j];
      units_[j] = count_units(job, job.gate.rows, job.gate.row_bytes + job.up.row_bytes);
    }
    cpu::run_units(
        *exec_.pool, {units_, static_cast<size_t>(plan_.num_jobs)}, dealing_, kSerialBytes,
        [&](int thread_idx, size_t j, int64_t unit) {
          const Job& job = plan_.jobs[j];
          const UnitPlace at = place_unit(job, job.gate.rows, unit);
          const Rows& target = job.shared ? shared_mid : mid;
          float* gate = products_ + thread_idx * 2 * kChunkRows * kVectorUnitRows;
          float* up = gate + kChunkRows * kVectorUnitRows;
          multiply_rows(job.gate, job, x, at, gate, kVectorUnitRows, panel(thread_idx));
          multiply_rows(job.up, job, x, at, up, kVectorUnitRows, panel(thread_idx));
          for (int64_t i = 0; i < at.num_pairs; ++i) {
            const int64_t pair = at.first_pair + i;
            const int64_t slot = job.shared ? pair : job.first_slot + pair;
            kernels_.f32.swiglu(
                gate + i * kVectorUnitRows, up + i * kVectorUnitRows, at.count, job.limit,
                job.weights != nullptr ? job.weights[pair] : 1.0f, target.row(slot) + at.first);
          }
        });
  }

  void multiply_rows(
      const WeightView& weight, const Job& job, const Activations& x, const UnitPlace& at,
      float* out, int64_t out_stride, std::byte* panel) const {
    const Product product{weight, &x, job.row_ids, job.num_pairs, nullptr, 0};
    cpu::multiply(
        kernels_, product, at.first, at.count, at.first_pair, at.num_pairs, out, out_stride, panel);
  }

  /// out[t] = sum over the row's slots of down mid[slot], in the order of expert_ids.
  void project(const Activations& routed, const Activations& shared, int64_t num_routed) {
    const int64_t hidden_dim = args_.out.cols;
    const Rows results{
        exec_.scratch->take<float>(plan_.num_slots * hidden_dim), plan_.num_slots, hidden_dim,
        hidden_dim};
    if (dealing_ == Dealing::kByCost) {
      project_vectors(routed, shared, num_routed, results);
      return;
    }
    for (int64_t j = 0; j < plan_.num_jobs; ++j) {
      units_[j] = count_units(plan_.jobs[j], hidden_dim, plan_.jobs[j].down.row_bytes);
    }
    cpu::run_units(
        *exec_.pool, {units_, static_cast<size_t>(plan_.num_jobs)}, dealing_, kSerialBytes,
        [&](int thread_idx, size_t j, int64_t unit) {
          const UnitPlace at = place_unit(plan_.jobs[j], hidden_dim, unit);
          project_unit(plan_.jobs[j], at, routed, shared, num_routed, results, panel(thread_idx));
        });
    constexpr int64_t kRowGrain = 16;
    exec_.pool->for_range(args_.x.rows, kRowGrain, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) add_up(t, results, 0, hidden_dim);
    });
  }

  void project_unit(
      const Job& job, const UnitPlace& at, const Activations& routed, const Activations& shared,
      int64_t num_routed, Rows results, std::byte* panel) const {
    // The rows of a job are consecutive slots, so nothing is gathered.
    const int64_t first = job.shared ? job.first_slot - num_routed : job.first_slot;
    const Product product{
        job.down, job.shared ? &shared : &routed, nullptr, first + job.num_pairs, nullptr, 0};
    cpu::multiply(
        kernels_, product, at.first, at.count, first + at.first_pair, at.num_pairs,
        results.row(job.first_slot + at.first_pair) + at.first, results.stride, panel);
  }

  /// Few rows: a unit is a range of outputs of every job, so that their sum needs no further step.
  void project_vectors(
      const Activations& routed, const Activations& shared, int64_t num_routed, Rows results) {
    const int64_t hidden_dim = args_.out.cols;
    int64_t bytes_per_row = 0;
    for (int64_t j = 0; j < plan_.num_jobs; ++j) {
      bytes_per_row += plan_.jobs[j].down.row_bytes * plan_.jobs[j].num_pairs;
    }
    const UnitRange job_units{
        (hidden_dim + kVectorUnitRows - 1) / kVectorUnitRows, kVectorUnitRows * bytes_per_row};
    cpu::run_units(
        *exec_.pool, {&job_units, 1}, dealing_, kSerialBytes,
        [&](int thread_idx, size_t, int64_t unit) {
          const int64_t first = unit * kVectorUnitRows;
          const int64_t count = std::min(kVectorUnitRows, hidden_dim - first);
          for (int64_t j = 0; j < plan_.num_jobs; ++j) {
            const Job& job = plan_.jobs[j];
            project_unit(
                job, {first, count, 0, job.num_pairs}, routed, shared, num_routed, results,
                panel(thread_idx));
          }
          for (int64_t t = 0; t < args_.x.rows; ++t) add_up(t, results, first, count);
        });
  }

  void add_up(int64_t t, Rows results, int64_t first, int64_t count) const {
    const int64_t top_k = args_.expert_ids.cols;
    const int64_t addends = shared_dim_ != 0 ? top_k + 1 : top_k;
    const int32_t* slots = plan_.slots + t * (top_k + 1);
    float* out = args_.out.row(t) + first;
    std::copy_n(results.row(slots[0]) + first, count, out);
    for (int64_t k = 1; k < addends; ++k) {
      const float* addend = results.row(slots[k]) + first;
      for (int64_t i = 0; i < count; ++i) out[i] += addend[i];
    }
  }

  const Exec& exec_;
  const CpuKernels& kernels_;
  const ExpertsArgs& args_;
  Plan plan_;
  int64_t mid_dim_ = 0;
  int64_t shared_dim_ = 0;
  int64_t panel_ = 0;
  std::byte* panels_ = nullptr;
  float* products_ = nullptr;
  UnitRange* units_ = nullptr;
  Dealing dealing_ = Dealing::kByCost;
};

}  // namespace

Status experts_fast(const Exec& exec, const ExpertsArgs& args) {
  const CpuKernels& kernels = cpu_kernels(exec.isa);
  const Scratch::Frame frame(*exec.scratch);
  ExpertsRun(exec, kernels, args).run();
  return {};
}

}  // namespace tandem::detail
