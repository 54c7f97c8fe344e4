#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tandem::test {

/// A parameter of a call: name, and value as it stands in the block.
struct ScriptedParameter {
  std::string name;
  std::string value;
  bool is_string = true;
};

inline std::string call_text(
    const std::string& name, const std::vector<ScriptedParameter>& parameters) {
  std::string out = "<｜DSML｜invoke name=\"" + name + "\">\n";
  for (const auto& [key, value, is_string] : parameters) {
    out += "<｜DSML｜parameter name=\"" + key + "\" string=\"" + (is_string ? "true" : "false") +
           "\">" + value + "</｜DSML｜parameter>\n";
  }
  return out + "</｜DSML｜invoke>\n";
}

inline std::string block_text(const std::string& calls) {
  return "\n\n<｜DSML｜tool_calls>\n" + calls + "</｜DSML｜tool_calls>";
}

/// The worked example of the serving specification.
inline std::string get_time_block() {
  return block_text(call_text("get_time", {{"tz", "Europe/Rome", true}, {"n", "2", false}}));
}

inline const char* kToolsJson =
    R"("tools":[{"type":"function","function":{"name":"get_time","description":"The time",)"
    R"("parameters":{"type":"object","properties":{"tz":{"type":"string"},"n":{"type":"number"}}}}},)"
    R"({"type":"function","function":{"name":"add","parameters":{"type":"object"}}}])";

/// A Chat body with one user message and more fields.
inline std::string chat_body(const std::string& content, const std::string& fields = "") {
  return R"({"messages":[{"role":"user","content":")" + content + "\"}]" +
         (fields.empty() ? "" : "," + fields) + "}";
}

}  // namespace tandem::test
