#include "api/surface/common_json.h"

#include <cmath>

#include "base/utf8.h"

namespace tandem::api {
namespace {

constexpr double kNoProbability = -9999.0;

double rounded(double value) {
  return std::round(value * 10) / 10;
}

}  // namespace

Json openai_usage(const Usage& usage) {
  Json out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["prompt_tokens_details"] = {
      {"cached_tokens", usage.cached_tokens},
      {"cache_write_tokens", usage.prompt_tokens - usage.cached_tokens}};
  return out;
}

Json timings_json(const Timings& timings) {
  Json out;
  out["ttft_ms"] = rounded(timings.ttft_ms);
  out["prefill_tokens"] = timings.prefill_tokens;
  out["prefill_cached_tokens"] = timings.prefill_cached_tokens;
  if (timings.prefill_tok_s.has_value()) out["prefill_tok_s"] = rounded(*timings.prefill_tok_s);
  if (timings.decode_tok_s.has_value()) out["decode_tok_s"] = rounded(*timings.decode_tok_s);
  return out;
}

double written_logprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : kNoProbability;
}

Json logprobs_list(std::span<const TokenInfo> tokens) {
  const auto entry = [](std::string_view bytes, float logprob) {
    Json out;
    out["token"] = repair_utf8(bytes);
    out["logprob"] = written_logprob(logprob);
    Json& list = out["bytes"] = Json::array();
    for (const char c : bytes) list.push_back(static_cast<unsigned char>(c));
    return out;
  };
  Json out = Json::array();
  for (const TokenInfo& token : tokens) {
    if (token.is_special || !token.logprob.has_value()) continue;
    Json item = entry(token.bytes, *token.logprob);
    Json& top = item["top_logprobs"] = Json::array();
    for (const auto& other : token.top) top.push_back(entry(other.bytes, other.logprob));
    out.push_back(std::move(item));
  }
  return out;
}

Json token_ids(std::span<const TokenInfo> tokens) {
  Json out = Json::array();
  for (const TokenInfo& token : tokens) out.push_back(token.id);
  return out;
}

const char* openai_finish_reason(FinishReason reason) {
  switch (reason) {
    case FinishReason::kLength: return "length";
    case FinishReason::kToolCalls: return "tool_calls";
    case FinishReason::kStop:
    case FinishReason::kCancelled:
    case FinishReason::kError: return "stop";
  }
  TANDEM_UNREACHABLE();
}

void append_data(const Json& payload, std::string& out) {
  out += "data: ";
  out += json_text(payload);
  out += "\n\n";
}

void append_event(std::string_view name, const Json& payload, std::string& out) {
  out += "event: ";
  out += name;
  out += "\n";
  append_data(payload, out);
}

}  // namespace tandem::api
