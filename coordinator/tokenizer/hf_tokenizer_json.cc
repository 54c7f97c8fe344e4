#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_nesting.h"
#include "base/limits.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace tandem {
namespace {

using Json = nlohmann::json;

// The third pattern of the only pre-tokenizer known, with escapes as unescaped() leaves them. The
// classes are listed in unicode_class.h, the meaning in pre_tokenizer.h.
constexpr std::string_view kDigitsPattern = R"(\p{N}{1,3})";
constexpr std::string_view kIdeographPattern = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+";
constexpr std::string_view kWordPattern =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|)"
    "[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|"
    R"(\s+(?!\S)|\s+)";

Status unimplemented(std::string message) {
  return {StatusCode::kUnimplemented, std::move(message)};
}

const Json* member(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() || at->is_null() ? nullptr : &*at;
}

const std::string* text_of(const Json* value) {
  return value == nullptr ? nullptr : value->get_ptr<const std::string*>();
}

bool is_true(const Json* value) {
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

// `\r`, `\n` and `\"` as the characters that they stand for: files differ in how they write those.
std::string unescaped(std::string_view pattern) {
  std::string plain;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 == pattern.size()) {
      plain += pattern[i];
      continue;
    }
    const char c = pattern[++i];
    if (c == 'r') {
      plain += '\r';
    } else if (c == 'n') {
      plain += '\n';
    } else if (c == '"') {
      plain += '"';
    } else {
      plain += '\\';
      plain += c;
    }
  }
  return plain;
}

bool is_split(const Json& step, std::string_view pattern) {
  const std::string* const type = text_of(member(step, "type"));
  const std::string* const behavior = text_of(member(step, "behavior"));
  const Json* const pattern_object = member(step, "pattern");
  const std::string* const regex =
      pattern_object == nullptr ? nullptr : text_of(member(*pattern_object, "Regex"));
  return type != nullptr && *type == "Split" && behavior != nullptr && *behavior == "Isolated" &&
         !is_true(member(step, "invert")) && regex != nullptr && unescaped(*regex) == pattern;
}

bool is_byte_level(const Json& step) {
  const std::string* const type = text_of(member(step, "type"));
  return type != nullptr && *type == "ByteLevel" && !is_true(member(step, "add_prefix_space")) &&
         !is_true(member(step, "use_regex"));
}

// The name, in GGUF's terms, of the pre-tokenizer.
Result<std::string> read_pre_tokenizer(const Json& root) {
  const Json* const pre = member(root, "pre_tokenizer");
  const Json* const steps = pre == nullptr ? nullptr : member(*pre, "pretokenizers");
  if (steps != nullptr && steps->is_array() && steps->size() == 4 &&
      is_split((*steps)[0], kDigitsPattern) && is_split((*steps)[1], kIdeographPattern) &&
      is_split((*steps)[2], kWordPattern) && is_byte_level((*steps)[3])) {
    return std::string("deepseek-v3");
  }
  return unimplemented("tokenizer.json: pre_tokenizer is none of the known ones");
}

Status check_normalizer(const Json& root) {
  const Json* const normalizer = member(root, "normalizer");
  if (normalizer == nullptr) return {};
  const Json* const steps = member(*normalizer, "normalizers");
  if (steps != nullptr && steps->is_array() && steps->empty()) return {};
  return unimplemented("tokenizer.json: a normalizer is not supported");
}

Status check_model(const Json& model) {
  const std::string* const type = text_of(member(model, "type"));
  if (type == nullptr || *type != "BPE") {
    return unimplemented("tokenizer.json: model.type is not BPE");
  }
  for (const char* flag : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    if (is_true(member(model, flag))) {
      return unimplemented(str_cat("tokenizer.json: model.", flag, " is not supported"));
    }
  }
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const Json* const value = member(model, key);
    const std::string* const text = text_of(value);
    if (value != nullptr && (text == nullptr || !text->empty())) {
      return unimplemented(str_cat("tokenizer.json: model.", key, " is not supported"));
    }
  }
  return {};
}

// Where a token of this id goes; the id is checked before it sizes anything.
Result<size_t> read_id(const Json* value, const char* where) {
  if (value == nullptr || !value->is_number_unsigned() ||
      value->get<uint64_t>() >= static_cast<uint64_t>(kVocabMax)) {
    return invalid_argument(
        str_cat("tokenizer.json: an id in ", where, " is not an integer below ", kVocabMax));
  }
  return static_cast<size_t>(value->get<uint64_t>());
}

void put_token(VocabularySource& source, size_t id, std::string_view text, int32_t type) {
  if (id >= source.tokens.size()) {
    source.tokens.resize(id + 1);
    source.token_types.resize(id + 1, 0);
  }
  source.tokens[id] = text;
  source.token_types[id] = type;
}

Status read_hf_vocabulary(const Json& root, const Json& model, VocabularySource& source) {
  const Json* const vocab = member(model, "vocab");
  TANDEM_REQUIRE(
      vocab != nullptr && vocab->is_object(), "tokenizer.json: model.vocab is not an object");
  for (const auto& [text, value] : vocab->items()) {
    TANDEM_TRY_ASSIGN(const size_t id, read_id(&value, "model.vocab"));
    TANDEM_REQUIRE(
        id >= source.tokens.size() || source.token_types[id] == 0,
        str_cat("tokenizer.json: model.vocab has two tokens of id ", id));
    put_token(source, id, text, 1);
  }
  const Json* const added = member(root, "added_tokens");
  if (added != nullptr) {
    TANDEM_REQUIRE(added->is_array(), "tokenizer.json: added_tokens is not an array");
    for (const Json& token : *added) {
      TANDEM_TRY_ASSIGN(const size_t id, read_id(member(token, "id"), "added_tokens"));
      const std::string* const content = text_of(member(token, "content"));
      TANDEM_REQUIRE(
          content != nullptr && !content->empty(),
          str_cat("tokenizer.json: added token ", id, " has no content"));
      TANDEM_REQUIRE(
          id >= source.tokens.size() || source.token_types[id] == 0 ||
              source.tokens[id] == *content,
          str_cat("tokenizer.json: added token ", id, " has another text in the vocabulary"));
      for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
        if (is_true(member(token, flag))) {
          return unimplemented(
              str_cat("tokenizer.json: added token ", id, ": ", flag, " is not supported"));
        }
      }
      put_token(source, id, *content, 3);
    }
  }
  for (size_t id = 0; id < source.tokens.size(); ++id) {
    TANDEM_REQUIRE(
        source.token_types[id] != 0,
        str_cat("tokenizer.json: no token has id ", id, " of ", source.tokens.size()));
  }
  return {};
}

// Files write a merge as "left right" or as ["left", "right"]; the latter are joined in `joined`.
Status read_hf_merges(
    const Json& model, VocabularySource& source, std::vector<std::string>& joined) {
  const Json* const merges = member(model, "merges");
  TANDEM_REQUIRE(
      merges != nullptr && merges->is_array(), "tokenizer.json: model.merges is not an array");
  TANDEM_REQUIRE(
      merges->size() <= static_cast<size_t>(kMergesMax),
      str_cat("tokenizer.json: ", merges->size(), " merges, at most ", kMergesMax));
  joined.reserve(merges->size());  // views into it must stay
  source.merges.reserve(merges->size());
  for (const Json& merge : *merges) {
    const bool is_pair =
        merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string();
    TANDEM_REQUIRE(
        is_pair || merge.is_string(),
        str_cat("tokenizer.json: merge ", source.merges.size(), " is neither a text nor a pair"));
    if (is_pair) {
      joined.push_back(*text_of(&merge[0]) + " " + *text_of(&merge[1]));
      source.merges.emplace_back(joined.back());
    } else {
      source.merges.emplace_back(*text_of(&merge));
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::from_hf_json(std::string_view json) {
  TANDEM_REQUIRE(
      json.size() <= static_cast<size_t>(kTokenizerJsonBytesMax),
      str_cat("tokenizer.json has ", json.size(), " bytes, at most ", kTokenizerJsonBytesMax));
  TANDEM_REQUIRE(
      json_nesting(json) <= kTokenizerJsonDepthMax,
      str_cat("tokenizer.json is nested deeper than ", kTokenizerJsonDepthMax));
  const Json root = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  TANDEM_REQUIRE(root.is_object(), "tokenizer.json is not a JSON object");
  const Json* const model = member(root, "model");
  TANDEM_REQUIRE(model != nullptr, "tokenizer.json: model is missing");
  TANDEM_TRY(check_model(*model));
  TANDEM_TRY(check_normalizer(root));
  VocabularySource source;
  std::vector<std::string> joined;
  TANDEM_TRY_ASSIGN(source.pre, read_pre_tokenizer(root));
  TANDEM_TRY(read_hf_vocabulary(root, *model, source));
  TANDEM_TRY(read_hf_merges(*model, source, joined));
  return create(source);
}

}  // namespace tandem
