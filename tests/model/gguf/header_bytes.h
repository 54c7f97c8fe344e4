#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "model/gguf/gguf_value.h"

namespace tandem::test {

/// Writes GGUF headers by hand, right or wrong: what the writer refuses to produce.
class HeaderBytes {
 public:
  HeaderBytes(uint64_t num_tensors, uint64_t num_keys, uint32_t version = 3) {
    bytes_ = "GGUF";
    put(version).put(num_tensors).put(num_keys);
  }
  template <class T>
  HeaderBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
    return *this;
  }
  HeaderBytes& text(std::string_view value) {
    put(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
    return *this;
  }
  HeaderBytes& key(std::string_view name, GgufType type) { return text(name).put(type); }
  HeaderBytes& tensor(
      std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type_id,
      uint64_t offset) {
    text(name).put(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) put(dim);
    return put(type_id).put(offset);
  }
  HeaderBytes& pad(size_t alignment = 32) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
    return *this;
  }
  HeaderBytes& data(size_t count) {
    bytes_.append(count, '\0');
    return *this;
  }
  const std::string& str() const { return bytes_; }
  std::span<const std::byte> bytes() const {
    return std::as_bytes(std::span<const char>(bytes_.data(), bytes_.size()));
  }

 private:
  std::string bytes_;
};

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace tandem::test
