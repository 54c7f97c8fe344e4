#include "kernels/core/scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace tandem {
namespace {

constexpr size_t kAlignment = 128;
constexpr size_t kChunkBytesMin = size_t{1} << 20;

class HostMemory final : public Memory {
 public:
  HostMemory(std::byte* data, size_t size) : data_(data), size_(size) {}
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() override { ::munmap(data_, size_); }
  std::byte* data() override { return data_; }
  size_t size() const override { return size_; }

 private:
  std::byte* data_;
  size_t size_;
};

class HostAllocator final : public Allocator {
 public:
  std::unique_ptr<Memory> allocate(size_t bytes) override {
    const size_t size = std::max<size_t>(bytes, 1);
    void* data = ::mmap(
        nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) return nullptr;
    return std::make_unique<HostMemory>(static_cast<std::byte*>(data), size);
  }
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return {};
  }
};

}  // namespace

std::unique_ptr<Allocator> host_allocator() {
  return std::make_unique<HostAllocator>();
}

size_t Scratch::capacity_bytes() const {
  size_t total = 0;
  for (const auto& chunk : chunks_) total += chunk->size();
  return total;
}

std::byte* Scratch::take_bytes(size_t bytes) {
  const size_t need = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  while (chunk_idx_ < chunks_.size() && chunks_[chunk_idx_]->size() - used_ < need) {
    ++chunk_idx_;
    used_ = 0;
  }
  if (chunk_idx_ == chunks_.size()) {
    chunks_.push_back(allocator_.allocate(std::max({need, kChunkBytesMin, capacity_bytes()})));
    TANDEM_CHECK(chunks_.back() != nullptr);
    used_ = 0;
  }
  std::byte* data = chunks_[chunk_idx_]->data() + used_;
  used_ += need;
  return data;
}

}  // namespace tandem
