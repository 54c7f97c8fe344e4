#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>

#include "apps/commands.h"
#include "base/log.h"

namespace tandem {
namespace {

constexpr int kExitUsage = 2;  // for every mistake of the caller, the file or the machine

int fail(const std::string& message) {
  std::fprintf(stderr, "tandem: %s\n", message.c_str());
  return kExitUsage;
}

bool has_command(CLI::App& program, const std::string& name) {
  const auto commands = program.get_subcommands([](CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(), [&](const CLI::App* command) {
    return command->get_name() == name;
  });
}

int run_program(int argc, char** argv) {
  CLI::App program("Tandem runs DeepSeek V4 models from GGUF files.", "tandem");
  program.set_version_flag("--version", std::string("tandem ") + TANDEM_VERSION);
  program.require_subcommand(1);
  program.fallthrough(false);
  bool verbose = false;
  program.add_flag("-v,--verbose", verbose, "Write log lines to standard error");
  program.parse_complete_callback([&] {
    if (verbose) set_log_level(LogLevel::kDebug);
  });
  add_chat_command(program);
  add_run_command(program);
  add_serve_command(program);
  add_score_command(program);
  add_bench_command(program);
  add_tokenize_command(program);
  add_inspect_command(program);
  program.footer("`tandem COMMAND --help` lists the options of a command.");
  if (argc > 1 && argv[1][0] != '-' && !has_command(program, argv[1])) {
    return fail(str_cat("unknown command ", argv[1], " (see tandem --help)"));
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForAllHelp& help) {
    return program.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return program.exit(version);
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + " (see tandem --help)");
  } catch (const CommandFailed& failed) {
    return fail(failed.status.message());
  } catch (const std::bad_alloc&) {
    return fail("out of memory");
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return 0;
}

}  // namespace

void require_ok(const Status& status) {
  if (!status.ok()) throw CommandFailed{status};
}

}  // namespace tandem

// NOLINTNEXTLINE(bugprone-exception-escape): only what reports an error can throw here
int main(int argc, char** argv) {
  return tandem::run_program(argc, argv);
}
