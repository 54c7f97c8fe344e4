#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/sampling/stop_matcher.h"

namespace {

struct Outcome {
  std::string shown;
  std::optional<size_t> hit;
  bool operator==(const Outcome&) const = default;
};

/// Feeds `text` in pieces of 1 to `piece_bytes_max` bytes, whose sizes follow from the text.
Outcome feed(std::vector<std::string> stop_strings, std::string_view text, size_t piece_bytes_max) {
  auto created = tandem::StopMatcher::create(std::move(stop_strings));
  if (!created.ok()) return {};
  tandem::StopMatcher& stop = created.value();
  Outcome outcome;
  while (!text.empty()) {
    const size_t wanted = 1 + static_cast<unsigned char>(text[0]) % piece_bytes_max;
    const size_t size = wanted < text.size() ? wanted : text.size();
    outcome.shown += stop.push(text.substr(0, size));
    text.remove_prefix(size);
  }
  outcome.shown += stop.finish();
  outcome.hit = stop.hit();
  return outcome;
}

}  // namespace

/// Input: 0xFF-separated stop strings, 0xFE, then the text. Any split must give the same.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::string> stop_strings(1);
  size_t i = 0;
  for (; i < size && data[i] != 0xFE; ++i) {
    if (data[i] == 0xFF) {
      stop_strings.emplace_back();
    } else {
      stop_strings.back().push_back(static_cast<char>(data[i]));
    }
  }
  const size_t begin = i < size ? i + 1 : size;
  const std::string_view text(reinterpret_cast<const char*>(data) + begin, size - begin);
  const Outcome whole = feed(stop_strings, text, 256);
  if (!(feed(stop_strings, text, 1) == whole)) std::abort();
  if (!(feed(stop_strings, text, 7) == whole)) std::abort();
  return 0;
}
