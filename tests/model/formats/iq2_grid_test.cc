#include "model/formats/iq2_grid.h"

#include <gtest/gtest.h>
#include <openssl/sha.h>

#include <string>

namespace tandem {
namespace {

template <class Table>
std::string sha256_of(const Table& table) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(table.data()), sizeof(table), digest);
  std::string text;
  for (const unsigned char byte : digest) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(Iq2GridTest, PackedWordsHaveThePublishedDigest) {
  EXPECT_EQ(
      sha256_of(kIq2XxsWords), "915952ebc4af8ddba8113583ca1316fc818843f7b825bbf1a25ae1c39bf0e16d");
}

TEST(Iq2GridTest, ExpandedGridHasThePublishedDigest) {
  EXPECT_EQ(
      sha256_of(kIq2XxsGrid), "05826b5d3e472a3a78f196be62ac78acf81df0f909626e12ab9fa2a5d490dd54");
}

TEST(Iq2GridTest, SignsAlwaysHaveEvenParity) {
  EXPECT_EQ(iq2_signs(0), 0x00);
  EXPECT_EQ(iq2_signs(1), 0x81);
  EXPECT_EQ(iq2_signs(3), 0x03);
  EXPECT_EQ(iq2_signs(127), 0xff);
  for (uint32_t index = 0; index < 128; ++index) {
    EXPECT_EQ(std::popcount(static_cast<unsigned>(iq2_signs(index))) % 2, 0);
    EXPECT_EQ(iq2_signs(index) & 127U, index);
  }
}

}  // namespace
}  // namespace tandem
