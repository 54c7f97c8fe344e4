#include "kvstore/bank_format.h"

#include <array>
#include <cstring>

#include "base/limits.h"

namespace tandem {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'A', 'N', 'D', 'E', 'M', 'B', 'K'};
constexpr uint32_t kVersion = 1;

struct FileHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t num_slabs = 0;
  int64_t length = 0;
};
static_assert(sizeof(FileHeader) == 24);

struct SlabHeader {
  uint32_t kind = 0;
  uint32_t ggml_type = 0;
  int64_t row_values = 0;
  int64_t tokens_per_row = 0;
  int64_t window = 0;
  SavedRows rows;

  friend bool operator==(const SlabHeader&, const SlabHeader&) = default;
};
static_assert(sizeof(SlabHeader) == 48);

SlabHeader header_of(const SlabSpec& slab, const SavedRows& rows) {
  return {
      static_cast<uint32_t>(slab.kind),
      ggml_id(slab.dtype),
      slab.row_values,
      slab.tokens_per_row,
      slab.window,
      rows};
}

}  // namespace

Status write_bank_header(ByteSink& sink, const BankHeader& header) {
  FileHeader file;
  file.num_slabs = header.num_slabs;
  file.length = header.length;
  return sink.write(bytes_of(file));
}

Result<BankHeader> read_bank_header(ByteSource& source) {
  FileHeader file;
  TANDEM_TRY(source.read(writable_bytes_of(file)));
  if (file.magic != kMagic || file.length < 0) {
    return Status(StatusCode::kDataLoss, "not a saved bank");
  }
  TANDEM_REQUIRE(
      file.version == kVersion,
      str_cat("saved bank has version ", file.version, ", this build reads ", kVersion));
  return BankHeader{file.length, file.num_slabs};
}

Status write_slab_header(ByteSink& sink, const SlabSpec& slab, const SavedRows& rows) {
  const auto name_bytes = static_cast<uint32_t>(slab.name.size());
  TANDEM_TRY(sink.write(bytes_of(name_bytes)));
  TANDEM_TRY(sink.write(std::as_bytes(std::span(slab.name))));
  return sink.write(bytes_of(header_of(slab, rows)));
}

Status expect_slab_header(ByteSource& source, const SlabSpec& slab, const SavedRows& rows) {
  uint32_t name_bytes = 0;
  TANDEM_TRY(source.read(writable_bytes_of(name_bytes)));
  TANDEM_REQUIRE(
      name_bytes <= kGgufNameBytesMax, str_cat("saved slab name has ", name_bytes, " bytes"));
  std::string name(name_bytes, '\0');
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(name))));
  SlabHeader saved;
  TANDEM_TRY(source.read(writable_bytes_of(saved)));
  TANDEM_REQUIRE(
      name == slab.name && saved == header_of(slab, rows),
      str_cat("a saved slab is not this model's ", slab.name));
  return {};
}

}  // namespace tandem
