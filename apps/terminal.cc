#include "apps/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <string>

namespace tandem {
namespace {

constexpr int kBarWidth = 24;

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

void on_interrupt(int) {
  interrupted = true;
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
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigaction(SIGINT, &action, nullptr);
}

InterruptFlag::~InterruptFlag() {
  std::signal(SIGINT, SIG_DFL);
}

bool InterruptFlag::raised() const {
  return interrupted;
}

void InterruptFlag::clear() {
  interrupted = false;
}

}  // namespace tandem
