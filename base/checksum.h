#pragma once

#include <memory>

#include "base/byte_stream.h"

namespace tandem {

/// XXH3 (64 bits) of bytes in order. It finds damage, not forgery.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::span<const std::byte> bytes);
  uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Passes bytes on and, at the end, the checksum of all of them. `sink` outlives it.
class ChecksumSink final : public ByteSink {
 public:
  explicit ChecksumSink(ByteSink& sink) : sink_(sink) {}
  Status write(std::span<const std::byte> bytes) override;
  /// Writes the checksum. Nothing may be written afterwards.
  Status finish();

 private:
  ByteSink& sink_;
  Checksum checksum_;
};

/// Reads what ChecksumSink wrote. `source` outlives it.
class ChecksumSource final : public ByteSource {
 public:
  explicit ChecksumSource(ByteSource& source) : source_(source) {}
  Status read(std::span<std::byte> bytes) override;
  /// Reads the checksum that follows. Errors: kDataLoss if the bytes read so far have another one.
  Status verify();

 private:
  ByteSource& source_;
  Checksum checksum_;
};

}  // namespace tandem
