#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>

namespace tandem {

/// What may be written to a stream: colours and progress only if a person looks at it.
class Terminal {
 public:
  explicit Terminal(std::FILE* stream);

  bool is_terminal() const { return is_terminal_; }
  /// Text in grey if there are colours.
  void write_dim(std::string_view text);
  void write(std::string_view text);
  void flush() { std::fflush(stream_); }

  /// Draws `label done/total` with a bar over the current line; nothing off a terminal.
  void show_progress(std::string_view label, int64_t done, int64_t total);
  /// Removes the bar.
  void clear_progress();

 private:
  std::FILE* stream_;
  bool is_terminal_;
  bool shows_progress_ = false;
};

/// Sets a flag on Ctrl+C instead of ending the program, while it lives. One at a time.
class InterruptFlag {
 public:
  InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
  ~InterruptFlag();
  bool raised() const;
  void clear();
  /// Readable while the flag is raised, for poll(): a signal may reach any thread.
  int descriptor() const;
};

}  // namespace tandem
