#include "coordinator/engine/state_file.h"

#include <array>

namespace tandem {
namespace {

constexpr std::array<char, 8> kMagic = {'T', 'A', 'N', 'D', 'E', 'M', 'S', 'T'};
constexpr uint32_t kVersion = 2;
constexpr uint32_t kFingerprintBytesMax = 64;

struct FileHeader {
  std::array<char, 8> magic = kMagic;
  uint32_t version = kVersion;
  uint32_t fingerprint_bytes = 0;
};
static_assert(sizeof(FileHeader) == 16);

}  // namespace

Status write_state_header(
    ByteSink& sink, const std::string& fingerprint, std::span<const int32_t> tokens) {
  FileHeader header;
  header.fingerprint_bytes = static_cast<uint32_t>(fingerprint.size());
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  TANDEM_TRY(sink.write(bytes_of(header)));
  TANDEM_TRY(sink.write(std::as_bytes(std::span(fingerprint))));
  TANDEM_TRY(sink.write(bytes_of(num_tokens)));
  return sink.write(std::as_bytes(tokens));
}

Result<std::vector<int32_t>> read_state_header(
    ByteSource& source, const std::string& fingerprint, int64_t context_tokens,
    int64_t vocab_size) {
  FileHeader header;
  TANDEM_TRY(source.read(writable_bytes_of(header)));
  if (header.magic != kMagic || header.fingerprint_bytes > kFingerprintBytesMax) {
    return Status(StatusCode::kDataLoss, "not a saved session");
  }
  TANDEM_REQUIRE(
      header.version == kVersion,
      str_cat("saved session has version ", header.version, ", this build reads ", kVersion));
  std::string saved(header.fingerprint_bytes, '\0');
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(saved))));
  TANDEM_REQUIRE(
      saved == fingerprint,
      str_cat("the session was saved with another model than this one, ", fingerprint));
  int64_t num_tokens = 0;
  TANDEM_TRY(source.read(writable_bytes_of(num_tokens)));
  if (num_tokens < 1) return Status(StatusCode::kDataLoss, "the saved session has no tokens");
  TANDEM_REQUIRE(
      num_tokens < context_tokens,
      str_cat("the saved session has ", num_tokens, " tokens, the context holds ", context_tokens));
  std::vector<int32_t> tokens(static_cast<size_t>(num_tokens));
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(tokens))));
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab_size) {
      return Status(
          StatusCode::kDataLoss,
          str_cat("the saved session has token ", token, ", outside the vocabulary"));
    }
  }
  return tokens;
}

}  // namespace tandem
