#include <gtest/gtest.h>

#include "api/responses/hidden_reasoning.h"
#include "api/responses/sealed_reasoning.h"

namespace tandem {
namespace {

TEST(SealedReasoningTest, ComesBackExactly) {
  for (const std::string text : {"", "a", "ab", "abc", "abcd", "line\né😀\"\\"}) {
    EXPECT_EQ(api::unseal_reasoning(api::seal_reasoning(text)), text);
  }
}

TEST(SealedReasoningTest, RefusesWhatItDidNotSeal) {
  EXPECT_EQ(api::unseal_reasoning("gAAAAABo"), std::nullopt);
  EXPECT_EQ(api::unseal_reasoning(""), std::nullopt);
  EXPECT_EQ(api::unseal_reasoning(api::seal_reasoning("abc") + "!"), std::nullopt);
  EXPECT_EQ(api::unseal_reasoning("tandem1.__"), std::nullopt);  // 0xFF is no UTF-8
}

api::Answer answer_of(const std::string& id, const std::string& reasoning) {
  api::Answer answer;
  answer.reasoning = reasoning;
  answer.calls.push_back({id, "f", "{}"});
  return answer;
}

std::vector<Message> call_of(const std::string& id) {
  std::vector<Message> messages(1);
  messages[0].role = Role::kAssistant;
  messages[0].tool_calls.push_back({id, "f", "{}", {}});
  return messages;
}

TEST(HiddenReasoningTest, ComesBackByTheCallsId) {
  api::HiddenReasoning hidden;
  hidden.remember(answer_of("c1", "hm"));
  auto messages = call_of("c1");
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, "hm");
  messages = call_of("c2");
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, std::nullopt);
}

TEST(HiddenReasoningTest, LeavesWhatTheClientSent) {
  api::HiddenReasoning hidden;
  hidden.remember(answer_of("c1", "hm"));
  auto messages = call_of("c1");
  messages[0].reasoning = "own";
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, "own");
}

TEST(HiddenReasoningTest, ForgetsTheLeastRecentlyUsed) {
  api::HiddenReasoning hidden(/*ids_max=*/2, /*bytes_max=*/100);
  hidden.remember(answer_of("c1", "1"));
  hidden.remember(answer_of("c2", "2"));
  auto used = call_of("c1");
  hidden.attach(used);
  hidden.remember(answer_of("c3", "3"));
  auto messages = call_of("c2");
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, std::nullopt);
  messages = call_of("c1");
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, "1");
  hidden.remember(answer_of("c4", std::string(200, 'x')));  // larger than all room
  messages = call_of("c1");
  hidden.attach(messages);
  EXPECT_EQ(messages[0].reasoning, std::nullopt);
}

}  // namespace
}  // namespace tandem
