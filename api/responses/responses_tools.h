#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/generation/answer.h"
#include "api/generation/chat_request.h"
#include "api/json/field_reader.h"

namespace tandem::api {

/// In which form a tool is declared, called and answered. The model sees functions only.
enum class ToolForm {
  kFunction,
  kCustom,      // free text; shown as a function with one string, "input"
  kToolSearch,  // loads more tools; the client runs it
  kLocalShell,
};

/// A tool as the client names it.
struct ResponsesTool {
  ToolForm form = ToolForm::kFunction;
  std::string name;
  std::string space;  // the namespace it is declared in; empty: none
};

/// The tools of a request by the name that the model sees.
class ResponsesTools {
 public:
  /// Reads declarations and adds what the model sees of them to `request`. Of a namespace the model
  /// sees each function as namespace + name. Where a tool_search tool is declared, a function with
  /// defer_loading waits until a tool_search_output brings it (`is_loaded`).
  ///
  /// Tools that the vendor's own servers run without the client (web search, image generation) are
  /// left out: clients declare them to every server. Others of that kind, whose absence would
  /// change what the request asks for, are errors.
  void read(
      const Json& tools, const std::string& path, bool is_loaded, RequestErrors& errors,
      ChatRequest& request);

  /// What a call of `shown_name` is; a function of that name if it was not declared.
  ResponsesTool find(const std::string& shown_name) const;
  /// The shown name of the tool that a client calls `name`.
  static std::string shown_name(std::string_view space, std::string_view name);

 private:
  void read_tool(const Json& tool, const std::string& path, RequestErrors& errors, ChatRequest&);
  void read_namespace(FieldReader& tool, ChatRequest& request);
  void add_function(
      const Json& function, const std::string& path, const std::string& space,
      RequestErrors& errors, ChatRequest& request);
  void add_custom(FieldReader& tool, const std::string& path, ChatRequest& request);
  void add(
      ResponsesTool tool, const Json& shown, const std::string& path, RequestErrors& errors,
      ChatRequest& request);

  std::map<std::string, ResponsesTool> by_shown_name_;
  bool has_tool_search_ = false;
  bool is_loading_ = false;
};

/// A call as an output item. `item_id` starts with call_item_prefix().
Json call_item(
    const ResponsesTool& tool, const std::string& item_id, const AnswerCall& call,
    const char* status);
const char* call_item_prefix(ToolForm form);

}  // namespace tandem::api
