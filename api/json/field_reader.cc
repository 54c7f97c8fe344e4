#include "api/json/field_reader.h"

#include <cmath>

namespace tandem::api {

void RequestErrors::add(std::string param, const std::string& problem) {
  ApiError error;
  error.message = param.empty() ? problem : str_cat(param, " ", problem);
  error.param = std::move(param);
  add(std::move(error));
}

void RequestErrors::add(ApiError error) {
  if (any_) return;
  any_ = true;
  error_ = std::move(error);
}

FieldReader::FieldReader(const Json& value, std::string path, RequestErrors& errors)
    : path_(std::move(path)), errors_(errors) {
  if (value.is_object()) {
    object_ = &value;
  } else if (path_.empty()) {
    errors_.add("", "the request body must be a JSON object");
  } else {
    errors_.add(path_, "must be an object");
  }
}

const Json* FieldReader::find(std::string_view key) const {
  if (object_ == nullptr) return nullptr;
  for (const auto& [name, value] : object_->get_ref<const Json::object_t&>()) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

std::string FieldReader::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : str_cat(path_, ".", key);
}

void FieldReader::boolean(std::string_view key, bool& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(key, "must be true or false");
  out = value->get<bool>();
}

void FieldReader::text(std::string_view key, std::string& out) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(key, "must be a string");
  out = value->get_ref<const std::string&>();
}

void FieldReader::number(std::string_view key, float& out, double min, double max) {
  const Json* value = find(key);
  if (value == nullptr) return;
  if (!value->is_number()) return fail(key, "must be a number");
  const double number = value->get<double>();
  if (!(number >= min && number <= max)) {
    return fail(key, str_cat("is ", number, ", must be from ", min, " to ", max));
  }
  out = static_cast<float>(number);
}

bool whole_number(const Json& value, int64_t& out) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(INT64_MAX)) return false;
    out = static_cast<int64_t>(number);
    return true;
  }
  if (value.is_number_integer()) {
    out = value.get<int64_t>();
    return true;
  }
  if (!value.is_number_float()) return false;
  const double number = value.get<double>();
  if (!(std::fabs(number) < 0x1p53) || number != std::floor(number)) return false;
  out = static_cast<int64_t>(number);
  return true;
}

void FieldReader::integer(std::string_view key, int64_t& out, int64_t min, int64_t max) {
  const Json* value = find(key);
  if (value == nullptr) return;
  int64_t number = 0;
  if (!whole_number(*value, number)) return fail(key, "must be an integer");
  if (number < min) return fail(key, str_cat("must be >= ", min));
  if (number > max) return fail(key, str_cat("must be <= ", max));
  out = number;
}

const Json* FieldReader::array(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_array()) return value;
  fail(key, "must be an array");
  return nullptr;
}

const Json* FieldReader::object(std::string_view key) {
  const Json* value = find(key);
  if (value == nullptr || value->is_object()) return value;
  fail(key, "must be an object");
  return nullptr;
}

std::string FieldReader::required_text(std::string_view key) {
  std::string out;
  if (!has(key)) {
    fail(key, "is missing");
    return out;
  }
  text(key, out);
  if (out.empty()) fail(key, "must be a non-empty string");
  return out;
}

std::string item_path(std::string_view path, size_t idx) {
  return str_cat(path, "[", idx, "]");
}

}  // namespace tandem::api
