#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "kernels/core/views.h"
#include "kernels/cuda/device.h"

namespace tandem::cuda {

// The device form of a weight. Rows start on 16 bytes. Types whose blocks are no multiple of 16
// bytes, so that a thread cannot read them in wide words, lie in planes (WeightLayout::kPlanes);
// the others keep the file's blocks, as does Q6_K, which no measured model uses much.

constexpr WeightLayout device_layout(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0:
    case DType::kQ2_K:
    case DType::kIQ2_XXS:
    case DType::kMXFP4: return WeightLayout::kPlanes;
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_K:
    case DType::kQ6_K:
    case DType::kI32: return WeightLayout::kBlocks;
  }
  TANDEM_UNREACHABLE();
}

/// Bytes from one row to the next.
constexpr int64_t device_row_bytes(DType dtype, int64_t cols) {
  return (row_bytes(dtype, cols) + 15) / 16 * 16;
}

/// A weight of `rows` x `cols` in device form at `data`, which is 16-byte aligned.
constexpr WeightView device_weight(const std::byte* data, DType dtype, int64_t rows, int64_t cols) {
  return {data, dtype, rows, cols, device_row_bytes(dtype, cols), device_layout(dtype)};
}

/// Queues the conversion of `to.rows` rows of file blocks, back to back at `blocks` in device
/// memory, into the device form `to`.
Status convert_weight(const std::byte* blocks, const WeightView& to, const Stream& stream);

/// Queues random, finite values of about the given standard deviation into the device form `to`,
/// every field of its blocks included. The same seed gives the same bytes.
Status fill_random_weight(
    const WeightView& to, uint64_t seed, float deviation, const Stream& stream);

/// Queues values mean + deviation * (-1 ... 1) into a vector.
Status fill_random_vector(
    float* to, int64_t size, uint64_t seed, float mean, float deviation, const Stream& stream);

/// Brings weights from host memory, a file mapping as a rule, to the device. Two pinned buffers
/// alternate, so that reading the file, the copy and the conversion overlap. Threads: one owner.
class WeightUploader {
 public:
  /// Limits: staging_bytes >= the largest row.
  /// Errors: kResourceExhausted.
  static Result<WeightUploader> create(int64_t staging_bytes);
  WeightUploader(WeightUploader&&) noexcept = default;
  WeightUploader& operator=(WeightUploader&&) noexcept = default;

  /// Copies `from`, in file blocks, to `to`, its device form with the same dtype, rows and cols.
  /// `from` can be dropped when this returns; `to` is complete after finish().
  Status upload(const WeightView& from, const WeightView& to);

  /// Waits for everything.
  Status finish();

 private:
  struct Half {
    std::unique_ptr<Memory> pinned;
    std::unique_ptr<Memory> device;
    Event done;
  };
  WeightUploader(Stream stream, std::vector<Half> halves)
      : stream_(std::move(stream)), halves_(std::move(halves)) {}

  Stream stream_;
  std::vector<Half> halves_;
  size_t next_ = 0;
};

}  // namespace tandem::cuda
