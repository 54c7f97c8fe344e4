#include "kernels/embed/embed.h"

#include "base/limits.h"
#include "tests/support/backend.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

class EmbedTest : public OpTest {
 protected:
  Tensor run(const HostWeight& table, const std::vector<int32_t>& tokens, int64_t num_streams) {
    HostStep step;
    step.parts = {{0, 5, static_cast<int32_t>(tokens.size())}};
    step.tokens = tokens;
    const Rows streams = bench_.output(step.num_rows(), num_streams * table.cols);
    EXPECT_OK(
        embed(bench_.exec(), {bench_.step(step), bench_.weight(table), num_streams, streams}));
    return bench_.fetch(streams);
  }
};

TEST_P(EmbedTest, CopiesATokensRowToEveryStream) {
  const HostWeight table = make_weight(DType::kF32, Tensor(3, 2, {1, 2, 3, 4, 5, 6}));
  const Tensor out = run(table, {2, 0}, 3);
  EXPECT_EQ(out.values, (std::vector<float>{5, 6, 5, 6, 5, 6, 1, 2, 1, 2, 1, 2}));
}

TEST_P(EmbedTest, GivesTheExactValuesOfEveryType) {
  const std::vector<int32_t> tokens = {0, 18, 7, 7, 1};
  for (const DType dtype : kWeightDTypes) {
    for (const int64_t num_streams : {1, 4, 8}) {
      SCOPED_TRACE(str_cat(dtype_name(dtype), " num_streams=", num_streams, " seed 3"));
      const HostWeight table = random_weight(dtype, 19, 512, 3);
      const Tensor out = run(table, tokens, num_streams);
      for (size_t t = 0; t < tokens.size(); ++t) {
        for (int64_t i = 0; i < out.cols; ++i) {
          ASSERT_EQ(
              out.at(static_cast<int64_t>(t), i),
              static_cast<float>(table.values.at(tokens[t], i % 512)))
              << "row " << t << " column " << i;
        }
      }
    }
  }
}

TEST_P(EmbedTest, TakesNoRows) {
  EXPECT_EQ(run(random_weight(DType::kF16, 2, 32, 1), {}, 4).rows, 0);
}

TEST_P(EmbedTest, RefusesWhatTheContractExcludes) {
  HostStep step;
  step.parts = {{0, 0, 2}};
  EmbedArgs good;
  good.step = bench_.step(step);
  good.table = bench_.weight(random_weight(DType::kF32, 4, 8, 1));
  good.num_streams = 2;
  good.streams = bench_.output(2, 16);
  EXPECT_OK(embed(bench_.exec(), good));
  const auto refuses = [&](const EmbedArgs& args, const char* text) {
    EXPECT_ERROR(embed(bench_.exec(), args), StatusCode::kInvalidArgument, text);
  };
  for (const int64_t num_streams : {int64_t{0}, int64_t{9}, int64_t{3}}) {
    EmbedArgs args = good;
    args.num_streams = num_streams;
    refuses(args, "streams");
  }
  EmbedArgs args = good;
  args.table.dtype = DType::kI32;
  refuses(args, "I32");
  args = good;
  args.streams.rows = 3;
  refuses(args, "streams");
  args = good;
  args.step.num_rows = kChunkTokensMax + 1;
  args.streams.rows = kChunkTokensMax + 1;
  refuses(args, "rows");
}

INSTANTIATE_TEST_SUITE_P(Backends, EmbedTest, ::testing::ValuesIn(all_backends()), backend_name);

}  // namespace
}  // namespace tandem::test
