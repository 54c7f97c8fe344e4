#include "model/spec/binder.h"

#include <gtest/gtest.h>

#include "tests/model/gguf/header_bytes.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::HeaderBytes;

constexpr uint32_t kF32Id = 0;

TensorSpec spec(const char* name, std::vector<int64_t> dims) {
  TensorSpec out;
  out.name = name;
  out.dims = std::move(dims);
  out.dtypes = {DType::kF32};
  out.layer = 0;
  return out;
}

// A file with f32 tensors "a" [4] and "b" [4, 2].
HeaderBytes two_tensors() {
  HeaderBytes header(2, 0);
  header.tensor("a", {4}, kF32Id, 0).tensor("b", {4, 2}, kF32Id, 32).pad().data(64);
  return header;
}

TEST(BinderTest, FindsByIndexAndByName) {
  const HeaderBytes header = two_tensors();
  const auto file = GgufFile::parse(header.bytes(), "x");
  ASSERT_OK(file);
  const auto table = bind_tensors({spec("b", {4, 2}), spec("a", {4})}, *file);
  ASSERT_OK(table);
  EXPECT_EQ(table->find(size_t{0}), file->find_tensor("b"));
  EXPECT_EQ(table->find(size_t{1}), file->find_tensor("a"));
  EXPECT_EQ(table->find("a"), file->find_tensor("a"));
  EXPECT_EQ(table->find("c"), nullptr);
  EXPECT_EQ(table->bytes(), 48U);
}

TEST(BinderTest, TakesTrailingSizesOfOneAsNone) {
  HeaderBytes header(2, 0);
  header.tensor("a", {4, 1, 1}, kF32Id, 0).tensor("b", {4}, kF32Id, 32).pad().data(64);
  const auto file = GgufFile::parse(header.bytes(), "x");
  ASSERT_OK(file);
  EXPECT_OK(bind_tensors({spec("a", {4}), spec("b", {4, 1})}, *file));
}

TEST(BinderTest, LeavesAnAbsentOptionalTensorOut) {
  const HeaderBytes header = two_tensors();
  const auto file = GgufFile::parse(header.bytes(), "x");
  ASSERT_OK(file);
  TensorPlan plan = {spec("a", {4}), spec("b", {4, 2}), spec("c", {4})};
  plan[2].required = false;
  const auto table = bind_tensors(plan, *file);
  ASSERT_OK(table);
  EXPECT_EQ(table->find(size_t{2}), nullptr);
  plan[1].required = false;
  plan[1].dims = {4, 3};
  EXPECT_ERROR(
      bind_tensors(plan, *file), StatusCode::kInvalidArgument,
      "bad-shape b (expected [4, 3], found [4, 2])");
}

TEST(BinderTest, IgnoresWhatAPrefixCovers) {
  const HeaderBytes header = two_tensors();
  const auto file = GgufFile::parse(header.bytes(), "x");
  ASSERT_OK(file);
  TensorPlan plan = {spec("a", {4})};
  EXPECT_ERROR(
      bind_tensors(plan, *file), StatusCode::kInvalidArgument, "x: 1 problem: unexpected-tensor b");
  plan.push_back(spec("b", {}));
  plan.back().use = TensorUse::kIgnored;
  const auto table = bind_tensors(plan, *file);
  ASSERT_OK(table);
  EXPECT_EQ(table->find("b"), nullptr);
}

TEST(BinderTest, BindsTheEndsOfAModelToTheStagesThatReadThem) {
  const HeaderBytes header = two_tensors();
  const auto file = GgufFile::parse(header.bytes(), "x");
  ASSERT_OK(file);
  TensorPlan plan = {spec("a", {4}), spec("b", {4, 2})};
  plan[0].use = TensorUse::kEmbedding;
  plan[1].use = TensorUse::kHead;
  const auto first = bind_tensors(plan, *file, LayerRange{0, 1, true, false});
  ASSERT_OK(first);
  EXPECT_NE(first->find("a"), nullptr);
  EXPECT_EQ(first->find("b"), nullptr);
  const auto last = bind_tensors(plan, *file, LayerRange{1, 2, false, true});
  ASSERT_OK(last);
  EXPECT_EQ(last->find("a"), nullptr);
  EXPECT_NE(last->find("b"), nullptr);
}

}  // namespace
}  // namespace tandem
