#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/byte_stream.h"
#include "base/status.h"

namespace tandem {

struct FileClose {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, FileClose>;

/// Writes a file that appears under its name only when it is complete.
class FileSink final : public ByteSink {
 public:
  /// Errors: kUnavailable names the path and the system's reason.
  static Result<FileSink> create(const std::string& path);
  FileSink(FileSink&&) = default;
  FileSink& operator=(FileSink&&) = default;
  ~FileSink() override;

  Status write(std::span<const std::byte> bytes) override;
  /// Flushes and renames. Nothing may be written afterwards.
  Status commit();

 private:
  FileSink(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string temporary_path() const { return path_ + ".part"; }

  std::string path_;
  FileHandle file_;
};

/// Reads a file from its start.
class FileSource final : public ByteSource {
 public:
  /// Errors: kNotFound or kUnavailable name the path.
  static Result<FileSource> open(const std::string& path);
  Status read(std::span<std::byte> bytes) override;

 private:
  FileSource(std::string path, FileHandle file) : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  FileHandle file_;
};

/// The whole file as text. Limits: at most max_bytes. Errors: as FileSource; kInvalidArgument if it
/// is larger.
Result<std::string> read_text_file(const std::string& path, size_t max_bytes);

/// Writes text as a whole, through FileSink.
Status write_text_file(const std::string& path, std::string_view text);

}  // namespace tandem
