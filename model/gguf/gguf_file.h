#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/status.h"
#include "model/gguf/gguf_parser.h"
#include "model/gguf/gguf_value.h"

namespace tandem {

/// A GGUF v3 model: one file, or all files of a split model, mapped read-only.
///
/// Metadata comes from the first file of a split. Nothing is copied: values, names and tensor data
/// are views that stay valid while the object lives (also after a move).
/// Every message starts with the file's name.
/// Threads: reads from any.
class GgufFile {
 public:
  /// Opens `path`. A name that ends in -0000K-of-0000N.gguf opens all N files beside it.
  ///
  /// Errors: those of MappedFile::open and parse_gguf(); kInvalidArgument if the files of a split
  ///         disagree about their number, their order or the tensor total, or share a tensor name.
  /// Cost: milliseconds; the header is read, tensor data is not.
  static Result<GgufFile> open(const std::string& path);

  /// The same over bytes in memory, which must outlive the object. `name` stands for the file name.
  static Result<GgufFile> parse(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const { return name_; }
  uint64_t file_bytes() const { return file_bytes_; }
  int num_splits() const { return num_splits_; }
  uint64_t alignment() const { return alignment_; }

  const std::vector<std::pair<std::string_view, GgufValue>>& metadata() const { return metadata_; }
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  /// Null if there is none of that name.
  const TensorInfo* find_tensor(std::string_view tensor_name) const;
  const GgufValue* find_value(std::string_view key) const;
  bool has(std::string_view key) const { return find_value(key) != nullptr; }

  // Typed reads. Errors: kNotFound if the key is missing, kInvalidArgument if its type differs or
  // the number does not fit; the message names the key, the expected and the found type. Integers
  // of every width and sign are accepted where they fit; get_f64 accepts integers too.
  Result<uint64_t> get_u64(std::string_view key) const;
  Result<int64_t> get_i64(std::string_view key) const;
  Result<double> get_f64(std::string_view key) const;
  Result<bool> get_bool(std::string_view key) const;
  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::vector<uint64_t>> get_u64_array(std::string_view key) const;
  Result<std::vector<int64_t>> get_i64_array(std::string_view key) const;
  Result<std::vector<double>> get_f64_array(std::string_view key) const;
  Result<std::span<const std::string_view>> get_string_array(std::string_view key) const;

  /// kInvalidArgument that starts with the file's name.
  Status error(std::string_view message) const;

 private:
  GgufFile() = default;
  Status add(std::span<const std::byte> bytes, const std::string& part_name, int split_idx);
  Status check_split(const GgufHeader& header, const std::string& part_name, int split_idx) const;
  Status check_totals() const;
  Result<const GgufValue*> require(std::string_view key, const char* expected) const;
  template <class T, class Read>
  Result<T> get(std::string_view key, const char* expected, Read read) const;
  Status wrong_type(std::string_view key, const char* expected, const GgufValue& found) const;

  std::string name_;
  int num_splits_ = 1;
  uint64_t file_bytes_ = 0;
  uint64_t alignment_ = 0;
  std::vector<MappedFile> files_;
  std::vector<std::pair<std::string_view, GgufValue>> metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> key_idx_;
  std::unordered_map<std::string_view, size_t> tensor_idx_;
};

}  // namespace tandem
