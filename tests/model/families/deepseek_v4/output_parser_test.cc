#include "model/families/deepseek_v4/output_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/families/deepseek_v4/dsml_block_parser.h"
#include "model/families/deepseek_v4/prompt.h"
#include "tests/model/families/deepseek_v4/events.h"
#include "tests/support/paths.h"

namespace tandem {
namespace {

using test::kThinkTools;
using test::kTools;

constexpr ParserOptions kNoTools = {};
constexpr ParserOptions kThink = {.starts_in_reasoning = true};

std::string parse(std::string_view text, const ParserOptions& options) {
  return test::show(v4_parse_output(text, options));
}

/// A call of f with the given parameter elements, in a block.
std::string block_of(const std::string& parameters) {
  return "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n" + parameters +
         "\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";
}

std::string parameter(const std::string& name, const std::string& type, const std::string& value) {
  return "<｜DSML｜parameter name=\"" + name + "\" string=\"" + type + "\">" + value +
         "</｜DSML｜parameter>";
}

const std::string kGoodBlock = block_of(parameter("a", "true", "1"));
const std::string kGoodEvents = "begin 0 f\narguments 0 {\"a\":\"1\"}\nend 0\n";

/// The arguments of the one call in `text`.
std::string arguments_of(const std::string& text) {
  std::string out;
  for (const Event& event : v4_parse_output(text, kTools)) {
    EXPECT_NE(event.kind, Event::Kind::kParseError) << event.data;
    if (event.kind == Event::Kind::kToolArguments) out += event.data;
  }
  return out;
}

std::string escaped(const std::string& text) {
  return test::show({{Event::Kind::kContent, text, 0}}).substr(8);
}
std::string ends_with_block(const std::string& block) {
  return "block " + escaped(block);
}
std::string is_error(const std::string& text) {
  return "error\ncontent " + escaped(text);
}

TEST(V4OutputParserTest, SplitsReasoningFromContent) {
  EXPECT_EQ(parse("why</think>because", kThink), "reasoning why\ncontent because\n");
  EXPECT_EQ(parse("<think>why</think>because", kThink), "reasoning why\ncontent because\n");
  EXPECT_EQ(parse("<think>why</think>because", kNoTools), "reasoning why\ncontent because\n");
  EXPECT_EQ(parse("why </thin", kThink), "reasoning why </thin\n");
  EXPECT_EQ(parse("", kThink), "");
  EXPECT_EQ(parse("<thi", kNoTools), "content <thi\n");
}

TEST(V4OutputParserTest, KeepsAnEndOfThinkingTagInContent) {
  EXPECT_EQ(parse("a</think>b</think>c", kThink), "reasoning a\ncontent b</think>c\n");
}

TEST(V4OutputParserTest, TreatsToolSyntaxAsTextWithoutTools) {
  EXPECT_EQ(parse("x" + kGoodBlock, kNoTools), "content x" + escaped(kGoodBlock));
}

TEST(V4OutputParserTest, ReadsTheNanoModelsCall) {
  std::string answer = test::read_text(test::golden_path("deepseek_v4/tool_answer.txt"));
  const std::string eos = "<｜end▁of▁sentence｜>";
  ASSERT_TRUE(answer.ends_with(eos));
  answer.resize(answer.size() - eos.size());
  EXPECT_EQ(
      parse(answer, kTools),
      "begin 0 get_weather\narguments 0 {\"city\":\"Hamburg\"}\nend 0\n" + ends_with_block(answer));
}

TEST(V4OutputParserTest, GivesSeparatorWhitespaceToTheBlock) {
  EXPECT_EQ(
      parse("Let me see. " + kGoodBlock + "\n ignored", kTools),
      "content Let me see.\n" + kGoodEvents + ends_with_block(" " + kGoodBlock));
  EXPECT_EQ(parse("text \n\n", kTools), "content text \\n\\n\n");
}

TEST(V4OutputParserTest, B019KeepsTwoCallsApart) {
  const std::string same = parameter("raw", "true", "x");
  const std::string block = "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">" + same +
                            "</｜DSML｜invoke><｜DSML｜invoke name=\"g\">" + same +
                            "</｜DSML｜invoke></｜DSML｜tool_calls>";
  EXPECT_EQ(
      parse(block, kTools),
      "begin 0 f\narguments 0 {\"raw\":\"x\"}\nend 0\n"
      "begin 1 g\narguments 1 {\"raw\":\"x\"}\nend 1\n" +
          ends_with_block(block));
}

TEST(V4OutputParserTest, WritesArgumentsAsCompactJson) {
  EXPECT_EQ(arguments_of(block_of("")), "{}");
  EXPECT_EQ(
      arguments_of(block_of(
          parameter("s", "true", "a\"b\\\n\tc") + "\n" + parameter("n", "false", " 1.50 ") +
          parameter("o", "false", "{\"k\" : [ 1, \"a  b\" ]}") + parameter("e", "false", "") +
          parameter("t", "true", ""))),
      "{\"s\":\"a\\\"b\\\\\\n\\tc\",\"n\":1.50,\"o\":{\"k\":[1,\"a  b\"]},\"e\":null,\"t\":\"\"}");
}

TEST(V4OutputParserTest, TurnsBrokenJsonIntoAString) {
  EXPECT_EQ(
      arguments_of(block_of(parameter("a", "false", "{\"k\":") + parameter("b", "false", "x\"y"))),
      "{\"a\":\"{\\\"k\\\":\",\"b\":\"x\\\"y\"}");
}

TEST(V4OutputParserTest, DecodesTheFiveEntitiesOnly) {
  EXPECT_EQ(
      arguments_of(
          block_of(parameter("a&quot;b", "true", "&lt;/x&gt; &amp;amp; &apos;&quot; &nbsp; &"))),
      "{\"a\\\"b\":\"</x> &amp; '\\\" &nbsp; &\"}");
}

TEST(V4OutputParserTest, RepairsInvalidUtf8) {
  EXPECT_EQ(
      parse(
          "a\xFF"
          "b\xE2\x82",
          kNoTools),
      "content a\xEF\xBF\xBD"
      "b\xEF\xBF\xBD\n");
  EXPECT_EQ(
      arguments_of(
          block_of(parameter("a", "true", "x\xE2\x82") + parameter("b", "false", "\"\xFF\""))),
      "{\"a\":\"x\xEF\xBF\xBD\",\"b\":\"\xEF\xBF\xBD\"}");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t pos = text.find(from); pos != std::string::npos;
       pos = text.find(from, pos + to.size())) {
    text.replace(pos, from.size(), to);
  }
  return text;
}

TEST(V4OutputParserTest, AcceptsEverySpelling) {
  const std::vector<std::string> spellings = {
      replaced(kGoodBlock, "｜DSML｜", "DSML｜"),
      replaced(kGoodBlock, "｜DSML｜", ""),
      replaced(kGoodBlock, "｜DSML｜", "|DSML|"),
      replaced(kGoodBlock, "｜DSML｜", "｜DSML"),
      replaced(kGoodBlock, "tool_calls", "function_calls"),
      replaced(kGoodBlock, "tool_calls", "tool_call"),
      replaced(kGoodBlock, "name=\"f\"", "name='f'"),
      replaced(kGoodBlock, "\n", ""),
      replaced(kGoodBlock, "\n", " \r\n\t"),
      replaced(kGoodBlock, "</｜DSML｜invoke>\n", ""),
      replaced(kGoodBlock, "</｜DSML｜parameter>", ""),
      replaced(kGoodBlock, "</｜DSML｜parameter>", "</parameter>"),
      replaced(kGoodBlock, "<｜DSML｜tool_calls>", "｜DSML｜tool_calls>"),
      replaced(kGoodBlock, "</｜DSML｜tool_calls>", "</tool_calls>"),
  };
  for (const std::string& block : spellings) {
    SCOPED_TRACE(block);
    const std::string events = parse(block, kTools);
    EXPECT_TRUE(events.starts_with("begin 0 f\narguments 0 {\"a\":\"1")) << events;
    EXPECT_TRUE(events.ends_with(ends_with_block(block))) << events;
  }
}

TEST(V4OutputParserTest, AcceptsBareCalls) {
  const std::string call =
      "<｜DSML｜invoke name=\"f\">" + parameter("a", "true", "1") + "</｜DSML｜invoke>";
  EXPECT_EQ(
      parse("x\n" + call + "\n", kTools),
      "content x\n" + kGoodEvents + ends_with_block("\n" + call));
  EXPECT_EQ(parse(call + " and so on", kTools), kGoodEvents + ends_with_block(call));
  EXPECT_EQ(
      parse(call + call, kTools),
      kGoodEvents + replaced(kGoodEvents, " 0", " 1") + ends_with_block(call + call));
  EXPECT_EQ(
      parse("<invoke name=\"f\"></invoke>", kTools), "content <invoke name=\"f\"></invoke>\n");
}

TEST(V4OutputParserTest, LeavesPlainTagsInProse) {
  for (const std::string text :
       {"Write <tool_calls> first.", "<tool_calls>", "<tool_calls>\n</tool_calls>",
        "a <b> c </invoke>", "<tool_calls", "x < y", "<parameter name=\"a\">"}) {
    EXPECT_EQ(parse(text, kTools), "content " + escaped(text));
  }
}

TEST(V4OutputParserTest, FindsABlockAfterAPlainTagInProse) {
  EXPECT_EQ(
      parse("<tool_calls>" + kGoodBlock, kTools),
      "content <tool_calls>\n" + kGoodEvents + ends_with_block(kGoodBlock));
}

TEST(V4OutputParserTest, DropsClosersWithoutABlock) {
  EXPECT_EQ(parse("a</｜DSML｜tool_calls> b", kTools), "content a b\n");
}

TEST(V4OutputParserTest, TreatsAMissingTypeAsText) {
  EXPECT_EQ(
      arguments_of(block_of("<｜DSML｜parameter name=\"a\"> 1 </｜DSML｜parameter>")),
      "{\"a\":\" 1 \"}");
  EXPECT_EQ(
      arguments_of(block_of("<｜DSML｜parameter name=\"a\"></｜DSML｜parameter>")), "{\"a\":\"\"}");
}

TEST(V4OutputParserTest, BuildsObjectsFromNestedParameters) {
  const std::string open = "<｜DSML｜parameter name=\"o\">\n";
  const std::string inner = parameter("a", "true", "1") + parameter("b", "false", "2");
  const std::string close = "\n</｜DSML｜parameter>";
  EXPECT_EQ(
      arguments_of(block_of(open + inner + close + parameter("c", "false", "3"))),
      "{\"o\":{\"a\":\"1\",\"b\":2},\"c\":3}");
  EXPECT_EQ(arguments_of(block_of(open + inner)), "{\"o\":{\"a\":\"1\",\"b\":2}}");
  EXPECT_EQ(
      arguments_of(block_of(open + open + inner + close + close)),
      "{\"o\":{\"o\":{\"a\":\"1\",\"b\":2}}}");
}

TEST(V4OutputParserTest, BoundsNesting) {
  std::string deep;
  for (int i = 0; i < v4::kParameterDepthMax + 1; ++i) deep += "<｜DSML｜parameter name=\"o\">";
  const std::string block = block_of(deep + "x");
  const std::string events = parse(block, kTools);
  EXPECT_TRUE(events.ends_with(is_error(block))) << events;
}

TEST(V4OutputParserTest, KeepsLessMarkedClosersInsideValues) {
  const std::string xml = "<p></parameter>\n<q/></invoke></tool_calls>";
  EXPECT_EQ(
      arguments_of(block_of(parameter("a", "true", xml))),
      "{\"a\":\"<p></parameter>\\n<q/></invoke></tool_calls>\"}");
  EXPECT_EQ(
      arguments_of(block_of(parameter("a", "false", "[\"</｜DSML｜parameter>\"]"))),
      "{\"a\":[\"</｜DSML｜parameter>\"]}");
}

TEST(V4OutputParserTest, B016SkipsAFewUnknownBytes) {
  const std::string block =
      block_of(parameter("a", "true", "1") + "\x01" + parameter("b", "true", "2") + "é");
  EXPECT_EQ(arguments_of(block), "{\"a\":\"1\",\"b\":\"2\"}");
  const std::string prose = block_of(parameter("a", "true", "1") + "and then some more words");
  EXPECT_EQ(parse(prose, kTools), kGoodEvents + is_error(prose));
}

TEST(V4OutputParserTest, B017RecoversAMisspelledOpener) {
  const std::string block = replaced(kGoodBlock, "<｜DSML｜tool_calls>", "<｜DSML｜toolcalls>");
  EXPECT_EQ(parse(block, kTools), kGoodEvents + ends_with_block(block));
  const std::string far = replaced(kGoodBlock, "<｜DSML｜tool_calls>", "<｜DSML｜actions>");
  EXPECT_EQ(parse(far, kTools), kGoodEvents + ends_with_block(far));
  const std::string cut = replaced(kGoodBlock, "<｜DSML｜tool_calls>", "<｜DSML｜tool_calls");
  EXPECT_EQ(parse(cut, kTools), kGoodEvents + ends_with_block(cut));
}

TEST(V4OutputParserTest, ReportsEveryMalformedBlock) {
  const std::vector<std::string> texts = {
      "Use <｜DSML｜tool_calls> to call.",
      "<｜DSML｜tool_calls></｜DSML｜tool_calls>",
      "<｜DSML｜tool_calls><｜DSML｜invoke>",
      "<｜DSML｜other>",
      "<｜DSML｜parameter name=\"a\" string=\"true\">x</｜DSML｜parameter>",
      "<｜DSML｜tool_calls>\n<｜DSML｜other>",
      "｜DSML｜ alone",
      "x <｜DSML｜tool_cal",
      "x <｜DSML｜tool_calls>",
  };
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    const std::string events = parse(text, kTools);
    EXPECT_NE(events.find("error\ncontent "), std::string::npos) << events;
    EXPECT_EQ(events.find("begin"), std::string::npos) << events;
  }
}

TEST(V4OutputParserTest, ClosesTheJsonOfAFailedCall) {
  const std::string head = "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n";
  const std::string in_string = head + "<｜DSML｜parameter name=\"a\" string=\"true\">1 </";
  EXPECT_EQ(
      parse(in_string, kTools),
      "begin 0 f\narguments 0 {\"a\":\"1 \"}\nend 0\n" + is_error(in_string));
  const std::string in_json = head + "<｜DSML｜parameter name=\"a\" string=\"false\">[1";
  EXPECT_EQ(parse(in_json, kTools), "begin 0 f\narguments 0 {}\nend 0\n" + is_error(in_json));
  const std::string twice = block_of(parameter("a", "true", "1") + "</｜DSML｜parameter>");
  EXPECT_EQ(parse(twice, kTools), kGoodEvents + is_error(twice));
}

TEST(V4OutputParserTest, BoundsABlock) {
  const std::string text =
      "<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\"><｜DSML｜parameter name=\"a\" "
      "string=\"true\">" +
      std::string(v4::kToolBlockBytesMax, 'x');
  const auto whole = v4_parse_output(text, kTools);
  ASSERT_EQ(whole.size(), 5u);
  EXPECT_EQ(whole[3].kind, Event::Kind::kParseError);
  EXPECT_NE(whole[3].data.find("too long"), std::string::npos);
  EXPECT_EQ(whole[4].data, text);
  const size_t half = text.size() / 2;
  EXPECT_EQ(
      test::parse_pieces(
          {std::string_view(text).substr(0, half), std::string_view(text).substr(half)}, kTools),
      whole);
}

TEST(V4OutputParserTest, B014CallsATheBlockInUnclosedReasoning) {
  EXPECT_EQ(
      parse("I will look." + kGoodBlock + "\n", kThinkTools),
      "reasoning I will look.\n" + kGoodEvents + ends_with_block(kGoodBlock));
}

TEST(V4OutputParserTest, TakesABlockBeforeTheEndOfReasoningAsQuotation) {
  EXPECT_EQ(
      parse("I could write" + kGoodBlock + " or not</think>No.", kThinkTools),
      "reasoning I could write" + escaped(kGoodBlock + " or not") + "content No.\n");
  EXPECT_EQ(
      parse("x" + kGoodBlock + "</think>No.", kThinkTools),
      "reasoning x" + escaped(kGoodBlock) + "content No.\n");
  EXPECT_EQ(
      parse("x</think>" + kGoodBlock, kThinkTools),
      "reasoning x\n" + kGoodEvents + ends_with_block(kGoodBlock));
  EXPECT_EQ(
      parse("The <｜DSML｜tool_calls> tag", kThinkTools),
      "reasoning The <｜DSML｜tool_calls> tag\n");
}

TEST(V4OutputParserTest, ReportsABlockThatReasoningCutsOff) {
  const std::string block = kGoodBlock.substr(0, kGoodBlock.size() - 5);
  EXPECT_EQ(parse("x" + block, kThinkTools), "reasoning x\n" + kGoodEvents + is_error(block));
}

TEST(V4OutputParserTest, EndsReasoningInsideAnUnfinishedTag) {
  EXPECT_EQ(
      parse("a <｜DSML｜tool_calls x=\"</think>b", kThinkTools),
      "reasoning a <｜DSML｜tool_calls x=\"\ncontent b\n");
}

/// in_structure() after each prefix of `text`, as one character per byte.
std::string structure_of(const std::string& text, const ParserOptions& options) {
  const auto parser = v4_prompt_protocol()->parser(options);
  std::vector<Event> out;
  std::string marks;
  for (const char c : text) {
    parser->push(std::string_view(&c, 1), out);
    marks += parser->in_structure() ? 'S' : '.';
  }
  return marks;
}

TEST(V4OutputParserTest, MarksStructureForGreedySampling) {
  EXPECT_EQ(
      structure_of(
          "ab<tool_calls>\n<invoke name=\"f\"><parameter name=\"s\" "
          "string=\"true\">x<y</parameter>",
          kTools),
      std::string(13, '.') + std::string(1 + 1 + 17 + 33, 'S') + "....." + std::string(11, 'S'));
  const std::string head = "<tool_calls><invoke name=\"f\"><parameter name=\"s\" string=\"false\">";
  EXPECT_EQ(structure_of(head + "[1,\"a\\\"b\"]", kTools).substr(head.size()), "SSS.....SS");
}

TEST(V4OutputParserTest, MarksNoStructureOutsideALiveBlock) {
  EXPECT_EQ(structure_of(kGoodBlock, kNoTools).find('S'), std::string::npos);
  EXPECT_EQ(structure_of("r" + kGoodBlock, kThinkTools).find('S'), std::string::npos);
  EXPECT_NE(structure_of("r</think>" + kGoodBlock, kThinkTools).find('S'), std::string::npos);
  EXPECT_EQ(structure_of(kGoodBlock, kTools).back(), '.');
}

TEST(V4OutputParserTest, CompletesTheTurnAtTheBlocksEnd) {
  const auto parser = v4_prompt_protocol()->parser(kTools);
  std::vector<Event> out;
  parser->push(kGoodBlock.substr(0, kGoodBlock.size() - 1), out);
  EXPECT_FALSE(parser->turn_complete());
  parser->push(">", out);
  EXPECT_TRUE(parser->turn_complete());
  const size_t num_events = out.size();
  parser->push("more", out);
  parser->finish(out);
  EXPECT_EQ(out.size(), num_events);
}

TEST(V4OutputParserTest, StreamsStringValuesAsTheyArrive) {
  const auto parser = v4_prompt_protocol()->parser(kTools);
  std::vector<Event> out;
  parser->push("<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">", out);
  ASSERT_FALSE(out.empty());
  EXPECT_EQ(out.front().kind, Event::Kind::kToolBegin);
  parser->push("<｜DSML｜parameter name=\"a\" string=\"true\">one", out);
  EXPECT_EQ(test::show(test::joined(out)), "begin 0 f\narguments 0 {\"a\":\"one\n");
  out.clear();
  parser->push(" two &am", out);
  EXPECT_EQ(test::show(out), "arguments 0  two \n");
}

TEST(V4OutputParserTest, HoldsBackNoMoreThanAPossibleTag) {
  const auto parser = v4_prompt_protocol()->parser(kThink);
  std::vector<Event> out;
  parser->push("a title</thin", out);
  EXPECT_EQ(test::show(out), "reasoning a title\n");
  out.clear();
  parser->push("g", out);
  EXPECT_EQ(test::show(out), "reasoning </thing\n");
}

/// What the parser says to pieces of text and, where `marked`, special tokens.
std::string parse_tokens(
    const std::vector<std::pair<std::string, bool>>& tokens, const ParserOptions& options) {
  const auto parser = v4_prompt_protocol()->parser(options);
  std::vector<Event> out;
  for (const auto& [spelling, marked] : tokens) {
    marked ? parser->push_control(spelling, out) : parser->push(spelling, out);
  }
  parser->finish(out);
  return test::show(test::joined(out));
}

TEST(V4OutputParserTest, B013DropsSpecialTokensThatMarkNothing) {
  for (const char* token :
       {"<｜begin▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜latest_reminder｜>",
        "<think>"}) {
    SCOPED_TRACE(token);
    EXPECT_EQ(parse_tokens({{"a", false}, {token, true}, {"b", false}}, kTools), "content ab\n");
    EXPECT_EQ(
        parse_tokens({{"a", false}, {token, true}, {"b</think>c", false}, {token, true}}, kThink),
        "reasoning ab\ncontent c\n");
  }
  EXPECT_EQ(parse_tokens({{"a", false}, {"</think>", true}, {"b", false}}, kTools), "content ab\n");
  EXPECT_EQ(
      parse_tokens({{"<", false}, {"｜DSML｜", true}, {"x>", false}}, kNoTools), "content <x>\n");
}

TEST(V4OutputParserTest, B013ReadsSpecialTokensThatMarkSomething) {
  EXPECT_EQ(
      parse_tokens({{"why", false}, {"</think>", true}, {"so", false}}, kThink),
      "reasoning why\ncontent so\n");
  EXPECT_EQ(
      parse_tokens({{"<think>", true}, {"why", false}, {"</think>", true}, {"so", false}}, kTools),
      "reasoning why\ncontent so\n");
  // A stray token where the block begins does not hide the block.
  std::vector<std::pair<std::string, bool>> tokens = {{"Now.", false}, {"<｜User｜>", true}};
  const std::string marker = "｜DSML｜";
  for (size_t at = 0; at < kGoodBlock.size();) {
    const size_t next = std::min(kGoodBlock.find(marker, at), kGoodBlock.size());
    tokens.emplace_back(kGoodBlock.substr(at, next - at), false);
    if (next < kGoodBlock.size()) tokens.emplace_back(marker, true);
    at = next + marker.size();
  }
  EXPECT_EQ(
      parse_tokens(tokens, kTools), "content Now.\n" + kGoodEvents + ends_with_block(kGoodBlock));
}

TEST(V4OutputParserTest, TextThatOnlySpellsASpecialTokenIsText) {
  EXPECT_EQ(
      parse("It ends with <｜end▁of▁sentence｜>.", kTools),
      "content It ends with <｜end▁of▁sentence｜>.\n");
}

}  // namespace
}  // namespace tandem
