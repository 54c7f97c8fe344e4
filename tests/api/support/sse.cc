#include "tests/api/support/sse.h"

#include <gtest/gtest.h>

namespace tandem::test {

using api::Json;

std::vector<SseEvent> parse_sse(std::string_view stream) {
  std::vector<SseEvent> out;
  SseEvent event;
  bool has_data = false;
  while (!stream.empty()) {
    const size_t end = stream.find('\n');
    if (end == std::string_view::npos) {
      ADD_FAILURE() << "the stream ends inside a line: " << stream;
      break;
    }
    const std::string_view line = stream.substr(0, end);
    stream.remove_prefix(end + 1);
    if (line.empty()) {
      if (has_data) out.push_back(event);
      event = {};
      has_data = false;
    } else if (line.starts_with("event: ")) {
      event.name = line.substr(7);
    } else if (line.starts_with("data: ")) {
      EXPECT_FALSE(has_data) << "two data lines";
      has_data = true;
      event.data = Json::parse(line.substr(6), nullptr, false);
      if (event.data.is_discarded()) event.data = nullptr;
    } else {
      EXPECT_TRUE(line.starts_with(":")) << line;
    }
  }
  EXPECT_FALSE(has_data) << "the last event is not closed";
  return out;
}

namespace {

/// Follows a Messages stream.
class MessageFold {
 public:
  void take(const Json& data) {
    const std::string type = data["type"];
    EXPECT_FALSE(is_over_) << type << " after message_stop";
    if (type == "ping") return;
    if (type == "message_start") {
      EXPECT_TRUE(message_.is_null());
      message_ = data["message"];
      return;
    }
    if (message_.is_null()) {
      ADD_FAILURE() << type << " before message_start";
      return;
    }
    if (type == "content_block_start") return start(data);
    if (type == "content_block_delta") return add(data);
    if (type == "content_block_stop") return stop(data);
    if (type == "message_delta") {
      EXPECT_FALSE(is_open_);
      for (const auto& [key, value] : data["delta"].items()) message_[key] = value;
      for (const auto& [key, value] : data["usage"].items()) message_["usage"][key] = value;
      return;
    }
    EXPECT_EQ(type, "message_stop");
    is_over_ = true;
  }

  Json result() {
    EXPECT_TRUE(is_over_) << "no message_stop";
    return message_;
  }

 private:
  void start(const Json& data) {
    EXPECT_FALSE(is_open_);
    EXPECT_EQ(data["index"], message_["content"].size());
    message_["content"].push_back(data["content_block"]);
    is_open_ = true;
    json_.clear();
  }

  void add(const Json& data) {
    ASSERT_TRUE(is_open_);
    EXPECT_EQ(data["index"].get<size_t>() + 1, message_["content"].size());
    Json& block = message_["content"].back();
    const Json& delta = data["delta"];
    const std::string type = delta["type"];
    if (type == "input_json_delta") {
      EXPECT_EQ(block["type"], "tool_use");
      json_ += delta["partial_json"].get<std::string>();
      return;
    }
    const std::string field = type == "text_delta"       ? "text"
                              : type == "thinking_delta" ? "thinking"
                                                         : "signature";
    ASSERT_TRUE(block.contains(field)) << type;
    block[field] = block[field].get<std::string>() + delta[field].get<std::string>();
  }

  void stop(const Json& data) {
    EXPECT_TRUE(is_open_);
    EXPECT_EQ(data["index"].get<size_t>() + 1, message_["content"].size());
    is_open_ = false;
    Json& block = message_["content"].back();
    if (block["type"] != "tool_use") return;
    block["input"] = json_.empty() ? Json::object() : Json::parse(json_, nullptr, false);
    EXPECT_TRUE(block["input"].is_object()) << json_;
  }

  Json message_;
  bool is_open_ = false;
  bool is_over_ = false;
  std::string json_;
};

/// Follows a Responses stream.
class ResponseFold {
 public:
  void take(const Json& data) {
    const std::string type = data["type"];
    EXPECT_EQ(data["sequence_number"], next_++) << type;
    EXPECT_TRUE(last_.is_null()) << type << " after the end";
    if (next_ == 1) {
      EXPECT_EQ(type, "response.created");
    }
    if (type == "response.created" || type == "response.in_progress") return;
    if (type == "response.output_item.added") {
      EXPECT_TRUE(item_.is_null()) << "items overlap";
      EXPECT_EQ(data["output_index"], items_.size());
      item_ = data["item"];
      text_.clear();
      return;
    }
    if (type == "response.output_item.done") return done(data);
    if (data.contains("response")) {
      last_ = data["response"];
      return;
    }
    ASSERT_FALSE(item_.is_null()) << type << " outside an item";
    EXPECT_EQ(data["item_id"], item_["id"]);
    EXPECT_EQ(data["output_index"], items_.size());
    if (data.contains("delta")) text_ += data["delta"].get<std::string>();
    for (const char* key : {"text", "arguments", "input"}) {
      if (data.contains(key)) {
        EXPECT_EQ(data[key], text_) << type;
      }
    }
  }

  Json result() {
    EXPECT_FALSE(last_.is_null()) << "no terminal event";
    if (!last_.is_null() && last_["status"] != "failed") {
      EXPECT_EQ(last_["output"], items_);
    }
    return last_;
  }

 private:
  void done(const Json& data) {
    const Json& item = data["item"];
    EXPECT_EQ(item["id"], item_["id"]);
    EXPECT_EQ(item["type"], item_["type"]);
    EXPECT_EQ(data["output_index"], items_.size());
    if (item["type"] == "message") {
      EXPECT_EQ(item["content"][0]["text"], text_);
    }
    if (item["type"] == "function_call") {
      EXPECT_EQ(item["arguments"], text_);
    }
    if (item["type"] == "custom_tool_call") {
      EXPECT_EQ(item["input"], text_);
    }
    items_.push_back(item);
    item_ = nullptr;
  }

  int next_ = 0;
  Json item_;
  std::string text_;
  Json items_ = Json::array();
  Json last_;
};

template <class Fold>
Json fold(const std::vector<SseEvent>& events) {
  Fold fold;
  for (const SseEvent& event : events) {
    EXPECT_TRUE(event.data.is_object()) << event.name;
    if (!event.data.is_object()) continue;
    EXPECT_EQ(event.data["type"], event.name);
    fold.take(event.data);
  }
  return fold.result();
}

}  // namespace

Json fold_messages(const std::vector<SseEvent>& events) {
  return fold<MessageFold>(events);
}

Json fold_responses(const std::vector<SseEvent>& events) {
  return fold<ResponseFold>(events);
}

}  // namespace tandem::test
