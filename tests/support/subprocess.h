#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem::test {

/// How a program ended and what it wrote.
struct ProgramResult {
  int exit_code = -1;  // -1: by a signal, or it had to be killed
  std::string out;
  std::string err;
  int64_t peak_resident_kib = 0;
};

using Environment = std::map<std::string, std::string>;  // variables that are set in addition

/// Runs a program to its end, with `input` as its standard input. It is killed after two minutes.
/// Limits: `input` fits a pipe's buffer.
ProgramResult run_program(
    const std::string& path, const std::vector<std::string>& arguments,
    const std::string& input = {}, const Environment& environment = {});

/// A program in a terminal of its own.
class TerminalProgram {
 public:
  TerminalProgram(
      const std::string& path, const std::vector<std::string>& arguments,
      const Environment& environment);
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;
  ~TerminalProgram();

  /// Types text; "\r" is the enter key, "\x03" Ctrl+C, "\x04" Ctrl+D.
  void type(const std::string& text);
  /// Waits until the screen shows `text` after what was waited for before; returns all from there
  /// up to its end. Fails the test after a minute.
  std::string wait_for(const std::string& text);
  /// Waits for the end of the program; its exit code, or -1.
  int wait_for_exit();

 private:
  bool read_more(std::chrono::milliseconds timeout);

  int terminal_ = -1;
  pid_t child_ = -1;
  std::string screen_;  // all that was written
  size_t seen_ = 0;
};

}  // namespace tandem::test
