#include "apps/dumps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file_stream.h"
#include "coordinator/engine/score.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

std::string dump_replacing(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json token_json(const Tokenizer& tokenizer, int32_t token) {
  const std::string_view bytes = tokenizer.token_bytes(token);
  Json out;
  out["id"] = token;
  out["text"] = std::string(bytes);
  out["bytes"] = Json::array();
  for (const char byte : bytes) out["bytes"].push_back(static_cast<uint8_t>(byte));
  return out;
}

}  // namespace

Status dump_logprobs(
    const LoadedModel& loaded, const AnswerListener& answer, int64_t top_k, int64_t context_tokens,
    const std::string& path) {
  Json out;
  out["source"] = "tandem";
  out["prompt_tokens"] = answer.result().prompt_tokens;
  out["ctx"] = context_tokens;
  out["top_k"] = top_k;
  out["steps"] = Json::array();
  for (const Choice& choice : answer.choices()) {
    Json step;
    step["step"] = out["steps"].size();
    step["selected"] = token_json(*loaded.tokenizer, choice.token);
    step["selected"]["logprob"] = choice.logprob.value_or(0.0f);
    step["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : choice.top) {
      Json entry;
      entry["token"] = token_json(*loaded.tokenizer, top.token);
      entry["logprob"] = top.logprob;
      step["top_logprobs"].push_back(std::move(entry));
    }
    out["steps"].push_back(std::move(step));
  }
  return write_text_file(path, dump_replacing(out) + "\n");
}

Status dump_logits(Runtime& runtime, std::span<const int32_t> prompt, const std::string& path) {
  Json out;
  out["source"] = "tandem";
  out["prompt_tokens"] = prompt.size();
  TANDEM_TRY(for_each_logits(
      runtime.pipeline(), prompt, LogitsWanted::kLast, [&](int64_t, std::span<const float> logits) {
        out["argmax"] = std::max_element(logits.begin(), logits.end()) - logits.begin();
        out["logits"] = logits;
      }));
  return write_text_file(path, out.dump() + "\n");
}

}  // namespace tandem
