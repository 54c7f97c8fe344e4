#include "api/generation/tool_memory.h"

#include <gtest/gtest.h>

namespace tandem::api {
namespace {

std::string attached(ToolMemory& memory, std::vector<ToolCall> calls) {
  Message message;
  message.role = Role::kAssistant;
  message.tool_calls = std::move(calls);
  std::vector<Message> messages = {message};
  memory.attach(messages);
  return messages[0].tool_calls[0].sampled_block;
}

TEST(ToolMemoryTest, BringsBackTheBlockOfItsCalls) {
  ToolMemory memory;
  memory.remember({{"a", "f", R"({"x":1,"y":"z"})"}, {"b", "g", "{}"}}, "BLOCK");
  // Spacing and key order are the client's own; a missing "arguments" is an empty object.
  EXPECT_EQ(
      attached(memory, {{"a", "f", R"({ "y": "z", "x": 1 })", {}}, {"b", "g", "", {}}}), "BLOCK");
  EXPECT_EQ(memory.stats().replayed, 1);
}

TEST(ToolMemoryTest, EditedOrRegroupedCallsAreNotReplayed) {
  ToolMemory memory;
  memory.remember({{"a", "f", R"({"x":1})"}, {"b", "g", "{}"}}, "BLOCK");
  memory.remember({{"c", "h", "{}"}}, "OTHER");
  EXPECT_EQ(attached(memory, {{"a", "f", R"({"x":2})", {}}, {"b", "g", "{}", {}}}), "");
  EXPECT_EQ(attached(memory, {{"a", "renamed", R"({"x":1})", {}}, {"b", "g", "{}", {}}}), "");
  EXPECT_EQ(attached(memory, {{"a", "f", R"({"x":1})", {}}}), "");
  EXPECT_EQ(attached(memory, {{"b", "g", "{}", {}}, {"a", "f", R"({"x":1})", {}}}), "");
  EXPECT_EQ(attached(memory, {{"a", "f", R"({"x":1})", {}}, {"c", "h", "{}", {}}}), "");
  EXPECT_EQ(memory.stats().canonical, 5);
  EXPECT_EQ(attached(memory, {{"unknown", "f", "{}", {}}}), "");
  EXPECT_EQ(memory.stats().missing, 1);
}

TEST(ToolMemoryTest, ForgetsTheLeastRecentlyUsedFirst) {
  ToolMemory memory(/*ids_max=*/2);
  memory.remember({{"a", "f", "{}"}}, "A");
  memory.remember({{"b", "f", "{}"}}, "B");
  EXPECT_EQ(attached(memory, {{"a", "f", "{}", {}}}), "A");
  memory.remember({{"c", "f", "{}"}}, "C");
  EXPECT_EQ(attached(memory, {{"a", "f", "{}", {}}}), "A");
  EXPECT_EQ(attached(memory, {{"b", "f", "{}", {}}}), "");
  EXPECT_EQ(memory.stats().num_ids, 2);
  EXPECT_EQ(memory.stats().block_bytes, 2);
}

TEST(ToolMemoryTest, BoundsTheBytesOfBlocks) {
  ToolMemory memory(/*ids_max=*/100, /*bytes_max=*/10);
  memory.remember({{"a", "f", "{}"}, {"b", "f", "{}"}}, "12345678");
  memory.remember({{"c", "f", "{}"}}, "1234");
  EXPECT_EQ(memory.stats().num_ids, 1);
  EXPECT_EQ(memory.stats().block_bytes, 4);
}

TEST(ToolMemoryTest, CanBeTurnedOff) {
  ToolMemory memory(/*ids_max=*/0);
  memory.remember({{"a", "f", "{}"}}, "A");
  EXPECT_EQ(attached(memory, {{"a", "f", "{}", {}}}), "");
}

}  // namespace
}  // namespace tandem::api
