#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/json/json.h"
#include "api/responses/custom_input.h"
#include "api/responses/responses_reader.h"
#include "api/responses/sealed_reasoning.h"
#include "base/check.h"

namespace {

/// Arguments in two pieces give the text that they give in one.
void check_custom_input(std::string_view json) {
  const std::string whole = tandem::api::custom_input(json);
  tandem::api::CustomInput reader;
  std::string out;
  reader.push(json.substr(0, json.size() / 2), out);
  reader.push(json.substr(json.size() / 2), out);
  reader.finish(out);
  TANDEM_CHECK(out == whole);
}

}  // namespace

/// A body of POST /v1/responses: read or refused with a reason. The bytes also serve as a custom
/// tool's arguments and as sealed reasoning.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem::api;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_custom_input(text);
  (void)unseal_reasoning(text);
  const auto body = parse_json(text);
  if (!body.ok()) return 0;
  auto request = read_responses_request(*body);
  if (request.ok()) {
    TANDEM_CHECK(!request->chat.messages.empty() && request->echo.is_object());
  } else {
    TANDEM_CHECK(request.error().http_status == 400 && !request.error().message.empty());
  }
  return 0;
}
