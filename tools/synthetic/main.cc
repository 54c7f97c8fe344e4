#include <CLI/CLI.hpp>
#include <cstdio>

#include "tools/synthetic/v4_layers.h"

namespace tandem {
namespace {

int write_file(
    const std::string& base_path, const SyntheticOptions& options, const std::string& path) {
  const Result<GgufFile> base = GgufFile::open(base_path);
  const Status status = base.ok() ? write_synthetic_v4(*base, options, path) : base.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "tandem-synthetic: %s\n", status.message().c_str());
  return 2;
}

}  // namespace
}  // namespace tandem

// NOLINTNEXTLINE(bugprone-exception-escape): out of memory ends it
int main(int argc, char** argv) {
  CLI::App program("Writes a GGUF file with layers of V4 Flash's shapes and made-up weights.");
  tandem::SyntheticOptions options;
  std::string base = "models/nano-q4_k.gguf";
  std::string path;
  program.add_option("FILE", path, "The file to write")->required();
  program.add_option("--base", base, "Small V4 file that gives tokenizer and constants")
      ->capture_default_str();
  program.add_option("--layers", options.num_layers)->capture_default_str();
  program.add_option("--experts", options.num_experts)->capture_default_str();
  program.add_option("--seed", options.seed)->capture_default_str();
  bool q2 = false;
  program.add_flag("--q2", q2, "Experts as IQ2_XXS and Q2_K; Q4_K without");
  CLI11_PARSE(program, argc, argv);
  if (q2) {
    options.gate_up = tandem::DType::kIQ2_XXS;
    options.down = tandem::DType::kQ2_K;
  }
  return tandem::write_file(base, options, path);
}
