#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/runtime.h"
#include "model/families/families.h"
#include "model/gguf/describe.h"

namespace tandem {
namespace {

struct InspectOptions {
  std::string model;
  bool json = false;
};

nlohmann::ordered_json model_json(const Result<std::shared_ptr<const Model>>& model) {
  nlohmann::ordered_json out;
  out["supported"] = model.ok();
  if (!model.ok()) {
    out["problem"] = model.status().message();
    return out;
  }
  const ModelSpec& spec = (*model)->spec();
  out["family"] = spec.family;
  out["name"] = spec.name;
  out["layers"] = spec.num_layers;
  out["hidden_dim"] = spec.hidden_dim;
  out["streams"] = spec.num_streams;
  out["vocab_size"] = spec.vocab_size;
  out["context_tokens_max"] = spec.context_tokens_max;
  out["fingerprint"] = spec.fingerprint;
  return out;
}

void inspect(const InspectOptions& options) {
  const std::string path = require_ok(resolve_model_path(options.model));
  const GgufFile file = require_ok(GgufFile::open(path));
  const auto model = open_model(file);
  if (options.json) {
    nlohmann::ordered_json out = nlohmann::ordered_json::parse(describe_json(file));
    out["model"] = model_json(model);
    std::printf("%s\n", out.dump(2).c_str());
    return;
  }
  std::printf("%s", describe_text(file).c_str());
  if (!model.ok()) {
    std::printf("\nnot usable: %s\n", model.status().message().c_str());
    return;
  }
  const ModelSpec& spec = (*model)->spec();
  std::printf(
      "\n%s (%s): %d layers, hidden size %lld, %lld streams, vocabulary %lld, fingerprint %s\n",
      spec.name.c_str(), spec.family.c_str(), spec.num_layers,
      static_cast<long long>(spec.hidden_dim), static_cast<long long>(spec.num_streams),
      static_cast<long long>(spec.vocab_size), spec.fingerprint.c_str());
}

}  // namespace

void add_inspect_command(CLI::App& program) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command = program.add_subcommand("inspect", "Show what is in a GGUF file");
  command
      ->add_option(
          "-m,--model,model", options->model, "GGUF file; the bundled nano model if not given")
      ->type_name("FILE");
  command->add_flag("--json", options->json, "Print JSON");
  command->callback([options] { inspect(*options); });
}

}  // namespace tandem
