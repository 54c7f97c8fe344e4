#include "model/gguf/gguf_parser.h"

#include <gtest/gtest.h>

#include "base/limits.h"
#include "tests/model/gguf/header_bytes.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::HeaderBytes;

constexpr uint32_t kF32Id = 0;

void expect_refused(const HeaderBytes& header, const char* text) {
  const auto result = parse_gguf(header.bytes(), "x.gguf");
  EXPECT_ERROR(result, StatusCode::kInvalidArgument, text);
  EXPECT_TRUE(result.status().message().starts_with("x.gguf: ")) << result.status().message();
}

TEST(GgufParserTest, ReadsKeysAndTensors) {
  HeaderBytes header(2, 3);
  header.key("a", GgufType::kI16).put(int16_t{-5});
  header.key("b", GgufType::kString).text("text");
  header.key("c", GgufType::kArray).put(GgufType::kString).put(uint64_t{2}).text("x").text("");
  header.tensor("t", {4, 2}, kF32Id, 0).tensor("u", {32}, 8, 32).pad().data(96);
  const auto parsed = parse_gguf(header.bytes(), "x");
  ASSERT_OK(parsed);
  ASSERT_EQ(parsed->metadata.size(), 3U);
  EXPECT_EQ(parsed->metadata[0].second.as_i64(), -5);
  EXPECT_EQ(parsed->metadata[0].second.as_u64(), std::nullopt);
  EXPECT_EQ(parsed->metadata[1].second.text, "text");
  EXPECT_EQ(parsed->metadata[2].second.strings.size(), 2U);
  ASSERT_EQ(parsed->tensors.size(), 2U);
  EXPECT_EQ(parsed->tensors[0].bytes, 32U);
  EXPECT_EQ(parsed->tensors[1].dtype, DType::kQ8_0);
  EXPECT_EQ(parsed->tensors[1].bytes, 34U);
  EXPECT_EQ(parsed->tensors[1].data, header.bytes().data() + header.bytes().size() - 64);
}

TEST(GgufParserTest, B001RefusesAnEmptyKey) {
  HeaderBytes header(0, 1);
  header.text("").put(GgufType::kU8).put(uint8_t{0});
  ASSERT_EQ(header.str().size(), 37U);
  expect_refused(header, "metadata entry 0 has an empty key");
}

TEST(GgufParserTest, B002RefusesSizesThatOverflow) {
  HeaderBytes huge(1, 0);
  huge.tensor("t", {4, (1ULL << 42) + 1, 1ULL << 20}, kF32Id, 0).pad().data(64);
  expect_refused(huge, "tensor t: size overflows");
  HeaderBytes exact(1, 0);
  exact.tensor("t", {4, (1ULL << 42) + 1}, kF32Id, 0).pad().data(64);
  expect_refused(exact, "ends outside the file");

  HeaderBytes sum(3, 0);
  for (const char* name : {"a", "b", "c"}) sum.tensor(name, {(1ULL << 61) - 8}, kF32Id, 0);
  expect_refused(sum.pad().data(64), "size overflows");
}

TEST(GgufParserTest, B002RefusesOffsetsThatWrap) {
  HeaderBytes header(1, 0);
  header.tensor("t", {8}, kF32Id, ~0ULL - 31).pad().data(64);
  expect_refused(header, "ends outside the file");
  HeaderBytes odd(1, 0);
  odd.tensor("t", {8}, kF32Id, 8).pad().data(64);
  expect_refused(odd, "no multiple of 32");
}

TEST(GgufParserTest, RefusesAForeignOrTruncatedStart) {
  EXPECT_ERROR(parse_gguf({}, "x"), StatusCode::kInvalidArgument, "is no GGUF file");
  HeaderBytes other(0, 0);
  std::string text = other.str();
  text[0] = 'X';
  EXPECT_ERROR(parse_gguf(test::bytes_of(text), "x"), StatusCode::kInvalidArgument, "no GGUF file");
  expect_refused(HeaderBytes(0, 0, 2), "GGUF version 2");
  expect_refused(HeaderBytes(0, 0, 3U << 24), "big-endian");
}

TEST(GgufParserTest, RefusesEveryTruncation) {
  HeaderBytes header(1, 2);
  header.key("a", GgufType::kU32).put(uint32_t{7});
  header.key("b", GgufType::kArray).put(GgufType::kArray).put(uint64_t{1});
  header.put(GgufType::kString).put(uint64_t{1}).text("deep");
  header.tensor("t", {8}, kF32Id, 0).pad().data(32);
  ASSERT_OK(parse_gguf(header.bytes(), "x"));
  for (size_t size = 0; size < header.str().size(); ++size) {
    // A copy of exactly this size, so that a sanitizer sees a read past its end.
    const std::string cut = header.str().substr(0, size);
    EXPECT_FALSE(parse_gguf(test::bytes_of(cut), "x").ok()) << size << " bytes";
  }
}

TEST(GgufParserTest, RefusesClaimedCountsBeyondTheFile) {
  expect_refused(HeaderBytes(0, 60000), "claims 60000 keys, more than the file can hold");
  expect_refused(HeaderBytes(0, kGgufKeysMax + 1), "the limit is");
  expect_refused(HeaderBytes(kGgufTensorsMax + 1, 0), "the limit is");
  expect_refused(HeaderBytes(1000, 0), "claims 1000 tensors, more than the file can hold");
  HeaderBytes items(0, 1);
  items.key("k", GgufType::kArray).put(GgufType::kU64).put(uint64_t{1} << 23).data(64);
  expect_refused(items, "claims 8388608 items, more than the file can hold");
  HeaderBytes limit(0, 1);
  limit.key("k", GgufType::kArray).put(GgufType::kU8).put(kGgufArrayItemsMax + 1).data(64);
  expect_refused(limit, "the limit is 16777216");
  HeaderBytes text(0, 1);
  text.key("k", GgufType::kString).put(~0ULL).data(64);
  expect_refused(text, "a string value has 18446744073709551615 bytes");
}

TEST(GgufParserTest, BoundsNestedArrays) {
  const auto nested = [](int depth) {
    HeaderBytes header(0, 1);
    header.key("k", GgufType::kArray);
    for (int i = 1; i < depth; ++i) header.put(GgufType::kArray).put(uint64_t{1});
    header.put(GgufType::kU8).put(uint64_t{1}).put(uint8_t{9});
    return header;
  };
  EXPECT_OK(parse_gguf(nested(kGgufArrayDepthMax).bytes(), "x"));
  expect_refused(nested(kGgufArrayDepthMax + 1), "nests arrays deeper than 4 levels");
}

TEST(GgufParserTest, RefusesDuplicatesAndUnknownTypes) {
  HeaderBytes keys(0, 2);
  keys.key("k", GgufType::kU8).put(uint8_t{1}).key("k", GgufType::kU8).put(uint8_t{1});
  expect_refused(keys, "key k appears twice");
  HeaderBytes tensors(2, 0);
  tensors.tensor("t", {8}, kF32Id, 0).tensor("t", {8}, kF32Id, 32).pad().data(64);
  expect_refused(tensors, "tensor t appears twice");
  HeaderBytes type(1, 0);
  type.tensor("t", {8}, 13, 0).pad().data(64);
  expect_refused(type, "tensor t has unknown type id 13");
  HeaderBytes value(0, 1);
  value.text("k").put(uint32_t{13}).data(16);
  expect_refused(value, "key k has unknown value type 13");
  HeaderBytes flag(0, 1);
  flag.key("k", GgufType::kBool).put(uint8_t{2});
  expect_refused(flag, "boolean value 2");
}

TEST(GgufParserTest, RefusesBadTensorShapes) {
  HeaderBytes empty(1, 0);
  empty.text("").put(uint32_t{1}).put(uint64_t{8}).put(kF32Id).put(uint64_t{0}).pad().data(64);
  expect_refused(empty, "tensor 0 has an empty name");
  HeaderBytes none(1, 0);
  none.tensor("t", {}, kF32Id, 0).pad().data(64);
  expect_refused(none, "tensor t has 0 dimensions");
  HeaderBytes five(1, 0);
  five.tensor("t", {1, 1, 1, 1, 1}, kF32Id, 0).pad().data(64);
  expect_refused(five, "has 5 dimensions");
  HeaderBytes zero(1, 0);
  zero.tensor("t", {0}, kF32Id, 0).pad().data(64);
  expect_refused(zero, "dimension 0 is zero");
  HeaderBytes partial(1, 0);
  partial.tensor("t", {48}, 8, 0).pad().data(64);
  expect_refused(partial, "whole Q8_0 blocks");
}

TEST(GgufParserTest, FollowsTheAlignmentKey) {
  const auto aligned = [](auto value, GgufType type, size_t alignment) {
    HeaderBytes header(1, 1);
    header.key("general.alignment", type).put(value);
    header.tensor("t", {8}, kF32Id, 0).pad(alignment).data(32);
    return header;
  };
  const HeaderBytes good = aligned(uint32_t{4096}, GgufType::kU32, 4096);
  const auto parsed = parse_gguf(good.bytes(), "x");
  ASSERT_OK(parsed);
  EXPECT_EQ(parsed->data_offset, 4096U);
  expect_refused(aligned(uint32_t{0}, GgufType::kU32, 32), "general.alignment is 0");
  expect_refused(aligned(uint32_t{48}, GgufType::kU32, 32), "general.alignment is 48");
  expect_refused(
      aligned(uint64_t{1} << 40, GgufType::kU64, 32), "general.alignment is 1099511627776");
  expect_refused(aligned(1.0f, GgufType::kF32, 32), "expected an integer, found f32");
}

TEST(GgufParserTest, EscapesNamesInMessages) {
  HeaderBytes header(0, 2);
  header.key("\x1b[2J", GgufType::kU8)
      .put(uint8_t{1})
      .key("\x1b[2J", GgufType::kU8)
      .put(uint8_t{1});
  expect_refused(header, "key \\x1b[2J appears twice");
  EXPECT_EQ(printable(std::string(200, 'a')), std::string(128, 'a') + "...");
}

}  // namespace
}  // namespace tandem
