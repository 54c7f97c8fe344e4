#include "base/checksum.h"

#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tandem {

struct Checksum::State {
  XXH3_state_t xxh3;
};

Checksum::Checksum() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh3);
}
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

uint64_t Checksum::value() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

Status ChecksumSink::write(std::span<const std::byte> bytes) {
  checksum_.add(bytes);
  return sink_.write(bytes);
}

Status ChecksumSink::finish() {
  const uint64_t value = checksum_.value();
  return sink_.write(bytes_of(value));
}

Status ChecksumSource::read(std::span<std::byte> bytes) {
  TANDEM_TRY(source_.read(bytes));
  checksum_.add(bytes);
  return {};
}

Status ChecksumSource::verify() {
  uint64_t saved = 0;
  TANDEM_TRY(source_.read(writable_bytes_of(saved)));
  if (saved != checksum_.value()) return {StatusCode::kDataLoss, "the checksum does not match"};
  return {};
}

}  // namespace tandem
