// Stands in for libFuzzer where there is none: runs a fuzz target over its seeds and over a fixed
// set of damaged copies of them, so that an ordinary or sanitized build exercises it too.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kDamagedCopies = 2000;
constexpr size_t kDamagedBytesMax = 8;

void run(const std::vector<uint8_t>& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

void run_damaged(const std::vector<uint8_t>& seed, tandem::Rng& rng) {
  std::vector<uint8_t> input = seed;
  if (rng.next() % 4 == 0) input.resize(rng.next() % (seed.size() + 1));
  const size_t count = input.empty() ? 0 : 1 + rng.next() % kDamagedBytesMax;
  for (size_t i = 0; i < count; ++i) {
    // The extremes of a byte reach size and count checks more often than a random value.
    constexpr uint8_t kValues[4] = {0x00, 0xff, 0x7f, 0x80};
    const uint64_t choice = rng.next() % 6;
    input[rng.next() % input.size()] =
        choice < 4 ? kValues[choice] : static_cast<uint8_t>(rng.next());
  }
  run(input);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::vector<uint8_t>> seeds(1);  // the empty input
  for (int i = 1; i < argc; ++i) {
    if (!std::filesystem::is_directory(argv[i])) continue;  // a target without seeds
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::ifstream in(entry.path(), std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  tandem::Rng rng(1);
  for (const auto& seed : seeds) {
    run(seed);
    for (int i = 0; i < kDamagedCopies; ++i) run_damaged(seed, rng);
  }
  std::printf("%zu seeds, %d damaged copies each\n", seeds.size(), kDamagedCopies);
  return 0;
}
