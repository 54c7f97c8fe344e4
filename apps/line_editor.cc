#include "apps/line_editor.h"

#include <editline/readline.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>

namespace tandem {
namespace {

constexpr int kHistoryLinesMax = 512;

struct FreeText {
  void operator()(char* text) const { std::free(text); }
};

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
  const std::unique_ptr<char, FreeText> line(readline(prompt.c_str()));
  if (interrupt_.raised()) {
    std::fputs("\n", stdout);
    return std::string();
  }
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
