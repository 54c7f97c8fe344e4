#include "tests/support/backend.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <ostream>

#include "base/check.h"
#include "kernels/core/slab_rows.h"
#include "kernels/cuda/device_weights.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kUploadBytes = int64_t{16} << 20;
constexpr uint32_t kUntouched = 0x7fc0beefU;  // a quiet NaN as a float

template <class T>
T untouched() {
  T value;
  static_assert(sizeof(T) == sizeof(kUntouched));
  std::memcpy(&value, &kUntouched, sizeof(value));
  return value;
}

bool is_untouched(const void* value) {
  return std::memcmp(value, &kUntouched, sizeof(kUntouched)) == 0;
}

/// Rows start on 16 bytes, as the executor's values do.
int64_t padded_stride(int64_t cols) {
  return (cols + 3) / 4 * 4 + 4;
}

}  // namespace

std::vector<Backend> all_backends() {
  std::vector<Backend> out = {{Device::kCpu, Numerics::kExact}};
  for (const CpuIsa isa : available_cpu_isas()) {
    out.push_back({Device::kCpu, Numerics::kFast, isa});
  }
  const Result<int> num_devices = cuda::device_count();
  if (num_devices.ok() && *num_devices > 0) {
    for (const Phase phase : {Phase::kDecode, Phase::kPrefill}) {
      out.push_back({Device::kCuda, Numerics::kFast, CpuIsa::kBest, phase});
    }
  }
  return out;
}

std::string backend_name(const ::testing::TestParamInfo<Backend>& info) {
  const Backend& backend = info.param;
  if (backend.device == Device::kCuda) {
    if (backend.exact()) return "CudaExact";
    return backend.phase == Phase::kPrefill ? "CudaPrefill" : "CudaDecode";
  }
  return backend.exact() ? "CpuExact" : std::string("CpuFast_") + cpu_isa_name(backend.isa);
}

void PrintTo(const Backend& backend, std::ostream* out) {
  *out << (backend.device == Device::kCpu ? "CPU " : "CUDA ")
       << (backend.exact() ? "exact" : "fast") << " "
       << (backend.device == Device::kCpu     ? cpu_isa_name(backend.isa)
           : backend.phase == Phase::kPrefill ? "prefill"
                                              : "decode");
}

int64_t HostStep::num_rows() const {
  int64_t total = 0;
  for (const Part& part : parts) total += part.num_rows;
  return total;
}

std::vector<int32_t> HostStep::positions() const {
  std::vector<int32_t> out;
  for (const Part& part : parts) {
    for (int32_t i = 0; i < part.num_rows; ++i) out.push_back(part.first_pos + i);
  }
  return out;
}

std::vector<int32_t> HostStep::banks() const {
  std::vector<int32_t> out;
  for (const Part& part : parts)
    out.insert(out.end(), static_cast<size_t>(part.num_rows), part.bank);
  return out;
}

HostSlab::HostSlab(DType type, int64_t banks, int64_t capacity, int64_t width)
    : dtype(type),
      num_banks(banks),
      capacity_rows(capacity),
      row_values(width),
      bytes(static_cast<size_t>(banks * capacity * row_bytes(type, width))) {
  // Rows that nobody has stored are NaN: an operation that reads one cannot go unnoticed.
  const std::vector<float> nan(static_cast<size_t>(width), std::numeric_limits<float>::quiet_NaN());
  for (int64_t b = 0; b < banks; ++b) {
    for (int64_t r = 0; r < capacity; ++r) set(b, r, nan.data());
  }
}

namespace {

SlabView host_view(const HostSlab& slab) {
  const int64_t bytes = row_bytes(slab.dtype, slab.row_values);
  return {
      const_cast<std::byte*>(slab.bytes.data()),
      slab.dtype,
      slab.row_values,
      bytes,
      bytes * slab.capacity_rows,
      slab.capacity_rows};
}

}  // namespace

void HostSlab::set(int64_t bank, int64_t row, const float* row_data) {
  store_slab_row(host_view(*this), bank, row, row_data);
}

std::vector<float> HostSlab::get(int64_t bank, int64_t row) const {
  std::vector<float> out(static_cast<size_t>(row_values));
  load_slab_row(host_view(*this), bank, row, out.data());
  return out;
}

OpBench::OpBench(const Backend& backend, int num_threads) : backend_(backend), pool_(num_threads) {
  if (backend.device == Device::kCuda) {
    TANDEM_CHECK(cuda::use_device(0).ok());
    Result<cuda::Stream> stream = cuda::Stream::create();
    TANDEM_CHECK(stream.ok());
    stream_.emplace(std::move(stream).value());
    allocator_ = cuda::device_allocator();
    exec_.stream = stream_->get();
  } else {
    allocator_ = host_allocator();
    exec_.pool = &pool_;
  }
  scratch_ = std::make_unique<Scratch>(*allocator_);
  exec_.device = backend.device;
  exec_.numerics = backend.numerics;
  exec_.isa = backend.isa;
  exec_.phase = backend.phase;
  exec_.any_chip = backend.any_chip;
  exec_.scratch = scratch_.get();
}

std::byte* OpBench::upload(const void* data, size_t bytes) {
  memory_.push_back(allocator_->allocate(bytes));
  TANDEM_CHECK(memory_.back() != nullptr);
  std::byte* to = memory_.back()->data();
  if (bytes != 0) {
    EXPECT_OK(allocator_->copy(to, static_cast<const std::byte*>(data), bytes));
  }
  return to;
}

std::vector<std::byte> OpBench::download(const void* data, size_t bytes) {
  if (stream_.has_value()) {
    EXPECT_OK(stream_->synchronize());
  }
  std::vector<std::byte> out(bytes);
  if (bytes != 0) {
    EXPECT_OK(allocator_->copy(out.data(), static_cast<const std::byte*>(data), bytes));
  }
  return out;
}

template <class T>
RowsOf<T> OpBench::padded(const Array<T>& tensor) {
  const int64_t stride = padded_stride(tensor.cols);
  std::vector<T> values(static_cast<size_t>(tensor.rows * stride), untouched<T>());
  for (int64_t r = 0; r < tensor.rows; ++r) {
    std::memcpy(
        values.data() + r * stride, tensor.row(r), static_cast<size_t>(tensor.cols) * sizeof(T));
  }
  std::byte* data = upload(values.data(), values.size() * sizeof(T));
  return {reinterpret_cast<T*>(data), tensor.rows, tensor.cols, stride};
}

ConstRows OpBench::input(const Tensor& tensor) {
  return padded(tensor);
}
ConstIntRows OpBench::input(const IntTensor& tensor) {
  return padded(tensor);
}
Rows OpBench::in_out(const Tensor& tensor) {
  return padded(tensor);
}

Rows OpBench::output(int64_t rows, int64_t cols) {
  Tensor tensor(rows, cols);
  std::fill(tensor.values.begin(), tensor.values.end(), untouched<float>());
  return padded(tensor);
}

IntRows OpBench::int_output(int64_t rows, int64_t cols) {
  IntTensor tensor(rows, cols);
  std::fill(tensor.values.begin(), tensor.values.end(), untouched<int32_t>());
  return padded(tensor);
}

WeightView OpBench::weight(const HostWeight& weight) {
  return experts({weight}).first;
}

ExpertWeightView OpBench::experts(const std::vector<HostWeight>& experts) {
  const WeightView file = experts.front().view();
  const bool on_gpu = backend_.device == Device::kCuda;
  const int64_t row_bytes = on_gpu ? cuda::device_row_bytes(file.dtype, file.cols) : file.row_bytes;
  const int64_t expert_bytes = row_bytes * file.rows;
  const auto num_experts = static_cast<int64_t>(experts.size());
  if (!on_gpu) {
    std::vector<std::byte> bytes;
    for (const HostWeight& expert : experts) {
      bytes.insert(bytes.end(), expert.bytes.begin(), expert.bytes.end());
    }
    WeightView first = file;
    first.data = upload(bytes.data(), bytes.size());
    return {first, num_experts, expert_bytes};
  }
  memory_.push_back(allocator_->allocate(static_cast<size_t>(expert_bytes * num_experts)));
  TANDEM_CHECK(memory_.back() != nullptr);
  ExpertWeightView out{
      cuda::device_weight(memory_.back()->data(), file.dtype, file.rows, file.cols), num_experts,
      expert_bytes};
  Result<cuda::WeightUploader> uploader = cuda::WeightUploader::create(kUploadBytes);
  TANDEM_CHECK(uploader.ok());
  for (int64_t e = 0; e < num_experts; ++e) {
    EXPECT_OK(uploader->upload(experts[static_cast<size_t>(e)].view(), out.expert(e)));
  }
  EXPECT_OK(uploader->finish());
  return out;
}

VectorView OpBench::vector(const std::vector<float>& values) {
  const std::byte* data = upload(values.data(), values.size() * sizeof(float));
  return {reinterpret_cast<const float*>(data), static_cast<int64_t>(values.size())};
}

RotaryView OpBench::rotary(const std::vector<float>& frequencies) {
  const VectorView view = vector(frequencies);
  return {view.data, 2 * view.size};
}

SlabView OpBench::slab(const HostSlab& slab) {
  SlabView view = host_view(slab);
  view.data = upload(slab.bytes.data(), slab.bytes.size());
  return view;
}

StepRows OpBench::step(const HostStep& step) {
  std::vector<Segment> segments;
  std::vector<int32_t> segment_of;
  int32_t first_row = 0;
  for (const HostStep::Part& part : step.parts) {
    segment_of.insert(
        segment_of.end(), static_cast<size_t>(part.num_rows),
        static_cast<int32_t>(segments.size()));
    segments.push_back({part.bank, first_row, part.num_rows, part.first_pos});
    first_row += part.num_rows;
  }
  std::vector<int32_t> tokens = step.tokens;
  tokens.resize(static_cast<size_t>(step.num_rows()));
  const std::vector<int32_t> positions = step.positions();
  const auto ints = [&](const std::vector<int32_t>& values) {
    return reinterpret_cast<const int32_t*>(upload(values.data(), values.size() * sizeof(int32_t)));
  };

  StepRows out;
  out.num_rows = step.num_rows();
  out.token = ints(tokens);
  out.pos = ints(positions);
  out.segment = ints(segment_of);
  out.num_segments = static_cast<int64_t>(segments.size());
  out.segments =
      reinterpret_cast<const Segment*>(upload(segments.data(), segments.size() * sizeof(Segment)));
  out.num_logits = static_cast<int64_t>(step.logit_rows.size());
  out.logit_rows = ints(step.logit_rows);
  host_segments_.push_back(std::move(segments));
  out.host_segments = host_segments_.back().data();
  return out;
}

template <class T>
Array<T> OpBench::fetch_rows(const RowsOf<T>& rows) {
  const std::vector<std::byte> bytes =
      download(rows.data, static_cast<size_t>(rows.rows * rows.stride) * sizeof(T));
  Array<T> out(rows.rows, rows.cols);
  for (int64_t r = 0; r < rows.rows; ++r) {
    const std::byte* row = bytes.data() + static_cast<size_t>(r * rows.stride) * sizeof(T);
    std::memcpy(out.row(r), row, static_cast<size_t>(rows.cols) * sizeof(T));
    for (int64_t c = rows.cols; c < rows.stride; ++c) {
      EXPECT_TRUE(is_untouched(row + static_cast<size_t>(c) * sizeof(T)))
          << "row " << r << " was written past its " << rows.cols << " columns, at " << c;
    }
  }
  return out;
}

Tensor OpBench::fetch(const Rows& rows) {
  return fetch_rows(rows);
}
IntTensor OpBench::fetch(const IntRows& rows) {
  return fetch_rows(rows);
}

HostSlab OpBench::fetch(const SlabView& view, int64_t num_banks) {
  HostSlab out(view.dtype, num_banks, view.capacity_rows, view.row_values);
  out.bytes = download(view.data, static_cast<size_t>(num_banks * view.bank_bytes));
  return out;
}

}  // namespace tandem::test
