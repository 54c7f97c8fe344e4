#include "model/gguf/check_vocabulary.h"

namespace tandem {
namespace {

Status check_count(
    const GgufFile& file, const char* key, uint64_t found, uint64_t vocab_size, bool exact) {
  if (exact ? found == vocab_size : found <= vocab_size) return {};
  return file.error(
      str_cat("key ", key, " has ", found, " entries, the vocabulary has ", vocab_size));
}

Status check_numbers(
    const GgufFile& file, const char* key, const char* expected, bool (*accepts)(GgufType),
    uint64_t vocab_size) {
  const GgufValue* value = file.find_value(key);
  if (value == nullptr) return {};
  if (value->type != GgufType::kArray || !accepts(value->item_type)) {
    return file.error(
        str_cat("key ", key, ": expected ", expected, ", found ", value->type_text()));
  }
  return check_count(file, key, value->num_items, vocab_size, /*exact=*/true);
}

}  // namespace

Status check_vocabulary(const GgufFile& file, uint64_t vocab_size) {
  constexpr const char* kTokens = "tokenizer.ggml.tokens";
  constexpr const char* kMerges = "tokenizer.ggml.merges";
  TANDEM_TRY_ASSIGN(const auto tokens, file.get_string_array(kTokens));
  TANDEM_TRY(check_count(file, kTokens, tokens.size(), vocab_size, /*exact=*/true));
  if (file.has(kMerges)) {
    TANDEM_TRY_ASSIGN(const auto merges, file.get_string_array(kMerges));
    TANDEM_TRY(check_count(file, kMerges, merges.size(), vocab_size, /*exact=*/false));
  }
  TANDEM_TRY(check_numbers(
      file, "tokenizer.ggml.scores", "array of f32",
      [](GgufType type) { return type == GgufType::kF32; }, vocab_size));
  return check_numbers(
      file, "tokenizer.ggml.token_type", "array of i32",
      [](GgufType type) { return type == GgufType::kI32 || type == GgufType::kU32; }, vocab_size);
}

}  // namespace tandem
