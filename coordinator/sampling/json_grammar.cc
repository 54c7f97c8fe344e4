#include "coordinator/sampling/json_grammar.h"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_nesting.h"
#include "base/limits.h"

namespace tandem {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kAlternativesMax = 256;
constexpr int64_t kNoFiniteValue = std::numeric_limits<int64_t>::max();

constexpr const char* kAnnotations[] = {"title",    "description", "default",  "examples",
                                        "$schema",  "$id",         "$comment", "deprecated",
                                        "readOnly", "writeOnly"};

bool is_annotation(const std::string& key) {
  return std::find(std::begin(kAnnotations), std::end(kAnnotations), key) != std::end(kAnnotations);
}

/// Whether `value` is of the JSON Schema type `type`.
bool has_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number_integer();
  if (type == "boolean") return value.is_boolean();
  return type == "null" && value.is_null();
}

Status at(const std::string& path, const std::string& what) {
  return invalid_argument(str_cat("schema part ", path, ": ", what));
}

}  // namespace

/// Builds a grammar from a parsed schema. Paths are JSON pointers for messages.
class SchemaReader {
 public:
  SchemaReader() {
    string_ = add(JsonKind::kString);
    number_ = add(JsonKind::kNumber);
    integer_ = add(JsonKind::kInteger);
    boolean_ = add_literals({"false", "true"});
    null_ = add_literals({"null"});
    any_ = add(JsonKind::kAnyOf);
    any_object_ = add(JsonKind::kMap);
    any_array_ = add(JsonKind::kArray);
    grammar_.nodes_[any_object_].child = any_;
    grammar_.nodes_[any_array_].child = any_;
    grammar_.nodes_[any_].alternatives = {any_object_, any_array_, string_,
                                          number_,     boolean_,   null_};
  }

  uint32_t any_object() const { return any_object_; }

  Result<uint32_t> read_root(const Json& schema) {
    root_schema_ = &schema;
    TANDEM_TRY_ASSIGN(const uint32_t root, read_reference("#", "#"));
    while (!pending_.empty()) {
      const Pending next = std::move(pending_.back());
      pending_.pop_back();
      TANDEM_TRY_ASSIGN(const uint32_t target, read(*next.schema, next.path));
      grammar_.nodes_[next.node].alternatives = {target};
    }
    return root;
  }

  /// Follows every kAnyOf and finds the shallowest value of each node.
  Result<JsonGrammar> finish(uint32_t root) {
    grammar_.root_ = root;
    for (uint32_t id = 0; id < grammar_.nodes_.size(); ++id) {
      grammar_.nodes_[id].concrete = concrete_of(id);
      TANDEM_REQUIRE(
          grammar_.nodes_[id].concrete.size() <= kAlternativesMax,
          str_cat("schema: a value has more than ", kAlternativesMax, " alternatives"));
    }
    find_depths();
    TANDEM_REQUIRE(
        grammar_.nodes_[root].min_depth <= kJsonDepthMax,
        "schema: no value of bounded depth satisfies it");
    return std::move(grammar_);
  }

 private:
  /// A referenced part that is still to be read.
  struct Pending {
    uint32_t node;
    const Json* schema;
    std::string path;
  };

  uint32_t add(JsonKind kind) {
    grammar_.nodes_.emplace_back().kind = kind;
    return static_cast<uint32_t>(grammar_.nodes_.size() - 1);
  }

  uint32_t add_literals(std::vector<std::string> literals) {
    std::sort(literals.begin(), literals.end());
    literals.erase(std::unique(literals.begin(), literals.end()), literals.end());
    const uint32_t id = add(JsonKind::kLiterals);
    grammar_.nodes_[id].literals = std::move(literals);
    return id;
  }

  uint32_t add_any_of(std::vector<uint32_t> alternatives) {
    if (alternatives.size() == 1) return alternatives[0];
    const uint32_t id = add(JsonKind::kAnyOf);
    grammar_.nodes_[id].alternatives = std::move(alternatives);
    return id;
  }

  Status charge(const std::string& path) {
    if (++num_parts_ <= kSchemaNodesMax) return {};
    return at(path, str_cat("more than ", kSchemaNodesMax, " subschemas and properties"));
  }

  Result<uint32_t> read(const Json& schema, const std::string& path) {
    TANDEM_TRY(charge(path));
    if (schema.is_boolean()) {
      if (schema.get<bool>()) return any_;
      return at(path, "false admits no value");
    }
    if (!schema.is_object()) return at(path, "must be an object or true");
    if (schema.contains("$ref")) {
      TANDEM_TRY(allow_only(schema, path, {"$ref", "$defs", "definitions"}));
      if (!schema["$ref"].is_string()) return at(path + "/$ref", "must be a string");
      return read_reference(schema["$ref"].get<std::string>(), path + "/$ref");
    }
    if (schema.contains("anyOf")) {
      TANDEM_TRY(allow_only(schema, path, {"anyOf", "$defs", "definitions"}));
      return read_any_of(schema["anyOf"], path + "/anyOf");
    }
    TANDEM_TRY_ASSIGN(const std::vector<std::string> types, read_types(schema, path));
    if (schema.contains("enum") || schema.contains("const")) {
      TANDEM_TRY(allow_only(schema, path, {"enum", "const", "type", "$defs", "definitions"}));
      return read_values(schema, types, path);
    }
    TANDEM_TRY(allow_only(
        schema, path,
        {"type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems",
         "$defs", "definitions"}));
    std::vector<uint32_t> alternatives;
    for (const std::string& type : types) {
      TANDEM_TRY_ASSIGN(const uint32_t id, read_type(schema, type, path));
      alternatives.push_back(id);
    }
    return add_any_of(std::move(alternatives));
  }

  static Status allow_only(
      const Json& schema, const std::string& path, std::initializer_list<const char*> keywords) {
    for (const auto& item : schema.items()) {
      const std::string& key = item.key();
      const bool known = std::any_of(
          keywords.begin(), keywords.end(), [&](const char* keyword) { return key == keyword; });
      if (!known && !is_annotation(key))
        return at(str_cat(path, "/", key), "is not supported here");
    }
    return {};
  }

  /// A reference has a node of its own, whose target is read later: it may recur, and a chain of
  /// references takes no stack.
  Result<uint32_t> read_reference(const std::string& reference, const std::string& path) {
    if (const auto found = references_.find(reference); found != references_.end()) {
      return found->second;
    }
    const Json* target = root_schema_;
    if (reference != "#") {
      target = nullptr;
      for (const char* folder : {"$defs", "definitions"}) {
        const std::string prefix = str_cat("#/", folder, "/");
        if (!reference.starts_with(prefix) || !root_schema_->is_object()) continue;
        const auto definitions = root_schema_->find(folder);
        if (definitions == root_schema_->end() || !definitions->is_object()) continue;
        const auto found = definitions->find(unescape_pointer(reference.substr(prefix.size())));
        if (found != definitions->end()) target = &*found;
      }
    }
    if (target == nullptr) return at(path, str_cat("\"", reference, "\" names no definition"));
    const uint32_t id = add(JsonKind::kAnyOf);
    references_.emplace(reference, id);
    pending_.push_back({id, target, reference});
    return id;
  }

  static std::string unescape_pointer(const std::string& part) {
    std::string name;
    for (size_t i = 0; i < part.size(); ++i) {
      const bool escaped = part[i] == '~' && i + 1 < part.size();
      if (escaped && part[i + 1] == '1') {
        name += '/';
        ++i;
      } else if (escaped && part[i + 1] == '0') {
        name += '~';
        ++i;
      } else {
        name += part[i];
      }
    }
    return name;
  }

  Result<uint32_t> read_any_of(const Json& list, const std::string& path) {
    if (!list.is_array() || list.empty()) return at(path, "must be an array that is not empty");
    std::vector<uint32_t> alternatives;
    for (size_t i = 0; i < list.size(); ++i) {
      TANDEM_TRY_ASSIGN(const uint32_t id, read(list[i], str_cat(path, "/", i)));
      alternatives.push_back(id);
    }
    return add_any_of(std::move(alternatives));
  }

  /// The types a schema names; without a name, those that its keywords speak of, or "any".
  static Result<std::vector<std::string>> read_types(const Json& schema, const std::string& path) {
    if (!schema.contains("type")) {
      const bool object = schema.contains("properties") || schema.contains("required") ||
                          schema.contains("additionalProperties");
      const bool array =
          schema.contains("items") || schema.contains("minItems") || schema.contains("maxItems");
      std::vector<std::string> implied;
      if (object) implied.emplace_back("object");
      if (array) implied.emplace_back("array");
      if (implied.empty()) implied.emplace_back("any");
      return implied;
    }
    const Json& type = schema["type"];
    const Json list = type.is_array() ? type : Json::array({type});
    if (list.empty()) return at(path + "/type", "must name a type");
    std::vector<std::string> types;
    for (const Json& entry : list) {
      static constexpr const char* kTypes[] = {"object",  "array",   "string", "number",
                                               "integer", "boolean", "null"};
      const bool known = entry.is_string() && std::find(
                                                  std::begin(kTypes), std::end(kTypes),
                                                  entry.get<std::string>()) != std::end(kTypes);
      if (!known) return at(path + "/type", "must name JSON types");
      types.push_back(entry.get<std::string>());
    }
    return types;
  }

  Result<uint32_t> read_values(
      const Json& schema, const std::vector<std::string>& types, const std::string& path) {
    Json values = Json::array();
    if (schema.contains("enum")) {
      if (!schema["enum"].is_array()) return at(path + "/enum", "must be an array");
      values = schema["enum"];
    }
    if (schema.contains("const")) {
      const Json& value = schema["const"];
      const bool listed = !schema.contains("enum") ||
                          std::find(values.begin(), values.end(), value) != values.end();
      values = listed ? Json::array({value}) : Json::array();
    }
    std::vector<std::string> literals;
    for (const Json& value : values) {
      const bool typed = !schema.contains("type") ||
                         std::any_of(types.begin(), types.end(), [&](const std::string& type) {
                           return has_type(value, type);
                         });
      if (typed) literals.push_back(value.dump());
    }
    if (literals.empty()) return at(path, "enum, const and type leave no value");
    return add_literals(std::move(literals));
  }

  Result<uint32_t> read_type(const Json& schema, const std::string& type, const std::string& path) {
    if (type == "object") return read_object(schema, path);
    if (type == "array") return read_array(schema, path);
    if (type == "string") return string_;
    if (type == "number") return number_;
    if (type == "integer") return integer_;
    if (type == "boolean") return boolean_;
    if (type == "null") return null_;
    return any_;
  }

  Result<uint32_t> read_object(const Json& schema, const std::string& path) {
    const Json properties = schema.value("properties", Json::object());
    const Json required = schema.value("required", Json::array());
    if (!properties.is_object()) return at(path + "/properties", "must be an object");
    if (!required.is_array()) return at(path + "/required", "must be an array");
    std::map<std::string, bool> is_required;
    for (const Json& name : required) {
      if (!name.is_string()) return at(path + "/required", "must hold strings");
      if (!properties.contains(name.get<std::string>())) {
        return at(
            path + "/required", str_cat("\"", name.get<std::string>(), "\" is not in properties"));
      }
      is_required[name.get<std::string>()] = true;
    }
    uint32_t additional = any_;
    if (schema.contains("additionalProperties") && schema["additionalProperties"] != Json(false)) {
      TANDEM_TRY_ASSIGN(
          additional, read(schema["additionalProperties"], path + "/additionalProperties"));
    }
    const bool closed = schema.value("additionalProperties", Json(true)) == Json(false);
    if (properties.empty() && !closed) {
      const uint32_t id = add(JsonKind::kMap);
      grammar_.nodes_[id].child = additional;
      return id;
    }
    std::vector<JsonProperty> list;
    for (const auto& [name, value] : properties.items()) {
      const std::string part = str_cat(path, "/properties/", name);
      TANDEM_TRY(charge(part));
      TANDEM_TRY_ASSIGN(const uint32_t child, read(value, part));
      list.push_back({Json(name).dump().substr(1), child, is_required.contains(name)});
    }
    const uint32_t id = add(JsonKind::kObject);
    grammar_.nodes_[id].properties = std::move(list);
    return id;
  }

  Result<uint32_t> read_array(const Json& schema, const std::string& path) {
    uint32_t items = any_;
    if (schema.contains("items")) {
      TANDEM_TRY_ASSIGN(items, read(schema["items"], path + "/items"));
    }
    int64_t bounds[2] = {0, -1};
    const char* const names[2] = {"minItems", "maxItems"};
    for (size_t i = 0; i < 2; ++i) {
      if (!schema.contains(names[i])) continue;
      const Json& bound = schema[names[i]];
      if (!bound.is_number_unsigned() || bound.get<uint64_t>() > kContextTokensMax) {
        return at(
            path + "/" + names[i], str_cat("must be an integer from 0 to ", kContextTokensMax));
      }
      bounds[i] = bound.get<int64_t>();
    }
    if (bounds[1] >= 0 && bounds[1] < bounds[0]) {
      return at(path + "/maxItems", str_cat(bounds[1], " is less than minItems ", bounds[0]));
    }
    const uint32_t id = add(JsonKind::kArray);
    JsonNode& node = grammar_.nodes_[id];
    node.child = items;
    node.min_items = bounds[0];
    node.max_items = bounds[1];
    return id;
  }

  std::vector<uint32_t> concrete_of(uint32_t id) const {
    std::vector<uint32_t> concrete;
    std::vector<uint32_t> open = {id};
    std::vector<bool> seen(grammar_.nodes_.size());
    while (!open.empty()) {
      const uint32_t next = open.back();
      open.pop_back();
      if (seen[next]) continue;
      seen[next] = true;
      const JsonNode& node = grammar_.nodes_[next];
      if (node.kind != JsonKind::kAnyOf) {
        concrete.push_back(next);
      } else {
        open.insert(open.end(), node.alternatives.rbegin(), node.alternatives.rend());
      }
    }
    return concrete;
  }

  /// The least solution, from below: a node's depth is known once what it needs is.
  void find_depths() {
    for (JsonNode& node : grammar_.nodes_) node.min_depth = kNoFiniteValue;
    for (bool changed = true; changed;) {
      changed = false;
      for (JsonNode& node : grammar_.nodes_) {
        const int64_t depth = depth_of(node);
        if (depth < node.min_depth) {
          node.min_depth = depth;
          changed = true;
        }
      }
    }
  }

  int64_t depth_of(const JsonNode& node) const {
    const auto inside = [&](uint32_t child) {
      const int64_t depth = grammar_.nodes_[child].min_depth;
      return depth == kNoFiniteValue ? depth : depth + 1;
    };
    switch (node.kind) {
      case JsonKind::kString:
      case JsonKind::kNumber:
      case JsonKind::kInteger:
      case JsonKind::kLiterals: return 0;
      case JsonKind::kMap: return 1;
      case JsonKind::kArray: return node.min_items == 0 ? 1 : inside(node.child);
      case JsonKind::kObject: {
        int64_t depth = 1;
        for (const JsonProperty& property : node.properties) {
          if (property.required) depth = std::max(depth, inside(property.node));
        }
        return depth;
      }
      case JsonKind::kAnyOf: {
        int64_t depth = kNoFiniteValue;
        for (const uint32_t id : node.alternatives) {
          depth = std::min(depth, grammar_.nodes_[id].min_depth);
        }
        return depth;
      }
    }
    TANDEM_UNREACHABLE();
  }

  JsonGrammar grammar_;
  const Json* root_schema_ = nullptr;
  std::map<std::string, uint32_t> references_;
  std::vector<Pending> pending_;
  int64_t num_parts_ = 0;

  uint32_t string_, number_, integer_, boolean_, null_;
  uint32_t any_, any_object_, any_array_;
};

JsonGrammar JsonGrammar::any_object() {
  SchemaReader reader;
  return std::move(reader.finish(reader.any_object()).value());
}

Result<JsonGrammar> JsonGrammar::from_schema(std::string_view schema) {
  TANDEM_REQUIRE(
      static_cast<int64_t>(schema.size()) <= kSchemaBytesMax,
      str_cat("schema has ", schema.size(), " bytes, must be at most ", kSchemaBytesMax));
  TANDEM_REQUIRE(
      json_nesting(schema) <= kSchemaDepthMax,
      str_cat("schema is nested more than ", kSchemaDepthMax, " deep"));
  const Json parsed =
      Json::parse(schema.begin(), schema.end(), nullptr, /*allow_exceptions=*/false);
  TANDEM_REQUIRE(!parsed.is_discarded(), "schema is not JSON");
  SchemaReader reader;
  TANDEM_TRY_ASSIGN(const uint32_t root, reader.read_root(parsed));
  return reader.finish(root);
}

}  // namespace tandem
