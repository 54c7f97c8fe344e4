#include "tests/api/scripted/script.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tandem::test {
namespace {

constexpr uint64_t kRepeatMax = 100000;

}  // namespace

Result<Script> Script::create(
    std::vector<ScriptLine> lines, std::shared_ptr<const Tokenizer> tokenizer) {
  Script script;
  const Markers markers;
  const std::pair<const std::string*, int32_t*> ids[] = {
      {&markers.user, &script.user_},
      {&markers.assistant, &script.assistant_},
      {&markers.think, &script.think_},
      {&markers.end_think, &script.end_think_},
      {&markers.end, &script.end_}};
  for (const auto& [spelling, id] : ids) {
    const auto found = tokenizer->special_id(*spelling);
    TANDEM_REQUIRE(found.has_value(), str_cat(*spelling, " is no special token"));
    *id = *found;
  }
  for (ScriptLine& line : lines) {
    Line made;
    made.when = std::move(line.when);
    std::string thinking = std::move(line.reasoning);
    if (line.say.has_value()) {
      TANDEM_TRY(tokenizer->encode_raw(*line.say, made.plain));
      thinking += markers.end_think + *line.say;
    }
    TANDEM_TRY(tokenizer->encode_raw(thinking, made.thinking));
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

int32_t Script::next(std::span<const int32_t> tokens) const {
  const auto assistant = std::find(tokens.rbegin(), tokens.rend(), assistant_).base();
  if (assistant == tokens.begin()) return end_;  // no turn has begun
  // Behind the marker stands whether to reason, then what was said already.
  const size_t answer_begin = static_cast<size_t>(assistant - tokens.begin()) + 1;
  if (answer_begin > tokens.size()) return end_;
  const bool thinks = tokens[answer_begin - 1] == think_;
  const auto said = tokens.subspan(answer_begin);

  const auto prompt = tokens.first(answer_begin - 2);
  const auto user = std::find(prompt.rbegin(), prompt.rend(), user_).base();
  const std::string turn = tokenizer_->decode(
      prompt.subspan(static_cast<size_t>(user - prompt.begin())), /*skip_special=*/false);
  for (const Line& line : lines_) {
    if (turn.find(line.when) == std::string::npos) continue;
    const std::vector<int32_t>& answer = thinks ? line.thinking : line.plain;
    return said.size() < answer.size() ? answer[said.size()] : end_;
  }
  return end_;
}

}  // namespace tandem::test
