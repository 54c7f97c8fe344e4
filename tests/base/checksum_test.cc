#include "base/checksum.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>

#include "tests/support/memory_stream.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(ChecksumTest, IsXxh3OfTheBytesWhateverTheSplit) {
  Checksum empty;
  EXPECT_EQ(empty.value(), 0x2D06800538D394C2ULL);  // XXH3_64bits of nothing, with seed 0
  Checksum whole;
  whole.add(bytes("a saved session"));
  Checksum parts;
  parts.add(bytes("a saved"));
  parts.add(bytes(""));
  parts.add(bytes(" session"));
  EXPECT_EQ(parts.value(), whole.value());
  EXPECT_NE(whole.value(), empty.value());
}

TEST(ChecksumTest, VerifiesWhatWasWrittenAndLeavesTheRest) {
  test::MemoryStream stream;
  ChecksumSink sink(stream);
  ASSERT_OK(sink.write(bytes("rows")));
  ASSERT_OK(sink.finish());
  ASSERT_OK(stream.write(bytes("more")));
  ChecksumSource source(stream);
  std::array<std::byte, 4> read{};
  ASSERT_OK(source.read(read));
  EXPECT_OK(source.verify());
  EXPECT_EQ(stream.bytes.size() - stream.position, 4u);
}

TEST(ChecksumTest, FindsDamageAndACutEnd) {
  for (const size_t byte : {0, 3, 4, 11}) {
    test::MemoryStream stream;
    ChecksumSink sink(stream);
    ASSERT_OK(sink.write(bytes("rows")));
    ASSERT_OK(sink.finish());
    stream.bytes[byte] ^= std::byte{1};
    ChecksumSource source(stream);
    std::array<std::byte, 4> read{};
    ASSERT_OK(source.read(read));
    EXPECT_ERROR(source.verify(), StatusCode::kDataLoss, "checksum");
  }
  test::MemoryStream cut;
  ChecksumSink sink(cut);
  ASSERT_OK(sink.finish());
  cut.bytes.resize(7);
  ChecksumSource source(cut);
  EXPECT_ERROR(source.verify(), StatusCode::kDataLoss, "cut short");
}

}  // namespace
}  // namespace tandem
