#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/conversation.h"
#include "apps/dumps.h"
#include "apps/runtime.h"
#include "apps/terminal.h"
#include "base/file_stream.h"

namespace tandem {
namespace {

constexpr size_t kPromptBytesMax = size_t{64} << 20;

struct RunOptions {
  RuntimeOptions runtime;
  SamplingOptions sampling;
  ThinkMode think = ThinkMode::kHigh;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  std::string tools_file;
  bool raw = false;
  bool json = false;
  std::string dump_logprobs;
  int64_t dump_top_k = 20;
  std::string dump_logits;
};

std::string prompt_text(const RunOptions& options) {
  if (options.prompt_file.empty()) return options.prompt;
  return require_ok(read_text_file(options.prompt_file, kPromptBytesMax));
}

GenerationRequest raw_request(const LoadedModel& loaded, const RunOptions& options) {
  GenerationRequest request;
  require_ok(loaded.tokenizer->encode_raw(prompt_text(options), request.prompt));
  request.sampling = sampling_params(options.sampling);
  request.fallback_seed = seed_or_random(options.sampling.seed);
  request.max_tokens = options.sampling.max_tokens;
  request.stop = options.sampling.stop;
  return request;
}

GenerationRequest rendered_request(const LoadedModel& loaded, const RunOptions& options) {
  std::vector<Message> messages;
  if (!options.system.empty() || !options.tools_file.empty()) {
    Message system;
    system.role = Role::kSystem;
    system.content = options.system;
    if (!options.tools_file.empty()) {
      system.tools_json = require_ok(read_text_file(options.tools_file, kPromptBytesMax));
    }
    messages.push_back(std::move(system));
  }
  Message user;
  user.content = prompt_text(options);
  messages.push_back(std::move(user));
  return require_ok(chat_request(loaded, messages, options.think, options.sampling));
}

void print_json(const AnswerListener& answer) {
  const GenerationResult& result = answer.result();
  nlohmann::ordered_json out;
  out["content"] = answer.message().content;
  if (answer.message().reasoning.has_value()) out["reasoning"] = *answer.message().reasoning;
  for (const ToolCall& call : answer.message().tool_calls) {
    out["tool_calls"].push_back({{"name", call.name}, {"arguments", call.arguments}});
  }
  out["finish_reason"] = finish_reason_name(result.reason);
  out["tokens"] = nlohmann::json::array();
  for (const Choice& choice : answer.choices()) out["tokens"].push_back(choice.token);
  out["prompt_tokens"] = result.prompt_tokens;
  out["generated_tokens"] = result.generated_tokens;
  out["prefill_seconds"] = result.prefill_seconds;
  out["decode_seconds"] = result.decode_seconds;
  std::printf(
      "%s\n", out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
}

void run(const RunOptions& options) {
  auto runtime = require_ok(Runtime::create(options.runtime));
  GenerationRequest request = options.raw ? raw_request(runtime->loaded(), options)
                                          : rendered_request(runtime->loaded(), options);
  if (!options.dump_logits.empty()) {
    require_ok(dump_logits(*runtime, request.prompt, options.dump_logits));
  }
  if (!options.dump_logprobs.empty()) {
    request.sampling.logprobs = true;
    request.sampling.num_logprobs = options.dump_top_k;
    // Before the answer takes its time.
    require_ok(FileSink::create(options.dump_logprobs).status());
  }

  const InterruptFlag interrupt;
  const auto answer = std::make_shared<AnswerListener>(
      AnswerListener::Options{!options.json, !options.json, &interrupt});
  request.listener = answer;
  require_ok(runtime->engine().submit(std::move(request)));
  runtime->engine().run_until_idle();

  require_ok(answer->result().status);
  if (!options.dump_logprobs.empty()) {
    require_ok(dump_logprobs(
        runtime->loaded(), *answer, options.dump_top_k, runtime->engine().context_tokens(),
        options.dump_logprobs));
  }
  if (options.json) {
    print_json(*answer);
    return;
  }
  Terminal err(stderr);
  err.write_dim(str_cat(timing_line(answer->result(), runtime->engine().context_tokens()), "\n"));
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = program.add_subcommand("run", "Answer one prompt and exit");
  add_runtime_options(*command, options->runtime);
  auto* prompt = command->add_option_group("prompt", "What to answer");
  prompt->add_option("-p,--prompt", options->prompt, "The user's message")->type_name("TEXT");
  prompt->add_option("--prompt-file", options->prompt_file, "A file with the user's message")
      ->type_name("FILE");
  prompt->require_option(1);
  command->add_option("-s,--system", options->system, "System message")->type_name("TEXT");
  command->add_option("--tools", options->tools_file, "JSON file with an array of function objects")
      ->type_name("FILE");
  command->add_flag(
      "--raw", options->raw, "The prompt is rendered already: special-token text in it counts");
  add_think_options(*command, options->think);
  add_sampling_options(*command, options->sampling);
  command->add_flag("--json", options->json, "Print one JSON object instead of text");
  command
      ->add_option(
          "--dump-logprobs", options->dump_logprobs,
          "Write the log-probabilities of each step as JSON")
      ->type_name("FILE");
  command->add_option("--logprobs-top-k", options->dump_top_k, "Alternatives in that file")
      ->check(CLI::Range(int64_t{1}, kLogprobsMax))
      ->capture_default_str();
  command
      ->add_option(
          "--dump-logits", options->dump_logits, "Write the logits after the prompt as JSON")
      ->type_name("FILE");
  command->callback([options] { run(*options); });
}

}  // namespace tandem
