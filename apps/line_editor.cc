#include "apps/line_editor.h"

#include <editline/readline.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

namespace tandem {
namespace {

constexpr int kHistoryLinesMax = 512;

struct FreeText {
  void operator()(char* text) const { std::free(text); }
};
using Line = std::unique_ptr<char, FreeText>;

// Where the library's handler, which takes no argument of ours, leaves a line; null at the end of
// input.
std::optional<Line> entered;

void on_line(char* line) {
  entered.emplace(line);
  rl_callback_handler_remove();
}

}  // namespace

LineEditor::LineEditor(std::string history_path, InterruptFlag& interrupt)
    : history_path_(std::move(history_path)),
      interrupt_(interrupt),
      edits_(::isatty(STDIN_FILENO) == 1) {
  if (!edits_) return;
  using_history();
  stifle_history(kHistoryLinesMax);
  if (!history_path_.empty()) read_history(history_path_.c_str());
}

LineEditor::~LineEditor() {
  if (edits_ && !history_path_.empty()) write_history(history_path_.c_str());
}

std::optional<std::string> LineEditor::read(const std::string& prompt) {
  if (!edits_) {
    std::string line;
    if (!std::getline(std::cin, line)) return std::nullopt;
    return line;
  }
  interrupt_.clear();
  entered.reset();
  rl_callback_handler_install(prompt.c_str(), on_line);
  std::array<pollfd, 2> ready = {
      pollfd{STDIN_FILENO, POLLIN, 0}, pollfd{interrupt_.descriptor(), POLLIN, 0}};
  while (!entered.has_value()) {
    if (::poll(ready.data(), ready.size(), -1) < 0) ready[0].revents = 0;
    if (interrupt_.raised()) {
      rl_callback_handler_remove();
      std::fputs("\n", stdout);
      return std::string();
    }
    if (ready[0].revents != 0) rl_callback_read_char();
    if ((ready[0].revents & (POLLHUP | POLLERR)) != 0 && !entered.has_value()) on_line(nullptr);
  }
  const Line line = std::move(*entered);
  if (line == nullptr) {
    std::fputs("\n", stdout);  // Ctrl+D leaves the cursor behind the prompt
    return std::nullopt;
  }
  if (*line.get() != '\0') add_history(line.get());
  return std::string(line.get());
}

std::string default_history_path() {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): before any thread
  return home == nullptr ? std::string() : std::string(home) + "/.tandem_history";
}

}  // namespace tandem
