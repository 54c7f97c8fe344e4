#include "coordinator/tokenizer/merges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/random.h"

namespace tandem {
namespace {

using Rules = std::map<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>>;  // rank, merged

std::array<int32_t, 256> identity_bytes() {
  std::array<int32_t, 256> ids;
  for (int32_t i = 0; i < 256; ++i) ids[static_cast<size_t>(i)] = i;
  return ids;
}

// The definition, word for word.
std::vector<int32_t> merge_plainly(const Rules& rules, std::string_view piece) {
  std::vector<int32_t> ids;
  for (const char c : piece) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best_at = ids.size();
    std::pair<int32_t, int32_t> best{MergeTable::kNoMerge, 0};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rule = rules.find({ids[i], ids[i + 1]});
      if (rule != rules.end() && rule->second.first < best.first) {
        best_at = i;
        best = rule->second;
      }
    }
    if (best_at == ids.size()) return ids;
    ids[best_at] = best.second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best_at) + 1);
  }
}

// Random rules over a four-letter alphabet, so that long merges and ties are common.
struct RandomRules {
  explicit RandomRules(Rng& rng) : table(200) {
    std::vector<int32_t> symbols{'a', 'b', 'c', 'd'};
    const auto pick = [&] { return symbols[(rng.next() >> 32) % symbols.size()]; };
    for (int32_t rank = 0; rank < 200;) {
      const std::pair<int32_t, int32_t> pair{pick(), pick()};
      const int32_t merged = 256 + rank;
      const bool is_new = rules.try_emplace(pair, rank, merged).second;
      EXPECT_EQ(table.add(pair.first, pair.second, merged), is_new);
      if (!is_new) continue;
      symbols.push_back(merged);
      ++rank;
    }
    table.set_bytes(identity_bytes());
  }
  Rules rules;
  MergeTable table;
};

std::string random_text(Rng& rng, size_t num_bytes) {
  std::string text;
  while (text.size() < num_bytes) text += static_cast<char>('a' + (rng.next() >> 32) % 4);
  return text;
}

TEST(MergeTableTest, FindsEveryPairAndNoOther) {
  MergeTable table(3);
  EXPECT_TRUE(table.add(1, 2, 10));
  EXPECT_TRUE(table.add(2, 1, 11));
  const int32_t last = static_cast<int32_t>(kVocabMax) - 1;
  EXPECT_EQ(table.rank(last, last), MergeTable::kNoMerge);  // all bits set, as an empty slot
  EXPECT_TRUE(table.add(last, last, 12));
  EXPECT_EQ(table.rank(1, 2), 0);
  EXPECT_EQ(table.rank(2, 1), 1);
  EXPECT_EQ(table.rank(last, last), 2);
  EXPECT_EQ(table.merged(2), 12);
  EXPECT_EQ(table.rank(1, 1), MergeTable::kNoMerge);
  EXPECT_FALSE(table.add(1, 2, 13));
  EXPECT_EQ(table.size(), 3u);
}

TEST(MergeTableTest, KnowsBytesAndTheirPairs) {
  MergeTable table(1);
  ASSERT_TRUE(table.add(300, 301, 302));
  EXPECT_FALSE(table.has_bytes());
  std::array<int32_t, 256> byte_ids = identity_bytes();
  byte_ids[0x00] = 300;
  byte_ids[0xFF] = 301;
  table.set_bytes(byte_ids);
  EXPECT_TRUE(table.has_bytes());
  EXPECT_EQ(table.byte_id(0xFF), 301);
  EXPECT_EQ(table.byte_rank(0x00, 0xFF), 0);
  EXPECT_EQ(table.byte_rank(0xFF, 0x00), MergeTable::kNoMerge);
}

TEST(MergeTableTest, IsEmptyByDefault) {
  EXPECT_EQ(MergeTable().rank(0, 0), MergeTable::kNoMerge);
}

TEST(PieceMergerTest, MergesTheLeftmostOfEqualPairs) {
  MergeTable table(1);
  ASSERT_TRUE(table.add('a', 'a', 256));
  table.set_bytes(identity_bytes());
  PieceMerger merger(table);
  std::vector<int32_t> ids;
  merger.merge("aaa", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{256, 'a'}));
}

TEST(PieceMergerTest, MatchesTheDefinitionAtEveryLength) {
  Rng rng(3);
  for (int round = 0; round < 20; ++round) {
    const RandomRules random(rng);
    PieceMerger merger(random.table);
    // Around the length at which the scan gives way to the heap, and short ones.
    for (const size_t num_bytes : {0, 1, 2, 3, 17, 60, 255, 256, 257, 300, 900}) {
      SCOPED_TRACE(::testing::Message() << "round=" << round << " num_bytes=" << num_bytes);
      const std::string text = random_text(rng, num_bytes);
      std::vector<int32_t> ids{7};
      merger.merge(text, ids);
      std::vector<int32_t> expected = merge_plainly(random.rules, text);
      expected.insert(expected.begin(), 7);
      ASSERT_EQ(ids, expected);
    }
  }
}

}  // namespace
}  // namespace tandem
