#include "api/surface/common_fields.h"

#include <algorithm>
#include <cmath>

#include "base/limits.h"

namespace tandem::api {
namespace {

constexpr int64_t kToolNameBytesMax = 256;

/// The word's level; empty for an unknown word.
std::optional<Effort> effort_of(std::string_view word) {
  if (word == "none" || word == "off") return Effort::kNone;
  if (word == "minimal" || word == "low" || word == "medium") return Effort::kLow;
  if (word == "high" || word == "xhigh") return Effort::kHigh;
  if (word == "max") return Effort::kMax;
  return std::nullopt;
}

void read_logit_bias(FieldReader& fields, SamplingParams& out) {
  const Json* biases = fields.object("logit_bias");
  if (biases == nullptr) return;
  if (static_cast<int64_t>(biases->size()) > kLogitBiasMax) {
    return fields.fail("logit_bias", str_cat("has more than ", kLogitBiasMax, " entries"));
  }
  out.logit_bias.clear();
  for (const auto& [key, value] : biases->get_ref<const Json::object_t&>()) {
    const bool is_number =
        !key.empty() && key.size() <= 7 &&
        std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!is_number) return fields.fail("logit_bias", "has a key that is no token id");
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      return fields.fail("logit_bias", "must have values from -100 to 100");
    }
    out.logit_bias.push_back({std::stoi(key), value.get<float>()});
  }
  std::sort(
      out.logit_bias.begin(), out.logit_bias.end(),
      [](const TokenBias& a, const TokenBias& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(
      out.logit_bias.begin(), out.logit_bias.end(),
      [](const TokenBias& a, const TokenBias& b) { return a.id == b.id; });
  if (twice != out.logit_bias.end()) fields.fail("logit_bias", "names a token twice");
}

void read_switch(FieldReader& fields, std::string_view key, std::optional<Effort>& out) {
  if (!fields.has(key)) return;
  bool on = true;
  fields.boolean(key, on);
  if (!on) out = Effort::kNone;
  if (on && !out.has_value()) out = Effort::kLow;
}

}  // namespace

void read_sampling(FieldReader& fields, SamplingParams& out) {
  fields.number("temperature", out.temperature, 0, 100);
  fields.number("top_p", out.top_p, 0, 1);
  fields.number("min_p", out.min_p, 0, 1);
  fields.integer("top_k", out.top_k, -1, kVocabMax);
  out.top_k = std::max<int64_t>(out.top_k, 0);  // some clients say -1 for "all"
  fields.number("presence_penalty", out.presence_penalty, -2, 2);
  fields.number("frequency_penalty", out.frequency_penalty, -2, 2);
  fields.number("repetition_penalty", out.repetition_penalty, 0.01, 100);
  if (fields.has("seed")) {
    int64_t seed = 0;
    fields.integer("seed", seed, INT64_MIN, INT64_MAX);
    out.seed = static_cast<uint64_t>(seed);
  }
  read_logit_bias(fields, out);
}

void read_stop(FieldReader& fields, std::string_view key, std::vector<std::string>& out) {
  const Json* value = fields.find(key);
  if (value == nullptr) return;
  const auto add = [&](const Json& item) {
    if (!item.is_string()) return fields.fail(key, "must be a string or an array of strings");
    const auto& text = item.get_ref<const std::string&>();
    if (static_cast<int64_t>(text.size()) > kStopStringBytesMax) {
      return fields.fail(key, str_cat("has a string longer than ", kStopStringBytesMax, " bytes"));
    }
    if (!text.empty()) out.push_back(text);
  };
  if (!value->is_array()) return add(*value);
  if (static_cast<int64_t>(value->size()) > kStopStringsMax) {
    return fields.fail(key, str_cat("has more than ", kStopStringsMax, " strings"));
  }
  for (const Json& item : *value) add(item);
}

void read_budget(
    FieldReader& fields, std::initializer_list<std::string_view> keys,
    std::optional<int64_t>& out) {
  for (const std::string_view key : keys) {
    if (!fields.has(key)) continue;
    int64_t budget = 0;
    fields.integer(key, budget, 0, INT64_MAX);
    if (!out.has_value()) out = std::min(budget, kContextTokensMax);
  }
}

void read_model(FieldReader& fields, ChatRequest& out) {
  fields.text("model", out.model);
  if (out.model == "deepseek-chat" || out.model == "k-exaone-236b-a23b-chat") {
    out.effort = Effort::kNone;
  }
  if (out.model == "deepseek-reasoner") out.effort = Effort::kLow;
}

void read_effort(FieldReader& fields, std::string_view key, std::optional<Effort>& out) {
  std::string word;
  fields.text(key, word);
  if (word.empty()) return;
  const auto effort = effort_of(word);
  if (!effort.has_value()) {
    return fields.fail(key, "must be none, minimal, low, medium, high, xhigh or max");
  }
  out = *effort;
}

void read_thinking(FieldReader& fields, std::optional<Effort>& out) {
  read_effort(fields, "reasoning_effort", out);
  const Json* thinking = fields.find("thinking");
  if (thinking != nullptr && thinking->is_boolean()) {
    read_switch(fields, "thinking", out);
  } else if (thinking != nullptr) {
    FieldReader options(*thinking, fields.path("thinking"), fields.errors());
    const std::string type = options.required_text("type");
    if (type == "disabled") {
      out = Effort::kNone;
    } else if (type == "enabled" || type == "adaptive") {
      if (!out.has_value()) out = Effort::kLow;
    } else {
      options.fail("type", "must be enabled, disabled or adaptive");
    }
  }
  read_switch(fields, "think", out);
  if (const Json* kwargs = fields.object("chat_template_kwargs")) {
    FieldReader options(*kwargs, fields.path("chat_template_kwargs"), fields.errors());
    read_switch(options, "enable_thinking", out);
    read_switch(options, "thinking", out);
  }
}

void read_format(FieldReader& fields, std::string_view key, ChatRequest& out) {
  const Json* value = fields.find(key);
  if (value == nullptr) return;
  out.format_param = fields.path(key);
  if (value->is_string()) {
    const auto& word = value->get_ref<const std::string&>();
    if (word == "text" || word == "auto") return;
    if (word == "json_object") {
      out.format = OutputFormat::kJsonObject;
      return;
    }
    return fields.fail(key, "must be an object with a type");
  }
  FieldReader format(*value, fields.path(key), fields.errors());
  const std::string type = format.required_text("type");
  if (type == "text") return;
  if (type == "json_object") {
    out.format = OutputFormat::kJsonObject;
    return;
  }
  if (type != "json_schema") {
    return format.fail("type", "must be text, json_object or json_schema");
  }
  const Json* holder = format.find("json_schema");
  FieldReader schema_fields(
      holder == nullptr ? *value : *holder,
      holder == nullptr ? fields.path(key) : format.path("json_schema"), fields.errors());
  const Json* schema = schema_fields.object("schema");
  if (schema == nullptr) return schema_fields.fail("schema", "is missing");
  out.format = OutputFormat::kJsonSchema;
  out.format_param = schema_fields.path("schema");
  out.schema_json = json_text(*schema);
}

void read_function(
    const Json& function, const std::string& path, RequestErrors& errors, ChatRequest& out) {
  FieldReader fields(function, path, errors);
  const std::string name = fields.required_text("name");
  if (static_cast<int64_t>(name.size()) > kToolNameBytesMax) {
    return fields.fail("name", str_cat("is longer than ", kToolNameBytesMax, " bytes"));
  }
  std::string description;
  fields.text("description", description);
  fields.object("parameters");
  if (errors.any()) return;
  if (static_cast<int64_t>(out.tools.size()) >= kToolsMax) {
    return errors.add("tools", str_cat("has more than ", kToolsMax, " functions"));
  }
  Json shown = function;
  shown.erase("type");  // of the flat form
  out.tools.push_back({name, json_text(shown)});
}

void read_tool_choice_word(FieldReader& fields, ChatRequest& out) {
  const auto& word = fields.find("tool_choice")->get_ref<const std::string&>();
  if (word == "none") {
    out.tool_choice = ToolChoice::kNone;
  } else if (word == "required") {
    out.tool_choice = ToolChoice::kRequired;
  } else if (word != "auto") {
    fields.fail("tool_choice", "must be none, auto, required or an object");
  }
}

void check_tool_choice(FieldReader& fields, ChatRequest& request) {
  if (request.tool_choice == ToolChoice::kAuto || request.tool_choice == ToolChoice::kNone) return;
  if (request.tools.empty())
    return fields.fail("tool_choice", "asks for a tool, but there are none");
  if (request.tool_choice != ToolChoice::kNamed) return;
  const bool known = std::any_of(request.tools.begin(), request.tools.end(), [&](const Tool& tool) {
    return tool.name == request.tool_name;
  });
  if (!known) fields.fail("tool_choice", "names a function that is not among the tools");
}

void refuse_part(RequestErrors& errors, const std::string& path, std::string_view part_type) {
  errors.add(
      path, str_cat("is a part of type ", json_string(part_type), "; this model reads text only"));
}

std::string arguments_text(FieldReader& fields, std::string_view key) {
  const Json* value = fields.find(key);
  if (value == nullptr) return "{}";
  if (value->is_string()) return value->get<std::string>();
  if (value->is_object()) return json_text(*value);
  fields.fail(key, "must be JSON text or an object");
  return {};
}

}  // namespace tandem::api
