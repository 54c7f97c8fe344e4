#include "coordinator/engine/state_file.h"

#include <cstring>

#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr int64_t kContext = 100;
constexpr int64_t kVocab = 50;
const std::vector<int32_t> kTokens = {3, 1, 4, 1, 5, 9, 49, 0};

test::MemoryStream written() {
  test::MemoryStream stream;
  EXPECT_OK(write_state_header(stream, "0123abcd", kTokens));
  return stream;
}

Result<std::vector<int32_t>> read(test::MemoryStream stream, const char* model = "0123abcd") {
  stream.position = 0;
  return read_state_header(stream, model, kContext, kVocab);
}

template <class T>
test::MemoryStream with(size_t offset, T value) {
  test::MemoryStream stream = written();
  std::memcpy(stream.bytes.data() + offset, &value, sizeof(value));
  return stream;
}

// Offsets: magic 0, version 8, fingerprint bytes 12, fingerprint 16, count 24, tokens 32.

TEST(StateFileTest, ReadsWhatItWrote) {
  test::MemoryStream stream = written();
  const auto tokens = read_state_header(stream, "0123abcd", kContext, kVocab);
  ASSERT_OK(tokens);
  EXPECT_EQ(*tokens, kTokens);
  EXPECT_EQ(stream.position, stream.bytes.size());
}

TEST(StateFileTest, RefusesAFileCutAtAnyByte) {
  for (size_t size = 0; size < written().bytes.size(); ++size) {
    test::MemoryStream cut = written();
    cut.bytes.resize(size);
    EXPECT_ERROR(read(cut), StatusCode::kDataLoss, "") << size;
  }
}

TEST(StateFileTest, RefusesAnotherModel) {
  EXPECT_ERROR(read(written(), "0123abce"), StatusCode::kInvalidArgument, "another model");
  EXPECT_ERROR(read(written(), ""), StatusCode::kInvalidArgument, "another model");
}

TEST(StateFileTest, RefusesWhatIsNoSavedSession) {
  EXPECT_ERROR(read(with<char>(0, 'X')), StatusCode::kDataLoss, "not a saved session");
  EXPECT_ERROR(read(with<char>(7, 'X')), StatusCode::kDataLoss, "not a saved session");
  EXPECT_ERROR(read(with<uint32_t>(12, 65)), StatusCode::kDataLoss, "not a saved session");
  EXPECT_ERROR(read(with<uint32_t>(12, ~0u)), StatusCode::kDataLoss, "not a saved session");
}

TEST(StateFileTest, RefusesAnotherVersion) {
  EXPECT_ERROR(read(with<uint32_t>(8, 1)), StatusCode::kInvalidArgument, "version 1");
  EXPECT_ERROR(read(with<uint32_t>(8, 3)), StatusCode::kInvalidArgument, "version 3");
}

TEST(StateFileTest, BoundsTheTokenCountBeforeItSizesAnything) {
  EXPECT_ERROR(read(with<int64_t>(24, 0)), StatusCode::kDataLoss, "no tokens");
  EXPECT_ERROR(read(with<int64_t>(24, -1)), StatusCode::kDataLoss, "no tokens");
  EXPECT_ERROR(read(with<int64_t>(24, kContext)), StatusCode::kInvalidArgument, "context holds");
  EXPECT_ERROR(read(with<int64_t>(24, INT64_MAX)), StatusCode::kInvalidArgument, "context holds");
  EXPECT_ERROR(read(with<int64_t>(24, 9)), StatusCode::kDataLoss, "cut short");
}

TEST(StateFileTest, RefusesTokensOutsideTheVocabulary) {
  EXPECT_ERROR(read(with<int32_t>(32, 50)), StatusCode::kDataLoss, "token 50");
  EXPECT_ERROR(read(with<int32_t>(36, -1)), StatusCode::kDataLoss, "token -1");
}

}  // namespace
}  // namespace tandem
