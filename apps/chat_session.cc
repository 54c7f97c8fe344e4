#include "apps/chat_session.h"

#include <nlohmann/json.hpp>

#include "base/file_stream.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kTranscriptBytesMax = uint64_t{64} << 20;

std::string transcript_json(std::span<const Message> messages, ThinkMode mode) {
  Json out;
  out["think"] = static_cast<int>(mode);
  out["messages"] = Json::array();
  for (const Message& message : messages) {
    Json entry;
    entry["role"] = static_cast<int>(message.role);
    entry["content"] = message.content;
    if (message.reasoning.has_value()) entry["reasoning"] = *message.reasoning;
    out["messages"].push_back(std::move(entry));
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<LoadedChat> parse_transcript(const std::string& text) {
  const Status not_a_chat(StatusCode::kDataLoss, "not a saved chat");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("messages") || !json["messages"].is_array()) {
    return not_a_chat;
  }
  LoadedChat chat;
  if (!json.contains("think") || !json["think"].is_number_integer()) return not_a_chat;
  const auto mode = json["think"].get<int64_t>();
  if (mode < 0 || mode > static_cast<int64_t>(ThinkMode::kMax)) return not_a_chat;
  chat.mode = static_cast<ThinkMode>(mode);
  for (const Json& entry : json["messages"]) {
    if (!entry.is_object() || !entry.contains("role") || !entry["role"].is_number_integer() ||
        !entry.contains("content") || !entry["content"].is_string()) {
      return not_a_chat;
    }
    const auto role = entry["role"].get<int64_t>();
    if (role < 0 || role > static_cast<int64_t>(Role::kLatestReminder)) return not_a_chat;
    Message message;
    message.role = static_cast<Role>(role);
    message.content = entry["content"].get<std::string>();
    if (entry.contains("reasoning") && entry["reasoning"].is_string()) {
      message.reasoning = entry["reasoning"].get<std::string>();
    }
    chat.messages.push_back(std::move(message));
  }
  return chat;
}

}  // namespace

Status save_chat(
    const std::string& path, std::span<const Message> messages, ThinkMode mode, Engine& engine,
    std::span<const int32_t> tokens) {
  TANDEM_REQUIRE(!path.empty(), "name a file to save to");
  TANDEM_REQUIRE(!tokens.empty(), "there is nothing to save yet");
  TANDEM_TRY_ASSIGN(FileSink sink, FileSink::create(path));
  const std::string transcript = transcript_json(messages, mode);
  const uint64_t num_bytes = transcript.size();
  TANDEM_TRY(sink.write(bytes_of(num_bytes)));
  TANDEM_TRY(sink.write(std::as_bytes(std::span(transcript))));
  TANDEM_TRY(engine.save_state(tokens, sink));
  return sink.commit();
}

Result<LoadedChat> load_chat(const std::string& path, Engine& engine) {
  TANDEM_REQUIRE(!path.empty(), "name a file to load");
  TANDEM_TRY_ASSIGN(FileSource source, FileSource::open(path));
  uint64_t num_bytes = 0;
  TANDEM_TRY(source.read(writable_bytes_of(num_bytes)));
  if (num_bytes > kTranscriptBytesMax) {
    return Status(StatusCode::kDataLoss, str_cat(path, " is not a saved chat"));
  }
  std::string transcript(num_bytes, '\0');
  TANDEM_TRY(source.read(std::as_writable_bytes(std::span(transcript))));
  TANDEM_TRY_ASSIGN(LoadedChat chat, parse_transcript(transcript));
  TANDEM_TRY_ASSIGN(chat.tokens, engine.load_state(source));
  return chat;
}

}  // namespace tandem
