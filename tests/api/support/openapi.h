#pragma once

#include <string>
#include <vector>

#include "api/json/json.h"

namespace tandem::test {

/// The checked-in description of the HTTP surfaces, as a judge of what they answer. Knows the part
/// of JSON Schema that it uses: type, enum, const, pattern, minimum, maximum, minItems, maxItems,
/// properties, required, additionalProperties, items, oneOf, anyOf and $ref.
class OpenApi {
 public:
  /// Fails the test if the document is no JSON or has a reference that leads nowhere.
  OpenApi();

  const api::Json& document() const { return document_; }

  /// What is wrong with `value` as the JSON body that `method` (lower case) on `path` answers with
  /// `status`; empty if nothing is.
  std::vector<std::string> check_body(
      const std::string& path, const std::string& method, int status, const api::Json& value) const;
  /// The same for the data of one event of a stream.
  std::vector<std::string> check_event(const std::string& path, const api::Json& value) const;
  /// The same for a request's body.
  std::vector<std::string> check_request(const std::string& path, const api::Json& value) const;
  /// The same against a schema of the document's components.
  std::vector<std::string> check(const std::string& schema_name, const api::Json& value) const;

 private:
  using Problems = std::vector<std::string>;

  void check_value(
      const api::Json& schema, const api::Json& value, const std::string& at, Problems& out) const;
  void check_members(
      const api::Json& schema, const api::Json& value, const std::string& at, Problems& out) const;
  void check_items(
      const api::Json& schema, const api::Json& value, const std::string& at, Problems& out) const;
  void check_choice(
      const api::Json& choices, bool only_one, const api::Json& value, const std::string& at,
      Problems& out) const;
  const api::Json* at_pointer(const std::string& reference) const;
  Problems check_at(const api::Json* schema, const std::string& what, const api::Json& value) const;

  api::Json document_;
};

/// The problems, one a line, for a failed test.
std::string joined(const std::vector<std::string>& problems);

}  // namespace tandem::test
