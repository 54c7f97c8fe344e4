#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/deepseek_v4/prompt.h"
#include "tests/model/families/deepseek_v4/events.h"

namespace tandem {
namespace {

using test::joined;
using test::parse_pieces;

/// Answers with every kind of element, well-formed or not.
std::vector<std::string> samples() {
  const std::string block =
      "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f&amp;g\">\n"
      "<｜DSML｜parameter name=\"s\" string=\"true\">a<b </parameter>é😀 &lt;/x&gt; &amp;amp; &"
      "</｜DSML｜parameter>\n"
      "<｜DSML｜parameter name=\"j\" string=\"false\">{\"k\": [1, \"</｜DSML｜parameter>\\\"\", 2]}"
      "</｜DSML｜parameter>\n"
      "\x01<｜DSML｜parameter name=\"o\">\n<parameter name=\"i\" string=\"true\">x</parameter>\n"
      "</｜DSML｜parameter></｜DSML｜invoke>\n"
      "<｜DSML｜invoke name=\"g\"></｜DSML｜invoke>\n</｜DSML｜tool_calls>";
  const std::string bare = "<|DSML|invoke name='h'><|DSML|parameter name=\"q\" string=\"true\">1";
  const std::string bare_end = "</|DSML|parameter></|DSML|invoke>";
  return {
      "Hello, world!  ",
      "<think>why \xE2\x82</think> because \n" + block + " tail",
      "I think" + block,
      "I think" + block + " of this </think>\n done",
      "I think" + block.substr(0, block.size() / 2),
      "I think" + block.substr(0, block.size() / 2) + "</think>" + block,
      "text" + block.substr(0, block.size() - 30),
      "text " + bare + bare_end + "\n" + bare + bare_end + " more",
      "text " + bare + "</|DSML|invoke>\n</|DSML|tool_calls>",
      "<tool_calls> in prose, </tool_calls> <｜DSML｜toolcalls>\n<｜DSML｜invoke name=\"f\">\n"
      "</｜DSML｜invoke></｜DSML｜tool_calls>",
      "｜DSML｜tool_calls>" + bare + bare_end + "</tool_calls>",
      "a</｜DSML｜tool_calls>b <｜DSML｜tool_calls> c" + block,
      "<tool_calls>" + std::string(80, ' ') + "<invoke name=\"f\"></invoke></tool_calls>",
      std::string(80, '\n') + block,
      "a <｜DSML｜invoke name=\"x</think>b\"> c",
      "\xFF\xEF\xBD<\xEF\xBD\x9C"
      "DSML\xEF\xBD\x9C",
      "<｜DSML｜invoke name=\"" + std::string(1100, 'n') + "\">",
  };
}

std::vector<ParserOptions> all_options() {
  std::vector<ParserOptions> out;
  for (const bool reasoning : {false, true}) {
    for (const bool tools : {false, true}) {
      out.push_back({.starts_in_reasoning = reasoning, .tools_active = tools});
    }
  }
  return out;
}

std::vector<std::string_view> random_pieces(std::string_view text, std::mt19937& random) {
  std::vector<std::string_view> pieces;
  const size_t max_bytes = 1 + random() % 40;
  for (size_t pos = 0; pos < text.size();) {
    const size_t num_bytes = 1 + random() % max_bytes;
    pieces.push_back(text.substr(pos, num_bytes));
    pos += num_bytes;
  }
  return pieces;
}

/// Every way of feeding `text` gives what feeding it whole does.
void expect_split_free(std::string_view text, const ParserOptions& options, std::mt19937& random) {
  const auto whole = v4_parse_output(text, options);
  EXPECT_EQ(whole, joined(whole));
  std::vector<std::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  ASSERT_EQ(test::show(parse_pieces(bytes, options)), test::show(whole)) << text;
  for (int round = 0; round < 8; ++round) {
    ASSERT_EQ(test::show(parse_pieces(random_pieces(text, random), options)), test::show(whole))
        << text;
  }
}

TEST(V4OutputParserSplitTest, GivesTheSameEventsForEveryCutInTwo) {
  for (const std::string& sample : samples()) {
    for (const ParserOptions& options : all_options()) {
      const auto whole = v4_parse_output(sample, options);
      const std::string_view text = sample;
      for (size_t cut = 0; cut <= text.size(); ++cut) {
        ASSERT_EQ(parse_pieces({text.substr(0, cut), text.substr(cut)}, options), whole)
            << "cut at " << cut << " of " << sample;
      }
    }
  }
}

TEST(V4OutputParserSplitTest, GivesTheSameEventsForSingleBytesAndRandomPieces) {
  std::mt19937 random(17);
  for (const std::string& sample : samples()) {
    for (const ParserOptions& options : all_options()) expect_split_free(sample, options, random);
  }
}

TEST(V4OutputParserSplitTest, GivesTheSameEventsForAnyMixOfFragments) {
  const std::vector<std::string> fragments = {
      "<",
      "</",
      ">",
      "\"",
      "\\",
      "&",
      "&lt;",
      "amp;",
      " ",
      "\n",
      "x",
      "é",
      "\xE2",
      "｜",
      "|",
      "DSML",
      "｜DSML｜",
      "<｜DSML｜",
      "</｜DSML｜",
      "tool_calls>",
      "toolcalls>",
      "invoke name=\"f\">",
      "invoke>",
      "parameter name=\"a\" string=\"true\">",
      "parameter name=\"b\" string=\"false\">",
      "parameter name=\"c\">",
      "parameter name=\"",
      "parameter>",
      "<parameter name=\"d\">",
      "</parameter>",
      "</think>",
      "<think>",
      "{\"k\":1}",
      "\x80",
      "<｜DSML｜tool_calls>",
      "</｜DSML｜tool_calls>",
      "<｜DSML｜invoke name=\"f\">",
      "</｜DSML｜invoke>",
      "<｜DSML｜parameter name=\"a\" string=\"true\">",
      "</｜DSML｜parameter>"};
  std::mt19937 random(18);
  for (int round = 0; round < 4000; ++round) {
    std::string text;
    const size_t num_fragments = 1 + random() % 24;
    // Half of the texts start inside a block, where most of the states are.
    if (random() % 2 == 0) text = "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">";
    for (size_t i = 0; i < num_fragments; ++i) text += fragments[random() % fragments.size()];
    for (const ParserOptions& options : all_options()) {
      expect_split_free(text, options, random);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(V4OutputParserSplitTest, MarksTheSameStructureForEverySplit) {
  const auto protocol = v4_prompt_protocol();
  for (const std::string& text : samples()) {
    const auto stepwise = protocol->parser(test::kTools);
    std::vector<Event> out;
    for (size_t i = 0; i < text.size(); ++i) {
      stepwise->push(std::string_view(text).substr(i, 1), out);
      const auto at_once = protocol->parser(test::kTools);
      at_once->push(std::string_view(text).substr(0, i + 1), out);
      ASSERT_EQ(stepwise->in_structure(), at_once->in_structure()) << text.substr(0, i + 1);
      ASSERT_EQ(stepwise->turn_complete(), at_once->turn_complete()) << text.substr(0, i + 1);
    }
  }
}

}  // namespace
}  // namespace tandem
