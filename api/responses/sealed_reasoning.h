#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tandem::api {

/// Reasoning as the opaque text that a client which keeps no state at the server carries from one
/// request to the next (`encrypted_content`). It is not secret: its reader is who asked for it.
std::string seal_reasoning(std::string_view reasoning);

/// What was sealed; nothing if another server wrote the text, or if it is damaged.
std::optional<std::string> unseal_reasoning(std::string_view sealed);

}  // namespace tandem::api
