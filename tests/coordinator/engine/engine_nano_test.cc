// The engine over the bundled model: what the parts give when they are joined.
#include <algorithm>

#include "base/clock.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/loaded_model.h"
#include "coordinator/engine/score.h"
#include "tests/support/nano.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"
#include "tests/support/recording_listener.h"
#include "tests/support/stages.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::RecordingListener;
using Listener = std::shared_ptr<RecordingListener>;
using Tokens = std::vector<int32_t>;

ThreadPool& pool() {
  static ThreadPool threads(2);
  return threads;
}

/// An engine of its own over the bundled model.
class NanoEngine {
 public:
  explicit NanoEngine(
      Numerics numerics, int64_t num_banks = 1, int64_t context_tokens = 4096,
      int64_t max_rows = 512) {
    LocalStageOptions options;
    options.numerics = numerics;
    options.num_banks = num_banks;
    options.context_tokens = context_tokens;
    options.max_rows = max_rows;
    auto pipeline = make_local_pipeline(test::loaded_nano(), options, pool());
    TANDEM_CHECK(pipeline.ok());
    pipeline_ = std::make_unique<Pipeline>(std::move(pipeline).value());
    EngineOptions engine;
    engine.fingerprint = test::loaded_nano().model->spec().fingerprint;
    engine_ = std::make_unique<Engine>(
        *pipeline_, test::loaded_nano().tokenizer, *test::loaded_nano().protocol, clock_, engine);
  }

  Engine& engine() { return *engine_; }

  Listener submit(const Tokens& prompt, int64_t max_tokens, float temperature = 0) {
    auto listener = std::make_shared<RecordingListener>();
    GenerationRequest request;
    request.prompt = prompt;
    request.max_tokens = max_tokens;
    request.sampling.temperature = temperature;
    request.sampling.logprobs = true;
    request.fallback_seed = 11;
    request.listener = listener;
    EXPECT_OK(engine_->submit(std::move(request)));
    return listener;
  }
  Listener run(const Tokens& prompt, int64_t max_tokens, float temperature = 0) {
    Listener listener = submit(prompt, max_tokens, temperature);
    engine_->run_until_idle();
    EXPECT_OK(listener->result.status);
    return listener;
  }

 private:
  SystemClock clock_;
  std::unique_ptr<Pipeline> pipeline_;
  std::unique_ptr<Engine> engine_;
};

std::vector<float> logprobs(const RecordingListener& listener) {
  std::vector<float> out;
  for (const Choice& choice : listener.choices) out.push_back(choice.logprob.value_or(1));
  return out;
}

/// A prompt of the protocol: a user message, answered without reasoning.
Tokens rendered(const std::vector<Message>& messages, ThinkMode think = ThinkMode::kOff) {
  RenderOptions options;
  options.think = think;
  const auto pieces = test::loaded_nano().protocol->render(messages, options);
  EXPECT_OK(pieces);
  Tokens out;
  EXPECT_OK(test::loaded_nano().tokenizer->encode(*pieces, out));
  return out;
}
Message message(Role role, const std::string& content) {
  Message out;
  out.role = role;
  out.content = content;
  return out;
}

Tokens joined(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(EngineNanoTest, ContinuesTheOraclePromptsAsTheReferenceDoes) {
  NanoEngine nano_engine(Numerics::kExact);
  for (const test::OraclePrompt& prompt : test::load_oracle("q4_k")) {
    if (prompt.ids.size() > 100) continue;  // the stage's own test has the long ones
    const auto num_tokens = std::min<int64_t>(40, std::ssize(prompt.greedy));
    const Listener listener = nano_engine.run(prompt.ids, num_tokens);
    const Tokens expected(prompt.greedy.begin(), prompt.greedy.begin() + num_tokens);
    EXPECT_EQ(listener->tokens, expected) << prompt.name;
  }
}

TEST(EngineNanoTest, FindsAFactInALongTextOnTheFastPath) {
  NanoEngine nano_engine(Numerics::kFast);
  const test::OraclePrompt prompt = test::oracle_prompt("q4_k", "needle_3k");
  const Listener listener = nano_engine.run(prompt.ids, std::ssize(prompt.greedy));
  EXPECT_EQ(listener->tokens, prompt.greedy) << listener->content();
}

TEST(EngineNanoTest, SequencesTogetherGiveTheTokensOfEachAlone) {
  const std::vector<std::string> names = {"hello", "capital", "story", "arith_think"};
  std::vector<Tokens> tokens;
  std::vector<std::vector<float>> scores;
  for (const std::string& name : names) {
    NanoEngine alone(Numerics::kExact);
    const Listener listener = alone.run(test::oracle_prompt("q4_k", name).ids, 16, 0.8f);
    tokens.push_back(listener->tokens);
    scores.push_back(logprobs(*listener));
  }
  NanoEngine together(Numerics::kExact, 3);  // the last one waits for a bank
  std::vector<Listener> listeners;
  for (const std::string& name : names) {
    listeners.push_back(together.submit(test::oracle_prompt("q4_k", name).ids, 16, 0.8f));
  }
  together.engine().run_until_idle();
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(listeners[i]->tokens, tokens[i]) << names[i];
    EXPECT_EQ(logprobs(*listeners[i]), scores[i]) << names[i];
  }
}

TEST(EngineNanoTest, AFollowUpTurnReusesWhatIsThereAndChangesNothing) {
  for (const ThinkMode think : {ThinkMode::kOff, ThinkMode::kHigh}) {
    const std::vector<Message> first = {message(Role::kUser, "What is 37 + 45?")};
    const Tokens prompt = rendered(first, think);
    NanoEngine warm(Numerics::kExact);
    const Listener answer = warm.run(prompt, 80);

    // The history keeps the answer as the protocol renders it: without the reasoning.
    std::string content = answer->content();
    if (const size_t end = content.find("</think>"); end != std::string::npos) {
      content = content.substr(end + 8);
    }
    std::vector<Message> second = first;
    second.push_back(message(Role::kAssistant, content));
    second.push_back(message(Role::kUser, "What is the capital of France?"));
    const Tokens follow_up = rendered(second, think);

    const Listener again = warm.run(follow_up, 40);
    EXPECT_GE(again->result.cached_tokens, std::ssize(prompt) - 2);
    EXPECT_LT(again->result.cached_tokens, std::ssize(follow_up));
    NanoEngine cold(Numerics::kExact);
    const Listener expected = cold.run(follow_up, 40);
    EXPECT_EQ(expected->result.cached_tokens, 0);
    EXPECT_EQ(again->tokens, expected->tokens);
    EXPECT_EQ(logprobs(*again), logprobs(*expected));
  }
}

TEST(EngineNanoTest, APromptThatDivergesFarBackIsRecomputedFromACheckpoint) {
  const Tokens ids = test::oracle_prompt("q4_k", "doc_300").ids;
  Tokens other(ids.begin(), ids.begin() + 180);
  other = joined(other, test::oracle_prompt("q4_k", "hello").ids);
  NanoEngine warm(Numerics::kExact, 1, 512, 128);
  warm.run(ids, 2);
  const Listener again = warm.run(other, 4);
  EXPECT_EQ(again->result.cached_tokens, 128);
  NanoEngine cold(Numerics::kExact, 1, 512, 128);
  const Listener expected = cold.run(other, 4);
  EXPECT_EQ(again->tokens, expected->tokens);
  EXPECT_EQ(logprobs(*again), logprobs(*expected));
}

TEST(EngineNanoTest, ASavedStateContinuesBitwise) {
  const Tokens prompt = test::oracle_prompt("q4_k", "story").ids;
  NanoEngine original(Numerics::kExact);
  const Listener whole = original.run(prompt, 30);

  NanoEngine saver(Numerics::kExact);
  const Listener start = saver.run(prompt, 10);
  const Tokens known = joined(prompt, start->tokens);
  test::MemoryStream stream;
  ASSERT_OK(saver.engine().save_state(known, stream));

  NanoEngine loader(Numerics::kExact, 2);
  const auto tokens = loader.engine().load_state(stream);
  ASSERT_OK(tokens);
  EXPECT_EQ(std::ssize(*tokens), std::ssize(known) - 1);
  const Listener rest = loader.run(known, 20);
  EXPECT_EQ(rest->result.cached_tokens, std::ssize(known) - 1);
  EXPECT_EQ(joined(start->tokens, rest->tokens), whole->tokens);
  const std::vector<float> scores = logprobs(*whole);
  EXPECT_EQ(logprobs(*rest), std::vector<float>(scores.begin() + 10, scores.end()));
}

TEST(EngineNanoTest, ADamagedStateLeavesTheEngineUsable) {
  const Tokens prompt = test::oracle_prompt("q4_k", "capital").ids;
  NanoEngine saver(Numerics::kFast, 1, 512);
  const Tokens expected = saver.run(prompt, 6)->tokens;
  test::MemoryStream whole;
  ASSERT_OK(saver.engine().save_state(prompt, whole));

  NanoEngine loader(Numerics::kFast, 1, 512);
  // Every byte of the headers, then some of the rows.
  size_t step = 1;
  for (size_t size = 0; size < whole.bytes.size(); size += step) {
    test::MemoryStream cut;
    cut.bytes.assign(whole.bytes.begin(), whole.bytes.begin() + static_cast<int64_t>(size));
    EXPECT_ERROR(loader.engine().load_state(cut), StatusCode::kDataLoss, "") << size;
    if (size > 512) step = 4099;
  }
  EXPECT_EQ(loader.run(prompt, 6)->result.cached_tokens, 0);
  EXPECT_EQ(loader.run(joined(prompt, {5, 6}), 1)->result.cached_tokens, std::ssize(prompt));

  // A state that is whole but has a slab of another shape.
  test::MemoryStream other = whole;
  const std::string bytes(reinterpret_cast<const char*>(other.bytes.data()), other.bytes.size());
  const size_t name = bytes.find("blk.0");
  ASSERT_NE(name, std::string::npos);
  other.bytes[name] = std::byte{'\n'};
  const auto refused = loader.engine().load_state(other);
  EXPECT_ERROR(refused, StatusCode::kInvalidArgument, "");
  EXPECT_EQ(refused.status().message().find('\n'), std::string::npos) << "one line";
  EXPECT_EQ(loader.run(prompt, 6)->tokens, expected);
}

TEST(EngineNanoTest, RefusesAStateOfAnotherModel) {
  NanoEngine saver(Numerics::kFast, 1, 512);
  const Tokens prompt = test::oracle_prompt("q4_k", "hello").ids;
  saver.run(prompt, 2);
  test::MemoryStream stream;
  ASSERT_OK(saver.engine().save_state(prompt, stream));
  stream.bytes[16] ^= std::byte{1};  // of the fingerprint
  EXPECT_ERROR(
      saver.engine().load_state(stream), StatusCode::kInvalidArgument, "another model than this");
}

TEST(EngineNanoTest, ScoresEveryPositionOnce) {
  const test::OraclePrompt prompt = test::oracle_prompt("q4_k", "doc_300");
  LocalStageOptions options;
  options.numerics = Numerics::kExact;
  options.context_tokens = 512;
  auto pipeline = make_local_pipeline(test::loaded_nano(), options, pool());
  ASSERT_OK(pipeline);
  int64_t next = 0;
  int64_t num_wrong = 0;
  ASSERT_OK(for_each_logits(
      *pipeline, prompt.ids, LogitsWanted::kAll, [&](int64_t pos, std::span<const float> logits) {
        EXPECT_EQ(pos, next++);
        const auto likeliest = std::max_element(logits.begin(), logits.end()) - logits.begin();
        num_wrong += likeliest == prompt.argmax[pos] ? 0 : 1;
        if (const auto found = prompt.positions.find(static_cast<int32_t>(pos));
            found != prompt.positions.end()) {
          const auto& best = found->second.front();
          EXPECT_NEAR(log_probability(logits, best.token), best.log_probability, 2e-3) << pos;
        }
      }));
  EXPECT_EQ(next, 300);
  EXPECT_EQ(num_wrong, 0);

  int64_t num_calls = 0;
  ASSERT_OK(for_each_logits(
      *pipeline, prompt.ids, LogitsWanted::kLast, [&](int64_t pos, std::span<const float>) {
        EXPECT_EQ(pos, 299);
        ++num_calls;
      }));
  EXPECT_EQ(num_calls, 1);
  const auto ignore = [](int64_t, std::span<const float>) {};
  EXPECT_ERROR(
      for_each_logits(*pipeline, {}, LogitsWanted::kAll, ignore), StatusCode::kInvalidArgument,
      "there are no tokens");
  EXPECT_ERROR(
      for_each_logits(*pipeline, Tokens(513, 5), LogitsWanted::kAll, ignore),
      StatusCode::kInvalidArgument, "raise --ctx");
}

}  // namespace
}  // namespace tandem
