#include "kernels/cuda/device.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "kernels/cuda/error.h"

namespace tandem::cuda {
namespace {

// A destructor has nobody to tell; the next call reports a lost device.
void log_failure(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  log_warning(
      "kernels", "cuda_release_failed", {{"call", what}, {"error", cudaGetErrorName(error)}});
}

class DeviceMemory final : public Memory {
 public:
  DeviceMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override { log_failure(cudaFree(data_), "cudaFree"); }
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

class PinnedMemory final : public Memory {
 public:
  PinnedMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() override { log_failure(cudaFreeHost(data_), "cudaFreeHost"); }
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

// Waits for all queued work, since streams here do not wait for the one that this copy uses.
Status copy_now(std::byte* to, const std::byte* from, size_t bytes) {
  if (bytes == 0) return {};
  TANDEM_CUDA_TRY(cudaDeviceSynchronize());
  TANDEM_CUDA_TRY(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
  TANDEM_CUDA_TRY(cudaDeviceSynchronize());
  return {};
}

class DeviceAllocator final : public Allocator {
 public:
  std::unique_ptr<Memory> allocate(size_t bytes) override {
    const size_t size = std::max<size_t>(bytes, 1);
    void* data = nullptr;
    if (cudaMalloc(&data, size) != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    auto memory = std::make_unique<DeviceMemory>(static_cast<std::byte*>(data), size);
    if (cudaMemset(data, 0, size) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    return memory;
  }
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return copy_now(to, from, bytes);
  }
};

class PinnedAllocator final : public Allocator {
 public:
  std::unique_ptr<Memory> allocate(size_t bytes) override {
    const size_t size = std::max<size_t>(bytes, 1);
    void* data = nullptr;
    if (cudaMallocHost(&data, size) != cudaSuccess) {
      (void)cudaGetLastError();
      return nullptr;
    }
    std::fill_n(static_cast<std::byte*>(data), size, std::byte{0});
    return std::make_unique<PinnedMemory>(static_cast<std::byte*>(data), size);
  }
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return copy_now(to, from, bytes);
  }
};

bool has_code_for(int compute_capability) {
  return compute_capability == 90 || compute_capability == 120 || compute_capability == 121;
}

}  // namespace

Result<int> device_count() {
  int count = 0;
  TANDEM_CUDA_TRY(cudaGetDeviceCount(&count));
  if (count == 0) return to_status(cudaErrorNoDevice, "cudaGetDeviceCount");
  return count;
}

Result<DeviceInfo> device_info(int idx) {
  TANDEM_TRY_ASSIGN(const int count, device_count());
  if (idx < 0 || idx >= count) {
    return Status(
        StatusCode::kNotFound, str_cat("GPU ", idx, " does not exist; there are ", count));
  }
  cudaDeviceProp properties = {};
  TANDEM_CUDA_TRY(cudaGetDeviceProperties(&properties, idx));
  DeviceInfo info;
  info.idx = idx;
  info.name = properties.name;
  info.compute_capability = properties.major * 10 + properties.minor;
  if (!has_code_for(info.compute_capability)) {
    return Status(
        StatusCode::kUnimplemented,
        str_cat(
            "GPU ", idx, " (", info.name, ") has compute capability ", properties.major, ".",
            properties.minor, "; this build runs on 9.0, 12.0 and 12.1"));
  }
  info.num_sms = properties.multiProcessorCount;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.l2_bytes = properties.l2CacheSize;
  info.shared_bytes_max = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  info.unified_memory = properties.integrated != 0;
  TANDEM_TRY(use_device(idx));
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  TANDEM_CUDA_TRY(cudaMemGetInfo(&free_bytes, &total_bytes));
  info.free_bytes = static_cast<int64_t>(free_bytes);
  return info;
}

Status use_device(int idx) {
  TANDEM_CUDA_TRY(cudaSetDevice(idx));
  return {};
}

std::unique_ptr<Allocator> device_allocator() {
  return std::make_unique<DeviceAllocator>();
}

std::unique_ptr<Allocator> pinned_allocator() {
  return std::make_unique<PinnedAllocator>();
}

void Stream::Delete::operator()(CUstream_st* stream) const {
  log_failure(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

Result<Stream> Stream::create() {
  cudaStream_t stream = nullptr;
  TANDEM_CUDA_TRY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return Stream(stream);
}

Status Stream::synchronize() const {
  TANDEM_CUDA_TRY(cudaStreamSynchronize(stream_.get()));
  return {};
}

Status Stream::wait(const Event& event) const {
  TANDEM_CUDA_TRY(cudaStreamWaitEvent(stream_.get(), event.get()));
  return {};
}

void Event::Delete::operator()(CUevent_st* event) const {
  log_failure(cudaEventDestroy(event), "cudaEventDestroy");
}

Result<Event> Event::create() {
  cudaEvent_t event = nullptr;
  TANDEM_CUDA_TRY(cudaEventCreate(&event));
  return Event(event);
}

Status Event::record(const Stream& stream) const {
  TANDEM_CUDA_TRY(cudaEventRecord(event_.get(), stream.get()));
  return {};
}

Status Event::record_in_graph(const Stream& stream) const {
  TANDEM_CUDA_TRY(cudaEventRecordWithFlags(event_.get(), stream.get(), cudaEventRecordExternal));
  return {};
}

Status Event::synchronize() const {
  TANDEM_CUDA_TRY(cudaEventSynchronize(event_.get()));
  return {};
}

Result<float> Event::elapsed_ms_since(const Event& start) const {
  float ms = 0;
  TANDEM_CUDA_TRY(cudaEventElapsedTime(&ms, start.get(), event_.get()));
  return ms;
}

void Graph::Delete::operator()(CUgraphExec_st* graph) const {
  log_failure(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
}

Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>& queue_work) {
  TANDEM_CUDA_TRY(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  const Status queued = queue_work();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream.get(), &graph);
  const std::unique_ptr<CUgraph_st, void (*)(CUgraph_st*)> owner(
      graph, [](CUgraph_st* g) { log_failure(cudaGraphDestroy(g), "cudaGraphDestroy"); });
  TANDEM_TRY(queued);
  TANDEM_CUDA_TRY(ended);
  size_t num_nodes = 0;
  TANDEM_CUDA_TRY(cudaGraphGetNodes(graph, nullptr, &num_nodes));
  cudaGraphExec_t executable = nullptr;
  TANDEM_CUDA_TRY(cudaGraphInstantiate(&executable, graph, 0));
  return Graph(executable, static_cast<int64_t>(num_nodes));
}

Status Graph::launch(const Stream& stream) const {
  TANDEM_CUDA_TRY(cudaGraphLaunch(graph_.get(), stream.get()));
  return {};
}

Status copy_async(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return {};
  TANDEM_CUDA_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()));
  return {};
}

Status zero_async(void* to, size_t bytes, const Stream& stream) {
  if (bytes == 0) return {};
  TANDEM_CUDA_TRY(cudaMemsetAsync(to, 0, bytes, stream.get()));
  return {};
}

}  // namespace tandem::cuda
