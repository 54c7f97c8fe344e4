#include "tests/support/oracle.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "tests/support/paths.h"

namespace tandem::test {

std::vector<OraclePrompt> load_oracle(const std::string& kind) {
  const std::string stem = golden_path("nano/oracle-" + kind);
  const auto json = nlohmann::json::parse(read_text(stem + ".json"));
  const std::string bin = read_text(stem + ".bin");
  const size_t row_bytes = bin.size() / json.size();
  std::vector<OraclePrompt> out;
  for (const auto& item : json) {
    OraclePrompt prompt;
    prompt.name = item.at("name");
    prompt.ids = item.at("ids").get<std::vector<int32_t>>();
    prompt.argmax = item.at("argmax").get<std::vector<int32_t>>();
    prompt.greedy = item.at("greedy").get<std::vector<int32_t>>();
    for (const auto& [position, candidates] : item.at("positions").items()) {
      auto& list = prompt.positions[std::stoi(position)];
      for (const auto& candidate : candidates) {
        list.push_back({candidate.at(0).get<int32_t>(), candidate.at(1).get<double>()});
      }
    }
    prompt.last_logits.resize(row_bytes / sizeof(float));
    std::memcpy(
        prompt.last_logits.data(), bin.data() + item.at("row").get<size_t>() * row_bytes,
        row_bytes);
    out.push_back(std::move(prompt));
  }
  return out;
}

OraclePrompt oracle_prompt(const std::string& kind, const std::string& name) {
  for (OraclePrompt& prompt : load_oracle(kind)) {
    if (prompt.name == name) return std::move(prompt);
  }
  ADD_FAILURE() << "no oracle prompt " << name;
  return {};
}

}  // namespace tandem::test
