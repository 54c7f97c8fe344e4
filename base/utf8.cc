#include "base/utf8.h"

#include <algorithm>
#include <cstring>

namespace tandem {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// What a lead byte asks for. The range of the first continuation byte is what rules out overlong
// forms, surrogates and values past U+10FFFF; later ones are always 80..BF.
struct Lead {
  uint8_t num_continuations = 0;  // 0 with low > high: the byte leads nothing
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

constexpr Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {0, 0, 0};
  if (byte < 0xC2) return {0, 1, 0};
  if (byte < 0xE0) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte < 0xF0) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte < 0xF4) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {0, 1, 0};
}

// Whether all bytes of `text` after the first may follow `lead` there.
bool continues(Lead lead, std::string_view text) {
  for (size_t i = 1; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const bool follows = i == 1 ? byte >= lead.low && byte <= lead.high : (byte & 0xC0) == 0x80;
    if (!follows) return false;
  }
  return true;
}

// Bytes at the start of `text` that are ASCII, counted eight at a time.
size_t ascii_prefix(std::string_view text) {
  size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + i, 8);
    if ((word & 0x8080808080808080ULL) != 0) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

}  // namespace

void append_utf8(uint32_t code_point, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t i = 0;
  while (true) {
    i += ascii_prefix(text.substr(i));
    if (i == text.size()) return std::nullopt;
    const Lead lead = lead_of(static_cast<uint8_t>(text[i]));
    if (lead.num_continuations == 0) return i;
    const size_t num_bytes = size_t{1} + lead.num_continuations;
    if (text.size() - i < num_bytes || !continues(lead, text.substr(i, num_bytes))) return i;
    i += num_bytes;
  }
}

size_t incomplete_utf8_tail(std::string_view text) {
  for (size_t tail = 1; tail <= std::min<size_t>(3, text.size()); ++tail) {
    const std::string_view last = text.substr(text.size() - tail);
    const Lead lead = lead_of(static_cast<uint8_t>(last.front()));
    if (lead.num_continuations >= tail && continues(lead, last)) return tail;
  }
  return 0;
}

void Utf8Repair::step(uint8_t byte, std::string& out) {
  if (num_missing_ > 0) {
    if (byte >= low_ && byte <= high_) {
      pending_[num_pending_++] = static_cast<char>(byte);
      low_ = 0x80;
      high_ = 0xBF;
      if (--num_missing_ == 0) {
        out.append(pending_, num_pending_);
        num_pending_ = 0;
      }
      return;
    }
    finish(out);  // the held part is ill-formed; this byte starts anew
  }
  const Lead lead = lead_of(byte);
  if (lead.num_continuations > 0) {
    pending_[0] = static_cast<char>(byte);
    num_pending_ = 1;
    num_missing_ = lead.num_continuations;
    low_ = lead.low;
    high_ = lead.high;
  } else if (lead.low > lead.high) {
    out.append(kReplacement);
  } else {
    out.push_back(static_cast<char>(byte));
  }
}

void Utf8Repair::push(std::string_view bytes, std::string& out) {
  while (!bytes.empty()) {
    if (num_missing_ == 0) {
      const size_t num_ascii = ascii_prefix(bytes);
      out.append(bytes.substr(0, num_ascii));
      bytes.remove_prefix(num_ascii);
      if (bytes.empty()) return;
    }
    step(static_cast<uint8_t>(bytes.front()), out);
    bytes.remove_prefix(1);
  }
}

void Utf8Repair::finish(std::string& out) {
  if (num_missing_ > 0) out.append(kReplacement);
  num_pending_ = 0;
  num_missing_ = 0;
}

std::string repair_utf8(std::string_view bytes) {
  Utf8Repair repair;
  std::string out;
  repair.push(bytes, out);
  repair.finish(out);
  return out;
}

}  // namespace tandem
