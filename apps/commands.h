#pragma once

#include "base/status.h"

namespace CLI {
class App;
}

namespace tandem {

// One subcommand a file. Each adds itself to the program and sets a callback that runs it.
// A callback throws CommandFailed to end the program with one line and exit code 2.

struct CommandFailed {
  Status status;
};

/// Throws CommandFailed unless `status` is ok.
void require_ok(const Status& status);

/// The value, or CommandFailed.
template <class T>
T require_ok(Result<T> result) {
  require_ok(result.status());
  return std::move(result).value();
}

void add_chat_command(CLI::App& program);
void add_run_command(CLI::App& program);
void add_tokenize_command(CLI::App& program);
void add_inspect_command(CLI::App& program);
void add_score_command(CLI::App& program);
void add_bench_command(CLI::App& program);
void add_serve_command(CLI::App& program);

}  // namespace tandem
