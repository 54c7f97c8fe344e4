#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>

#include "apps/chat_session.h"
#include "apps/commands.h"
#include "apps/conversation.h"
#include "apps/line_editor.h"
#include "apps/runtime.h"
#include "apps/terminal.h"
#include "base/file_stream.h"

namespace tandem {
namespace {

constexpr size_t kReadBytesMax = size_t{16} << 20;

constexpr const char* kHelp =
    "/think, /think-max, /nothink   reason first, at length, or not at all\n"
    "/ctx [N]                       show the context in use, or start anew with N tokens\n"
    "/power N                       let steps take N percent of the time\n"
    "/read FILE                     send a file as the next message\n"
    "/save FILE, /load FILE         keep this chat with its state, or go back to it\n"
    "/reset                         forget the chat\n"
    "/quit, /exit, Ctrl+D           leave; Ctrl+C stops an answer\n";

struct ChatOptions {
  RuntimeOptions runtime;
  SamplingOptions sampling;
  ThinkMode think = ThinkMode::kHigh;
  std::string system;
  std::string first_prompt;
};

class Chat {
 public:
  explicit Chat(const ChatOptions& options) : options_(options), mode_(options.think) {
    runtime_ = require_ok(Runtime::create(options_.runtime));
    reset();
  }

  void run() {
    const ModelSpec& spec = runtime_->loaded().model->spec();
    if (err_.is_terminal()) {
      err_.write_dim(str_cat(
          spec.name, ", context of ", runtime_->engine().context_tokens(),
          " tokens. /help lists the commands.\n"));
    }
    LineEditor editor(default_history_path(), interrupt_);
    while (auto line = editor.read("tandem> ")) {
      trim(*line);
      if (line->empty()) continue;
      if (line->front() != '/') {
        answer(*line);
      } else if (!obey(*line)) {
        return;
      }
    }
  }

  /// Sends a user message and prints the answer.
  void answer(const std::string& text) {
    Message user;
    user.content = text;
    messages_.push_back(std::move(user));
    const Status status = generate();
    if (status.ok()) return;
    messages_.pop_back();
    complain(status);
  }

 private:
  Status generate() {
    TANDEM_TRY_ASSIGN(
        GenerationRequest request,
        chat_request(runtime_->loaded(), messages_, mode_, options_.sampling));
    interrupt_.clear();
    const auto listener =
        std::make_shared<AnswerListener>(AnswerListener::Options{true, true, &interrupt_});
    request.listener = listener;
    std::vector<int32_t> tokens = request.prompt;
    TANDEM_TRY(runtime_->engine().submit(std::move(request)));
    runtime_->engine().run_until_idle();
    TANDEM_TRY(listener->result().status);
    for (const Choice& choice : listener->choices()) tokens.push_back(choice.token);
    tokens_ = std::move(tokens);
    messages_.push_back(listener->message());
    err_.write_dim(
        str_cat(timing_line(listener->result(), runtime_->engine().context_tokens()), "\n"));
    return {};
  }

  /// Carries out a command. False: leave.
  bool obey(const std::string& line) {
    const size_t space = line.find(' ');
    const std::string name = line.substr(0, space);
    std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
    trim(argument);
    if (name == "/quit" || name == "/exit") return false;
    if (name == "/help") {
      err_.write(kHelp);
    } else if (name == "/think") {
      change_mode(ThinkMode::kHigh, "reasons before it answers");
    } else if (name == "/think-max") {
      change_mode(ThinkMode::kMax, "reasons at length");
    } else if (name == "/nothink") {
      change_mode(ThinkMode::kOff, "answers at once");
    } else if (name == "/reset") {
      reset();
      err_.write_dim("new chat\n");
    } else if (name == "/ctx") {
      change_context(argument);
    } else if (name == "/power") {
      change_power(argument);
    } else if (name == "/read") {
      read(argument);
    } else if (name == "/save") {
      report(save_chat(argument, messages_, mode_, runtime_->engine(), tokens_), "saved");
    } else if (name == "/load") {
      load(argument);
    } else {
      complain(invalid_argument(str_cat("unknown command ", name, "; /help lists them")));
    }
    return true;
  }

  void reset() {
    messages_.clear();
    tokens_.clear();
    if (options_.system.empty()) return;
    Message system;
    system.role = Role::kSystem;
    system.content = options_.system;
    messages_.push_back(std::move(system));
  }

  void change_mode(ThinkMode mode, const char* what) {
    mode_ = mode;
    err_.write_dim(str_cat("the model now ", what, "\n"));
  }

  static void trim(std::string& text) {
    constexpr const char* kSpace = " \t\r";
    text.erase(0, text.find_first_not_of(kSpace));
    text.erase(text.find_last_not_of(kSpace) + 1);
  }

  Result<int64_t> number(const std::string& text, int64_t low, int64_t high) const {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool is_number = error == std::errc() && end == text.data() + text.size();
    TANDEM_REQUIRE(
        is_number && value >= low && value <= high,
        str_cat("\"", text, "\" is not a number from ", low, " to ", high));
    return value;
  }

  void change_context(const std::string& argument) {
    if (argument.empty()) {
      err_.write(
          str_cat(tokens_.size(), " of ", runtime_->engine().context_tokens(), " tokens in use\n"));
      return;
    }
    const auto value = number(argument, 1, kContextTokensMax);
    if (!value.ok()) return complain(value.status());
    RuntimeOptions changed = options_.runtime;
    changed.context_tokens = *value;
    auto runtime = Runtime::create(changed);
    if (!runtime.ok()) return complain(runtime.status());
    options_.runtime = changed;
    runtime_ = std::move(runtime).value();
    reset();
    err_.write(str_cat("new chat with a context of ", *value, " tokens\n"));
  }

  void change_power(const std::string& argument) {
    const auto value = number(argument, 1, 100);
    if (!value.ok()) return complain(value.status());
    runtime_->engine().set_power_percent(static_cast<int>(*value));
  }

  void read(const std::string& path) {
    if (path.empty()) return complain(invalid_argument("name a file to read"));
    auto text = read_text_file(path, kReadBytesMax);
    if (!text.ok()) return complain(text.status());
    answer(*text);
  }

  void load(const std::string& path) {
    auto chat = load_chat(path, runtime_->engine());
    if (!chat.ok()) return complain(chat.status());
    messages_ = std::move(chat->messages);
    mode_ = chat->mode;
    tokens_ = std::move(chat->tokens);
    err_.write(str_cat("loaded ", messages_.size(), " messages\n"));
  }

  void report(const Status& status, const char* done) {
    if (!status.ok()) return complain(status);
    err_.write(str_cat(done, "\n"));
  }
  void complain(const Status& status) { err_.write(str_cat("tandem: ", status.message(), "\n")); }

  ChatOptions options_;
  InterruptFlag interrupt_;
  ThinkMode mode_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<Message> messages_;
  std::vector<int32_t> tokens_;  // that the last answer left in the model's state
  Terminal err_{stderr};
};

}  // namespace

void add_chat_command(CLI::App& program) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = program.add_subcommand("chat", "Talk with a model in the terminal");
  add_runtime_options(*command, options->runtime);
  command->add_option("-s,--system", options->system, "System message")->type_name("TEXT");
  command->add_option("-p,--prompt", options->first_prompt, "First message")->type_name("TEXT");
  add_think_options(*command, options->think);
  add_sampling_options(*command, options->sampling);
  command->callback([options] {
    Chat chat(*options);
    if (!options->first_prompt.empty()) chat.answer(options->first_prompt);
    chat.run();
  });
}

}  // namespace tandem
