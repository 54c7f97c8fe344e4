#include "tests/support/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "base/status.h"

namespace tandem::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kProgramTime = std::chrono::minutes(2);
constexpr auto kAnswerTime = std::chrono::minutes(1);

/// Becomes the program. Only returns if that is impossible.
void execute(
    const std::string& path, const std::vector<std::string>& arguments,
    const Environment& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  ::execv(path.c_str(), argv.data());
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) == 0) {
      read_end = ends[0];
      write_end = ends[1];
    }
  }
  void close_write() {
    if (write_end >= 0) ::close(write_end);
    write_end = -1;
  }
  void close_read() {
    if (read_end >= 0) ::close(read_end);
    read_end = -1;
  }
  ~Pipe() {
    close_read();
    close_write();
  }
};

/// Appends what a descriptor has; false at its end.
bool read_some(int descriptor, std::string& out) {
  std::array<char, 4096> part{};
  const ssize_t size = ::read(descriptor, part.data(), part.size());
  if (size <= 0) return false;
  out.append(part.data(), static_cast<size_t>(size));
  return true;
}

/// Reads both until both end. False: the time is over.
bool read_both(int out, int err, ProgramResult& result) {
  const auto deadline = Clock::now() + kProgramTime;
  std::array<pollfd, 2> ends = {pollfd{out, POLLIN, 0}, pollfd{err, POLLIN, 0}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0 || ::poll(ends.data(), 2, static_cast<int>(left.count())) <= 0) {
      return false;
    }
    if (ends[0].revents != 0 && !read_some(out, result.out)) ends[0].fd = -1;
    if (ends[1].revents != 0 && !read_some(err, result.err)) ends[1].fd = -1;
  }
  return true;
}

int exit_code_of(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

ProgramResult run_program(
    const std::string& path, const std::vector<std::string>& arguments, const std::string& input,
    const Environment& environment) {
  Pipe in;
  Pipe out;
  Pipe err;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(in.read_end, STDIN_FILENO);
    ::dup2(out.write_end, STDOUT_FILENO);
    ::dup2(err.write_end, STDERR_FILENO);
    execute(path, arguments, environment);
    ::_exit(127);
  }
  in.close_read();
  out.close_write();
  err.close_write();
  EXPECT_EQ(::write(in.write_end, input.data(), input.size()), static_cast<ssize_t>(input.size()));
  in.close_write();

  ProgramResult result;
  if (!read_both(out.read_end, err.read_end, result)) {
    ADD_FAILURE() << path << " did not end";
    ::kill(child, SIGKILL);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
  result.exit_code = exit_code_of(status);
  result.peak_resident_kib = usage.ru_maxrss;
  return result;
}

TerminalProgram::TerminalProgram(
    const std::string& path, const std::vector<std::string>& arguments,
    const Environment& environment) {
  const winsize size{40, 120, 0, 0};
  child_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
  if (child_ == 0) {
    execute(path, arguments, environment);
    ::_exit(127);
  }
  EXPECT_GE(child_, 0) << "no pseudo-terminal: " << errno_text(errno);
}

TerminalProgram::~TerminalProgram() {
  if (child_ > 0) {
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  if (terminal_ >= 0) ::close(terminal_);
}

void TerminalProgram::type(const std::string& text) {
  // A line editor writes its prompt before it has the terminal in its own mode; a person is slower.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(::write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

bool TerminalProgram::read_more(std::chrono::milliseconds timeout) {
  if (terminal_ < 0) return false;
  pollfd end{terminal_, POLLIN, 0};
  if (::poll(&end, 1, static_cast<int>(timeout.count())) <= 0) return true;
  return read_some(terminal_, screen_);
}

std::string TerminalProgram::wait_for(const std::string& text) {
  const auto deadline = Clock::now() + kAnswerTime;
  while (true) {
    const size_t found = screen_.find(text, seen_);
    if (found != std::string::npos) {
      const size_t begin = seen_;
      seen_ = found + text.size();
      return screen_.substr(begin, seen_ - begin);
    }
    if (!read_more(std::chrono::milliseconds(50)) || Clock::now() > deadline) break;
  }
  ADD_FAILURE() << "no \"" << text << "\" in \"" << screen_.substr(seen_) << "\"";
  return {};
}

int TerminalProgram::wait_for_exit() {
  const auto deadline = Clock::now() + kAnswerTime;
  int status = 0;
  while (::waitpid(child_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) {
      ADD_FAILURE() << "the program did not end";
      return -1;
    }
    // A program that still writes must not wait for its reader.
    if (!read_more(std::chrono::milliseconds(10))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  child_ = -1;
  return exit_code_of(status);
}

}  // namespace tandem::test
