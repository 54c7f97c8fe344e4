#include "coordinator/tokenizer/gguf_vocabulary.h"

#include "model/gguf/check_vocabulary.h"

namespace tandem {

Result<std::shared_ptr<const Tokenizer>> tokenizer_from_gguf(const GgufFile& file) {
  TANDEM_TRY_ASSIGN(const std::string_view model, file.get_string("tokenizer.ggml.model"));
  if (model != "gpt2") {
    return Status(
        StatusCode::kUnimplemented,
        str_cat(
            file.name(), ": tokenizer.ggml.model is \"", printable(model),
            "\", only byte-level BPE (\"gpt2\") is supported"));
  }
  VocabularySource source;
  TANDEM_TRY_ASSIGN(const std::string_view pre, file.get_string("tokenizer.ggml.pre"));
  TANDEM_TRY_ASSIGN(const auto tokens, file.get_string_array("tokenizer.ggml.tokens"));
  TANDEM_TRY_ASSIGN(const auto merges, file.get_string_array("tokenizer.ggml.merges"));
  TANDEM_TRY(check_vocabulary(file, tokens.size()));
  source.pre = pre;
  source.tokens.assign(tokens.begin(), tokens.end());
  source.merges.assign(merges.begin(), merges.end());
  if (const GgufValue* types = file.find_value("tokenizer.ggml.token_type"); types != nullptr) {
    source.token_types.reserve(types->num_items);
    for (uint64_t id = 0; id < types->num_items; ++id) {
      // A number out of the enumeration's range is refused by create(), whatever it is.
      const int64_t type = types->as_i64(id).value_or(-1);
      source.token_types.push_back(type >= 0 && type <= 255 ? static_cast<int32_t>(type) : -1);
    }
  }
  auto tokenizer = Tokenizer::create(source);
  if (!tokenizer.ok()) {
    return Status(
        tokenizer.status().code(), str_cat(file.name(), ": ", tokenizer.status().message()));
  }
  return tokenizer;
}

}  // namespace tandem
