#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/errors/api_error.h"
#include "api/json/json.h"

namespace tandem::api {

/// The first thing that is wrong with a request. Readers of its parts share one and go on after an
/// error, which costs nothing and changes nothing.
class RequestErrors {
 public:
  bool any() const { return any_; }
  const ApiError& first() const { return error_; }
  /// `param` is the path of the field, "messages[2].role".
  void add(std::string param, const std::string& problem);
  void add(ApiError error);

 private:
  bool any_ = false;
  ApiError error_;
};

/// Reads the fields of one JSON object. A field that is missing or null leaves its target alone;
/// one of another type, or out of range, is an error that names it.
class FieldReader {
 public:
  /// `value`, which outlives the reader, is an object or else an error. `path` is empty for the
  /// body itself.
  FieldReader(const Json& value, std::string path, RequestErrors& errors);

  /// The field, or nullptr if it is missing or null.
  const Json* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  std::string path(std::string_view key) const;
  void fail(std::string_view key, const std::string& problem) { errors_.add(path(key), problem); }
  RequestErrors& errors() const { return errors_; }

  void boolean(std::string_view key, bool& out);
  void text(std::string_view key, std::string& out);
  void number(std::string_view key, float& out, double min, double max);
  /// 1.0 is an integer too.
  void integer(std::string_view key, int64_t& out, int64_t min, int64_t max);
  /// The array or object, or nullptr.
  const Json* array(std::string_view key);
  const Json* object(std::string_view key);
  /// The string, empty if it is missing, which is an error, as is an empty one.
  std::string required_text(std::string_view key);

 private:
  const Json* object_ = nullptr;
  std::string path_;
  RequestErrors& errors_;
};

/// "path[idx]".
std::string item_path(std::string_view path, size_t idx);

/// The value if it is a whole number that fits.
bool whole_number(const Json& value, int64_t& out);

}  // namespace tandem::api
