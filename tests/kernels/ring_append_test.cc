#include "kernels/ring_append/ring_append.h"

#include <cmath>
#include <map>

#include "base/limits.h"
#include "model/formats/dequantize.h"
#include "model/formats/quantize.h"
#include "tests/support/backend.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

class RingAppendTest : public OpTest {
 protected:
  /// Appends random rows and expects the latest row of each ring row, rounded, and no other change.
  void expect_keeps_latest(
      DType dtype, int64_t width, int64_t capacity, const std::vector<HostStep::Part>& parts) {
    constexpr int64_t kNumBanks = 4;
    HostStep step;
    step.parts = parts;
    const Tensor value = random_tensor(step.num_rows(), width, 81);
    const HostSlab empty(dtype, kNumBanks, capacity, width);
    const SlabView ring = bench_.slab(empty);
    ASSERT_OK(ring_append(bench_.exec(), {bench_.step(step), bench_.input(value), ring}));
    HostSlab expected(dtype, kNumBanks, capacity, width);
    const std::vector<int32_t> banks = step.banks();
    const std::vector<int32_t> positions = step.positions();
    for (int64_t t = 0; t < value.rows; ++t) {
      const auto row = static_cast<size_t>(t);
      std::vector<std::byte> stored(static_cast<size_t>(row_bytes(dtype, width)));
      std::vector<float> rounded(static_cast<size_t>(width));
      quantize_row(dtype, value.row(t), width, stored.data());
      dequantize_row(dtype, stored.data(), width, rounded.data());
      expected.set(banks[row], positions[row] % capacity, rounded.data());
    }
    const HostSlab actual = bench_.fetch(ring, kNumBanks);
    for (int64_t b = 0; b < kNumBanks; ++b) {
      for (int64_t r = 0; r < capacity; ++r) {
        const std::vector<float> want = expected.get(b, r);
        const std::vector<float> got = actual.get(b, r);
        for (int64_t i = 0; i < width; ++i) {
          const auto c = static_cast<size_t>(i);
          ASSERT_TRUE(want[c] == got[c] || (std::isnan(want[c]) && std::isnan(got[c])))
              << "bank " << b << " ring row " << r << " value " << i << ": " << got[c]
              << ", expected " << want[c];
        }
      }
    }
  }
};

TEST_P(RingAppendTest, KeepsTheLatestRowOfEachRingRow) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    SCOPED_TRACE(dtype_name(dtype));
    expect_keeps_latest(dtype, 8, 8, {{0, 0, 1}});
    expect_keeps_latest(dtype, 8, 8, {{1, 0, 8}});
    expect_keeps_latest(dtype, 8, 8, {{2, 5, 3}});         // up to the wrap
    expect_keeps_latest(dtype, 8, 8, {{2, 5, 6}});         // across it
    expect_keeps_latest(dtype, 8, 8, {{3, 7, 9}});         // more rows than the ring
    expect_keeps_latest(dtype, 8, 8, {{0, 3, 29}});        // several times around
    expect_keeps_latest(dtype, 33, 5, {{0, 1000003, 7}});  // far into a context
    expect_keeps_latest(dtype, 512, 1, {{0, 4, 3}});
    expect_keeps_latest(dtype, 512, 192, {{3, 100, 30}, {0, 0, 200}, {1, 190, 1}});
  }
}

TEST_P(RingAppendTest, TakesNoRows) {
  expect_keeps_latest(DType::kF32, 8, 8, {});
}

TEST_P(RingAppendTest, RefusesWhatTheContractExcludes) {
  HostStep step;
  step.parts = {{0, 0, 2}};
  RingAppendArgs good;
  good.step = bench_.step(step);
  good.value = bench_.input(random_tensor(2, 8, 1));
  good.ring = bench_.slab(HostSlab(DType::kF32, 1, 4, 8));
  const auto refuses = [&](const auto& change, const char* text) {
    RingAppendArgs args = good;
    change(args);
    EXPECT_ERROR(ring_append(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  refuses([](RingAppendArgs& a) { a.value.cols = 7; }, "ring");
  refuses([](RingAppendArgs& a) { a.value.rows = 1; }, "value");
  refuses([](RingAppendArgs& a) { a.ring.data = nullptr; }, "ring");
  refuses([](RingAppendArgs& a) { a.ring.capacity_rows = 0; }, "ring");
  refuses([](RingAppendArgs& a) { a.step.num_rows = kChunkTokensMax + 1; }, "rows");
}

INSTANTIATE_TEST_SUITE_P(
    Backends, RingAppendTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
