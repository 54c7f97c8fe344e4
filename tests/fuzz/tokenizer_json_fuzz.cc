// Arbitrary bytes as a Hugging Face tokenizer.json. Half of the inputs are put in place of the
// vocabulary of a file that is right otherwise, which random bytes would hardly become.
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "coordinator/tokenizer/tokenizer.h"

namespace {

constexpr std::string_view kBefore =
    R"({"pre_tokenizer":{"type":"Sequence","pretokenizers":[)"
    R"({"type":"Split","pattern":{"Regex":"\\p{N}{1,3}"},"behavior":"Isolated"},)"
    R"({"type":"Split","pattern":{"Regex":"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"},)"
    R"("behavior":"Isolated"},)"
    R"({"type":"Split","pattern":{"Regex":"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|)"
    R"([^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|)"
    R"(\\s+(?!\\S)|\\s+"},"behavior":"Isolated"},{"type":"ByteLevel","use_regex":false}]},)"
    R"("model":{"type":"BPE",)";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string json(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 2 != 0) json.insert(0, kBefore);
  const auto tokenizer = tandem::Tokenizer::from_hf_json(json);
  if (!tokenizer.ok()) return 0;
  const std::string text = "Some text, \xE6\xAF\x95 12345\n<s>";
  std::vector<int32_t> ids;
  TANDEM_CHECK((*tokenizer)->encode_raw(text, ids).ok());
  TANDEM_CHECK((*tokenizer)->decode(ids, /*skip_special=*/false) == text);
  return 0;
}
