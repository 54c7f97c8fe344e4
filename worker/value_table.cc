#include "worker/value_table.h"

#include "base/check.h"

namespace tandem {

Result<ValueTable> ValueTable::create(
    const std::vector<ValueSpec>& specs, int64_t max_rows, Allocator& allocator) {
  static_assert(sizeof(float) == sizeof(int32_t), "both value types have one size");
  ValueTable table;
  table.specs_ = specs;
  for (const ValueSpec& spec : specs) {
    auto memory = allocator.allocate(static_cast<size_t>(max_rows * spec.width) * sizeof(float));
    if (memory == nullptr) {
      return Status(
          StatusCode::kResourceExhausted, str_cat(
                                              "no memory for value ", spec.name, " of ", max_rows,
                                              " x ", spec.width, " values; lower --chunk"));
    }
    table.memory_.push_back(std::move(memory));
  }
  return table;
}

Rows ValueTable::rows(ValueId id, int64_t num_rows, int64_t num_cols) const {
  const ValueSpec& spec = specs_[id];
  TANDEM_CHECK(spec.type == ValueType::kF32 && num_cols <= spec.width);
  return {
      reinterpret_cast<float*>(memory_[id]->data()), num_rows,
      num_cols == 0 ? spec.width : num_cols, spec.width};
}

IntRows ValueTable::ints(ValueId id, int64_t num_rows) const {
  const ValueSpec& spec = specs_[id];
  TANDEM_CHECK(spec.type == ValueType::kI32);
  return {reinterpret_cast<int32_t*>(memory_[id]->data()), num_rows, spec.width, spec.width};
}

size_t ValueTable::bytes() const {
  size_t total = 0;
  for (const auto& memory : memory_) total += memory->size();
  return total;
}

}  // namespace tandem
