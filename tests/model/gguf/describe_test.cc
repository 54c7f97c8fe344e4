#include "model/gguf/describe.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/model/gguf/header_bytes.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::HeaderBytes;

HeaderBytes sample() {
  HeaderBytes header(2, 6);
  header.key("text", GgufType::kString).text("a\x1b[31m\xff \xe2\x96\x81");
  header.key("small", GgufType::kF32).put(1e-6f);
  header.key("negative", GgufType::kI8).put(int8_t{-5});
  header.key("flag", GgufType::kBool).put(uint8_t{1});
  header.key("numbers", GgufType::kArray).put(GgufType::kU16).put(uint64_t{9});
  for (uint16_t i = 0; i < 9; ++i) header.put(i);
  header.key("nested", GgufType::kArray).put(GgufType::kArray).put(uint64_t{1});
  header.put(GgufType::kString).put(uint64_t{1}).text("deep");
  header.tensor("first", {4, 2}, 0, 0).tensor("second", {32}, 8, 32).pad().data(96);
  return header;
}

TEST(DescribeTest, WritesTextWithEscapedAndShortenedValues) {
  const HeaderBytes header = sample();
  const auto file = GgufFile::parse(header.bytes(), "x.gguf");
  ASSERT_OK(file);
  const std::string text = describe_text(*file);
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_TRUE(has("file        x.gguf\n")) << text;
  EXPECT_TRUE(has("a\\x1b[31m\\xff \xe2\x96\x81\n")) << text;
  EXPECT_TRUE(has("f32              1e-06\n")) << text;
  EXPECT_TRUE(has("i8               -5\n")) << text;
  EXPECT_TRUE(has("bool             true\n")) << text;
  EXPECT_TRUE(has("array of u16     [0, 1, 2, 3, 4, 5, ... (9 items)]\n")) << text;
  EXPECT_TRUE(has("[[\"deep\"]]\n")) << text;
  EXPECT_TRUE(has("  first   F32       4 x 2 ")) << text;
  EXPECT_TRUE(has("parameters  40\n")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(describe_text(*file, {.tensors = false}).find("4 x 2"), std::string::npos);
}

TEST(DescribeTest, WritesJsonThatParses) {
  const HeaderBytes header = sample();
  const auto file = GgufFile::parse(header.bytes(), "x.gguf");
  ASSERT_OK(file);
  const auto json = nlohmann::json::parse(describe_json(*file));
  EXPECT_EQ(json["file"], "x.gguf");
  EXPECT_EQ(json["bytes"], header.str().size());
  EXPECT_EQ(json["parameters"], 40);
  EXPECT_EQ(json["metadata"]["text"]["value"], "a\x1b[31m\xef\xbf\xbd \xe2\x96\x81");
  EXPECT_EQ(json["metadata"]["negative"]["value"], -5);
  EXPECT_EQ(json["metadata"]["numbers"]["count"], 9);
  EXPECT_EQ(json["metadata"]["numbers"]["first"].size(), 6U);
  EXPECT_EQ(json["metadata"]["nested"]["first"][0]["first"][0], "deep");
  EXPECT_EQ(json["tensors"][1]["type"], "Q8_0");
  EXPECT_EQ(json["tensors"][0]["dims"], (std::vector<int>{4, 2}));
  EXPECT_EQ(json["types"]["Q8_0"]["bytes"], 34);
}

TEST(DescribeTest, DescribesTheBundledModel) {
  const auto file = GgufFile::open(test::repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(file);
  const auto json = nlohmann::json::parse(describe_json(*file));
  EXPECT_EQ(json["metadata"]["tokenizer.ggml.tokens"]["count"], 8192);
  EXPECT_EQ(json["types"]["Q4_K"]["tensors"], 18);
  uint64_t bytes = 0;
  for (const auto& [type, total] : json["types"].items()) bytes += total["bytes"].get<uint64_t>();
  EXPECT_LT(bytes, json["bytes"].get<uint64_t>());
  EXPECT_NE(
      describe_text(*file).find("<\xef\xbd\x9c"
                                "begin"),
      std::string::npos);
}

}  // namespace
}  // namespace tandem
