#include "model/formats/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

TEST(DTypeTest, MapsEveryTypeToItsGgufIdAndBack) {
  std::set<std::string> names;
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(from_ggml_id(ggml_id(dtype)), dtype);
    names.insert(dtype_name(dtype));
  }
  EXPECT_EQ(names.size(), std::size(kAllDTypes));
  EXPECT_EQ(from_ggml_id(16), DType::kIQ2_XXS);
  EXPECT_EQ(from_ggml_id(39), DType::kMXFP4);
  EXPECT_EQ(from_ggml_id(2), std::nullopt);
  EXPECT_EQ(from_ggml_id(0xffffffffU), std::nullopt);
}

TEST(DTypeTest, SizesRows) {
  EXPECT_EQ(row_bytes(DType::kF32, 3), 12);
  EXPECT_EQ(row_bytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(row_bytes(DType::kQ4_K, 512), 288);
  EXPECT_EQ(row_bytes(DType::kMXFP4, 0), 0);
}

TEST(DTypeTest, SizesTensors) {
  const uint64_t experts[] = {4096, 2048, 256};
  const auto bytes = tensor_bytes(DType::kIQ2_XXS, experts);
  ASSERT_OK(bytes);
  EXPECT_EQ(*bytes, 4096ULL / 256 * 66 * 2048 * 256);
}

TEST(DTypeTest, RefusesSizesThatOverflowOrDoNotFit) {
  const auto refused = [](DType dtype, std::vector<uint64_t> dims, const char* text) {
    EXPECT_ERROR(tensor_bytes(dtype, dims), StatusCode::kInvalidArgument, text);
  };
  refused(DType::kF32, {}, "at least one dimension");
  refused(DType::kF32, {4, 0}, "dimension 1 is zero");
  refused(DType::kQ8_0, {33}, "whole Q8_0 blocks");
  refused(DType::kF32, {1ULL << 61}, "size overflows");
  refused(DType::kF32, {1ULL << 20, (1ULL << 42) + 1}, "size overflows");
  refused(DType::kF16, {~0ULL, 2}, "size overflows");
  refused(DType::kMXFP4, {1ULL << 32, 1ULL << 31}, "size overflows");
  const uint64_t largest[] = {(1ULL << 61) - 1};
  EXPECT_OK(tensor_bytes(DType::kF32, largest));
}

}  // namespace
}  // namespace tandem
