#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/status.h"

namespace tandem {

/// A whole file mapped read-only. The bytes stay valid while the object lives.
/// Threads: reads from any; a file that shrinks while mapped raises SIGBUS in the reader.
class MappedFile {
 public:
  /// Errors: kNotFound if it does not exist, kInvalidArgument if it is no regular file or is empty,
  /// kUnavailable if the system refuses the mapping.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(std::string path, const std::byte* data, size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace tandem
