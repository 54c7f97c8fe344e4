#include "apps/terminal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

namespace tandem {
namespace {

constexpr int kBarWidth = 24;

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
int interrupt_event = -1;

void on_interrupt(int) {
  const int saved_errno = errno;
  interrupted = true;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(interrupt_event, &one, sizeof(one));
  errno = saved_errno;
}

}  // namespace

Terminal::Terminal(std::FILE* stream)
    : stream_(stream), is_terminal_(::isatty(::fileno(stream)) == 1) {}

void Terminal::write(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stream_);
}

void Terminal::write_dim(std::string_view text) {
  if (!is_terminal_) return write(text);
  write("\x1b[90m");
  write(text);
  write("\x1b[0m");
}

void Terminal::show_progress(std::string_view label, int64_t done, int64_t total) {
  if (!is_terminal_ || total <= 0) return;
  const auto filled = static_cast<int>(done * kBarWidth / total);
  std::string bar(static_cast<size_t>(filled), '#');
  bar.resize(kBarWidth, '.');
  std::fprintf(
      stream_, "\r\x1b[K\x1b[90m%.*s [%s] %lld/%lld\x1b[0m", static_cast<int>(label.size()),
      label.data(), bar.c_str(), static_cast<long long>(done), static_cast<long long>(total));
  std::fflush(stream_);
  shows_progress_ = true;
}

void Terminal::clear_progress() {
  if (!shows_progress_) return;
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
  shows_progress_ = false;
}

InterruptFlag::InterruptFlag() {
  interrupted = false;
  interrupt_event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
  if (interrupt_event >= 0) ::close(interrupt_event);
}

bool InterruptFlag::raised() const {
  return interrupted;
}

void InterruptFlag::clear() {
  interrupted = false;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t size = ::read(interrupt_event, &count, sizeof(count));
}

int InterruptFlag::descriptor() const {
  return interrupt_event;
}

}  // namespace tandem
