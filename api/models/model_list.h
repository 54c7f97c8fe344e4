#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/json/json.h"

namespace tandem::api {

/// What clients are told about the loaded model.
struct ServedModel {
  std::string id;    // advertised
  std::string name;  // for people
  int64_t context_tokens = 0;
  int64_t completion_tokens_max = 0;
};

/// Whether clients may call the model this: its id or one of the names that clients of DeepSeek
/// servers are set up with. A name never selects other weights.
bool is_model_name(const ServedModel& model, std::string_view name);

Json model_object(const ServedModel& model);
/// {"object": "list", "data": [the model]}.
Json model_list(const ServedModel& model);

/// The id that a model file suggests: its folder's name where that names a model, else its own
/// without ".gguf" and shard number.
std::string model_id_from_path(std::string_view path);

}  // namespace tandem::api
