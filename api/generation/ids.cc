#include "api/generation/ids.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace tandem::api {
namespace {

void fill_random(void* out, size_t size) {
  auto* at = static_cast<unsigned char*>(out);
  while (size > 0) {
    const ssize_t count = ::getrandom(at, size, 0);
    if (count < 0 && errno == EINTR) continue;
    TANDEM_CHECK(count > 0);  // the kernel has had this call since 3.17
    at += count;
    size -= static_cast<size_t>(count);
  }
}

}  // namespace

std::string random_id(std::string_view prefix, size_t num_hex) {
  unsigned char bytes[32];
  TANDEM_CHECK(num_hex <= 2 * sizeof(bytes));
  fill_random(bytes, (num_hex + 1) / 2);
  std::string out(prefix);
  for (size_t i = 0; i < num_hex; ++i) {
    const int digit = i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
    out.push_back("0123456789abcdef"[digit]);
  }
  return out;
}

uint64_t random_seed() {
  uint64_t seed = 0;
  while (seed == 0) fill_random(&seed, sizeof(seed));
  return seed;
}

}  // namespace tandem::api
