#include "coordinator/engine/step_plan.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/limits.h"
#include "base/random.h"

namespace tandem {
namespace {

/// Rows of each sequence, by its index.
std::vector<int64_t> rows_of(
    const std::vector<SequenceView>& sequences, int64_t max_rows, int64_t beside_decode = 128) {
  std::vector<int64_t> rows(sequences.size(), 0);
  for (const PlannedRows& part : plan_step(sequences, {max_rows, beside_decode})) {
    EXPECT_EQ(rows[part.sequence_idx], 0) << "a sequence stands twice";
    rows[part.sequence_idx] = part.num_rows;
  }
  return rows;
}
using Rows = std::vector<int64_t>;

TEST(StepPlanTest, PlansNothingForNoSequences) {
  EXPECT_TRUE(plan_step({}, {512, 128}).empty());
}

TEST(StepPlanTest, TakesAShortPromptWhole) {
  EXPECT_EQ(rows_of({{500, 0}}, 512), Rows{500});
  EXPECT_EQ(rows_of({{512, 0}}, 512), Rows{512});
  EXPECT_EQ(rows_of({{2, 0}}, 512), Rows{2});
}

TEST(StepPlanTest, CutsAPromptOnTheAbsoluteGrid) {
  EXPECT_EQ(rows_of({{513, 0}}, 512), Rows{512});
  EXPECT_EQ(rows_of({{5000, 100}}, 512), Rows{512 - 100});
  EXPECT_EQ(rows_of({{5000, 127}}, 512), Rows{512 - 127});
  EXPECT_EQ(rows_of({{5000, 128}}, 512), Rows{512});
  EXPECT_EQ(rows_of({{5000, 0}}, 200), Rows{128});
}

TEST(StepPlanTest, GivesEveryDecodingSequenceOneRow) {
  EXPECT_EQ(rows_of({{10, 9}, {1, 0}, {700, 699}}, 512), (Rows{1, 1, 1}));
}

TEST(StepPlanTest, KeepsPromptsShortBesideDecodingSequences) {
  EXPECT_EQ(rows_of({{5000, 0}, {10, 9}}, 512), (Rows{128, 1}));
  EXPECT_EQ(rows_of({{5000, 0}, {10, 9}}, 512, 256), (Rows{256, 1}));
  EXPECT_EQ(rows_of({{100, 0}, {10, 9}, {100, 0}}, 512), (Rows{100, 1, 28}));
}

TEST(StepPlanTest, GivesTheRestOfAStepToLaterPrompts) {
  EXPECT_EQ(rows_of({{100, 0}, {300, 0}, {50, 0}}, 512), (Rows{100, 300, 50}));
  EXPECT_EQ(rows_of({{100, 0}, {600, 0}, {50, 0}}, 512), (Rows{100, 384, 28}));
}

TEST(StepPlanTest, AlwaysMovesAPromptThatNoGridLineIsWithinReachOf) {
  EXPECT_EQ(rows_of({{5000, 0}}, 64), Rows{64});
  EXPECT_EQ(rows_of({{5000, 0}, {10, 9}}, 128), (Rows{127, 1}));
  EXPECT_EQ(rows_of({{5000, 127}, {10, 9}}, 128), (Rows{1, 1}));
}

TEST(StepPlanTest, NeverPlansMoreRowsThanAStepTakesNorThanThereAre) {
  Rng rng(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<SequenceView> sequences(1 + rng.next() % 6);
    for (SequenceView& sequence : sequences) {
      sequence.num_done = static_cast<int64_t>(rng.next() % 700);
      sequence.num_tokens = sequence.num_done + 1 + static_cast<int64_t>(rng.next() % 3) * 333;
    }
    const int64_t max_rows = 6 + static_cast<int64_t>(rng.next() % 600);
    const Rows rows = rows_of(sequences, max_rows);
    int64_t total = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const int64_t left = sequences[i].num_tokens - sequences[i].num_done;
      EXPECT_LE(rows[i], left);
      EXPECT_TRUE(left != 1 || rows[i] == 1);
      total += rows[i];
    }
    EXPECT_LE(total, max_rows);
    EXPECT_GE(total, 1);
  }
}

TEST(StepPlanTest, CutsDoNotDependOnWhatElseRuns) {
  // Alone and beside a decoding sequence, a prompt that starts on the grid is cut only on the grid.
  int64_t done = 0;
  while (done < 2000) {
    const Rows rows = rows_of({{2000, done}, {10, 9}}, 512);
    done += rows[0];
    EXPECT_TRUE(done % kChunkGridTokens == 0 || done == 2000);
  }
}

}  // namespace
}  // namespace tandem
