#include "base/file_stream.h"

#include <sys/stat.h>

#include <cerrno>
#include <string_view>

namespace tandem {
namespace {

Status system_error(const char* action, const std::string& path) {
  const auto code = errno == ENOENT ? StatusCode::kNotFound : StatusCode::kUnavailable;
  return {code, str_cat("cannot ", action, " ", path, ": ", errno_text(errno))};
}

}  // namespace

Result<FileSink> FileSink::create(const std::string& path) {
  FileHandle file(std::fopen((path + ".part").c_str(), "wb"));
  if (file == nullptr) return system_error("write", path);
  return FileSink(path, std::move(file));
}

FileSink::~FileSink() {
  if (file_ == nullptr) return;
  file_.reset();
  std::remove(temporary_path().c_str());
}

Status FileSink::write(std::span<const std::byte> bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    return system_error("write", path_);
  }
  return {};
}

Status FileSink::commit() {
  const bool flushed = std::fflush(file_.get()) == 0;
  if (!flushed) return system_error("write", path_);
  file_.reset();
  if (std::rename(temporary_path().c_str(), path_.c_str()) != 0) {
    Status status = system_error("write", path_);
    std::remove(temporary_path().c_str());
    return status;
  }
  return {};
}

Result<FileSource> FileSource::open(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_error("read", path);
  TANDEM_REQUIRE(S_ISREG(info.st_mode), str_cat(path, " is not a regular file"));
  FileHandle file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return system_error("read", path);
  return FileSource(path, std::move(file));
}

Status FileSource::read(std::span<std::byte> bytes) {
  if (std::fread(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) {
    return {StatusCode::kDataLoss, str_cat(path_, " is cut short")};
  }
  return {};
}

Result<std::string> read_text_file(const std::string& path, size_t max_bytes) {
  TANDEM_TRY_ASSIGN(FileSource source, FileSource::open(path));
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return system_error("read", path);
  const auto size = static_cast<size_t>(info.st_size);
  TANDEM_REQUIRE(
      size <= max_bytes, str_cat(path, " has ", size, " bytes, at most ", max_bytes, " are read"));
  std::string text(size, '\0');
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(text))));
  return text;
}

Status write_text_file(const std::string& path, std::string_view text) {
  TANDEM_TRY_ASSIGN(FileSink sink, FileSink::create(path));
  TANDEM_TRY(sink.write(std::as_bytes(std::span(text))));
  return sink.commit();
}

}  // namespace tandem
