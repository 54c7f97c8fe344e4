#include "coordinator/tokenizer/gguf_vocabulary.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "model/gguf/gguf_writer.h"
#include "tests/coordinator/tokenizer/vocabularies.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

// What a file without tensors says about its tokenizer.
struct GgufKeys {
  std::string model = "gpt2";
  Vocabulary vocabulary;
  std::vector<float> scores;

  Result<std::shared_ptr<const Tokenizer>> load() const {
    GgufWriter writer;
    if (!model.empty()) writer.set_string("tokenizer.ggml.model", model);
    if (!vocabulary.pre.empty()) writer.set_string("tokenizer.ggml.pre", vocabulary.pre);
    const std::span<const std::string> tokens = vocabulary.tokens;
    if (!tokens.empty()) writer.set_string_array("tokenizer.ggml.tokens", tokens);
    writer.set_string_array(
        "tokenizer.ggml.merges", std::span<const std::string>(vocabulary.merges));
    if (!vocabulary.token_types.empty()) {
      writer.set_i32_array("tokenizer.ggml.token_type", vocabulary.token_types);
    }
    if (!scores.empty()) writer.set_f32_array("tokenizer.ggml.scores", scores);
    const std::string bytes = writer.header().value();
    const GgufFile file =
        GgufFile::parse(std::as_bytes(std::span<const char>(bytes)), "some.gguf").value();
    return tokenizer_from_gguf(file);  // the file is gone when the result is used
  }
};

TEST(GgufVocabularyTest, NanoFileEqualsItsTokenizerJson) {
  const auto file = GgufFile::open(repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(file);
  const auto result = tokenizer_from_gguf(*file);
  ASSERT_OK(result);
  const Tokenizer& tokenizer = **result;
  const auto expected = nano_tokenizer();
  ASSERT_EQ(tokenizer.size(), expected->size());
  std::string all;
  for (int32_t id = 0; id < tokenizer.size(); ++id) {
    ASSERT_EQ(tokenizer.token_bytes(id), expected->token_bytes(id)) << id;
    ASSERT_EQ(tokenizer.is_special(id), expected->is_special(id)) << id;
    if (!find_invalid_utf8(tokenizer.token_bytes(id)).has_value()) all += tokenizer.token_bytes(id);
  }
  EXPECT_EQ(encode_raw(tokenizer, all), encode_raw(*expected, all));
}

TEST(GgufVocabularyTest, ReadsTypesAndOutlivesTheFile) {
  GgufKeys keys;
  const int32_t ab = keys.vocabulary.merge("a", "b");
  const int32_t eos = keys.vocabulary.add("<eos>", 3);
  const auto result = keys.load();
  ASSERT_OK(result);
  EXPECT_EQ(encode_raw(**result, "ab<eos>"), (std::vector<int32_t>{ab, eos}));
}

TEST(GgufVocabularyTest, WorksWithoutTypes) {
  GgufKeys keys;
  const int32_t ab = keys.vocabulary.merge("a", "b");
  const int32_t eos = keys.vocabulary.add("<eos>");
  keys.vocabulary.token_types.clear();
  const auto result = keys.load();
  ASSERT_OK(result);
  EXPECT_EQ(encode_raw(**result, "ab<eos>"), (std::vector<int32_t>{ab, eos}));
}

TEST(GgufVocabularyTest, RefusesMissingKeys) {
  GgufKeys keys;
  keys.model = "";
  EXPECT_ERROR(keys.load(), StatusCode::kNotFound, "tokenizer.ggml.model");
  keys = {};
  keys.vocabulary.pre = "";
  EXPECT_ERROR(keys.load(), StatusCode::kNotFound, "tokenizer.ggml.pre");
  keys = {};
  keys.vocabulary.tokens.clear();
  EXPECT_ERROR(keys.load(), StatusCode::kNotFound, "tokenizer.ggml.tokens");
}

TEST(GgufVocabularyTest, RefusesOtherModels) {
  GgufKeys keys;
  keys.model = "llama";
  EXPECT_ERROR(
      keys.load(), StatusCode::kUnimplemented, "some.gguf: tokenizer.ggml.model is \"llama\"");
}

TEST(GgufVocabularyTest, B007RefusesArraysOfDifferentLengths) {
  GgufKeys keys;
  keys.vocabulary.token_types.pop_back();
  EXPECT_ERROR(
      keys.load(), StatusCode::kInvalidArgument, "has 255 entries, the vocabulary has 256");
  keys = {};
  keys.scores.assign(3, 0.0f);
  EXPECT_ERROR(keys.load(), StatusCode::kInvalidArgument, "has 3 entries, the vocabulary has 256");
}

TEST(GgufVocabularyTest, NamesTheFileInVocabularyErrors) {
  GgufKeys keys;
  keys.vocabulary.token_types[7] = 1 << 30;
  EXPECT_ERROR(
      keys.load(), StatusCode::kInvalidArgument, "some.gguf: vocabulary: token 7 has type");
  keys = {};
  keys.vocabulary.pre = "glm4";
  EXPECT_ERROR(keys.load(), StatusCode::kUnimplemented, "some.gguf: vocabulary: pre-tokenizer");
}

}  // namespace
}  // namespace tandem::test
