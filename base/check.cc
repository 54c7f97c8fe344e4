#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace tandem::detail {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "tandem: check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace tandem::detail
