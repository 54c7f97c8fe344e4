#include "tests/api/support/answers.h"

#include <gtest/gtest.h>

#include "api/generation/answer_builder.h"
#include "base/status.h"
#include "coordinator/tokenizer/tokenizer.h"
#include "model/families/deepseek_v4/prompt.h"
#include "tests/support/paths.h"

namespace tandem::test {
namespace {

constexpr int64_t kPromptTokens = 100;
constexpr int64_t kCachedTokens = 60;

const Tokenizer& nano_tokenizer() {
  static const std::shared_ptr<const Tokenizer> kTokenizer = [] {
    auto made = Tokenizer::from_hf_json(read_text(golden_path("tokenizer/nano-tokenizer.json")));
    EXPECT_TRUE(made.ok());
    return *made;
  }();
  return *kTokenizer;
}

}  // namespace

std::vector<std::string> pieces_of(const std::string& text, size_t size) {
  std::vector<std::string> out;
  for (size_t i = 0; i < text.size(); i += size) out.push_back(text.substr(i, size));
  return out;
}

std::vector<std::string> example_pieces() {
  return {
      "need the clock",
      "</think>",
      "Checking.",
      "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"get_time\">\n",
      "<｜DSML｜parameter name=\"tz\" string=\"true\">",
      "Europe/Rome",
      "</｜DSML｜parameter>\n",
      "<｜DSML｜parameter name=\"n\" string=\"false\">",
      "2",
      "</｜DSML｜parameter>\n",
      "</｜DSML｜invoke>\n",
      "</｜DSML｜tool_calls>"};
}

std::string example_answer() {
  std::string out;
  for (const std::string& piece : example_pieces()) out += piece;
  return out;
}

std::string forgotten_end_answer() {
  const std::string text = example_answer();
  return str_cat("hm\n\n\n", text.substr(text.find("<｜DSML｜tool_calls>")));
}

std::string parallel_answer() {
  const auto call = [](std::string_view name, std::string_view parameter) {
    return str_cat(
        "<｜DSML｜invoke name=\"", name, "\">\n<｜DSML｜parameter name=\"", parameter,
        "\" string=\"true\">same text</｜DSML｜parameter>\n</｜DSML｜invoke>\n");
  };
  return str_cat(
      "</think>\n\n<｜DSML｜tool_calls>\n", call("read_file", "path"), call("bash", "command"),
      "</｜DSML｜tool_calls>");
}

api::ResponseHead example_head() {
  return {"id_1", 1767225600, "nano"};
}

ScriptedAnswer play(const Script& script) {
  ScriptedAnswer out;
  api::Delta progress;
  progress.kind = api::Delta::Kind::kProgress;
  progress.prompt_done = kPromptTokens;
  progress.prompt_total = kPromptTokens;
  progress.prompt_cached = kCachedTokens;
  out.deltas.push_back(progress);

  api::AnswerBuilder::Options options;
  options.tool_id_prefix = script.tool_id_prefix;
  options.starts_in_reasoning = script.parser.starts_in_reasoning;
  api::AnswerBuilder builder(options, nano_tokenizer());
  const auto protocol = v4_prompt_protocol();
  const auto parser = protocol->parser(script.parser);
  int64_t num_tokens = 0;
  for (const std::string& piece : script.pieces) {
    api::Mail mail;
    mail.kind = api::Mail::Kind::kToken;
    parser->push(piece, mail.events);
    builder.take(mail, out.deltas);
    ++num_tokens;
    if (parser->turn_complete()) break;
  }
  api::Mail last;
  last.kind = api::Mail::Kind::kFinish;
  last.result.reason = parser->turn_complete() ? FinishReason::kToolCalls : script.finish;
  last.result.stop_string = script.stop_string;
  parser->finish(last.events);
  builder.take(last, out.deltas);

  api::Delta end;
  end.kind = api::Delta::Kind::kFinish;
  end.finish = builder.answer().finish;
  out.deltas.push_back(end);
  out.completion.head = example_head();
  out.completion.choices.push_back(builder.answer());
  out.completion.usage = {kPromptTokens, kCachedTokens, num_tokens, builder.reasoning_tokens()};
  return out;
}

std::string encode(api::StreamEncoder& encoder, const ScriptedAnswer& answer) {
  std::string out;
  encoder.begin(out);
  for (const api::Delta& delta : answer.deltas) encoder.delta(delta, out);
  encoder.end(answer.completion, out);
  return out;
}

}  // namespace tandem::test
