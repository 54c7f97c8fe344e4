#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "coordinator/tokenizer/tokenizer.h"
#include "model/families/deepseek_v4/prompt.h"
#include "tests/model/families/deepseek_v4/events.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

std::shared_ptr<const Tokenizer> nano_tokenizer() {
  auto tokenizer =
      Tokenizer::from_hf_json(test::read_text(test::golden_path("tokenizer/nano-tokenizer.json")));
  EXPECT_OK(tokenizer);
  return tokenizer.ok() ? *tokenizer : nullptr;
}

std::vector<int32_t> prompt_ids(
    const Tokenizer& tokenizer, const std::vector<Message>& messages,
    const RenderOptions& options) {
  std::vector<int32_t> ids;
  const auto pieces = v4_prompt_protocol()->render(messages, options);
  EXPECT_OK(pieces);
  if (!pieces.ok()) return ids;
  EXPECT_OK(tokenizer.encode(*pieces, ids));
  return ids;
}

Message message_of(Role role, std::string content) {
  Message message;
  message.role = role;
  message.content = std::move(content);
  return message;
}

// The nano model's greedy answer to the prompt of tool_prompt.txt, without the EOS, by Hugging Face
// transformers in float32.
const std::vector<int32_t> kSampledCall = {266, 30,  8188, 411, 471, 364,  30,   8188, 451,  371,
                                           369, 744, 1806, 580, 30,  8188, 415,  371,  369,  1291,
                                           4,   499, 369,  567, 605, 42,   5495, 312,  8188, 415,
                                           364, 312, 8188, 451, 364, 312,  8188, 411,  471,  32};

TEST(V4PromptTokensTest, ReplaysTheIdsThatTheModelSampled) {
  const auto tokenizer = nano_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  const auto parser = v4_prompt_protocol()->parser(test::kTools);
  std::vector<Event> events;
  for (const int32_t id : kSampledCall) {
    EXPECT_FALSE(parser->turn_complete());
    parser->push(tokenizer->token_bytes(id), events);
  }
  EXPECT_TRUE(parser->turn_complete());
  parser->finish(events);
  events = test::joined(events);
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].data, "get_weather");
  EXPECT_EQ(events[1].data, "{\"city\":\"Hamburg\"}");
  ASSERT_EQ(events[3].kind, Event::Kind::kToolBlockEnd);

  Message answer = message_of(Role::kAssistant, "");
  answer.tool_calls = {{"1", "get_weather", events[1].data, events[3].data}};
  const std::vector<Message> before = {message_of(Role::kUser, "What is the weather in Hamburg?")};
  std::vector<Message> after = before;
  after.push_back(answer);
  std::vector<int32_t> expected = prompt_ids(*tokenizer, before, {});
  expected.insert(expected.end(), kSampledCall.begin(), kSampledCall.end());
  expected.push_back(tokenizer->special_id("<｜end▁of▁sentence｜>").value());
  EXPECT_EQ(prompt_ids(*tokenizer, after, {}), expected);

  // The model was trained on the canonical form, so that writing the call anew changes nothing.
  after.back().tool_calls.front().sampled_block.clear();
  EXPECT_EQ(prompt_ids(*tokenizer, after, {}), expected);
}

TEST(V4PromptTokensTest, GivesTheIdsOfTheRenderedText) {
  const auto tokenizer = nano_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  Message tools = message_of(Role::kSystem, "");
  tools.tools_json =
      R"([{"name":"read_file","description":"Read a file","parameters":{"type":"object",)"
      R"("properties":{"path":{"type":"string","description":"File path"}},"required":["path"]}},)"
      R"({"name":"get_weather","description":"Get the current weather for a city","parameters":)"
      R"({"type":"object","properties":{"city":{"type":"string","description":"City name"},)"
      R"("unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"]}}])";
  std::string text = test::read_text(test::golden_path("deepseek_v4/tool_prompt.txt"));
  text.insert(v4_prompt_protocol()->bos().size(), "\n\n");
  std::vector<int32_t> expected;
  ASSERT_OK(tokenizer->encode_raw(text, expected));
  EXPECT_EQ(
      prompt_ids(
          *tokenizer, {tools, message_of(Role::kUser, "What is the weather in Hamburg?")}, {}),
      expected);
}

TEST(V4PromptTokensTest, EncodesAReplayWithBrokenCharacters) {
  const auto tokenizer = nano_tokenizer();
  ASSERT_NE(tokenizer, nullptr);
  Message answer = message_of(Role::kAssistant, "");
  answer.tool_calls = {{"1", "f", "{}", "<｜DSML｜tool_calls>\xFF\xE2\x82</｜DSML｜tool_calls>"}};
  const auto ids = prompt_ids(*tokenizer, {answer}, {});
  const std::string text = tokenizer->decode(ids, /*skip_special=*/true);
  EXPECT_NE(text.find("\xEF\xBF\xBD\xEF\xBF\xBD"), std::string::npos) << text;
}

}  // namespace
}  // namespace tandem
