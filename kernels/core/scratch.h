#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/status.h"

namespace tandem {

/// Memory of one device, 128-byte aligned.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual std::byte* data() = 0;
  virtual size_t size() const = 0;
};

/// Takes memory of one device. Threads: any.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Null if there is not enough. Contents are zero.
  virtual std::unique_ptr<Memory> allocate(size_t bytes) = 0;
  /// Copies between host memory and this device's, in either direction or within one; returns when
  /// the bytes are there. Errors: kInternal if the device has failed.
  virtual Status copy(std::byte* to, const std::byte* from, size_t bytes) = 0;
};

/// Host memory straight from the system; pages are taken when first touched.
std::unique_ptr<Allocator> host_allocator();

/// A stack of temporary buffers for one operation at a time. It grows to what the largest operation
/// needs and then allocates no more. Threads: one owner.
class Scratch {
 public:
  explicit Scratch(Allocator& allocator) : allocator_(allocator) {}

  /// `count` values of T, uninitialised, aligned to 128 bytes, until the enclosing Frame ends.
  /// Aborts if memory is exhausted: sizes are bounded by the step limits, and a first full step at
  /// start-up (`warm up`) takes them.
  template <class T>
  T* take(int64_t count) {
    return reinterpret_cast<T*>(take_bytes(static_cast<size_t>(count) * sizeof(T)));
  }

  /// Gives back, at its end, everything taken since its start.
  class Frame {
   public:
    explicit Frame(Scratch& scratch)
        : scratch_(scratch), chunk_idx_(scratch.chunk_idx_), used_(scratch.used_) {}
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    ~Frame() {
      scratch_.chunk_idx_ = chunk_idx_;
      scratch_.used_ = used_;
    }

   private:
    Scratch& scratch_;
    size_t chunk_idx_;
    size_t used_;
  };

  /// Bytes held; grows only while warming up.
  size_t capacity_bytes() const;

 private:
  std::byte* take_bytes(size_t bytes);

  Allocator& allocator_;
  std::vector<std::unique_ptr<Memory>> chunks_;
  size_t chunk_idx_ = 0;
  size_t used_ = 0;  // bytes of chunks_[chunk_idx_]
};

}  // namespace tandem
