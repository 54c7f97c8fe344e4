#include <gtest/gtest.h>

#include <cstdio>

#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_writer.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

class GgufSplitTest : public ::testing::Test {
 protected:
  std::string part_path(int number, int count) const {
    char suffix[32];
    std::snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", number, count);
    return stem_ + suffix;
  }
  // A part with one tensor `name` that holds its own number.
  void write_part(int number, int count, const std::string& name, int split_no, int split_count) {
    GgufWriter writer;
    writer.set_u16("split.no", static_cast<uint16_t>(split_no));
    writer.set_u16("split.count", static_cast<uint16_t>(split_count));
    writer.set_i32("split.tensors.count", count);
    if (number == 1) writer.set_string("general.architecture", "deepseek4");
    const float value = static_cast<float>(number);
    writer.add_tensor(name, DType::kF32, {1}, std::as_bytes(std::span(&value, 1)));
    ASSERT_OK(writer.write(part_path(number, count)));
  }

  std::string stem_ =
      test::temp_path(::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(GgufSplitTest, OpensAllFilesFromAnyOfThem) {
  for (int i = 1; i <= 3; ++i) write_part(i, 3, str_cat("t", i), i - 1, 3);
  for (const int opened : {1, 3}) {
    const auto file = GgufFile::open(part_path(opened, 3));
    ASSERT_OK(file);
    EXPECT_EQ(file->num_splits(), 3);
    EXPECT_EQ(*file->get_string("general.architecture"), "deepseek4");
    ASSERT_EQ(file->tensors().size(), 3U);
    const TensorInfo* tensor = file->find_tensor("t2");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->split_idx, 1);
    EXPECT_EQ(*reinterpret_cast<const float*>(tensor->data), 2.0f);
  }
}

TEST_F(GgufSplitTest, NamesTheMissingFile) {
  write_part(1, 2, "t1", 0, 2);
  EXPECT_ERROR(GgufFile::open(part_path(1, 2)), StatusCode::kNotFound, part_path(2, 2));
}

TEST_F(GgufSplitTest, RefusesDisagreeingParts) {
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  write_part(1, 2, "t1", 0, 2);
  write_part(2, 2, "t2", 0, 2);
  EXPECT_ERROR(GgufFile::open(part_path(1, 2)), kInvalid, "split.no is 0, expected 1");
  write_part(2, 2, "t2", 1, 5);
  EXPECT_ERROR(GgufFile::open(part_path(1, 2)), kInvalid, "split.count is 5, expected 2");
  write_part(2, 2, "t1", 1, 2);
  EXPECT_ERROR(GgufFile::open(part_path(1, 2)), kInvalid, "already in another file");
}

TEST_F(GgufSplitTest, RefusesAWrongTensorTotal) {
  write_part(1, 1, "t1", 0, 1);
  EXPECT_OK(GgufFile::open(part_path(1, 1)));
  GgufWriter writer;
  writer.set_i32("split.tensors.count", 9);
  writer.add_zeros("t", DType::kF32, {1});
  ASSERT_OK(writer.write(stem_ + ".gguf"));
  EXPECT_ERROR(
      GgufFile::open(stem_ + ".gguf"), StatusCode::kInvalidArgument,
      "split.tensors.count is 9, but the files hold 1 tensors");
}

TEST_F(GgufSplitTest, RefusesAPartThatWasRenamed) {
  write_part(1, 2, "t1", 0, 2);
  const std::string renamed = stem_ + ".gguf";
  ASSERT_EQ(std::rename(part_path(1, 2).c_str(), renamed.c_str()), 0);
  EXPECT_ERROR(
      GgufFile::open(renamed), StatusCode::kInvalidArgument, "split.count is 2, expected 1");
}

TEST_F(GgufSplitTest, RefusesImpossiblePartNumbers) {
  EXPECT_ERROR(
      GgufFile::open("m-00000-of-00002.gguf"), StatusCode::kInvalidArgument, "part 0 of 2");
  EXPECT_ERROR(
      GgufFile::open("m-00003-of-00002.gguf"), StatusCode::kInvalidArgument, "part 3 of 2");
  EXPECT_ERROR(
      GgufFile::open("m-00001-of-99999.gguf"), StatusCode::kInvalidArgument, "part 1 of 99999");
  EXPECT_ERROR(GgufFile::open("m-0000x-of-00002.gguf"), StatusCode::kNotFound, "m-0000x-of-00002");
}

}  // namespace
}  // namespace tandem
