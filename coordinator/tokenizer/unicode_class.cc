#include "coordinator/tokenizer/unicode_class.h"

#include <utf8proc.h>

#include <map>

namespace tandem {
namespace {

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

uint8_t category_class(uint32_t code_point) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code_point))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO: return kLetter;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME: return kMark;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO: return kNumber;
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO: return kPunctuation;
    default: return 0;
  }
}

uint8_t class_of(uint32_t c) {
  uint8_t bits = category_class(c);
  if (is_white_space(c)) bits |= kSpace;
  if (c == '\r' || c == '\n') bits |= kNewline;
  if ((c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF)) bits |= kIdeograph;
  if ((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')) bits |= kAsciiLetter;
  return bits;
}

}  // namespace

const CharClassTable& CharClassTable::get() {
  static const CharClassTable kTable;
  return kTable;
}

CharClassTable::CharClassTable() {
  std::map<std::array<uint8_t, 256>, uint16_t> block_ids;
  for (uint32_t block = 0; block < block_of_.size(); ++block) {
    std::array<uint8_t, 256> classes;
    for (uint32_t i = 0; i < 256; ++i) classes[i] = class_of(block << 8 | i);
    const auto next_id = static_cast<uint16_t>(block_ids.size());
    const auto [entry, is_new] = block_ids.try_emplace(classes, next_id);
    if (is_new) classes_.insert(classes_.end(), classes.begin(), classes.end());
    block_of_[block] = entry->second;
  }
}

}  // namespace tandem
