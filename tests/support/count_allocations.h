#pragma once

#include <cstdint>

namespace tandem::test {

/// Calls of operator new of this process so far. Linking this replaces operator new and delete, so
/// a test that counts is a program of its own. Any thread.
int64_t num_allocations();

}  // namespace tandem::test
