// What each subcommand prints, by running the real program on the bundled model.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/apps/tandem_program.h"
#include "tests/support/oracle.h"

namespace tandem {
namespace {

using nlohmann::json;
using test::ProgramResult;
using test::tandem;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kCapital = "What is the capital of France?";
const std::string kStory = "Write a short story about a fox and a lamp.";

constexpr const char* kTools = R"([
  {"type": "function", "function": {"name": "read_file", "description": "Read a file",
   "parameters": {"type": "object", "properties": {"path": {"type": "string", "description": "File path"}},
                  "required": ["path"]}}},
  {"type": "function", "function": {"name": "get_weather", "description": "Get the current weather for a city",
   "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "City name"},
                  "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}, "required": ["city"]}}}])";

std::string write_file(const std::string& name, const std::string& text) {
  const std::string path = test::temp_path(name);
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

std::vector<std::string> joined(std::vector<std::string> a, const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The JSON object of `run --json` with more arguments.
json run_json(const std::vector<std::string>& arguments) {
  const ProgramResult result = tandem(joined({"run", "--json"}, arguments));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const json parsed = json::parse(result.out, nullptr, false);
  EXPECT_TRUE(parsed.is_object()) << result.out;
  return parsed;
}

TEST(RunTest, AnswersInTextAndTimesItself) {
  const ProgramResult result = tandem({"run", "-p", kCapital, "--nothink", "--temp", "0"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "The capital of France is Paris.\n");
  EXPECT_THAT(result.err, HasSubstr(" prompt tokens (0 cached) at "));
  EXPECT_THAT(result.err, Not(HasSubstr("cut"))) << "it ended by itself";
  EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b"))) << "no colours off a terminal";
}

TEST(RunTest, ReasonsFirstUnlessToldNotTo) {
  const json thinking = run_json({"-p", "What is 37 + 45?", "--temp", "0"});
  EXPECT_TRUE(thinking.contains("reasoning"));
  EXPECT_THAT(thinking["content"].get<std::string>(), HasSubstr("82"));
  const json direct = run_json({"-p", kCapital, "--temp", "0", "--nothink"});
  EXPECT_FALSE(direct.contains("reasoning"));
}

TEST(RunTest, PrintsOneJsonObject) {
  const json out = run_json({"-p", kCapital, "--nothink", "--temp", "0"});
  EXPECT_EQ(out["content"], "The capital of France is Paris.");
  EXPECT_EQ(out["finish_reason"], "stop");
  EXPECT_EQ(out["generated_tokens"], out["tokens"].size());
  EXPECT_GT(out["prompt_tokens"], 5);
}

TEST(RunTest, ContinuesARenderedPromptAsTheReferenceDoes) {
  const test::OraclePrompt prompt = test::oracle_prompt("q4_k", "capital");
  const std::string text =
      "<｜begin▁of▁sentence｜>You are a helpful assistant.<｜User｜>What is the capital of "
      "France?<｜Assistant｜></think>";
  const json raw = run_json({"--raw", "-p", text, "--temp", "0", "--exact"});
  EXPECT_EQ(raw["tokens"].get<std::vector<int32_t>>(), prompt.greedy);
  EXPECT_EQ(raw["prompt_tokens"], prompt.ids.size());
  const json rendered = run_json(
      {"-s", "You are a helpful assistant.", "-p", kCapital, "--nothink", "--temp", "0",
       "--exact"});
  EXPECT_EQ(rendered["tokens"], raw["tokens"]);
}

TEST(RunTest, TreatsControlTokensInAMessageAsText) {
  const json plain = run_json({"-p", "x", "--nothink", "-n", "0"});
  const json spelled = run_json({"-p", "x<｜end▁of▁sentence｜>", "--nothink", "-n", "0"});
  EXPECT_GT(spelled["prompt_tokens"].get<int>(), plain["prompt_tokens"].get<int>() + 3);
}

TEST(RunTest, ASeedDrawsTheSameTokensAndAnotherSeedOthers) {
  const auto tokens = [](const char* seed) {
    return run_json({"-p", kStory, "--nothink", "-n", "40", "--seed", seed})["tokens"];
  };
  const json first = tokens("7");
  EXPECT_EQ(tokens("7"), first);
  EXPECT_NE(tokens("8"), first);
}

TEST(RunTest, ThreadsChangeNoToken) {
  const auto tokens = [](const char* threads) {
    return run_json(
        {"-p", kStory, "--nothink", "-n", "40", "--seed", "7", "-t", threads})["tokens"];
  };
  const json one = tokens("1");
  EXPECT_EQ(tokens("2"), one);
  EXPECT_EQ(tokens("3"), one);
}

TEST(RunTest, SaysThatItCutAnAnswer) {
  const ProgramResult result = tandem({"run", "-p", kStory, "--nothink", "--temp", "0", "-n", "5"});
  EXPECT_THAT(result.err, HasSubstr("5 generated"));
  EXPECT_THAT(result.err, HasSubstr("cut at the limit (-n)"));
  EXPECT_EQ(run_json({"-p", kStory, "--nothink", "-n", "5"})["finish_reason"], "length");
  const ProgramResult full = tandem({"run", "-p", kStory, "--nothink", "--temp", "0", "-c", "24"});
  EXPECT_THAT(full.err, HasSubstr("cut because the context is full (-c)"));
}

TEST(RunTest, StopsBeforeAStopString) {
  const json out =
      run_json({"-p", kCapital, "--nothink", "--temp", "0", "--stop", " is Par", "--stop", "zzz"});
  EXPECT_EQ(out["content"], "The capital of France");
  EXPECT_EQ(out["finish_reason"], "stop");
}

TEST(RunTest, ReadsThePromptFromAFile) {
  const std::string path = write_file("prompt.txt", kCapital);
  const ProgramResult result = tandem({"run", "--prompt-file", path, "--nothink", "--temp", "0"});
  EXPECT_EQ(result.out, "The capital of France is Paris.\n");
}

TEST(RunTest, CallsATool) {
  const std::string tools = write_file("tools.json", kTools);
  const std::vector<std::string> arguments = {
      "-p", "What is the weather in Hamburg?", "--tools", tools, "--nothink", "--temp", "0"};
  const json out = run_json(arguments);
  EXPECT_EQ(out["finish_reason"], "tool_calls");
  ASSERT_EQ(out["tool_calls"].size(), 1u) << out;
  EXPECT_EQ(out["tool_calls"][0]["name"], "get_weather");
  const std::string call = out["tool_calls"][0]["arguments"];
  EXPECT_EQ(json::parse(call, nullptr, false)["city"], "Hamburg") << call;
  const ProgramResult text = tandem(joined({"run"}, arguments));
  EXPECT_THAT(text.out, HasSubstr("[calls get_weather {"));
}

TEST(RunTest, DumpsLogprobsThatAddUp) {
  const std::string path = test::temp_path("logprobs.json");
  const json out = run_json(
      {"-p", kCapital, "--nothink", "--temp", "0", "--dump-logprobs", path, "--logprobs-top-k",
       "5"});
  const json dump = json::parse(test::read_text(path));
  EXPECT_EQ(dump["source"], "tandem");
  EXPECT_EQ(dump["top_k"], 5);
  EXPECT_EQ(dump["prompt_tokens"], out["prompt_tokens"]);
  ASSERT_EQ(dump["steps"].size(), out["tokens"].size());
  std::string text;
  for (size_t i = 0; i < dump["steps"].size(); ++i) {
    const json& step = dump["steps"][i];
    EXPECT_EQ(step["step"], i);
    EXPECT_EQ(step["selected"]["id"], out["tokens"][i]);
    ASSERT_EQ(step["top_logprobs"].size(), 5u);
    EXPECT_EQ(step["top_logprobs"][0]["token"]["id"], out["tokens"][i]) << "greedy";
    double sum = 0;
    double before = 0;
    for (const json& top : step["top_logprobs"]) {
      EXPECT_LE(top["logprob"].get<double>(), before);
      before = top["logprob"];
      sum += std::exp(before);
    }
    EXPECT_LE(sum, 1.0 + 1e-6);
    for (const json& byte : step["selected"]["bytes"])
      text.push_back(static_cast<char>(byte.get<int>()));
  }
  EXPECT_EQ(text, "The capital of France is Paris.<｜end▁of▁sentence｜>");
}

TEST(RunTest, DumpsTheLogitsThatChooseTheFirstToken) {
  const std::string path = test::temp_path("logits.json");
  const json out =
      run_json({"-p", kCapital, "--nothink", "--temp", "0", "-n", "1", "--dump-logits", path});
  const json dump = json::parse(test::read_text(path));
  EXPECT_EQ(dump["argmax"], out["tokens"][0]);
  EXPECT_EQ(dump["prompt_tokens"], out["prompt_tokens"]);
  const auto logits = dump["logits"].get<std::vector<double>>();
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), dump["argmax"]);
}

TEST(RunTest, UsesWeightsFromTheMapping) {
  const ProgramResult result = tandem({"run", "-p", kStory, "--nothink", "--temp", "0"});
  std::ifstream file(test::nano_path(), std::ios::binary | std::ios::ate);
  EXPECT_LE(result.peak_resident_kib, file.tellg() / 1024 + 200 * 1024);
  EXPECT_GT(result.peak_resident_kib, 1024);
}

TEST(RunTest, TakesMoreTimeAtLessPower) {
  const auto seconds = [](const char* power) {
    const json out = run_json(
        {"-p", kStory, "--nothink", "--temp", "0", "-n", "30", "-t", "1", "--power", power});
    return out["decode_seconds"].get<double>();
  };
  EXPECT_GT(seconds("10"), 3 * seconds("100"));
}

TEST(TokenizeTest, TurnsTextIntoIdsAndBack) {
  const std::string text = "Hello, W\xc3\xb6rld! 12345\n\tif (x) { }";
  const ProgramResult ids = tandem({"tokenize", "--json", "-p", text});
  EXPECT_EQ(ids.exit_code, 0);
  const json parsed = json::parse(ids.out);
  std::vector<std::string> back = {"tokenize", "--decode"};
  for (const json& id : parsed) back.push_back(std::to_string(id.get<int>()));
  EXPECT_EQ(tandem(back).out, text + "\n");
  EXPECT_EQ(tandem({"tokenize", "--json"}, text).out, ids.out) << "standard input";
  EXPECT_EQ(tandem({"tokenize", "--json", "--prompt-file", write_file("t", text)}).out, ids.out);

  const ProgramResult lines = tandem({"tokenize", "-p", text});
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), std::ssize(parsed));
}

TEST(TokenizeTest, SeesSpecialTokensOnlyInRawText) {
  const std::string text = "<｜User｜>";
  EXPECT_EQ(json::parse(tandem({"tokenize", "--json", "--raw", "-p", text}).out).size(), 1u);
  EXPECT_GT(json::parse(tandem({"tokenize", "--json", "-p", text}).out).size(), 1u);
}

TEST(InspectTest, DescribesAFileForPeopleAndPrograms) {
  const ProgramResult text = tandem({"inspect", test::nano_path()});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("6 layers"));
  EXPECT_THAT(text.out, HasSubstr("token_embd.weight"));
  const json parsed = json::parse(tandem({"inspect", "-m", test::nano_path(), "--json"}).out);
  EXPECT_EQ(parsed["model"]["supported"], true);
  EXPECT_EQ(parsed["model"]["layers"], 6);
  EXPECT_EQ(parsed["model"]["hidden_dim"], 256);
  EXPECT_EQ(tandem({"inspect"}).out, tandem({"inspect", test::nano_path()}).out);
}

TEST(ScoreTest, TotalsAreTheSumOfTheTokens) {
  const std::string path =
      write_file("text.txt", "The fox saw the lamp. The lamp was red, and the fox was glad.");
  const json totals = json::parse(tandem({"score", path, "--bos", "--json"}).out);
  const ProgramResult lines = tandem({"score", path, "--bos", "--json", "--per-token"});
  std::istringstream in(lines.out);
  std::string line;
  double sum = 0;
  int64_t num_lines = 0;
  json last;
  while (std::getline(in, line)) {
    last = json::parse(line);
    if (!last.contains("logprob")) break;
    EXPECT_EQ(last["pos"], num_lines + 1);
    sum -= last["logprob"].get<double>();
    ++num_lines;
  }
  EXPECT_EQ(last, totals);
  EXPECT_EQ(totals["scored"], num_lines);
  EXPECT_EQ(totals["tokens"], num_lines + 1);
  EXPECT_NEAR(totals["nll"].get<double>(), sum, 1e-9);
  EXPECT_NEAR(totals["avg_nll"].get<double>(), sum / static_cast<double>(num_lines), 1e-9);
  EXPECT_NEAR(totals["ppl"].get<double>(), std::exp(sum / static_cast<double>(num_lines)), 1e-6);

  const json rest = json::parse(tandem({"score", path, "--bos", "--json", "--context", "5"}).out);
  EXPECT_EQ(rest["scored"], num_lines + 1 - 5);
  EXPECT_LT(rest["nll"].get<double>(), sum);
  EXPECT_THAT(tandem({"score", path}).out, HasSubstr("ppl="));
}

}  // namespace
}  // namespace tandem
