#include <algorithm>
#include <cstring>

#include "kernels/cuda/device_weights.h"
#include "kernels/cuda/error.h"

namespace tandem::cuda {

Result<WeightUploader> WeightUploader::create(int64_t staging_bytes) {
  TANDEM_TRY_ASSIGN(Stream stream, Stream::create());
  std::vector<Half> halves;
  for (int i = 0; i < 2; ++i) {
    TANDEM_TRY_ASSIGN(Event done, Event::create());
    Half half{
        pinned_allocator()->allocate(static_cast<size_t>(staging_bytes)),
        device_allocator()->allocate(static_cast<size_t>(staging_bytes)), std::move(done)};
    if (half.pinned == nullptr || half.device == nullptr) {
      return Status(
          StatusCode::kResourceExhausted,
          str_cat("no memory for an upload buffer of ", staging_bytes, " bytes"));
    }
    TANDEM_TRY(half.done.record(stream));
    halves.push_back(std::move(half));
  }
  return WeightUploader(std::move(stream), std::move(halves));
}

Status WeightUploader::upload(const WeightView& from, const WeightView& to) {
  TANDEM_REQUIRE(
      from.dtype == to.dtype && from.rows == to.rows && from.cols == to.cols &&
          from.layout == WeightLayout::kBlocks && to.layout == device_layout(to.dtype),
      "upload: source and target differ in type, shape or layout");
  const int64_t bytes = row_bytes(from.dtype, from.cols);
  const int64_t rows_max = static_cast<int64_t>(halves_[0].pinned->size()) / bytes;
  TANDEM_REQUIRE(
      rows_max >= 1, str_cat("upload: a row of ", bytes, " bytes exceeds the upload buffer"));
  for (int64_t begin = 0; begin < from.rows; begin += rows_max) {
    const int64_t count = std::min(rows_max, from.rows - begin);
    Half& half = halves_[next_];
    next_ = (next_ + 1) % halves_.size();
    TANDEM_TRY(half.done.synchronize());
    if (from.row_bytes == bytes) {
      std::memcpy(half.pinned->data(), from.row(begin), static_cast<size_t>(count * bytes));
    } else {
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(
            half.pinned->data() + i * bytes, from.row(begin + i), static_cast<size_t>(bytes));
      }
    }
    TANDEM_TRY(copy_async(
        half.device->data(), half.pinned->data(), static_cast<size_t>(count * bytes), stream_));
    TANDEM_TRY(convert_weight(half.device->data(), to.slice(begin, count), stream_));
    TANDEM_TRY(half.done.record(stream_));
  }
  return {};
}

Status WeightUploader::finish() {
  return stream_.synchronize();
}

}  // namespace tandem::cuda
