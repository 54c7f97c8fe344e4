#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/core/exec.h"
#include "kernels/core/step_rows.h"
#include "kernels/core/views.h"
#include "kernels/cuda/device.h"
#include "model/spec/state_plan.h"
#include "tests/support/tensor.h"
#include "tests/support/weights.h"

namespace tandem::test {

/// Where and how an operation runs: what the tests of kernels/ are parameterised over.
struct Backend {
  Device device = Device::kCpu;
  Numerics numerics = Numerics::kExact;
  CpuIsa isa = CpuIsa::kBest;    // kFast on the CPU
  Phase phase = Phase::kDecode;  // on CUDA, where the two are different kernels
  bool any_chip = false;         // on CUDA: see Exec

  bool exact() const { return numerics == Numerics::kExact; }
};

/// The CPU's exact path, its fast path on every instruction set that it has and, in a CUDA build on
/// a machine with a device, both phases of the GPU.
std::vector<Backend> all_backends();
std::string backend_name(const ::testing::TestParamInfo<Backend>& info);
void PrintTo(const Backend& backend, std::ostream* out);

/// The rows of one step, by segment. Tokens are by row.
struct HostStep {
  struct Part {
    int32_t bank = 0;
    int32_t first_pos = 0;
    int32_t num_rows = 0;
  };
  std::vector<Part> parts;
  std::vector<int32_t> tokens;      // empty: all 0
  std::vector<int32_t> logit_rows;  // ascending

  int64_t num_rows() const;
  std::vector<int32_t> positions() const;
  std::vector<int32_t> banks() const;  // by row
};

/// Slab rows of several banks in host memory. `values` are what the slab's type holds.
struct HostSlab {
  DType dtype = DType::kF32;
  int64_t num_banks = 0;
  int64_t capacity_rows = 0;
  int64_t row_values = 0;
  std::vector<std::byte> bytes;

  HostSlab(DType type, int64_t banks, int64_t capacity, int64_t width);
  void set(int64_t bank, int64_t row, const float* row_data);
  std::vector<float> get(int64_t bank, int64_t row) const;
};

/// One operation's memory and Exec on a backend. Everything it hands out lives as long as it does.
/// Rows are padded: a stride is larger than the columns, and fetch() checks that what lies between
/// was left alone. Threads: one owner.
class OpBench {
 public:
  explicit OpBench(const Backend& backend, int num_threads = 2);

  const Backend& backend() const { return backend_; }
  const Exec& exec() const { return exec_; }

  ConstRows input(const Tensor& tensor);
  ConstIntRows input(const IntTensor& tensor);
  /// Rows that the operation reads and replaces.
  Rows in_out(const Tensor& tensor);
  /// Rows full of NaN; integers of a value that no operation gives.
  Rows output(int64_t rows, int64_t cols);
  IntRows int_output(int64_t rows, int64_t cols);
  WeightView weight(const HostWeight& weight);
  ExpertWeightView experts(const std::vector<HostWeight>& experts);
  VectorView vector(const std::vector<float>& values);
  RotaryView rotary(const std::vector<float>& frequencies);
  SlabView slab(const HostSlab& slab);
  StepRows step(const HostStep& step);

  /// Waits for the operation, then copies back.
  Tensor fetch(const Rows& rows);
  IntTensor fetch(const IntRows& rows);
  HostSlab fetch(const SlabView& view, int64_t num_banks);

 private:
  std::byte* upload(const void* data, size_t bytes);
  std::vector<std::byte> download(const void* data, size_t bytes);
  template <class T>
  RowsOf<T> padded(const Array<T>& tensor);
  template <class T>
  Array<T> fetch_rows(const RowsOf<T>& rows);

  Backend backend_;
  ThreadPool pool_;
  std::unique_ptr<Allocator> allocator_;
  std::unique_ptr<Scratch> scratch_;
  std::optional<cuda::Stream> stream_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::vector<std::vector<Segment>> host_segments_;
  Exec exec_;
};

/// Fixture of an operation's tests.
class OpTest : public ::testing::TestWithParam<Backend> {
 protected:
  OpBench bench_{GetParam()};
};

}  // namespace tandem::test
