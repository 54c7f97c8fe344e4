#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kvstore/bank_store.h"

namespace {

class Source final : public tandem::ByteSource {
 public:
  Source(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  size_t consumed() const { return consumed_; }
  tandem::Status read(std::span<std::byte> part) override {
    if (part.size() > size_ - consumed_) return {tandem::StatusCode::kDataLoss, "cut short"};
    if (!part.empty()) std::memcpy(part.data(), data_ + consumed_, part.size());
    consumed_ += part.size();
    return {};
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t consumed_ = 0;
};

class Sink final : public tandem::ByteSink {
 public:
  std::vector<std::byte> bytes;
  tandem::Status write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
};

tandem::StatePlan plan() {
  return {{
      {"w", 0, tandem::SlabKind::kRing, tandem::DType::kF16, 3, 1, 5},
      {"r", 0, tandem::SlabKind::kRows, tandem::DType::kF32, 1, 4, 0},
  }};
}

}  // namespace

/// Input: a saved bank. It is refused and leaves the bank empty, or saving the bank again gives
/// the bytes that were read.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto allocator = tandem::host_allocator();
  auto store = tandem::BankStore::create(plan(), {32, 2}, 1, *allocator);
  if (!store.ok()) std::abort();
  Source source(data, size);
  if (!store->load(0, source).ok()) {
    if (store->length(0) != 0) std::abort();
    return 0;
  }
  Sink sink;
  if (!store->save(0, sink).ok()) std::abort();
  if (sink.bytes.size() != source.consumed()) std::abort();
  if (std::memcmp(sink.bytes.data(), data, sink.bytes.size()) != 0) std::abort();
  return 0;
}
