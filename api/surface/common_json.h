#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/generation/answer.h"
#include "api/json/json.h"

namespace tandem::api {

// What more than one surface writes.

/// The usage object of Chat and Completions.
Json openai_usage(const Usage& usage);
/// The timings object that stands beside usage.
Json timings_json(const Timings& timings);
/// [{token, logprob, bytes, top_logprobs}] of Chat and Responses; markers are left out.
Json logprobs_list(std::span<const TokenInfo> tokens);
Json token_ids(std::span<const TokenInfo> tokens);
/// stop, length or tool_calls.
const char* openai_finish_reason(FinishReason reason);
/// What a log-probability of minus infinity is written as, and others as they are.
double written_logprob(float logprob);

/// Appends "data: <json>" and a blank line.
void append_data(const Json& payload, std::string& out);
/// Appends "event: <name>", "data: <json>" and a blank line.
void append_event(std::string_view name, const Json& payload, std::string& out);

}  // namespace tandem::api
