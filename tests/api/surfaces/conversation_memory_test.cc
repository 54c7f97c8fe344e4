#include "api/surface/conversation_memory.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

using api::Answer;
using api::ChatRequest;
using api::ConversationMemory;

class HandClock final : public Clock {
 public:
  explicit HandClock(Time& now) : now_(now) {}
  Time now() const override { return now_; }
  void sleep_for(std::chrono::nanoseconds) override {}

 private:
  Time& now_;
};

ChatRequest question(const std::string& text) {
  ChatRequest request;
  request.messages.resize(2);
  request.messages[0].role = Role::kSystem;
  request.messages[0].content = "rule";
  request.messages[1].content = text;
  request.tools.push_back({"f", R"({"name":"f"})"});
  return request;
}

Answer calls(const std::vector<std::string>& ids) {
  Answer answer;
  answer.content = "well";
  answer.reasoning = "hm";
  answer.finish = FinishReason::kToolCalls;
  for (const std::string& id : ids) answer.calls.push_back({id, "f", "{}"});
  return answer;
}

ChatRequest results(const std::vector<std::string>& ids) {
  ChatRequest request;
  for (const std::string& id : ids) {
    request.messages.emplace_back();
    request.messages.back().role = Role::kTool;
    request.messages.back().tool_call_id = id;
  }
  return request;
}

class ConversationMemoryTest : public ::testing::Test {
 protected:
  ConversationMemory make(size_t conversations, int64_t bytes = 1 << 20) {
    return {
        std::make_unique<HandClock>(now_),
        {.conversations = conversations, .bytes = bytes, .age = std::chrono::seconds(10)}};
  }
  static int status(ConversationMemory& memory, const std::vector<std::string>& ids) {
    ChatRequest request = results(ids);
    const auto error = memory.resume(request);
    return error.has_value() ? error->http_status : 200;
  }

  Clock::Time now_{};
};

TEST_F(ConversationMemoryTest, PutsTheConversationInFront) {
  ConversationMemory memory = make(4);
  memory.remember(question("q"), calls({"a", "b"}));
  ChatRequest request = results({"b", "a"});
  request.messages.insert(request.messages.begin(), question("").messages[0]);
  ASSERT_FALSE(memory.resume(request).has_value());
  ASSERT_EQ(request.messages.size(), 5u);
  EXPECT_EQ(request.messages[0].role, Role::kSystem);
  EXPECT_EQ(request.messages[1].content, "q");
  EXPECT_EQ(request.messages[2].content, "well");
  EXPECT_EQ(request.messages[2].reasoning, "hm");
  EXPECT_EQ(request.messages[2].tool_calls.size(), 2u);
  EXPECT_EQ(request.messages[3].tool_call_id, "b");
  EXPECT_EQ(request.tools.size(), 1u);
}

TEST_F(ConversationMemoryTest, LeavesWholeConversationsAlone) {
  ConversationMemory memory = make(4);
  ChatRequest request = question("q");
  EXPECT_FALSE(memory.resume(request).has_value());
  EXPECT_EQ(request.messages.size(), 2u);
  // Results beside a turn of the assistant are a history, whatever their ids.
  request = results({"unknown"});
  request.messages.emplace_back();
  request.messages.back().role = Role::kAssistant;
  EXPECT_FALSE(memory.resume(request).has_value());
  EXPECT_EQ(request.messages.size(), 2u);
}

TEST_F(ConversationMemoryTest, WantsTheResultsOfAllCallsOfOneTurn) {
  ConversationMemory memory = make(4);
  memory.remember(question("q"), calls({"a", "b"}));
  EXPECT_EQ(status(memory, {"a"}), 409);
  EXPECT_EQ(status(memory, {"a", "b", "c"}), 409);
  EXPECT_EQ(status(memory, {"c"}), 400);
  EXPECT_EQ(status(memory, {"a", "b"}), 200);
}

TEST_F(ConversationMemoryTest, ForgetsWithTime) {
  ConversationMemory memory = make(4);
  memory.remember(question("q"), calls({"a"}));
  now_ += std::chrono::seconds(10);
  EXPECT_EQ(status(memory, {"a"}), 200);
  now_ += std::chrono::seconds(1);
  EXPECT_EQ(status(memory, {"a"}), 409);
}

TEST_F(ConversationMemoryTest, HoldsItsLimits) {
  ConversationMemory few = make(2);
  for (const char* id : {"a", "b", "c"}) few.remember(question("q"), calls({id}));
  EXPECT_EQ(status(few, {"a"}), 400);
  EXPECT_EQ(status(few, {"b"}), 200);
  ConversationMemory small = make(9, /*bytes=*/10000);
  small.remember(question("q"), calls({"a"}));
  small.remember(question(std::string(9000, 'x')), calls({"b"}));
  EXPECT_EQ(status(small, {"a"}), 400);
  EXPECT_EQ(status(small, {"b"}), 200);
  small.remember(question(std::string(20000, 'x')), calls({"c"}));
  EXPECT_EQ(status(small, {"c"}), 400);
}

TEST_F(ConversationMemoryTest, NotesCompleteCallsOnly) {
  ConversationMemory memory = make(4);
  Answer cut = calls({"a"});
  cut.finish = FinishReason::kLength;
  memory.remember(question("q"), cut);
  EXPECT_EQ(status(memory, {"a"}), 400);
}

}  // namespace
}  // namespace tandem
