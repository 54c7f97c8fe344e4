#include "base/log.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(LogTest, PrintsEventAndQuotedFields) {
  set_log_level(LogLevel::kInfo);
  ::testing::internal::CaptureStderr();
  log_info("base", "thing_done", {{"count", 3}, {"text", "two words"}, {"line", "a\nb"}});
  const std::string out = ::testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::kWarning);
  EXPECT_NE(
      out.find("info base thing_done count=3 text=\"two words\" line=\"a\\nb\""), std::string::npos)
      << out;
}

TEST(LogTest, DropsLinesBelowLevel) {
  ::testing::internal::CaptureStderr();
  log_debug("base", "hidden");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace tandem
