#include "tests/api/scripted/script.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tandem::test {
namespace {

constexpr uint64_t kRepeatMax = 100000;

/// Appends one token a byte.
Status append_bytes(
    std::string_view bytes, const Tokenizer& tokenizer, std::vector<int32_t>& tokens) {
  for (const char& byte : bytes) {
    int32_t id = 0;
    while (id < tokenizer.size() && tokenizer.token_bytes(id) != std::string_view(&byte, 1)) ++id;
    TANDEM_REQUIRE(
        id < tokenizer.size(),
        str_cat("no token is the byte ", static_cast<int>(static_cast<unsigned char>(byte))));
    tokens.push_back(id);
  }
  return {};
}

}  // namespace

Result<Script> Script::create(
    std::vector<ScriptLine> lines, std::shared_ptr<const Tokenizer> tokenizer) {
  Script script;
  const Markers markers;
  const std::pair<const std::string*, int32_t*> ids[] = {
      {&markers.user, &script.user_},
      {&markers.assistant, &script.assistant_},
      {&markers.think, &script.think_},
      {&markers.end, &script.end_}};
  for (const auto& [spelling, id] : ids) {
    const auto found = tokenizer->special_id(*spelling);
    TANDEM_REQUIRE(found.has_value(), str_cat(*spelling, " is no special token"));
    *id = *found;
  }
  for (ScriptLine& line : lines) {
    Line made;
    std::string thinking = line.reasoning;
    if (line.say.has_value()) {
      TANDEM_TRY(tokenizer->encode_raw(*line.say, made.plain));
      thinking += markers.end_think + *line.say;
    }
    TANDEM_TRY(tokenizer->encode_raw(thinking, made.thinking));
    for (std::vector<int32_t>* answer : {&made.plain, &made.thinking}) {
      TANDEM_TRY(append_bytes(line.say_bytes, *tokenizer, *answer));
    }
    made.text = std::move(line);
    script.lines_.push_back(std::move(made));
  }
  script.tokenizer_ = std::move(tokenizer);
  return script;
}

Result<Script> Script::from_json(
    std::string_view json, std::shared_ptr<const Tokenizer> tokenizer) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  TANDEM_REQUIRE(parsed.is_array(), "a script is a JSON array");
  std::vector<ScriptLine> lines;
  for (const auto& entry : parsed) {
    TANDEM_REQUIRE(entry.is_object(), "a line of a script is a JSON object");
    ScriptLine line;
    for (const char* name : {"when", "reasoning", "say"}) {
      TANDEM_REQUIRE(
          !entry.contains(name) || entry[name].is_string(),
          str_cat(name, " of a script line is no string"));
    }
    line.when = entry.value("when", "");
    line.reasoning = entry.value("reasoning", "");
    if (entry.contains("say")) {
      const auto repeat = entry.value("repeat", nlohmann::json(1u));
      TANDEM_REQUIRE(
          repeat.is_number_unsigned() && repeat <= kRepeatMax,
          str_cat("repeat of a script line is not in [0, ", kRepeatMax, "]"));
      const auto once = entry["say"].get<std::string>();
      line.say.emplace();
      for (uint64_t i = 0; i < repeat.get<uint64_t>(); ++i) *line.say += once;
    }
    lines.push_back(std::move(line));
  }
  return create(std::move(lines), std::move(tokenizer));
}

Script::Part Script::find(std::span<const int32_t> tokens) const {
  const auto assistant = std::find(tokens.rbegin(), tokens.rend(), assistant_).base();
  if (assistant == tokens.begin()) return {};  // no turn has begun
  // Behind the marker stands whether to reason, then what was said already.
  const size_t begin = static_cast<size_t>(assistant - tokens.begin()) + 1;
  if (begin > tokens.size()) return {};
  const bool thinks = tokens[begin - 1] == think_;

  const auto prompt = tokens.first(begin - 2);
  const auto user = std::find(prompt.rbegin(), prompt.rend(), user_).base();
  const std::string turn = tokenizer_->decode(
      prompt.subspan(static_cast<size_t>(user - prompt.begin())), /*skip_special=*/false);
  for (const Line& line : lines_) {
    if (turn.find(line.text.when) == std::string::npos) continue;
    return {&line.text, thinks ? &line.thinking : &line.plain, begin};
  }
  return {};
}

int32_t Script::next(const Part& part, size_t num_tokens) const {
  if (part.line == nullptr || part.answer->empty()) return end_;
  const size_t num_said = num_tokens - part.begin;
  const std::vector<int32_t>& answer = *part.answer;
  if (part.line->endless) return answer[num_said % answer.size()];
  return num_said < answer.size() ? answer[num_said] : end_;
}

}  // namespace tandem::test
