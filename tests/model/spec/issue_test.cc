#include "model/spec/issue.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

TEST(IssueTest, IsOkWithoutIssues) {
  EXPECT_OK(issues_to_status("x.gguf", {}));
}

TEST(IssueTest, NamesFileCodeKeyAndDetail) {
  const std::vector<Issue> issues = {{"mismatch", "a.b", "expected 1, found 2"}};
  EXPECT_ERROR(
      issues_to_status("x.gguf", issues), StatusCode::kInvalidArgument,
      "x.gguf: 1 problem: mismatch a.b (expected 1, found 2)");
}

TEST(IssueTest, ShortensALongList) {
  const std::vector<Issue> issues(11, {"missing-tensor", "t", "needed [1]"});
  const std::string message = issues_to_status("x.gguf", issues).message();
  EXPECT_TRUE(message.starts_with("x.gguf: 11 problems: missing-tensor t (needed [1]); "));
  EXPECT_TRUE(message.ends_with("; and 3 more")) << message;
}

}  // namespace
}  // namespace tandem
