#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "coordinator/engine/state_file.h"
#include "kernels/core/scratch.h"
#include "kvstore/bank_store.h"

namespace {

using namespace tandem;

class InputSource final : public ByteSource {
 public:
  InputSource(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  Status read(std::span<std::byte> bytes) override {
    if (bytes.size() > left_) return {StatusCode::kDataLoss, "cut short"};
    if (!bytes.empty()) std::memcpy(bytes.data(), data_, bytes.size());
    data_ += bytes.size();
    left_ -= bytes.size();
    return {};
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

struct NullSink final : ByteSink {
  Status write(std::span<const std::byte>) override { return {}; }
};

SlabSpec slab(
    const char* name, SlabKind kind, int64_t row_values, int64_t per_row, int64_t window) {
  SlabSpec out;
  out.name = name;
  out.kind = kind;
  out.row_values = row_values;
  out.tokens_per_row = per_row;
  out.window = window;
  return out;
}

}  // namespace

/// Input: a saved session of fingerprint "nano" with one bank of two slabs. Whatever is in it, the
/// bank is whole or empty afterwards.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int64_t kContext = 64;
  InputSource source(data, size);
  const auto tokens = read_state_header(source, "nano", kContext, /*vocab_size=*/1000);
  if (!tokens.ok()) return 0;
  if (tokens->empty() || static_cast<int64_t>(tokens->size()) >= kContext) std::abort();

  const auto allocator = host_allocator();
  const StatePlan plan{
      {slab("rows", SlabKind::kRows, 3, 4, 0), slab("ring", SlabKind::kRing, 2, 1, 8)}};
  auto banks = BankStore::create(plan, {kContext, 4}, 1, *allocator);
  if (!banks.ok()) std::abort();
  const Status loaded = banks->load(0, source);
  const int64_t length = banks->length(0);
  if (length < 0 || length > kContext || (!loaded.ok() && length != 0)) std::abort();
  NullSink sink;
  if (!banks->save(0, sink).ok()) std::abort();
  return 0;
}
