#include "api/responses/sealed_reasoning.h"

#include <array>
#include <cstdint>

#include "base/utf8.h"

namespace tandem::api {
namespace {

constexpr std::string_view kMark = "tandem1.";
constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

std::array<int8_t, 256> make_values() {
  std::array<int8_t, 256> out;
  out.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    out[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return out;
}

}  // namespace

std::string seal_reasoning(std::string_view reasoning) {
  std::string out(kMark);
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : reasoning) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    num_bits += 8;
    while (num_bits >= 6) {
      num_bits -= 6;
      out += kAlphabet[bits >> num_bits & 63];
    }
  }
  if (num_bits > 0) out += kAlphabet[bits << (6 - num_bits) & 63];
  return out;
}

std::optional<std::string> unseal_reasoning(std::string_view sealed) {
  static const std::array<int8_t, 256> kValues = make_values();
  if (!sealed.starts_with(kMark)) return std::nullopt;
  std::string out;
  uint32_t bits = 0;
  int num_bits = 0;
  for (const char c : sealed.substr(kMark.size())) {
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(value);
    num_bits += 6;
    if (num_bits >= 8) {
      num_bits -= 8;
      out += static_cast<char>(bits >> num_bits & 255);
    }
  }
  if (find_invalid_utf8(out).has_value()) return std::nullopt;
  return out;
}

}  // namespace tandem::api
