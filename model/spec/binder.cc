#include "model/spec/binder.h"

#include <algorithm>
#include <unordered_set>

namespace tandem {
namespace {

template <class T>
std::string dims_text(const std::vector<T>& dims) {
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += str_cat(i == 0 ? "" : ", ", dims[i]);
  return text + "]";
}

bool same_dims(const std::vector<int64_t>& expected, const std::vector<uint64_t>& found) {
  for (size_t i = 0; i < std::max(expected.size(), found.size()); ++i) {
    const uint64_t a = i < expected.size() ? static_cast<uint64_t>(expected[i]) : 1;
    const uint64_t b = i < found.size() ? found[i] : 1;
    if (a != b) return false;
  }
  return true;
}

std::string dtypes_text(const std::vector<DType>& dtypes) {
  std::string text;
  for (const DType dtype : dtypes) text += str_cat(text.empty() ? "" : " or ", dtype_name(dtype));
  return text;
}

bool is_wanted(const TensorSpec& spec, const std::optional<LayerRange>& range) {
  if (spec.use == TensorUse::kIgnored) return false;
  if (!range) return true;
  switch (spec.use) {
    case TensorUse::kIgnored: return false;
    case TensorUse::kEmbedding: return range->embeds;
    case TensorUse::kHead: return range->emits_logits;
    case TensorUse::kLayer: return spec.layer >= range->begin && spec.layer < range->end;
  }
  TANDEM_UNREACHABLE();
}

}  // namespace

const TensorInfo* TensorTable::find(std::string_view canonical_name) const {
  const auto it = by_name_.find(std::string(canonical_name));
  return it == by_name_.end() ? nullptr : it->second;
}

uint64_t TensorTable::bytes() const {
  uint64_t total = 0;
  for (const TensorInfo* tensor : tensors_) total += tensor == nullptr ? 0 : tensor->bytes;
  return total;
}

class Binder {
 public:
  Binder(const TensorPlan& plan, const GgufFile& file, const std::optional<LayerRange>& range)
      : plan_(plan), file_(file), range_(range) {}

  TensorTable run() {
    table_.tensors_.resize(plan_.size(), nullptr);
    for (size_t i = 0; i < plan_.size(); ++i) bind_one(i);
    for (size_t i = 0; i < plan_.size(); ++i) check_pair(i);
    check_unexpected();
    return std::move(table_);
  }

  std::vector<Issue> take_issues() { return std::move(issues_); }

 private:
  void report(const char* code, std::string_view key, std::string detail) {
    issues_.push_back({code, printable(key), std::move(detail)});
  }

  void bind_one(size_t plan_idx) {
    const TensorSpec& spec = plan_[plan_idx];
    known_.insert(spec.name);
    known_.insert(spec.aliases.begin(), spec.aliases.end());
    if (!is_wanted(spec, range_)) return;
    const TensorInfo* tensor = file_.find_tensor(spec.name);
    for (const std::string& alias : spec.aliases) {
      const TensorInfo* other = file_.find_tensor(alias);
      if (other == nullptr) continue;
      if (tensor != nullptr) {
        report("duplicate", spec.name, str_cat("the file also has ", alias));
        return;
      }
      tensor = other;
    }
    if (tensor == nullptr) {
      if (spec.required) report("missing-tensor", spec.name, "needed " + dims_text(spec.dims));
      return;
    }
    if (check(spec, *tensor)) {
      table_.tensors_[plan_idx] = tensor;
      table_.by_name_.emplace(spec.name, tensor);
    }
  }

  bool check(const TensorSpec& spec, const TensorInfo& tensor) {
    bool good = true;
    if (!same_dims(spec.dims, tensor.dims)) {
      report(
          "bad-shape", tensor.name,
          str_cat("expected ", dims_text(spec.dims), ", found ", dims_text(tensor.dims)));
      good = false;
    }
    if (std::find(spec.dtypes.begin(), spec.dtypes.end(), tensor.dtype) == spec.dtypes.end()) {
      report(
          "bad-type", tensor.name,
          str_cat("expected ", dtypes_text(spec.dtypes), ", found ", dtype_name(tensor.dtype)));
      good = false;
    }
    return good;
  }

  void check_pair(size_t plan_idx) {
    const TensorSpec& spec = plan_[plan_idx];
    if (spec.same_dtype_as < 0) return;
    const TensorInfo* tensor = table_.tensors_[plan_idx];
    const TensorInfo* other = table_.tensors_.at(static_cast<size_t>(spec.same_dtype_as));
    if (tensor == nullptr || other == nullptr || tensor->dtype == other->dtype) return;
    report(
        "bad-type", tensor->name,
        str_cat(
            "expected ", dtype_name(other->dtype), " like ", other->name, ", found ",
            dtype_name(tensor->dtype)));
  }

  void check_unexpected() {
    for (const TensorInfo& tensor : file_.tensors()) {
      if (known_.contains(tensor.name)) continue;
      const bool ignored = std::any_of(plan_.begin(), plan_.end(), [&](const TensorSpec& spec) {
        return spec.use == TensorUse::kIgnored && tensor.name.starts_with(spec.name);
      });
      if (!ignored) {
        report(
            "unexpected-tensor", tensor.name,
            str_cat(dtype_name(tensor.dtype), " ", dims_text(tensor.dims)));
      }
    }
  }

  const TensorPlan& plan_;
  const GgufFile& file_;
  const std::optional<LayerRange>& range_;
  TensorTable table_;
  std::unordered_set<std::string_view> known_;
  std::vector<Issue> issues_;
};

Result<TensorTable> bind_tensors(
    const TensorPlan& plan, const GgufFile& file, const std::optional<LayerRange>& range,
    std::vector<Issue>* issues) {
  Binder binder(plan, file, range);
  TensorTable table = binder.run();
  std::vector<Issue> found = binder.take_issues();
  const Status status = issues_to_status(file.name(), found);
  if (issues != nullptr) issues->insert(issues->end(), found.begin(), found.end());
  if (!status.ok()) return status;
  return table;
}

}  // namespace tandem
