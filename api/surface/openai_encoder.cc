#include "api/surface/openai_encoder.h"

#include <utility>

#include "api/errors/api_error.h"
#include "api/surface/common_json.h"

namespace tandem::api {

OpenAiEncoder::OpenAiEncoder(
    const ChatRequest& request, const ResponseHead& head, const char* object)
    : with_usage_(request.include_usage) {
  head_["id"] = head.id;
  head_["object"] = object;
  head_["created"] = head.created_s;
  head_["model"] = head.model;
}

void OpenAiEncoder::write_choice(Json choice, std::string& out) const {
  Json chunk = head_;
  chunk["choices"] = Json::array({std::move(choice)});
  append_data(chunk, out);
}

void OpenAiEncoder::end(const Completion& completion, std::string& out) {
  if (with_usage_) {
    Json chunk = head_;
    chunk["choices"] = Json::array();
    chunk["usage"] = openai_usage(completion.usage);
    chunk["timings"] = timings_json(completion.timings);
    append_data(chunk, out);
  }
  out += "data: [DONE]\n\n";
}

void OpenAiEncoder::error(const ApiError& error, std::string& out) {
  out += "event: error\ndata: ";
  out += error_body(error, ErrorStyle::kOpenAi);
  out += "\n\n";
}

void OpenAiEncoder::heartbeat(std::string& out) {
  out += ": prefill\n\n";
}

}  // namespace tandem::api
