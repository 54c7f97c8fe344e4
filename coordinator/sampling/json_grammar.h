#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tandem {

enum class JsonKind {
  kAnyOf,    // one of `alternatives`
  kObject,   // the listed properties, in order
  kMap,      // any keys, all values of `child`
  kArray,    // items of `child`
  kString,   // any string
  kNumber,   // any number
  kInteger,  // a number without fraction and exponent
  kLiterals  // one of `literals`
};

struct JsonProperty {
  std::string spelling;  // the key as JSON after its opening quote, with the closing one
  uint32_t node = 0;
  bool required = false;
};

/// A set of JSON values. Which members count follows from the kind.
struct JsonNode {
  JsonKind kind = JsonKind::kAnyOf;
  std::vector<uint32_t> alternatives;
  std::vector<JsonProperty> properties;
  std::vector<std::string> literals;  // compact JSON texts, ascending, no two alike
  uint32_t child = 0;
  int64_t min_items = 0;
  int64_t max_items = -1;  // -1: no bound

  // Set when the grammar is whole.
  std::vector<uint32_t>
      concrete;           // what remains when every kAnyOf is followed; else the node itself
  int64_t min_depth = 0;  // containers that the shallowest value needs
};

/// The JSON values that a response may be, from the subset of JSON Schema described at from_schema.
///
/// Threads: immutable, free to share.
class JsonGrammar {
 public:
  /// Any JSON object.
  static JsonGrammar any_object();

  /// Reads a JSON Schema. A grammar admits only values that satisfy the schema, and each has a
  /// finite one; it may admit fewer:
  ///   - type (a name or a list of names), enum, const, anyOf, properties, required,
  ///     additionalProperties, items, minItems, maxItems, $defs, definitions, and $ref to the root
  ///     or to a definition, recursive or not; title, description, default, examples, $schema, $id,
  ///     $comment, deprecated, readOnly and writeOnly are allowed and say nothing;
  ///   - properties come in the order of the schema, and an object with listed properties has no
  ///     others, whatever additionalProperties says;
  ///   - enum and const values are spelled compactly, with the shortest escapes.
  ///
  /// Limits: kSchemaBytesMax, kSchemaDepthMax, kSchemaNodesMax, 256 alternatives for one value.
  /// Errors: kInvalidArgument that names the schema's part, for a keyword or a value outside the
  ///         above, a broken schema, or one that no value satisfies.
  static Result<JsonGrammar> from_schema(std::string_view schema);

  const JsonNode& node(uint32_t id) const { return nodes_[id]; }
  uint32_t root() const { return root_; }

 private:
  friend class SchemaReader;
  JsonGrammar() = default;

  std::vector<JsonNode> nodes_;
  uint32_t root_ = 0;
};

}  // namespace tandem
