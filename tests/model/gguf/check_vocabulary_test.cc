#include "model/gguf/check_vocabulary.h"

#include <gtest/gtest.h>

#include "model/gguf/gguf_writer.h"
#include "tests/model/gguf/header_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr auto kInvalid = StatusCode::kInvalidArgument;

std::vector<std::string> tokens(size_t count) {
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) texts[i] = str_cat("t", i);
  return texts;
}

Status check(const GgufWriter& writer, uint64_t vocab_size) {
  const auto header = writer.header();
  if (!header.ok()) return header.status();
  const auto file = GgufFile::parse(test::bytes_of(*header), "x.gguf");
  if (!file.ok()) return file.status();
  return check_vocabulary(*file, vocab_size);
}

TEST(CheckVocabularyTest, AcceptsTheBundledModel) {
  const auto file = GgufFile::open(test::repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(file);
  EXPECT_OK(check_vocabulary(*file, 8192));
}

TEST(CheckVocabularyTest, B004RefusesArraysOfAnotherElementType) {
  for (const char* key : {"tokenizer.ggml.scores", "tokenizer.ggml.token_type"}) {
    GgufWriter writer;
    writer.set_string_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens(64)));
    writer.set_u8_array(key, std::vector<uint8_t>(64, 1));
    const Status status = check(writer, 64);
    EXPECT_ERROR(status, kInvalid, key);
    EXPECT_ERROR(status, kInvalid, "expected array of");
    EXPECT_ERROR(status, kInvalid, "found array of u8");
  }
}

TEST(CheckVocabularyTest, B005KeepsByteLikeTokensAsPlainText) {
  GgufWriter writer;
  const std::vector<std::string> texts = {"<0x-1>", "<0xZZ>", "<0x0A>"};
  writer.set_string_array("tokenizer.ggml.tokens", std::span<const std::string>(texts));
  writer.set_i32_array("tokenizer.ggml.token_type", std::vector<int32_t>(3, 6));
  const auto header = writer.header();
  ASSERT_OK(header);
  const auto file = GgufFile::parse(test::bytes_of(*header), "x.gguf");
  ASSERT_OK(file);
  EXPECT_OK(check_vocabulary(*file, 3));
  const auto read = file->get_string_array("tokenizer.ggml.tokens");
  ASSERT_OK(read);
  for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ((*read)[i], texts[i]);
}

TEST(CheckVocabularyTest, B007RefusesAShortTokenArrayWithBothNumbers) {
  GgufWriter writer;
  writer.set_string_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens(1000)));
  const Status status = check(writer, 129280);
  EXPECT_ERROR(status, kInvalid, "x.gguf: key tokenizer.ggml.tokens has 1000 entries");
  EXPECT_ERROR(status, kInvalid, "the vocabulary has 129280");
}

TEST(CheckVocabularyTest, B007ChecksScoresTypesAndMergesToo) {
  const auto with = [](auto&& extra) {
    GgufWriter writer;
    writer.set_string_array("tokenizer.ggml.tokens", std::span<const std::string>(tokens(8)));
    extra(writer);
    return check(writer, 8);
  };
  EXPECT_ERROR(
      with([](GgufWriter& w) { w.set_f32_array("tokenizer.ggml.scores", std::vector<float>(7)); }),
      kInvalid, "tokenizer.ggml.scores has 7 entries");
  EXPECT_ERROR(
      with([](GgufWriter& w) {
        w.set_i32_array("tokenizer.ggml.token_type", std::vector<int32_t>(9));
      }),
      kInvalid, "tokenizer.ggml.token_type has 9 entries");
  EXPECT_ERROR(
      with([](GgufWriter& w) {
        w.set_string_array("tokenizer.ggml.merges", std::span<const std::string>(tokens(9)));
      }),
      kInvalid, "tokenizer.ggml.merges has 9 entries");
  EXPECT_ERROR(
      with([](GgufWriter& w) { w.set_u32("tokenizer.ggml.merges", 1); }), kInvalid,
      "expected an array of strings");
  EXPECT_OK(with([](GgufWriter& w) {
    w.set_f32_array("tokenizer.ggml.scores", std::vector<float>(8));
    w.set_i32_array("tokenizer.ggml.token_type", std::vector<int32_t>(8));
  }));
}

TEST(CheckVocabularyTest, NamesTheMissingTokens) {
  EXPECT_ERROR(check(GgufWriter(), 8), StatusCode::kNotFound, "tokenizer.ggml.tokens");
}

}  // namespace
}  // namespace tandem
