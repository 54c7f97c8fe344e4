#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "tests/coordinator/tokenizer/vocabularies.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

using Json = nlohmann::json;

// A whole small file: 256 bytes, one merge, the nano model's pre-tokenizer.
Json small_json() {
  static const Json kNano = Json::parse(read_text(golden_path("tokenizer/nano-tokenizer.json")));
  Json json;
  json["pre_tokenizer"] = kNano["pre_tokenizer"];
  json["added_tokens"] = Json::array({{{"id", 257}, {"content", "<s>"}, {"special", false}}});
  json["model"] = {{"type", "BPE"}, {"merges", Json::array({{"a", "b"}})}};
  const Vocabulary vocabulary;
  for (size_t id = 0; id < 256; ++id) json["model"]["vocab"][vocabulary.tokens[id]] = id;
  json["model"]["vocab"]["ab"] = 256;
  return json;
}

void expect_refused(const Json& json, StatusCode code, std::string_view message) {
  EXPECT_ERROR(Tokenizer::from_hf_json(json.dump()), code, message);
}

TEST(HfTokenizerJsonTest, ReadsBothSpellingsOfMerges) {
  Json json = small_json();
  for (const Json& merge : {Json("a b"), Json({"a", "b"})}) {
    json["model"]["merges"] = Json::array({merge});
    const auto result = Tokenizer::from_hf_json(json.dump());
    ASSERT_OK(result);
    EXPECT_EQ(encode_text(**result, "ab"), std::vector<int32_t>{256});
  }
}

TEST(HfTokenizerJsonTest, TreatsEveryAddedTokenAsSpecial) {
  const auto result = Tokenizer::from_hf_json(small_json().dump());
  ASSERT_OK(result);
  EXPECT_TRUE((*result)->is_special(257));
  EXPECT_EQ(encode_raw(**result, "<s>"), std::vector<int32_t>{257});
}

TEST(HfTokenizerJsonTest, ReadsRegexEscapesEitherWay) {
  Json json = small_json();
  auto& regex = json["pre_tokenizer"]["pretokenizers"][2]["pattern"]["Regex"];
  auto text = regex.get<std::string>();
  for (const auto& [escape, plain] : {std::pair{"\\r", "\r"}, {"\\n", "\n"}, {"\\\"", "\""}}) {
    for (size_t at; (at = text.find(escape)) != std::string::npos;) text.replace(at, 2, plain);
  }
  ASSERT_NE(text, regex.get<std::string>());
  regex = text;
  EXPECT_OK(Tokenizer::from_hf_json(json.dump()));
}

TEST(HfTokenizerJsonTest, RefusesWhatIsNoObject) {
  for (const char* text : {"", "[]", "3", "{", "{\"model\":", "\"\xFF\"", "nul", "{}x"}) {
    EXPECT_ERROR(
        Tokenizer::from_hf_json(text), StatusCode::kInvalidArgument, "is not a JSON object");
  }
  EXPECT_ERROR(Tokenizer::from_hf_json("{}"), StatusCode::kInvalidArgument, "model is missing");
}

TEST(HfTokenizerJsonTest, RefusesDeepNesting) {
  const std::string deep(1'000'000, '[');
  EXPECT_ERROR(
      Tokenizer::from_hf_json(deep), StatusCode::kInvalidArgument, "nested deeper than 16");
}

TEST(HfTokenizerJsonTest, RefusesAFileAboveItsLimit) {
  const std::string big(static_cast<size_t>(kTokenizerJsonBytesMax) + 1, ' ');
  EXPECT_ERROR(Tokenizer::from_hf_json(big), StatusCode::kInvalidArgument, "67108865 bytes");
}

TEST(HfTokenizerJsonTest, RefusesOtherModels) {
  const auto refuses = [](const char* key, const Json& value) {
    Json json = small_json();
    json["model"][key] = value;
    expect_refused(json, StatusCode::kUnimplemented, std::string("model.") + key);
  };
  refuses("type", "WordPiece");
  refuses("type", 7);
  refuses("dropout", 0.1);
  refuses("unk_token", "<unk>");
  refuses("continuing_subword_prefix", "##");
  refuses("byte_fallback", true);
  refuses("ignore_merges", true);
  refuses("fuse_unk", true);
}

TEST(HfTokenizerJsonTest, RefusesOtherNormalizersAndPreTokenizers) {
  Json json = small_json();
  json["normalizer"] = {{"type", "Sequence"}, {"normalizers", Json::array()}};
  EXPECT_OK(Tokenizer::from_hf_json(json.dump()));
  json["normalizer"] = {{"type", "NFC"}};
  expect_refused(json, StatusCode::kUnimplemented, "normalizer");
  for (const char* edit : {"behavior", "pattern", "type", "whole"}) {
    json = small_json();
    auto& pre = json["pre_tokenizer"];
    if (std::string_view(edit) == "whole") {
      pre = nullptr;
    } else {
      pre["pretokenizers"][1][edit] = "Removed";
    }
    expect_refused(json, StatusCode::kUnimplemented, "pre_tokenizer is none of the known ones");
  }
}

TEST(HfTokenizerJsonTest, RefusesBadVocabularies) {
  const auto refuses = [](auto change, std::string_view message) {
    Json json = small_json();
    change(json);
    expect_refused(json, StatusCode::kInvalidArgument, message);
  };
  refuses([](Json& j) { j["model"]["vocab"] = 3; }, "model.vocab is not an object");
  refuses([](Json& j) { j["model"]["vocab"]["ab"] = -1; }, "an id in model.vocab");
  refuses([](Json& j) { j["model"]["vocab"]["ab"] = 1.5; }, "an id in model.vocab");
  refuses([](Json& j) { j["model"]["vocab"]["ab"] = 1 << 20; }, "an id in model.vocab");
  refuses([](Json& j) { j["model"]["vocab"]["ab"] = 97; }, "two tokens of id 97");
  refuses([](Json& j) { j["model"]["vocab"]["ab"] = 300; }, "no token has id 256");
  refuses([](Json& j) { j["added_tokens"] = "x"; }, "added_tokens is not an array");
  refuses([](Json& j) { j["added_tokens"][0] = 4; }, "an id in added_tokens");
  refuses([](Json& j) { j["added_tokens"][0]["id"] = "x"; }, "an id in added_tokens");
  refuses([](Json& j) { j["added_tokens"][0]["content"] = ""; }, "257 has no content");
  refuses([](Json& j) { j["added_tokens"][0]["id"] = 97; }, "97 has another text");
  refuses([](Json& j) { j["model"].erase("merges"); }, "merges is not an array");
  refuses([](Json& j) { j["model"]["merges"][0] = 4; }, "merge 0 is neither");
  refuses([](Json& j) { j["model"]["merges"][0] = {"a"}; }, "merge 0 is neither");
  refuses([](Json& j) { j["model"]["merges"][0] = {"a", 1}; }, "merge 0 is neither");
  refuses([](Json& j) { j["model"]["merges"][0] = {"a", "z"}; }, "its result is no token");
}

TEST(HfTokenizerJsonTest, RefusesAddedTokensThatChangeTheirSurroundings) {
  for (const char* flag : {"single_word", "lstrip", "rstrip"}) {
    Json json = small_json();
    json["added_tokens"][0][flag] = true;
    expect_refused(json, StatusCode::kUnimplemented, std::string("257: ") + flag);
  }
}

}  // namespace
}  // namespace tandem::test
