#pragma once

#include <cstring>
#include <vector>

#include "base/byte_stream.h"

namespace tandem::test {

/// Bytes in memory as a sink and a source.
class MemoryStream final : public ByteSink, public ByteSource {
 public:
  std::vector<std::byte> bytes;
  size_t position = 0;

  Status write(std::span<const std::byte> part) override {
    bytes.insert(bytes.end(), part.begin(), part.end());
    return {};
  }
  Status read(std::span<std::byte> part) override {
    if (part.size() > bytes.size() - position) {
      return {StatusCode::kDataLoss, str_cat("cut short at ", bytes.size(), " bytes")};
    }
    if (!part.empty()) std::memcpy(part.data(), bytes.data() + position, part.size());
    position += part.size();
    return {};
  }
};

}  // namespace tandem::test
