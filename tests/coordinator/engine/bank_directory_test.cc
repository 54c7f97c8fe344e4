#include "coordinator/engine/bank_directory.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "tests/support/fake_stage.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using Tokens = std::vector<int32_t>;

Tokens counting(int32_t first, int64_t count) {
  Tokens out(static_cast<size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class BankDirectoryTest : public ::testing::Test {
 protected:
  BankDirectoryTest() { build(3); }

  void build(int64_t num_banks) {
    std::vector<std::unique_ptr<StageExecutor>> stages;
    auto stage =
        std::make_unique<test::FakeStage>(test::whole_stage_info(5000, num_banks, 4096, 512));
    stage_ = stage.get();
    stages.push_back(std::move(stage));
    auto pipeline = Pipeline::create(std::move(stages));
    TANDEM_CHECK(pipeline.ok());
    pipeline_ = std::make_unique<Pipeline>(std::move(pipeline).value());
    directory_ = std::make_unique<BankDirectory>(*pipeline_);
  }

  /// Writes tokens to a bank as a step does.
  void feed(int64_t bank, const Tokens& tokens) {
    StepBatch batch;
    auto pos = static_cast<int32_t>(pipeline_->length(bank));
    for (const int32_t token : tokens) {
      batch.rows.push_back({static_cast<int32_t>(bank), pos++, token, false});
    }
    ASSERT_OK(pipeline_->run(batch));
    directory_->append(bank, tokens);
  }

  /// Runs a whole sequence; returns the bank it ran in.
  int64_t run(const Tokens& tokens) {
    const BankDirectory::Lease lease = acquire(tokens);
    feed(lease.bank, Tokens(tokens.begin() + lease.num_reused, tokens.end()));
    directory_->release(lease.bank);
    return lease.bank;
  }

  BankDirectory::Lease acquire(const Tokens& prompt) {
    const auto lease = directory_->acquire(prompt);
    EXPECT_OK(lease);
    if (!lease.ok()) return {};
    // What the directory says a bank holds is what the stage holds.
    const auto held = stage_->tokens(lease->bank);
    EXPECT_EQ(std::ssize(held), lease->num_reused);
    EXPECT_TRUE(std::equal(held.begin(), held.end(), prompt.begin()));
    EXPECT_LT(lease->num_reused, std::ssize(prompt));
    return *lease;
  }

  test::FakeStage* stage_ = nullptr;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<BankDirectory> directory_;
};

TEST_F(BankDirectoryTest, ContinuesTheBankWhoseTokensThePromptExtends) {
  const int64_t bank = run(counting(0, 10));
  run(counting(1000, 10));
  const auto lease = acquire(counting(0, 20));
  EXPECT_EQ(lease.bank, bank);
  EXPECT_EQ(lease.num_reused, 10);
}

TEST_F(BankDirectoryTest, LeavesAtLeastTheLastTokenOfThePromptToCompute) {
  run(counting(0, 10));
  EXPECT_EQ(acquire(counting(0, 10)).num_reused, 9);
}

TEST_F(BankDirectoryTest, TakesBackWhatThePromptDoesNotShare) {
  const int64_t bank = run(counting(0, 50));
  const auto lease = acquire(joined(counting(0, 47), counting(900, 5)));
  EXPECT_EQ(lease.bank, bank);
  EXPECT_EQ(lease.num_reused, 47);
}

TEST_F(BankDirectoryTest, GoesBackToACheckpointWhenTheRingsReachNoFurther) {
  const int64_t bank = acquire(counting(0, 300)).bank;
  feed(bank, counting(0, 128));
  ASSERT_OK(directory_->keep_checkpoint(bank));
  feed(bank, counting(128, 128));
  ASSERT_OK(directory_->keep_checkpoint(bank));
  feed(bank, counting(256, 44));
  directory_->release(bank);

  const auto lease = acquire(joined(counting(0, 200), counting(900, 5)));
  EXPECT_EQ(lease.bank, bank);
  EXPECT_EQ(lease.num_reused, 128);
  EXPECT_EQ(stage_->num_checkpoints(), 1u) << "the later checkpoint can never be used again";
}

TEST_F(BankDirectoryTest, GoesBackALittleFromACheckpointBehindTheLengthWanted) {
  const int64_t bank = acquire(counting(0, 100)).bank;
  feed(bank, counting(0, 60));
  ASSERT_OK(directory_->keep_checkpoint(bank));
  feed(bank, counting(60, 40));
  directory_->release(bank);
  const auto lease = acquire(joined(counting(0, 58), counting(900, 5)));
  EXPECT_EQ(lease.num_reused, 58);
}

TEST_F(BankDirectoryTest, StartsAnewWhereNoCheckpointHelps) {
  const int64_t bank = run(counting(0, 100));
  const auto lease = acquire(joined(counting(0, 50), counting(900, 5)));
  EXPECT_EQ(lease.bank, bank);
  EXPECT_EQ(lease.num_reused, 0);
}

TEST_F(BankDirectoryTest, KeepsFewCheckpointsOfABank) {
  const int64_t bank = acquire(counting(0, 1500)).bank;
  for (int32_t i = 0; i < 10; ++i) {
    feed(bank, counting(i * 128, 128));
    ASSERT_OK(directory_->keep_checkpoint(bank));
    ASSERT_OK(directory_->keep_checkpoint(bank)) << "twice at one length is once";
  }
  EXPECT_EQ(stage_->num_checkpoints(), 4u);
}

TEST_F(BankDirectoryTest, DoesNotCutALongHistoryForAFewSharedTokens) {
  const int64_t bank = run(counting(0, 100));
  EXPECT_NE(acquire(joined(counting(0, 31), counting(900, 5))).bank, bank);
}

TEST_F(BankDirectoryTest, PrefersTheBankWithLeastBehindTheSharedTokens) {
  run(joined(counting(0, 40), counting(700, 60)));
  build(3);
  const Tokens shared = counting(0, 40);
  const int64_t longer = acquire(shared).bank;
  const int64_t shorter = acquire(shared).bank;
  feed(longer, joined(shared, counting(700, 60)));
  feed(shorter, shared);
  directory_->release(longer);
  directory_->release(shorter);
  EXPECT_EQ(acquire(joined(shared, counting(900, 5))).bank, shorter);
}

TEST_F(BankDirectoryTest, TakesAnEmptyBankBeforeItOverwritesOne) {
  const int64_t first = run(counting(0, 10));
  const int64_t second = run(counting(1000, 10));
  const int64_t third = run(counting(2000, 10));
  EXPECT_NE(first, second);
  EXPECT_NE(second, third);
  EXPECT_NE(first, third);
}

TEST_F(BankDirectoryTest, OverwritesTheLeastRecentlyUsedBank) {
  const int64_t first = run(counting(0, 10));
  const int64_t second = run(counting(1000, 10));
  run(counting(2000, 10));
  EXPECT_EQ(run(counting(0, 12)), first);  // used again
  EXPECT_EQ(run(counting(3000, 10)), second);
}

TEST_F(BankDirectoryTest, NeverHandsOutABusyBank) {
  const Tokens prompt = counting(0, 10);
  const auto a = acquire(prompt);
  const auto b = acquire(prompt);
  const auto c = acquire(prompt);
  EXPECT_EQ((std::set<int64_t>{a.bank, b.bank, c.bank}).size(), 3u);
  EXPECT_FALSE(directory_->has_idle());
  EXPECT_ERROR(directory_->acquire(prompt), StatusCode::kResourceExhausted, "every bank is busy");
  directory_->release(b.bank);
  EXPECT_EQ(acquire(prompt).bank, b.bank);
}

TEST_F(BankDirectoryTest, RefusesAPromptWithoutTokens) {
  EXPECT_ERROR(directory_->acquire({}), StatusCode::kInvalidArgument, "no tokens");
}

TEST_F(BankDirectoryTest, ForgetsADiscardedBank) {
  const int64_t bank = run(counting(0, 10));
  directory_->discard(bank);
  EXPECT_EQ(stage_->length(bank), 0);
  EXPECT_TRUE(directory_->tokens(bank).empty());
  EXPECT_EQ(acquire(counting(0, 20)).num_reused, 0);
}

TEST_F(BankDirectoryTest, StartsAnewWhenTheStageCannotGoBack) {
  for (const char* failing : {"truncate", "restore"}) {
    build(1);
    const int64_t bank = acquire(counting(0, 100)).bank;
    feed(bank, counting(0, 40));
    ASSERT_OK(directory_->keep_checkpoint(bank));
    feed(bank, counting(40, 60));
    directory_->release(bank);
    stage_->before_operation = [&](const std::string& operation) {
      return operation == failing ? Status(StatusCode::kInternal, "broken") : Status();
    };
    EXPECT_EQ(acquire(joined(counting(0, 50), counting(900, 5))).num_reused, 0) << failing;
  }
}

TEST_F(BankDirectoryTest, ReportsABankThatCannotEvenBeEmptied) {
  build(1);
  run(counting(0, 100));
  stage_->before_operation = [](const std::string&) {
    return Status(StatusCode::kInternal, "broken");
  };
  EXPECT_ERROR(directory_->acquire(counting(500, 5)), StatusCode::kInternal, "broken");
  stage_->before_operation = nullptr;
  EXPECT_EQ(acquire(counting(500, 5)).num_reused, 0) << "the bank is idle, and empty";
}

}  // namespace
}  // namespace tandem
