#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/status.h"

namespace tandem::api {

/// Objects keep the order of their keys: the model sees a tool's properties as the client wrote
/// them.
using Json = nlohmann::ordered_json;

struct JsonLimits {
  int64_t depth_max = kRequestJsonDepthMax;    // nested objects and arrays
  int64_t values_max = kRequestJsonValuesMax;  // values and keys
};

/// Reads one JSON text. A \u escape of half a surrogate pair becomes U+FFFD, as clients cut strings
/// there.
/// Errors: kInvalidArgument with the byte where it stops being JSON: syntax, bytes that are no
/// UTF-8, a number outside the range of a double, a key twice in one object, bytes after the value,
/// or a limit.
/// Cost: linear; no recursion.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

/// The value as compact text. Bytes that are no UTF-8 become U+FFFD.
std::string json_text(const Json& value);

/// A JSON string literal of `text`, with its quotes.
std::string json_string(std::string_view text);

}  // namespace tandem::api
