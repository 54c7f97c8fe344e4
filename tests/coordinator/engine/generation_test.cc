#include "coordinator/engine/generation.h"

#include "coordinator/engine/loaded_model.h"
#include "tests/support/nano.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

constexpr const char* kBlock =
    "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
    "string=\"false\">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>";

/// Feeds a generation logits that prefer given tokens, and keeps what comes out.
class Script {
 public:
  explicit Script(const GenerationRequest& request) {
    auto made =
        Generation::create(request, test::loaded_nano().tokenizer, *test::loaded_nano().protocol);
    EXPECT_OK(made);
    generation_.emplace(std::move(made).value());
  }

  Generation& generation() { return *generation_; }

  /// One token; the likeliest is `token`. A second may be close behind it.
  Generation::Outcome push(int32_t token, int32_t rival = -1) {
    std::vector<float> logits(static_cast<size_t>(test::loaded_nano().tokenizer->size()), -10.0f);
    logits[token] = 10.0f;
    if (rival >= 0) logits[rival] = 9.99f;
    auto outcome = generation_->advance(logits);
    EXPECT_OK(outcome);
    keep();
    return std::move(outcome).value();
  }

  /// The tokens of a text, special spellings counted, until the generation is over.
  std::optional<FinishReason> push_text(const std::string& text) {
    std::vector<int32_t> tokens;
    EXPECT_OK(test::loaded_nano().tokenizer->encode_raw(text, tokens));
    for (const int32_t token : tokens) {
      if (const auto outcome = push(token); outcome.finish.has_value()) return outcome.finish;
    }
    return std::nullopt;
  }

  void finish() {
    generation_->finish();
    keep();
  }

  std::string text(Event::Kind kind) const {
    std::string out;
    for (const Event& event : events_) {
      if (event.kind == kind) out += event.data;
    }
    return out;
  }
  std::string content() const { return text(Event::Kind::kContent); }
  const std::vector<Event>& events() const { return events_; }

 private:
  void keep() {
    const auto added = generation_->events();
    events_.insert(events_.end(), added.begin(), added.end());
  }

  std::optional<Generation> generation_;
  std::vector<Event> events_;
};

GenerationRequest greedy_request() {
  GenerationRequest request;
  request.prompt = {0};
  request.sampling.temperature = 0;
  return request;
}

GenerationRequest tool_request() {
  GenerationRequest request = greedy_request();
  request.parser = ParserOptions{false, true};
  return request;
}

int32_t id_of(const std::string& text) {
  std::vector<int32_t> tokens;
  EXPECT_OK(test::loaded_nano().tokenizer->encode_raw(text, tokens));
  EXPECT_EQ(tokens.size(), 1u) << text;
  return tokens.empty() ? 0 : tokens.front();
}

int32_t end_token() {
  return *test::loaded_nano().tokenizer->special_id(
      test::loaded_nano().protocol->stop_tokens().front());
}

TEST(GenerationTest, ShowsRawTextUnchanged) {
  Script script(greedy_request());
  const std::string text = "Hello, \xe4\xbd\xa0\xe5\xa5\xbd! \xf0\x9f\x98\x80 done";
  EXPECT_EQ(script.push_text(text), std::nullopt);
  script.finish();
  EXPECT_EQ(script.content(), text);
}

TEST(GenerationTest, EndsAtAStopTokenAndDoesNotShowIt) {
  Script script(greedy_request());
  script.push_text("Hello");
  const auto outcome = script.push(end_token());
  EXPECT_TRUE(outcome.is_stop_token);
  EXPECT_EQ(outcome.finish, FinishReason::kStop);
  EXPECT_EQ(outcome.bytes, test::loaded_nano().protocol->stop_tokens().front());
  script.finish();
  EXPECT_EQ(script.content(), "Hello");
  EXPECT_EQ(script.generation().stop_string(), std::nullopt);
}

TEST(GenerationTest, GoesOnPastAStopTokenWhenTold) {
  GenerationRequest request = greedy_request();
  request.ignore_stop_tokens = true;
  Script script(request);
  EXPECT_FALSE(script.push(end_token()).finish.has_value());
  EXPECT_EQ(script.push_text("Hello"), std::nullopt);
}

TEST(GenerationTest, CutsAtAStopStringThatSpansTokens) {
  GenerationRequest request = greedy_request();
  request.stop = {"never", "lo, wor"};
  for (const bool parsed : {false, true}) {
    if (parsed) request.parser = ParserOptions{};
    Script script(request);
    EXPECT_EQ(script.push_text("Hello, world and more"), FinishReason::kStop);
    script.finish();
    EXPECT_EQ(script.content(), "Hel");
    EXPECT_EQ(script.generation().stop_string(), "lo, wor");
  }
}

TEST(GenerationTest, ShowsWhatAStopStringHeldBackWhenTheTextEnds) {
  GenerationRequest request = greedy_request();
  request.stop = {"world!"};
  Script script(request);
  script.push_text("Hello, world");
  EXPECT_EQ(script.content(), "Hello, ");
  script.finish();
  EXPECT_EQ(script.content(), "Hello, world");
  EXPECT_EQ(script.generation().stop_string(), std::nullopt);
}

TEST(GenerationTest, DoesNotLookForStopStringsInReasoning) {
  GenerationRequest request = greedy_request();
  request.stop = {"secret"};
  request.parser = ParserOptions{true, false};
  Script script(request);
  EXPECT_EQ(script.push_text("the secret is</think>no "), std::nullopt);
  EXPECT_EQ(script.push_text("secret here"), FinishReason::kStop);
  EXPECT_EQ(script.text(Event::Kind::kReasoning), "the secret is");
  EXPECT_EQ(script.content(), "no ");
}

TEST(GenerationTest, EndsWhenAToolBlockCloses) {
  Script script(tool_request());
  EXPECT_EQ(script.push_text(str_cat("Sure.\n\n", kBlock, " and more")), FinishReason::kToolCalls);
  script.finish();
  EXPECT_EQ(script.content(), "Sure.");
  EXPECT_EQ(script.text(Event::Kind::kToolBegin), "add");
  EXPECT_EQ(script.text(Event::Kind::kToolArguments), "{\"a\":1}");
}

TEST(GenerationTest, ShowsHeldContentBeforeACallThatFollowsIt) {
  GenerationRequest request = tool_request();
  request.stop = {"Sure. Not"};
  Script script(request);
  EXPECT_EQ(script.push_text(str_cat("Sure.", kBlock)), FinishReason::kToolCalls);
  script.finish();
  ASSERT_FALSE(script.events().empty());
  EXPECT_EQ(script.content(), "Sure.");
  EXPECT_EQ(script.events().front().kind, Event::Kind::kContent);
}

TEST(GenerationTest, SamplesToolStructureGreedily) {
  GenerationRequest request = tool_request();
  request.sampling.temperature = 1;  // the rival is nearly as likely as the peak
  request.sampling.min_p = 0;
  const int32_t rival = id_of("!");
  const std::string opening =
      "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a";
  std::vector<int32_t> tokens;
  ASSERT_OK(test::loaded_nano().tokenizer->encode_raw(opening, tokens));
  for (const bool greedy : {true, false}) {
    request.greedy_structure = greedy;
    int64_t num_rivals = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      request.fallback_seed = seed;
      Script script(request);
      // The opening is forced, the token after it has a choice.
      for (const int32_t token : tokens) {
        std::vector<float> logits(
            static_cast<size_t>(test::loaded_nano().tokenizer->size()), -1000.0f);
        logits[token] = 10.0f;
        ASSERT_OK(script.generation().advance(logits));
      }
      num_rivals += script.push(id_of("b"), rival).choice.token == rival ? 1 : 0;
    }
    if (greedy) {
      EXPECT_EQ(num_rivals, 0);
    } else {
      EXPECT_GT(num_rivals, 0);
    }
  }
}

TEST(GenerationTest, ReportsLogprobsWhenAsked) {
  GenerationRequest request = greedy_request();
  EXPECT_FALSE(Script(request).push(id_of("a")).choice.logprob.has_value());
  request.sampling.logprobs = true;
  request.sampling.num_logprobs = 3;
  const Choice choice = Script(request).push(id_of("a"), id_of("b")).choice;
  ASSERT_EQ(choice.top.size(), 3u);
  EXPECT_EQ(choice.top[0].token, id_of("a"));
  EXPECT_EQ(choice.top[1].token, id_of("b"));
  EXPECT_NEAR(choice.top[0].logprob - choice.top[1].logprob, 0.01, 1e-4);
  EXPECT_NEAR(*choice.logprob, choice.top[0].logprob, 1e-6);
}

TEST(GenerationTest, NeverShowsHalfACharacter) {
  Script script(greedy_request());
  std::vector<int32_t> tokens;
  ASSERT_OK(test::loaded_nano().tokenizer->encode_text("\xf0\x9f\xa6\x8a", tokens));  // a fox
  ASSERT_GT(tokens.size(), 1u) << "the vocabulary spells it in parts";
  script.push(tokens.front());
  EXPECT_EQ(script.content(), "");
  script.finish();
  EXPECT_EQ(script.content(), "\xef\xbf\xbd");
}

TEST(GenerationTest, RefusesBadRequests) {
  const auto create = [](auto change) {
    GenerationRequest request = greedy_request();
    change(request);
    return Generation::create(request, test::loaded_nano().tokenizer, *test::loaded_nano().protocol)
        .status();
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_ERROR(create([](auto& r) { r.sampling.temperature = -1; }), code, "temperature");
  EXPECT_ERROR(create([](auto& r) { r.stop.assign(17, "x"); }), code, "stop has 17");
  EXPECT_ERROR(create([](auto& r) { r.stop = {"\xff"}; }), code, "not UTF-8");
  EXPECT_ERROR(create([](auto& r) { r.prompt = {1 << 20}; }), code, "");
  EXPECT_ERROR(create([](auto& r) { r.prompt = {-1}; }), code, "");
}

TEST(GenerationTest, NamesEveryFinishReason) {
  EXPECT_STREQ(finish_reason_name(FinishReason::kStop), "stop");
  EXPECT_STREQ(finish_reason_name(FinishReason::kLength), "length");
  EXPECT_STREQ(finish_reason_name(FinishReason::kToolCalls), "tool_calls");
  EXPECT_STREQ(finish_reason_name(FinishReason::kCancelled), "cancelled");
  EXPECT_STREQ(finish_reason_name(FinishReason::kError), "error");
}

}  // namespace
}  // namespace tandem
