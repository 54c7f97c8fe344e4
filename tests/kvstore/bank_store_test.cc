#include "kvstore/bank_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/limits.h"
#include "kernels/core/slab_rows.h"
#include "tests/support/memory_stream.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

constexpr int64_t kContext = 64;
constexpr int64_t kRewind = 3;
constexpr int64_t kNumBanks = 3;

StatePlan small_plan() {
  return {{
      {"window", 0, SlabKind::kRing, DType::kF32, 3, 1, 5},
      {"pooled", 0, SlabKind::kRows, DType::kF16, 2, 4, 0},
      {"history", 1, SlabKind::kRing, DType::kF32, 2, 1, 8},
      {"each", 1, SlabKind::kRows, DType::kF32, 1, 1, 0},
  }};
}

/// Refuses after a number of bytes.
class SmallAllocator final : public Allocator {
 public:
  explicit SmallAllocator(size_t bytes) : left_(bytes) {}
  std::unique_ptr<Memory> allocate(size_t bytes) override {
    if (bytes > left_) return nullptr;
    left_ -= bytes;
    return host_->allocate(bytes);
  }
  Status copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return host_->copy(to, from, bytes);
  }

 private:
  std::unique_ptr<Allocator> host_ = host_allocator();
  size_t left_;
};

/// A sink that takes `bytes` bytes and then fails.
class FullDisk final : public ByteSink {
 public:
  explicit FullDisk(size_t bytes) : left_(bytes) {}
  Status write(std::span<const std::byte> part) override {
    if (part.size() > left_) return {StatusCode::kResourceExhausted, "disk full"};
    left_ -= part.size();
    return {};
  }

 private:
  size_t left_;
};

class BankStoreTest : public ::testing::Test {
 protected:
  BankStore make_store(const StatePlan& plan = small_plan(), int64_t context = kContext) {
    Result<BankStore> store = BankStore::create(plan, {context, kRewind}, kNumBanks, *allocator_);
    EXPECT_OK(store);
    return std::move(store).value();
  }

  /// A value that tells sequence, slab and position apart; exact in F16.
  static float value_of(int sequence, int32_t slab, int64_t pos) {
    return static_cast<float>(slab * 1024 + sequence * 64 + pos % 64);
  }

  /// What a step of `count` tokens of `sequence` writes.
  static void append(BankStore& store, int64_t bank, int sequence, int64_t count) {
    const int64_t begin = store.length(bank);
    for (int64_t pos = begin; pos < begin + count; ++pos) {
      for (int32_t id = 0; id < static_cast<int32_t>(store.plan().slabs.size()); ++id) {
        const SlabSpec& slab = store.plan().slabs[static_cast<size_t>(id)];
        if (slab.kind == SlabKind::kRows && (pos + 1) % slab.tokens_per_row != 0) continue;
        const std::vector<float> row(
            static_cast<size_t>(slab.row_values), value_of(sequence, id, pos));
        const int64_t idx = slab.kind == SlabKind::kRing ? pos % store.slab(id).capacity_rows
                                                         : pos / slab.tokens_per_row;
        store_slab_row(store.slab(id), bank, idx, row.data());
      }
    }
    store.advance(bank, count);
  }

  /// The bank holds `sequence` up to its length, as far as a next step may read.
  static void expect_holds(
      const BankStore& store, int64_t bank, const std::vector<std::pair<int64_t, int>>& history) {
    const auto sequence_at = [&](int64_t pos) {
      for (const auto& [end, sequence] : history) {
        if (pos < end) return sequence;
      }
      return -1;
    };
    const int64_t length = history.empty() ? 0 : history.back().first;
    ASSERT_EQ(store.length(bank), length);
    for (int32_t id = 0; id < static_cast<int32_t>(store.plan().slabs.size()); ++id) {
      const SlabSpec& slab = store.plan().slabs[static_cast<size_t>(id)];
      const bool ring = slab.kind == SlabKind::kRing;
      const int64_t end = ring ? length : length / slab.tokens_per_row;
      for (int64_t row = ring ? std::max<int64_t>(0, length - slab.window) : 0; row < end; ++row) {
        const int64_t pos = ring ? row : (row + 1) * slab.tokens_per_row - 1;
        std::vector<float> values(static_cast<size_t>(slab.row_values));
        load_slab_row(
            store.slab(id), bank, ring ? row % store.slab(id).capacity_rows : row, values.data());
        for (const float value : values) {
          ASSERT_EQ(value, value_of(sequence_at(pos), id, pos))
              << slab.name << " position " << pos << " of bank " << bank;
        }
      }
    }
  }

  std::vector<std::byte> saved(const BankStore& store, int64_t bank) {
    MemoryStream stream;
    EXPECT_OK(store.save(bank, stream));
    return stream.bytes;
  }

  static Status load(BankStore& store, int64_t bank, std::vector<std::byte> bytes) {
    MemoryStream stream;
    stream.bytes = std::move(bytes);
    return store.load(bank, stream);
  }

  std::unique_ptr<Allocator> allocator_ = host_allocator();
};

TEST_F(BankStoreTest, SlabsHaveTheRowsOfTheirKind) {
  const BankStore store = make_store();
  EXPECT_EQ(store.num_banks(), kNumBanks);
  EXPECT_EQ(store.slab(0).capacity_rows, 5 + kRewind);
  EXPECT_EQ(store.slab(1).capacity_rows, kContext / 4 + 1);
  EXPECT_EQ(store.slab(1).row_bytes, 4);
  EXPECT_EQ(store.slab(2).capacity_rows, 8 + kRewind);
  EXPECT_EQ(store.slab(3).capacity_rows, kContext + 1);
  EXPECT_EQ(store.slab(0).row(1, 0) - store.slab(0).row(0, 0), store.slab(0).bank_bytes);
  EXPECT_EQ(store.bytes(), 3u * (8 * 12 + 17 * 4 + 11 * 8 + 65 * 4));
}

TEST_F(BankStoreTest, RefusesLimitsOutOfRange) {
  const auto refuses = [&](StateLimits limits, int64_t num_banks, const char* text) {
    EXPECT_ERROR(
        BankStore::create(small_plan(), limits, num_banks, *allocator_),
        StatusCode::kInvalidArgument, text);
  };
  refuses({kContext, 0}, 0, "num_banks");
  refuses({kContext, 0}, kBanksMax + 1, "num_banks");
  refuses({0, 0}, 1, "context");
  refuses({kContextTokensMax + 1, 0}, 1, "context");
  refuses({kContext, -1}, 1, "rewind");
  refuses({kContext, kChunkTokensMax + 1}, 1, "rewind");
  EXPECT_OK(BankStore::create(small_plan(), {1, 0}, 1, *allocator_));
  EXPECT_OK(BankStore::create(small_plan(), {kContext, 0}, kBanksMax, *allocator_));
}

TEST_F(BankStoreTest, NamesTheSlabThatMemoryIsShortFor) {
  SmallAllocator small(3 * 8 * 12 + 3 * 17 * 4);  // the first two slabs
  EXPECT_ERROR(
      BankStore::create(small_plan(), {kContext, kRewind}, kNumBanks, small),
      StatusCode::kResourceExhausted, "history");
}

TEST_F(BankStoreTest, BanksAreApart) {
  BankStore store = make_store();
  append(store, 0, 1, 20);
  append(store, 2, 2, 7);
  append(store, 1, 3, kContext);
  append(store, 0, 1, 5);
  expect_holds(store, 0, {{25, 1}});
  expect_holds(store, 1, {{kContext, 3}});
  expect_holds(store, 2, {{7, 2}});
  store.reset(1);
  EXPECT_EQ(store.length(1), 0);
  expect_holds(store, 0, {{25, 1}});
}

TEST_F(BankStoreTest, TruncatesWithinTheRewind) {
  BankStore store = make_store();
  append(store, 0, 1, 30);
  append(store, 0, 2, 3);
  ASSERT_OK(store.truncate(0, 33));  // nothing
  ASSERT_OK(store.truncate(0, 32));
  ASSERT_OK(store.truncate(0, 30));
  expect_holds(store, 0, {{30, 1}});
  EXPECT_ERROR(store.truncate(0, 29), StatusCode::kAborted, "checkpoint");
  EXPECT_ERROR(store.truncate(0, 31), StatusCode::kInvalidArgument, "30");
  EXPECT_ERROR(store.truncate(0, -1), StatusCode::kInvalidArgument, "-1");
  expect_holds(store, 0, {{30, 1}});
  append(store, 0, 3, 1);
  ASSERT_OK(store.truncate(0, 30));
  EXPECT_ERROR(store.truncate(0, 29), StatusCode::kAborted, "");
  ASSERT_OK(store.truncate(0, 0));  // a reset is always possible
  EXPECT_EQ(store.length(0), 0);
}

TEST_F(BankStoreTest, AShortBankCanBeTruncatedByAllItHolds) {
  BankStore store = make_store();
  append(store, 0, 1, 2);
  ASSERT_OK(store.truncate(0, 1));
  append(store, 0, 1, 1);
  expect_holds(store, 0, {{2, 1}});
}

TEST_F(BankStoreTest, AForkIsEqualAndApart) {
  BankStore store = make_store();
  append(store, 1, 9, 50);
  append(store, 0, 1, 20);
  append(store, 0, 2, 2);
  ASSERT_OK(store.fork(0, 1));
  expect_holds(store, 1, {{20, 1}, {22, 2}});
  ASSERT_OK(store.truncate(1, 19));  // three tokens back, as in the original
  append(store, 1, 4, 9);
  expect_holds(store, 1, {{19, 1}, {28, 4}});
  expect_holds(store, 0, {{20, 1}, {22, 2}});
  EXPECT_ERROR(store.fork(2, 2), StatusCode::kInvalidArgument, "itself");
  ASSERT_OK(store.fork(2, 1));  // an empty one
  EXPECT_EQ(store.length(1), 0);
}

TEST_F(BankStoreTest, ACheckpointOutlivesTheRings) {
  BankStore store = make_store();
  append(store, 0, 1, 21);
  const Result<CheckpointId> id = store.checkpoint(0);
  ASSERT_OK(id);
  append(store, 0, 2, 40);
  ASSERT_OK(store.restore(0, *id));
  expect_holds(store, 0, {{21, 1}});
  append(store, 0, 3, 4);
  ASSERT_OK(store.truncate(0, 22));
  expect_holds(store, 0, {{21, 1}, {22, 3}});
  ASSERT_OK(store.restore(0, *id));
  expect_holds(store, 0, {{21, 1}});
}

TEST_F(BankStoreTest, ARestoredBankGoesBackAsFarAsTheOneThatWasKept) {
  BankStore store = make_store();
  append(store, 0, 1, 21);
  ASSERT_OK(store.truncate(0, 20));  // one of the three tokens is spent
  const Result<CheckpointId> id = store.checkpoint(0);
  ASSERT_OK(id);
  append(store, 0, 2, 40);
  ASSERT_OK(store.restore(0, *id));
  EXPECT_ERROR(store.truncate(0, 17), StatusCode::kAborted, "");
  ASSERT_OK(store.truncate(0, 18));
  append(store, 0, 3, 9);
  expect_holds(store, 0, {{18, 1}, {27, 3}});
}

TEST_F(BankStoreTest, ACheckpointIsDroppedWithWhatItBuildsOn) {
  BankStore store = make_store();
  const auto dropped = [&](CheckpointId id, int64_t bank) {
    EXPECT_ERROR(store.restore(bank, id), StatusCode::kNotFound, str_cat("checkpoint ", id));
  };
  append(store, 0, 1, 20);
  const CheckpointId early = *store.checkpoint(0);
  append(store, 0, 1, 2);
  const CheckpointId late = *store.checkpoint(0);
  EXPECT_ERROR(store.restore(1, early), StatusCode::kNotFound, "");  // another bank's
  append(store, 0, 1, 1);
  ASSERT_OK(store.truncate(0, 21));
  dropped(late, 0);
  append(store, 0, 2, 4);
  const CheckpointId newer = *store.checkpoint(0);
  ASSERT_OK(store.restore(0, early));
  dropped(newer, 0);  // the rows behind it will be others

  store.reset(0);
  dropped(early, 0);
  append(store, 0, 1, 10);
  const CheckpointId id = *store.checkpoint(0);
  append(store, 1, 2, 3);
  ASSERT_OK(store.fork(1, 0));
  dropped(id, 0);
  const CheckpointId forked = *store.checkpoint(0);
  ASSERT_OK(load(store, 0, saved(store, 1)));
  dropped(forked, 0);
  const CheckpointId last = *store.checkpoint(0);
  store.drop_checkpoint(last);
  dropped(last, 0);
  store.drop_checkpoint(last);  // again: nothing
}

TEST_F(BankStoreTest, ASavedBankIsTheSameElsewhere) {
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{33}, kContext}) {
    SCOPED_TRACE(length);
    BankStore store = make_store();
    append(store, 1, 5, length);
    const std::vector<std::byte> bytes = saved(store, 1);
    BankStore other = make_store();
    append(other, 2, 6, 17);
    ASSERT_OK(load(other, 2, bytes));
    expect_holds(
        other, 2,
        length == 0 ? std::vector<std::pair<int64_t, int>>{}
                    : std::vector<std::pair<int64_t, int>>{{length, 5}});
    EXPECT_EQ(saved(other, 2), bytes);
    if (length > 1) {
      EXPECT_ERROR(other.truncate(2, length - 1), StatusCode::kAborted, "");
    }
  }
}

TEST_F(BankStoreTest, ALargerContextTakesASavedBank) {
  BankStore store = make_store();
  append(store, 0, 5, 40);
  BankStore larger = make_store(small_plan(), 2 * kContext);
  ASSERT_OK(load(larger, 0, saved(store, 0)));
  expect_holds(larger, 0, {{40, 5}});
  BankStore smaller = make_store(small_plan(), 39);
  EXPECT_ERROR(load(smaller, 0, saved(store, 0)), StatusCode::kInvalidArgument, "40");
  EXPECT_EQ(smaller.length(0), 0);
}

TEST_F(BankStoreTest, ASaveStopsAtTheSinksError) {
  BankStore store = make_store();
  append(store, 0, 5, 40);
  const size_t size = saved(store, 0).size();
  for (size_t bytes = 0; bytes < size; bytes += 7) {
    FullDisk disk(bytes);
    EXPECT_ERROR(store.save(0, disk), StatusCode::kResourceExhausted, "disk full");
  }
  FullDisk disk(size);
  EXPECT_OK(store.save(0, disk));
}

TEST_F(BankStoreTest, AFileCutAnywhereLeavesTheBankEmpty) {
  BankStore store = make_store();
  append(store, 0, 5, 40);
  const std::vector<std::byte> bytes = saved(store, 0);
  for (size_t size = 0; size < bytes.size(); ++size) {
    append(store, 1, 6, 3);
    EXPECT_ERROR(
        load(store, 1, {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}),
        StatusCode::kDataLoss, "")
        << size << " of " << bytes.size() << " bytes";
    ASSERT_EQ(store.length(1), 0);
  }
}

TEST_F(BankStoreTest, AnyOtherHeaderIsRefused) {
  BankStore store = make_store();
  append(store, 0, 5, 40);
  const std::vector<std::byte> bytes = saved(store, 0);
  // The file's header and the first slab's, name included: 24, then 4 + 6 + 48 bytes.
  for (size_t i = 0; i < 24 + 4 + 6 + 48; ++i) {
    for (const uint8_t bits : {uint8_t{1}, uint8_t{0x80}}) {
      std::vector<std::byte> damaged = bytes;
      damaged[i] ^= std::byte{bits};
      append(store, 1, 6, 3);
      EXPECT_FALSE(load(store, 1, damaged).ok()) << "byte " << i << " bits " << int{bits};
      ASSERT_EQ(store.length(1), 0);
    }
  }
  std::vector<std::byte> damaged = bytes;
  damaged[0] = std::byte{'X'};
  EXPECT_ERROR(load(store, 1, damaged), StatusCode::kDataLoss, "not a saved bank");
  damaged = bytes;
  damaged[8] = std::byte{9};
  EXPECT_ERROR(load(store, 1, damaged), StatusCode::kInvalidArgument, "version 9");
  damaged = bytes;
  damaged[16 + 7] = std::byte{0xff};  // a negative length
  EXPECT_ERROR(load(store, 1, damaged), StatusCode::kDataLoss, "");
  damaged = bytes;
  damaged[24 + 3] = std::byte{0x7f};  // a name of 2 GB
  EXPECT_ERROR(load(store, 1, damaged), StatusCode::kInvalidArgument, "name");
}

TEST_F(BankStoreTest, AnotherPlansStateIsRefused) {
  BankStore store = make_store();
  append(store, 0, 5, 40);
  const std::vector<std::byte> bytes = saved(store, 0);
  const auto refuses = [&](const auto& change, const char* text) {
    StatePlan plan = small_plan();
    change(plan.slabs);
    BankStore other = make_store(plan);
    EXPECT_ERROR(load(other, 0, bytes), StatusCode::kInvalidArgument, text);
    EXPECT_EQ(other.length(0), 0);
  };
  using Slabs = std::vector<SlabSpec>;
  refuses([](Slabs& s) { s[0].name = "widow"; }, "widow");
  refuses([](Slabs& s) { s[0].kind = SlabKind::kRows; }, "window");
  refuses([](Slabs& s) { s[0].window = 6; }, "window");
  refuses([](Slabs& s) { s[0].row_values = 4; }, "window");
  refuses([](Slabs& s) { s[1].dtype = DType::kBF16; }, "pooled");
  refuses([](Slabs& s) { s[1].tokens_per_row = 2; }, "pooled");
  refuses([](Slabs& s) { std::swap(s[2], s[3]); }, "each");
  refuses([](Slabs& s) { s.pop_back(); }, "slabs");
  refuses([](Slabs& s) { s.push_back(s[0]); }, "slabs");
}

}  // namespace
}  // namespace tandem::test
