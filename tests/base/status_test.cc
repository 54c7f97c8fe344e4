#include "base/status.h"

#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

Result<int> half_of(int value) {
  TANDEM_REQUIRE(value % 2 == 0, str_cat("value ", value, " is odd"));
  return value / 2;
}

Result<int> quarter_of(int value) {
  TANDEM_TRY_ASSIGN(const int half, half_of(value));
  return half_of(half);
}

Status check_quarter(int value) {
  TANDEM_TRY_ASSIGN([[maybe_unused]] const int quarter, quarter_of(value));
  return {};
}

TEST(StatusTest, CarriesValueThroughTry) {
  ASSERT_OK(quarter_of(8));
  EXPECT_EQ(*quarter_of(8), 2);
}

TEST(StatusTest, StopsAtFirstError) {
  EXPECT_ERROR(quarter_of(6), StatusCode::kInvalidArgument, "value 3 is odd");
  EXPECT_ERROR(check_quarter(7), StatusCode::kInvalidArgument, "value 7 is odd");
}

TEST(StatusDeathTest, RefusesValueOfError) {
  EXPECT_DEATH({ [[maybe_unused]] const int value = half_of(1).value(); }, "check failed");
}

}  // namespace
}  // namespace tandem
