#include "model/gguf/gguf_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <limits>

#include "base/limits.h"

namespace tandem {
namespace {

constexpr uint32_t kVersion = 3;

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

void append_text(std::string& out, std::string_view text) {
  append(out, static_cast<uint64_t>(text.size()));
  out.append(text);
}

void append_payload(std::string& out, const GgufValue& value) {
  if (value.type == GgufType::kString) {
    append_text(out, value.text);
    return;
  }
  if (value.type != GgufType::kArray) {
    out.append(reinterpret_cast<const char*>(value.data), gguf_scalar_bytes(value.type));
    return;
  }
  append(out, value.item_type);
  append(out, value.num_items);
  for (const std::string_view text : value.strings) append_text(out, text);
  for (const GgufValue& item : value.arrays) append_payload(out, item);
  if (const uint64_t bytes = gguf_scalar_bytes(value.item_type) * value.num_items; bytes > 0) {
    out.append(reinterpret_cast<const char*>(value.data), bytes);
  }
}

Status system_error(const std::string& path) {
  return {StatusCode::kUnavailable, str_cat("cannot write ", path, ": ", errno_text(errno))};
}

Status write_all(int fd, const void* data, size_t bytes, const std::string& path) {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return system_error(path);
    at += written;
    bytes -= static_cast<size_t>(written);
  }
  return {};
}

}  // namespace

void GgufWriter::fail(std::string message) {
  if (status_.ok()) status_ = invalid_argument("GGUF writer: " + std::move(message));
}

bool GgufWriter::begin(std::string_view key, GgufType type) {
  if (key.empty() || key.size() > kGgufNameBytesMax) {
    fail(str_cat("a key has ", key.size(), " bytes"));
    return false;
  }
  if (!keys_.emplace(key).second) {
    fail(str_cat("key ", key, " is set twice"));
    return false;
  }
  append_text(metadata_, key);
  append(metadata_, type);
  return true;
}

template <class T>
void GgufWriter::set_scalar(std::string_view key, GgufType type, T value) {
  if (begin(key, type)) append(metadata_, value);
}

template <class T>
void GgufWriter::set_array(std::string_view key, GgufType type, std::span<const T> values) {
  if (!begin(key, GgufType::kArray)) return;
  append(metadata_, type);
  append(metadata_, static_cast<uint64_t>(values.size()));
  if (!values.empty()) {
    metadata_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  }
}

template <class Text>
void GgufWriter::set_texts(std::string_view key, std::span<const Text> values) {
  if (!begin(key, GgufType::kArray)) return;
  append(metadata_, GgufType::kString);
  append(metadata_, static_cast<uint64_t>(values.size()));
  for (const Text& value : values) append_text(metadata_, value);
}

void GgufWriter::set_u8(std::string_view key, uint8_t value) {
  set_scalar(key, GgufType::kU8, value);
}
void GgufWriter::set_u16(std::string_view key, uint16_t value) {
  set_scalar(key, GgufType::kU16, value);
}
void GgufWriter::set_u32(std::string_view key, uint32_t value) {
  set_scalar(key, GgufType::kU32, value);
}
void GgufWriter::set_i32(std::string_view key, int32_t value) {
  set_scalar(key, GgufType::kI32, value);
}
void GgufWriter::set_u64(std::string_view key, uint64_t value) {
  set_scalar(key, GgufType::kU64, value);
}
void GgufWriter::set_i64(std::string_view key, int64_t value) {
  set_scalar(key, GgufType::kI64, value);
}
void GgufWriter::set_f32(std::string_view key, float value) {
  set_scalar(key, GgufType::kF32, value);
}
void GgufWriter::set_f64(std::string_view key, double value) {
  set_scalar(key, GgufType::kF64, value);
}
void GgufWriter::set_bool(std::string_view key, bool value) {
  set_scalar(key, GgufType::kBool, static_cast<uint8_t>(value ? 1 : 0));
}
void GgufWriter::set_string(std::string_view key, std::string_view value) {
  if (begin(key, GgufType::kString)) append_text(metadata_, value);
}
void GgufWriter::set_u8_array(std::string_view key, std::span<const uint8_t> values) {
  set_array(key, GgufType::kU8, values);
}
void GgufWriter::set_u32_array(std::string_view key, std::span<const uint32_t> values) {
  set_array(key, GgufType::kU32, values);
}
void GgufWriter::set_i32_array(std::string_view key, std::span<const int32_t> values) {
  set_array(key, GgufType::kI32, values);
}
void GgufWriter::set_f32_array(std::string_view key, std::span<const float> values) {
  set_array(key, GgufType::kF32, values);
}
void GgufWriter::set_string_array(std::string_view key, std::span<const std::string> values) {
  set_texts(key, values);
}
void GgufWriter::set_string_array(std::string_view key, std::span<const std::string_view> values) {
  set_texts(key, values);
}
void GgufWriter::set_value(std::string_view key, const GgufValue& value) {
  if (key == "general.alignment") {
    const auto alignment = value.type == GgufType::kArray ? std::nullopt : value.as_u64();
    return set_alignment(static_cast<uint32_t>(alignment.value_or(0)));
  }
  if (begin(key, value.type)) append_payload(metadata_, value);
}

void GgufWriter::set_alignment(uint32_t alignment) {
  if (!std::has_single_bit(alignment) || alignment < 8 || alignment > 65536) {
    return fail(str_cat("alignment ", alignment, " is no power of two from 8 to 65536"));
  }
  if (!tensors_.empty()) return fail("the alignment is set after the first tensor");
  alignment_ = alignment;
  set_u32("general.alignment", alignment);
}

void GgufWriter::add_tensor(
    std::string_view name, DType dtype, std::vector<uint64_t> dims, Payload payload) {
  if (name.empty() || name.size() > kGgufNameBytesMax) {
    return fail(str_cat("a tensor name has ", name.size(), " bytes"));
  }
  if (dims.size() > static_cast<size_t>(kGgufDimsMax)) {
    return fail(str_cat("tensor ", name, " has ", dims.size(), " dimensions"));
  }
  const auto bytes = tensor_bytes(dtype, dims);
  if (!bytes.ok()) return fail(str_cat("tensor ", name, ": ", bytes.status().message()));
  if (!names_.emplace(name).second) return fail(str_cat("tensor ", name, " is added twice"));
  const uint64_t offset = aligned(data_bytes_);
  if (*bytes > std::numeric_limits<int64_t>::max() / 2 - offset) {
    return fail(str_cat("tensor ", name, ": total size overflows"));
  }
  data_bytes_ = offset + *bytes;
  tensors_.push_back(
      {std::string(name), dtype, std::move(dims), *bytes, offset, std::move(payload)});
}

void GgufWriter::add_tensor(
    std::string_view name, DType dtype, std::vector<uint64_t> dims,
    std::span<const std::byte> data) {
  add_tensor(name, dtype, std::move(dims), [data](const Sink& sink) { return sink(data); });
}

void GgufWriter::add_zeros(std::string_view name, DType dtype, std::vector<uint64_t> dims) {
  add_tensor(name, dtype, std::move(dims), Payload());
}

Result<std::string> GgufWriter::header() const {
  if (!status_.ok()) return status_;
  std::string out = "GGUF";
  append(out, kVersion);
  append(out, static_cast<uint64_t>(tensors_.size()));
  append(out, static_cast<uint64_t>(keys_.size()));
  out += metadata_;
  for (const Tensor& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) append(out, dim);
    append(out, ggml_id(tensor.dtype));
    append(out, tensor.offset);
  }
  out.resize(aligned(out.size()));
  return out;
}

Status GgufWriter::write(const std::string& path) const {
  if (!status_.ok()) return status_;
  const std::string part_path = path + ".part";
  const int fd = ::open(part_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(part_path);
  Status status = write_file(fd, part_path);
  if (::close(fd) != 0 && status.ok()) status = system_error(part_path);
  if (status.ok() && std::rename(part_path.c_str(), path.c_str()) != 0) status = system_error(path);
  if (!status.ok()) ::unlink(part_path.c_str());
  return status;
}

Status GgufWriter::write_file(int fd, const std::string& path) const {
  TANDEM_TRY_ASSIGN(const std::string head, header());
  TANDEM_TRY(write_all(fd, head.data(), head.size(), path));
  for (const Tensor& tensor : tensors_) {
    if (!tensor.payload) continue;
    const auto start = static_cast<off_t>(head.size() + tensor.offset);
    if (::lseek(fd, start, SEEK_SET) != start) return system_error(path);
    uint64_t written = 0;
    const Sink sink = [&](std::span<const std::byte> piece) -> Status {
      TANDEM_REQUIRE(
          piece.size() <= tensor.bytes - written,
          str_cat(
              "GGUF writer: tensor ", tensor.name, " got more than its ", tensor.bytes, " bytes"));
      written += piece.size();
      return write_all(fd, piece.data(), piece.size(), path);
    };
    TANDEM_TRY(tensor.payload(sink));
    TANDEM_REQUIRE(
        written == tensor.bytes,
        str_cat(
            "GGUF writer: tensor ", tensor.name, " got ", written, " of ", tensor.bytes, " bytes"));
  }
  // Gaps and zero tensors are holes; the end is padded so that files can be joined by alignment.
  if (::ftruncate(fd, static_cast<off_t>(head.size() + aligned(data_bytes_))) != 0) {
    return system_error(path);
  }
  return {};
}

}  // namespace tandem
