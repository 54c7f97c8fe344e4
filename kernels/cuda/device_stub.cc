// Devices in a build without CUDA: there are none.

#include "kernels/cuda/device.h"
#include "kernels/cuda/device_weights.h"

namespace tandem::cuda {
namespace {

Status no_cuda() {
  return {
      StatusCode::kUnimplemented, "this build has no CUDA; configure with the cuda-release preset"};
}

class NoMemory final : public Allocator {
 public:
  std::unique_ptr<Memory> allocate(size_t) override { return nullptr; }
  Status copy(std::byte*, const std::byte*, size_t) override { return no_cuda(); }
};

}  // namespace

Result<int> device_count() {
  return no_cuda();
}
Result<DeviceInfo> device_info(int) {
  return no_cuda();
}
Status use_device(int) {
  return no_cuda();
}
std::unique_ptr<Allocator> device_allocator() {
  return std::make_unique<NoMemory>();
}
std::unique_ptr<Allocator> pinned_allocator() {
  return std::make_unique<NoMemory>();
}

void Stream::Delete::operator()(CUstream_st*) const {}
Result<Stream> Stream::create() {
  return no_cuda();
}
Status Stream::synchronize() const {
  return no_cuda();
}

Status Stream::wait(const Event&) const {
  return no_cuda();
}

void Event::Delete::operator()(CUevent_st*) const {}
Result<Event> Event::create() {
  return no_cuda();
}
Status Event::record(const Stream&) const {
  return no_cuda();
}
Status Event::record_in_graph(const Stream&) const {
  return no_cuda();
}
Status Event::synchronize() const {
  return no_cuda();
}
Result<float> Event::elapsed_ms_since(const Event&) const {
  return no_cuda();
}

void Graph::Delete::operator()(CUgraphExec_st*) const {}
Result<Graph> Graph::capture(const Stream&, const std::function<Status()>&) {
  return no_cuda();
}
Status Graph::launch(const Stream&) const {
  return no_cuda();
}

Status copy_async(void*, const void*, size_t, const Stream&) {
  return no_cuda();
}
Status zero_async(void*, size_t, const Stream&) {
  return no_cuda();
}

Status convert_weight(const std::byte*, const WeightView&, const Stream&) {
  return no_cuda();
}
Status fill_random_weight(const WeightView&, uint64_t, float, const Stream&) {
  return no_cuda();
}
Status fill_random_vector(float*, int64_t, uint64_t, float, float, const Stream&) {
  return no_cuda();
}
Result<WeightUploader> WeightUploader::create(int64_t) {
  return no_cuda();
}
Status WeightUploader::upload(const WeightView&, const WeightView&) {
  return no_cuda();
}
Status WeightUploader::finish() {
  return no_cuda();
}

}  // namespace tandem::cuda
