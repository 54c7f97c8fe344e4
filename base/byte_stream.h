#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/status.h"

namespace tandem {

/// Takes bytes in order. Errors: whatever the medium reports; the first error is final.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual Status write(std::span<const std::byte> bytes) = 0;
};

/// Gives bytes in order. Errors: kDataLoss if fewer than asked are left.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual Status read(std::span<std::byte> bytes) = 0;
};

/// A value of fixed layout as bytes, and back. The host is little-endian, as are all our formats.
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<const std::byte*>(&value), sizeof(T)};
}
template <class T>
std::span<std::byte> writable_bytes_of(T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return {reinterpret_cast<std::byte*>(&value), sizeof(T)};
}

}  // namespace tandem
