#include "worker/bench/step_profile.h"

#include <algorithm>

namespace tandem {

void StepProfile::begin_op(const Op& op, const OpCost& cost) {
  close();
  const std::string_view name = op_name(op);
  const auto found = std::find_if(
      entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.name == name; });
  open_ = found - entries_.begin();
  if (found == entries_.end()) entries_.push_back({std::string(name), 0, {}, 0});
  Entry& entry = entries_[static_cast<size_t>(open_)];
  entry.cost.weight_bytes += cost.weight_bytes;
  entry.cost.state_bytes += cost.state_bytes;
  entry.cost.macs += cost.macs;
  ++entry.calls;
  started_ = clock_.now();
}

void StepProfile::end_step() {
  close();
  ++num_steps_;
}

void StepProfile::close() {
  if (open_ < 0) return;
  entries_[static_cast<size_t>(open_)].seconds += seconds_between(started_, clock_.now());
  open_ = -1;
}

std::vector<StepProfile::Entry> StepProfile::entries() const {
  std::vector<Entry> out = entries_;
  std::stable_sort(
      out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace tandem
