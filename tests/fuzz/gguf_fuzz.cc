// Any bytes as a model file: the reader, every typed read, the description, the V4 validation and
// the binding of its tensors. Each gives a value or an error.

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "base/log.h"
#include "model/families/deepseek_v4/tensors.h"
#include "model/families/deepseek_v4/validate.h"
#include "model/gguf/check_vocabulary.h"
#include "model/gguf/describe.h"
#include "model/gguf/gguf_file.h"
#include "model/spec/binder.h"

namespace tandem {
namespace {

// Reads what the reader promises to be readable, so that a sanitizer sees a wrong promise.
unsigned touch(std::span<const std::byte> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0U, [](unsigned sum, std::byte byte) {
    return sum + std::to_integer<unsigned>(byte);
  });
}

void read_all(const GgufFile& file) {
  unsigned sum = 0;
  for (const auto& [key, value] : file.metadata()) {
    sum += file.get_u64(key).ok() + file.get_i64(key).ok() + file.get_f64(key).ok();
    sum += file.get_bool(key).ok() + file.get_string(key).ok() + file.get_u64_array(key).ok();
    sum += file.get_i64_array(key).ok() + file.get_f64_array(key).ok();
    sum += file.get_string_array(key).ok();
    for (const std::string_view text : value.strings) sum += touch(std::as_bytes(std::span(text)));
  }
  for (const TensorInfo& tensor : file.tensors()) {
    sum += touch({tensor.data, 1}) + touch({tensor.data + tensor.bytes - 1, 1});
  }
  volatile unsigned sink = sum;
  static_cast<void>(sink);
}

}  // namespace
}  // namespace tandem

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tandem;
  set_log_level(LogLevel::kOff);
  const auto file = GgufFile::parse(std::as_bytes(std::span(data, size)), "fuzz.gguf");
  if (!file.ok()) return 0;
  read_all(*file);
  static_cast<void>(check_vocabulary(*file, 40).ok());
  static_cast<void>(describe_text(*file));
  static_cast<void>(describe_json(*file));
  const auto config = validate_v4(*file);
  if (config.ok()) static_cast<void>(bind_tensors(v4_tensor_plan(*config), *file).ok());
  return 0;
}
