#include "api/openapi/openapi.h"

#include <gtest/gtest.h>

#include "tests/api/support/openapi.h"
#include "tests/support/paths.h"

namespace tandem {
namespace {

using api::Json;

TEST(OpenApiTest, TheProgramHoldsTheCheckedInDocument) {
  EXPECT_EQ(api::openapi_document(), test::read_text(test::repo_path("api/openapi/openapi.json")));
}

TEST(OpenApiTest, DescribesEverySurface) {
  const test::OpenApi description;
  const Json& paths = description.document()["paths"];
  for (const char* path :
       {"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages",
        "/v1/messages/count_tokens", "/v1/models", "/v1/models/{id}", "/v1/stats", "/metrics",
        "/health", "/openapi.json"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(OpenApiTest, TheJudgeFindsWhatIsWrong) {
  const test::OpenApi description;
  Json count = {{"input_tokens", 3}};
  const auto problems = [&] { return description.check("TokenCount", count).size(); };
  EXPECT_EQ(problems(), 0u);
  count["input_tokens"] = -1;
  EXPECT_EQ(problems(), 1u);
  count["input_tokens"] = "3";
  EXPECT_EQ(problems(), 1u);
  count = Json::object();
  EXPECT_EQ(problems(), 1u);
  EXPECT_FALSE(description.check_event("/v1/messages", {{"type", "pong"}}).empty());
  EXPECT_FALSE(description.check("NoSuchSchema", count).empty());
}

}  // namespace
}  // namespace tandem
