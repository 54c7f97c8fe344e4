#include "apps/conversation.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <random>

namespace tandem {

void add_sampling_options(CLI::App& command, SamplingOptions& options) {
  command.add_option("-n,--tokens", options.max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(int64_t{0}, kContextTokensMax))
      ->capture_default_str();
  command.add_option("--temp", options.temperature, "Temperature; 0 takes the likeliest token")
      ->capture_default_str();
  command.add_option("--top-p", options.top_p, "Keep the likeliest tokens up to this probability")
      ->capture_default_str();
  command.add_option("--min-p", options.min_p, "Drop tokens below this share of the likeliest")
      ->capture_default_str();
  command.add_option("--top-k", options.top_k, "Keep this many tokens; 0: all")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of the draws; 0: a new one each time")
      ->capture_default_str();
  command
      .add_option(
          "--presence-penalty", options.presence_penalty,
          "Taken once from the logit of each token generated before; -2 to 2")
      ->capture_default_str();
  command
      .add_option(
          "--frequency-penalty", options.frequency_penalty,
          "Taken from a token's logit each time it was generated; -2 to 2")
      ->capture_default_str();
  command
      .add_option(
          "--repetition-penalty", options.repetition_penalty,
          "Divides the logits of tokens seen before, prompt included; 1: off")
      ->capture_default_str();
  command.add_option("--stop", options.stop, "End the answer before this text; may be repeated")
      ->type_name("TEXT");
}

uint64_t seed_or_random(uint64_t seed) {
  if (seed != 0) return seed;
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

SamplingParams sampling_params(const SamplingOptions& options) {
  SamplingParams params;
  params.temperature = options.temperature;
  params.top_p = options.top_p;
  params.min_p = options.min_p;
  params.top_k = options.top_k;
  params.presence_penalty = options.presence_penalty;
  params.frequency_penalty = options.frequency_penalty;
  params.repetition_penalty = options.repetition_penalty;
  return params;
}

void add_think_options(CLI::App& command, ThinkMode& mode) {
  auto* group = command.add_option_group("thinking", "Whether the model reasons before it answers");
  group->add_flag_callback(
      "--think", [&mode] { mode = ThinkMode::kHigh; }, "Reason first (default)");
  group->add_flag_callback(
      "--think-max", [&mode] { mode = ThinkMode::kMax; }, "Reason with the effort preamble");
  group->add_flag_callback(
      "--nothink", [&mode] { mode = ThinkMode::kOff; }, "Answer at once");
  group->require_option(0, 1);
}

Result<GenerationRequest> chat_request(
    const LoadedModel& loaded, std::span<const Message> messages, ThinkMode mode,
    const SamplingOptions& options) {
  RenderOptions render;
  render.think = mode;
  TANDEM_TRY_ASSIGN(const std::vector<Piece> pieces, loaded.protocol->render(messages, render));
  GenerationRequest request;
  TANDEM_TRY(loaded.tokenizer->encode(pieces, request.prompt));
  request.sampling = sampling_params(options);
  request.fallback_seed = seed_or_random(options.seed);
  request.max_tokens = options.max_tokens;
  request.stop = options.stop;
  ParserOptions parser;
  parser.starts_in_reasoning = mode != ThinkMode::kOff;
  parser.tools_active = std::any_of(messages.begin(), messages.end(), [](const Message& message) {
    return !message.tools_json.empty();
  });
  request.parser = parser;
  return request;
}

}  // namespace tandem
