#include "coordinator/tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/coordinator/tokenizer/vocabularies.h"

namespace tandem::test {
namespace {

TEST(StreamDecoderTest, HoldsBackAnIncompleteCharacter) {
  const Vocabulary vocabulary;
  StreamDecoder decoder(Tokenizer::create(vocabulary.source()).value());
  EXPECT_EQ(decoder.push(0xE4), "");
  EXPECT_EQ(decoder.push(0xBD), "");
  EXPECT_EQ(decoder.push(0xA0), "你");
  EXPECT_EQ(decoder.push(0xF0), "");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.push('a'), "a");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, B011ReplacesAStrayContinuationByte) {
  const Vocabulary vocabulary;
  const auto tokenizer = Tokenizer::create(vocabulary.source()).value();
  StreamDecoder bad(tokenizer);
  StreamDecoder good(tokenizer);
  EXPECT_EQ(bad.push('a'), "a");
  EXPECT_EQ(good.push(0xC3), "");
  EXPECT_EQ(bad.push(0x80), "\uFFFD");
  EXPECT_EQ(good.push(0xA9), "é");
  EXPECT_EQ(bad.push('b'), "b");
}

TEST(StreamDecoderTest, IgnoresIdsThatDoNotExist) {
  const Vocabulary vocabulary;
  StreamDecoder decoder(Tokenizer::create(vocabulary.source()).value());
  EXPECT_EQ(decoder.push(-1), "");
  EXPECT_EQ(decoder.push(256), "");
  EXPECT_EQ(decoder.push(INT32_MAX), "");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(StreamDecoderTest, SkipsSpecialTokensOnRequest) {
  const auto tokenizer = nano_tokenizer();
  const int32_t id = tokenizer->special_id("</think>").value();
  EXPECT_EQ(StreamDecoder(tokenizer, /*skip_special=*/true).push(id), "");
  EXPECT_EQ(StreamDecoder(tokenizer, /*skip_special=*/false).push(id), "</think>");
}

TEST(StreamDecoderTest, JoinedOutputIsTheRepairedDecode) {
  const auto tokenizer = nano_tokenizer();
  Rng rng(21);
  for (int round = 0; round < 500; ++round) {
    std::vector<int32_t> ids;
    for (int i = 0; i < 40; ++i) {
      // Half of them single bytes and parts of characters, which the low ids are.
      const uint64_t pick = rng.next() >> 32;
      const auto range = pick % 2 == 0 ? 600 : static_cast<uint64_t>(tokenizer->size());
      ids.push_back(static_cast<int32_t>(pick / 2 % range));
    }
    for (const bool skip_special : {false, true}) {
      std::string expected;
      Utf8Repair repair;
      repair.push(tokenizer->decode(ids, skip_special), expected);
      repair.finish(expected);
      StreamDecoder decoder(tokenizer, skip_special);
      std::string joined;
      for (const int32_t id : ids) {
        decoder.push(id, joined);
        ASSERT_FALSE(find_invalid_utf8(joined).has_value());
      }
      joined += decoder.finish();
      ASSERT_EQ(joined, expected);
    }
  }
}

}  // namespace
}  // namespace tandem::test
