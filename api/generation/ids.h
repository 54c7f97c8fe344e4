#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::api {

/// `prefix` and `num_hex` lowercase hex digits from the system's generator of secrets.
std::string random_id(std::string_view prefix, size_t num_hex);

/// A seed that nobody can guess, never 0.
uint64_t random_seed();

}  // namespace tandem::api
