#pragma once

#include <string>

#include "api/generation/chat_request.h"
#include "api/json/field_reader.h"
#include "api/responses/responses_tools.h"

namespace tandem::api {

/// Turns input items into messages. Calls join the assistant message before them; reasoning joins
/// the assistant message or call after it, or is an assistant message of its own if a user or a
/// result comes next. Reasoning that was sealed here is taken from the seal.
/// Threads: one owner.
class ResponsesInput {
 public:
  /// What is passed by reference outlives it.
  ResponsesInput(ResponsesTools& tools, RequestErrors& errors, ChatRequest& request)
      : tools_(tools), errors_(errors), request_(request) {}

  /// The field `input`: a string, or an array of items.
  void read(const Json& input);

 private:
  void read_item(const Json& item, const std::string& path);
  void read_message(FieldReader& item);
  void read_reasoning(FieldReader& item);
  void read_function_call(FieldReader& item);
  void read_custom_call(FieldReader& item);
  void read_shell_call(FieldReader& item);
  void read_search_call(FieldReader& item);
  void read_vendor_call(FieldReader& item, const std::string& name);
  void read_output(FieldReader& item);
  void read_search_output(FieldReader& item);

  /// A string or text parts, joined.
  std::string text_of(FieldReader& item, std::string_view key);
  void add_call(std::string id, std::string name, std::string arguments);
  void add_result(std::string id, std::string content);
  void flush_reasoning();

  ResponsesTools& tools_;
  RequestErrors& errors_;
  ChatRequest& request_;
  std::string reasoning_;
};

}  // namespace tandem::api
