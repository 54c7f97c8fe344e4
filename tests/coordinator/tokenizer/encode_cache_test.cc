#include "coordinator/tokenizer/encode_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/coordinator/tokenizer/vocabularies.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

using Ids = std::vector<int32_t>;

class EncodeCacheTest : public ::testing::Test {
 protected:
  EncodeCacheTest() {
    Vocabulary vocabulary;
    (void)vocabulary.merge("a", "b");
    (void)vocabulary.add("<turn>", 3);
    tokenizer_ = Tokenizer::create(vocabulary.source()).value();
  }

  static Piece turn() { return {Piece::Kind::kControl, "<turn>"}; }
  static Piece text(std::string bytes) { return {Piece::Kind::kText, std::move(bytes)}; }
  /// A text that is long enough to be remembered; each `number` has its own.
  static Piece long_text(int number) {
    std::string bytes = std::to_string(number);
    while (bytes.size() < 1000) bytes += " abab";
    return text(bytes);
  }

  Ids plain(const std::vector<Piece>& pieces) const {
    Ids ids;
    EXPECT_OK(tokenizer_->encode(pieces, ids));
    return ids;
  }
  static Ids cached(EncodeCache& cache, const std::vector<Piece>& pieces) {
    Ids ids;
    EXPECT_OK(cache.encode(pieces, ids));
    return ids;
  }

  std::shared_ptr<const Tokenizer> tokenizer_;
};

TEST_F(EncodeCacheTest, GivesTheTokenizersIdsEveryTime) {
  EncodeCache cache(tokenizer_);
  const std::vector<Piece> pieces = {turn(),    long_text(1), turn(),       text("ab"), turn(),
                                     text("a"), text("b"),    long_text(2), turn()};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(cached(cache, pieces), plain(pieces)) << i;
  EXPECT_EQ(cache.stats().misses, 2);
  EXPECT_EQ(cache.stats().hits, 4);
}

TEST_F(EncodeCacheTest, TokenizesOnlyWhatAConversationAdds) {
  EncodeCache cache(tokenizer_);
  std::vector<Piece> pieces;
  for (int i = 0; i < 10; ++i) {
    pieces.push_back(turn());
    pieces.push_back(long_text(i));
    EXPECT_EQ(cached(cache, pieces), plain(pieces)) << i;
    EXPECT_EQ(cache.stats().misses, i + 1);
  }
}

TEST_F(EncodeCacheTest, TextThatIsSplitOtherwiseIsTheSameText) {
  EncodeCache cache(tokenizer_);
  const std::string whole = long_text(1).bytes;
  (void)cached(cache, {text(whole)});
  EXPECT_EQ(
      cached(cache, {text(whole.substr(0, 500)), text(whole.substr(500))}), plain({text(whole)}));
  EXPECT_EQ(cache.stats().hits, 1);
}

TEST_F(EncodeCacheTest, ForgetsTheLeastRecentlyUsedBeyondItsBytes) {
  const auto bytes_of_one = static_cast<int64_t>(
      long_text(1).bytes.size() + sizeof(int32_t) * plain({long_text(1)}).size());
  EncodeCache cache(tokenizer_, 2 * bytes_of_one);
  (void)cached(cache, {long_text(1)});
  (void)cached(cache, {long_text(2)});
  (void)cached(cache, {long_text(1)});  // used last
  (void)cached(cache, {long_text(3)});  // takes the place of 2
  EXPECT_EQ(cache.stats().num_texts, 2);
  EXPECT_LE(cache.stats().bytes, 2 * bytes_of_one);
  (void)cached(cache, {long_text(1)});
  EXPECT_EQ(cache.stats().hits, 2);
  EXPECT_EQ(cached(cache, {long_text(2)}), plain({long_text(2)}));
  EXPECT_EQ(cache.stats().misses, 4);
  EncodeCache none(tokenizer_, 0);
  EXPECT_EQ(cached(none, {long_text(1)}), plain({long_text(1)}));
  EXPECT_EQ(none.stats().num_texts, 0);
}

TEST_F(EncodeCacheTest, RefusesWhatTheTokenizerRefusesInItsWords) {
  EncodeCache cache(tokenizer_);
  for (const Piece& bad :
       {text(long_text(1).bytes + "\xff"), text("\xff"), Piece{Piece::Kind::kControl, "<none>"}}) {
    const std::vector<Piece> pieces = {turn(), bad, turn()};
    Ids ids = {7};
    const Status status = cache.encode(pieces, ids);
    Ids ignored;
    EXPECT_EQ(status.message(), tokenizer_->encode(pieces, ignored).message());
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(ids, Ids{7});
  }
  EXPECT_EQ(cache.stats().num_texts, 0);
}

TEST_F(EncodeCacheTest, ServesManyThreads) {
  const auto bytes_of_one = static_cast<int64_t>(
      long_text(1).bytes.size() + sizeof(int32_t) * plain({long_text(1)}).size());
  EncodeCache cache(tokenizer_, 3 * bytes_of_one);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::vector<Piece> pieces = {turn(), long_text((i + t) % 5), turn()};
        EXPECT_EQ(cached(cache, pieces), plain(pieces));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cache.stats().hits + cache.stats().misses, 800);
}

}  // namespace
}  // namespace tandem::test
