#include "api/json/json.h"

#include <algorithm>
#include <vector>

namespace tandem::api {
namespace {

/// Builds a value from the parser's calls: without recursion, with the limits, and without the
/// search that an ordered object would make for every key.
class Builder final : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const JsonLimits& limits) : limits_(limits) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return fail("binary values are no JSON"); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (!count()) return false;
    key_ = std::move(name);
    return true;
  }

  bool end_object() override {
    keys_.clear();
    for (const auto& [name, _] : open_.back()->get_ref<Json::object_t&>()) keys_.push_back(name);
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice != keys_.end())
      return fail(str_cat("the key ", json_string(*twice), " is there twice"));
    return close();
  }

  bool parse_error(
      std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    // The library's message starts with its own name and a number in brackets.
    const std::string_view text = error.what();
    const size_t end = text.find("] ");
    return fail(str_cat(
        "at byte ", position, ": ", end == std::string_view::npos ? text : text.substr(end + 2)));
  }

  const std::string& error() const { return error_; }
  Json take() { return std::move(root_); }

 private:
  bool fail(std::string message) {
    if (error_.empty()) error_ = std::move(message);
    return false;
  }

  bool count() {
    if (++num_values_ <= limits_.values_max) return true;
    return fail(str_cat("more than ", limits_.values_max, " values"));
  }

  Json* put(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    auto& object = parent.get_ref<Json::object_t&>();
    return &object.Json::object_t::Container::emplace_back(std::move(key_), std::move(value))
                .second;
  }

  template <class T>
  bool add(T&& value) {
    if (!count()) return false;
    put(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json value) {
    if (!count()) return false;
    if (static_cast<int64_t>(open_.size()) >= limits_.depth_max) {
      return fail(str_cat("nested deeper than ", limits_.depth_max));
    }
    open_.push_back(put(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  Json root_;
  std::vector<Json*> open_;  // from the root; an open value never moves
  std::string key_;
  std::vector<std::string_view> keys_;
  int64_t num_values_ = 0;
  std::string error_;
};

/// The code unit of a \uXXXX escape at `at`, or -1.
int32_t escaped_unit(std::string_view text, size_t at) {
  if (at + 6 > text.size() || text[at] != '\\' || text[at + 1] != 'u') return -1;
  int32_t unit = 0;
  for (size_t i = at + 2; i < at + 6; ++i) {
    const char c = text[i];
    const int32_t digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

bool is_high(int32_t unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
bool is_low(int32_t unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

/// Replaces escapes of lone surrogates; empty if there are none.
std::string repair_surrogates(std::string_view text) {
  std::string out;
  size_t copied = 0;
  for (size_t i = text.find('\\'); i < text.size(); i = text.find('\\', i)) {
    const int32_t unit = escaped_unit(text, i);
    if (unit < 0) {
      i += 2;  // another escape: what it escapes starts none
      continue;
    }
    if (is_high(unit) && is_low(escaped_unit(text, i + 6))) {
      i += 12;
      continue;
    }
    if (is_high(unit) || is_low(unit)) {
      out.append(text.substr(copied, i - copied)).append("\\uFFFD");
      copied = i + 6;
    }
    i += 6;
  }
  if (copied > 0) out.append(text.substr(copied));
  return out;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  const std::string repaired = repair_surrogates(text);
  if (!repaired.empty()) text = repaired;
  Builder builder(limits);
  const bool ok = Json::sax_parse(text.begin(), text.end(), &builder);
  if (!ok) return invalid_argument(builder.error());
  return builder.take();
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_string(std::string_view text) {
  return json_text(Json(text));
}

}  // namespace tandem::api
