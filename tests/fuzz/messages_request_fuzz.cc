#include <cstddef>
#include <cstdint>
#include <string_view>

#include "api/json/json.h"
#include "api/messages/messages_reader.h"
#include "base/check.h"

/// A body of POST /v1/messages: read or refused with a reason, both ways it is used.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem::api;
  const auto body = parse_json({reinterpret_cast<const char*>(data), size});
  if (!body.ok()) return 0;
  for (const MessagesUse use : {MessagesUse::kGenerate, MessagesUse::kCountTokens}) {
    auto request = read_messages_request(*body, use);
    if (request.ok()) {
      TANDEM_CHECK(!request->messages.empty() || use == MessagesUse::kCountTokens);
    } else {
      TANDEM_CHECK(request.error().http_status == 400 && !request.error().message.empty());
    }
  }
  return 0;
}
