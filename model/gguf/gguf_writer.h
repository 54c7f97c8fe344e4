#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "model/formats/dtype.h"
#include "model/gguf/gguf_value.h"

namespace tandem {

/// Collects metadata and tensors, then writes one GGUF v3 file.
///
/// Keys and names keep the order of the calls. A key that is set twice, a duplicate tensor and any
/// other mistake is remembered and returned by write(), so that calls need no checks of their own.
/// Threads: one owner.
class GgufWriter {
 public:
  /// Takes the next bytes of a tensor; any piece size.
  using Sink = std::function<Status(std::span<const std::byte>)>;
  /// Produces the whole payload of a tensor, piece by piece, when write() reaches it.
  using Payload = std::function<Status(const Sink&)>;

  void set_u8(std::string_view key, uint8_t value);
  void set_u16(std::string_view key, uint16_t value);
  void set_u32(std::string_view key, uint32_t value);
  void set_i32(std::string_view key, int32_t value);
  void set_u64(std::string_view key, uint64_t value);
  void set_i64(std::string_view key, int64_t value);
  void set_f32(std::string_view key, float value);
  void set_f64(std::string_view key, double value);
  void set_bool(std::string_view key, bool value);
  void set_string(std::string_view key, std::string_view value);
  void set_u8_array(std::string_view key, std::span<const uint8_t> values);
  void set_u32_array(std::string_view key, std::span<const uint32_t> values);
  void set_i32_array(std::string_view key, std::span<const int32_t> values);
  void set_f32_array(std::string_view key, std::span<const float> values);
  void set_string_array(std::string_view key, std::span<const std::string> values);
  void set_string_array(std::string_view key, std::span<const std::string_view> values);
  /// Copies a value of another file, whatever its type; general.alignment acts as set_alignment().
  void set_value(std::string_view key, const GgufValue& value);

  /// Sets general.alignment, also as a key. Limits: a power of two from 8 to 65536. Default 32,
  /// without a key.
  void set_alignment(uint32_t alignment);

  /// `data` is borrowed until write() returns.
  void add_tensor(
      std::string_view name, DType dtype, std::vector<uint64_t> dims,
      std::span<const std::byte> data);
  void add_tensor(std::string_view name, DType dtype, std::vector<uint64_t> dims, Payload payload);
  /// A tensor of zeros that takes no space in a file system with sparse files.
  void add_zeros(std::string_view name, DType dtype, std::vector<uint64_t> dims);

  /// Everything before the tensor data, padded to the alignment.
  Result<std::string> header() const;

  /// Writes to `path` + ".part" and renames it, so that `path` is never half a file.
  /// Errors: the first mistake of the calls; kInvalidArgument if a payload has another size than
  /// its
  ///         tensor; kUnavailable if the file system refuses; what a payload returns.
  Status write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<uint64_t> dims;
    uint64_t bytes;
    uint64_t offset;
    Payload payload;  // empty: zeros
  };

  bool begin(std::string_view key, GgufType type);
  template <class T>
  void set_scalar(std::string_view key, GgufType type, T value);
  template <class T>
  void set_array(std::string_view key, GgufType type, std::span<const T> values);
  template <class Text>
  void set_texts(std::string_view key, std::span<const Text> values);
  void fail(std::string message);
  uint64_t aligned(uint64_t offset) const { return (offset + alignment_ - 1) & ~(alignment_ - 1); }
  Status write_file(int fd, const std::string& path) const;

  Status status_;
  uint64_t alignment_ = 32;
  std::set<std::string, std::less<>> keys_;
  std::set<std::string, std::less<>> names_;
  std::string metadata_;
  std::vector<Tensor> tensors_;
  uint64_t data_bytes_ = 0;
};

}  // namespace tandem
