#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/core/scratch.h"
#include "kernels/core/views.h"
#include "model/spec/program.h"

namespace tandem {

/// The named values of a program, each [max_rows, width], taken once.
class ValueTable {
 public:
  /// Errors: kResourceExhausted if the memory is not there.
  static Result<ValueTable> create(
      const std::vector<ValueSpec>& specs, int64_t max_rows, Allocator& allocator);

  /// The first num_rows rows and num_cols columns of a float value. num_cols 0: its width.
  Rows rows(ValueId id, int64_t num_rows, int64_t num_cols = 0) const;
  IntRows ints(ValueId id, int64_t num_rows) const;
  size_t bytes() const;

 private:
  std::vector<ValueSpec> specs_;
  std::vector<std::unique_ptr<Memory>> memory_;
};

}  // namespace tandem
