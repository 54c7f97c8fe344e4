#pragma once

#include <optional>
#include <string>

#include "apps/terminal.h"

namespace tandem {

/// Reads lines: with editing and a history file on a terminal, plainly from anything else.
/// One at a time: the library behind it is global.
class LineEditor {
 public:
  /// `history_path` empty: no history is kept.
  /// `interrupt` outlives it.
  LineEditor(std::string history_path, InterruptFlag& interrupt);
  LineEditor(const LineEditor&) = delete;
  LineEditor& operator=(const LineEditor&) = delete;
  ~LineEditor();

  /// A line without its end, or nothing at the end of input. Ctrl+C drops the line: it is empty.
  std::optional<std::string> read(const std::string& prompt);

 private:
  std::string history_path_;
  InterruptFlag& interrupt_;
  bool edits_;
};

/// ~/.tandem_history, or empty if there is no home.
std::string default_history_path();

}  // namespace tandem
