#include "tests/api/support/openapi.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/support/paths.h"

namespace tandem::test {

using api::Json;

namespace {

bool has_type(const std::string& type, const Json& value) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

bool has_type(const Json& type, const Json& value) {
  if (type.is_string()) return has_type(type.get<std::string>(), value);
  for (const Json& one : type) {
    if (has_type(one.get<std::string>(), value)) return true;
  }
  return false;
}

void check_references(const Json& value, const Json& document) {
  if (value.is_object() && value.contains("$ref")) {
    const std::string reference = value["$ref"];
    EXPECT_TRUE(document.contains(Json::json_pointer(reference.substr(1)))) << reference;
  }
  for (const Json& child : value) {
    if (child.is_structured()) check_references(child, document);
  }
}

}  // namespace

std::string joined(const std::vector<std::string>& problems) {
  std::string out;
  for (const std::string& problem : problems) out += problem + "\n";
  return out;
}

OpenApi::OpenApi()
    : document_(Json::parse(
          test::read_text(repo_path("api/openapi/openapi.json")), nullptr,
          /*allow_exceptions=*/false)) {
  EXPECT_TRUE(document_.is_object());
  check_references(document_, document_);
}

const Json* OpenApi::at_pointer(const std::string& reference) const {
  const Json::json_pointer pointer(reference.substr(1));
  return document_.contains(pointer) ? &document_.at(pointer) : nullptr;
}

OpenApi::Problems OpenApi::check_at(
    const Json* schema, const std::string& what, const Json& value) const {
  Problems out;
  if (schema == nullptr) {
    out.push_back(what + " is not in the document");
  } else {
    check_value(*schema, value, what, out);
  }
  return out;
}

namespace {

const Json* find(const Json& from, const std::vector<std::string>& keys) {
  const Json* at = &from;
  for (const std::string& key : keys) {
    const auto found = at->find(key);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

}  // namespace

std::vector<std::string> OpenApi::check_body(
    const std::string& path, const std::string& method, int status, const Json& value) const {
  return check_at(
      find(
          document_, {"paths", path, method, "responses", std::to_string(status), "content",
                      "application/json", "schema"}),
      path, value);
}

std::vector<std::string> OpenApi::check_event(const std::string& path, const Json& value) const {
  return check_at(
      find(
          document_, {"paths", path, "post", "responses", "200", "content", "text/event-stream",
                      "x-event-schema"}),
      path, value);
}

std::vector<std::string> OpenApi::check_request(const std::string& path, const Json& value) const {
  return check_at(
      find(
          document_,
          {"paths", path, "post", "requestBody", "content", "application/json", "schema"}),
      path, value);
}

std::vector<std::string> OpenApi::check(const std::string& schema_name, const Json& value) const {
  return check_at(find(document_, {"components", "schemas", schema_name}), schema_name, value);
}

void OpenApi::check_choice(
    const Json& choices, bool only_one, const Json& value, const std::string& at,
    Problems& out) const {
  int num_fits = 0;
  Problems closest;
  for (const Json& choice : choices) {
    Problems problems;
    check_value(choice, value, at, problems);
    if (problems.empty()) ++num_fits;
    if (closest.empty() || problems.size() < closest.size()) closest = problems;
  }
  if (num_fits == 1 || (num_fits > 1 && !only_one)) return;
  if (num_fits > 1) {
    out.push_back(at + " fits more than one choice");
    return;
  }
  out.push_back(at + " fits no choice; closest:");
  out.insert(out.end(), closest.begin(), closest.end());
}

void OpenApi::check_members(
    const Json& schema, const Json& value, const std::string& at, Problems& out) const {
  for (const Json& name : schema.value("required", Json::array())) {
    if (!value.contains(name.get<std::string>())) {
      out.push_back(at + " lacks " + name.get<std::string>());
    }
  }
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, member] : value.items()) {
    const auto found = properties.find(name);
    if (found != properties.end()) {
      check_value(*found, member, at + "." + name, out);
    } else if (
        schema.contains("additionalProperties") && schema["additionalProperties"].is_object()) {
      check_value(schema["additionalProperties"], member, at + "." + name, out);
    }
  }
}

void OpenApi::check_items(
    const Json& schema, const Json& value, const std::string& at, Problems& out) const {
  if (value.size() < schema.value("minItems", size_t{0})) out.push_back(at + " has too few items");
  if (value.size() > schema.value("maxItems", value.size())) {
    out.push_back(at + " has too many items");
  }
  if (!schema.contains("items")) return;
  for (size_t i = 0; i < value.size(); ++i) {
    check_value(schema["items"], value[i], at + "[" + std::to_string(i) + "]", out);
  }
}

void OpenApi::check_value(
    const Json& schema, const Json& value, const std::string& at, Problems& out) const {
  if (const auto reference = schema.find("$ref"); reference != schema.end()) {
    const Json* target = at_pointer(*reference);
    if (target == nullptr) return out.push_back(at + ": dangling reference");
    return check_value(*target, value, at, out);
  }
  if (schema.contains("const") && value != schema["const"]) {
    return out.push_back(at + " is " + value.dump() + ", not " + schema["const"].dump());
  }
  if (const auto allowed = schema.find("enum"); allowed != schema.end()) {
    if (std::find(allowed->begin(), allowed->end(), value) == allowed->end()) {
      return out.push_back(at + " is " + value.dump() + ", not one of " + allowed->dump());
    }
  }
  if (schema.contains("type") && !has_type(schema["type"], value)) {
    return out.push_back(at + " is " + value.dump() + ", not of type " + schema["type"].dump());
  }
  if (value.is_string() && schema.contains("pattern") &&
      !std::regex_search(
          value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
    out.push_back(at + " is " + value.dump() + ", against its pattern");
  }
  if (value.is_number()) {
    const double number = value;
    if (number < schema.value("minimum", number)) out.push_back(at + " is too small");
    if (number > schema.value("maximum", number)) out.push_back(at + " is too large");
  }
  if (value.is_object()) check_members(schema, value, at, out);
  if (value.is_array()) check_items(schema, value, at, out);
  if (schema.contains("oneOf")) check_choice(schema["oneOf"], true, value, at, out);
  if (schema.contains("anyOf")) check_choice(schema["anyOf"], false, value, at, out);
}

}  // namespace tandem::test
