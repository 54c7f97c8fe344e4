#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands.h"
#include "apps/runtime.h"
#include "base/file_stream.h"
#include "coordinator/tokenizer/gguf_vocabulary.h"

namespace tandem {
namespace {

constexpr size_t kTextBytesMax = size_t{64} << 20;

struct TokenizeOptions {
  std::string model;
  std::string tokenizer_json;
  std::string text;
  std::string file;
  bool raw = false;
  bool json = false;
  std::vector<int32_t> decode;
};

std::shared_ptr<const Tokenizer> open_tokenizer(const TokenizeOptions& options) {
  if (!options.tokenizer_json.empty()) {
    return require_ok(
        Tokenizer::from_hf_json(require_ok(read_text_file(options.tokenizer_json, kTextBytesMax))));
  }
  const std::string path = require_ok(resolve_model_path(options.model));
  return require_ok(tokenizer_from_gguf(require_ok(GgufFile::open(path))));
}

std::string input_text(const TokenizeOptions& options, bool has_text) {
  if (!options.file.empty()) return require_ok(read_text_file(options.file, kTextBytesMax));
  if (has_text) return options.text;
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

void print_tokens(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens, bool as_json) {
  if (as_json) {
    std::printf("%s\n", nlohmann::json(tokens).dump().c_str());
    return;
  }
  for (const int32_t token : tokens) {
    const nlohmann::json text = std::string(tokenizer.token_bytes(token));
    std::printf(
        "%7d  %s\n", token,
        text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
}

void tokenize(const TokenizeOptions& options, bool has_text) {
  const auto tokenizer = open_tokenizer(options);
  if (!options.decode.empty()) {
    for (const int32_t token : options.decode) {
      if (token >= 0 && token < tokenizer->size()) continue;
      require_ok(invalid_argument(
          str_cat("there is no token ", token, "; ids are 0 to ", tokenizer->size() - 1)));
    }
    std::printf("%s\n", tokenizer->decode(options.decode, /*skip_special=*/false).c_str());
    return;
  }
  const std::string text = input_text(options, has_text);
  std::vector<int32_t> tokens;
  require_ok(
      options.raw ? tokenizer->encode_raw(text, tokens) : tokenizer->encode_text(text, tokens));
  print_tokens(*tokenizer, tokens, options.json);
}

}  // namespace

void add_tokenize_command(CLI::App& program) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = program.add_subcommand("tokenize", "Turn text into token ids, or back");
  auto* source = command->add_option_group("vocabulary", "Where the vocabulary comes from");
  source->add_option("-m,--model", options->model, "GGUF file; the bundled nano model if not given")
      ->type_name("FILE");
  source->add_option("--tokenizer", options->tokenizer_json, "Hugging Face tokenizer.json instead")
      ->type_name("FILE");
  source->require_option(0, 1);
  CLI::Option* text =
      command->add_option("-p,--prompt", options->text, "Text; standard input if not given")
          ->type_name("TEXT");
  command->add_option("--prompt-file", options->file, "A file with the text")
      ->type_name("FILE")
      ->excludes(text);
  command->add_flag("--raw", options->raw, "Special-token text counts");
  command->add_flag("--json", options->json, "Print a JSON array of ids");
  command->add_option("--decode", options->decode, "Print the text of these ids instead")
      ->type_name("ID");
  command->callback([options, text] { tokenize(*options, text->count() > 0); });
}

}  // namespace tandem
