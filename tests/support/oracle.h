#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tandem::test {

/// One prompt with the values that an independent implementation gives for it: Hugging Face
/// transformers (DeepseekV4ForCausalLM, float32) on the dequantised weights of the nano model.
struct OraclePrompt {
  struct Candidate {
    int32_t token = 0;
    double log_probability = 0;
  };
  std::string name;
  std::vector<int32_t> ids;
  std::map<int32_t, std::vector<Candidate>> positions;  // the 20 likeliest next tokens
  std::vector<int32_t> argmax;                          // of every position
  std::vector<int32_t> greedy;                          // continuation
  std::vector<float> last_logits;
};

/// tests/golden/nano/oracle-<kind>.json and .bin; kind is "q4_k" or "f16".
std::vector<OraclePrompt> load_oracle(const std::string& kind);

/// The prompt of that name; fails the test if there is none.
OraclePrompt oracle_prompt(const std::string& kind, const std::string& name);

}  // namespace tandem::test
