#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "api/generation/chat_request.h"
#include "api/json/field_reader.h"

namespace tandem::api {

// Fields that more than one surface has. Errors go to the reader's RequestErrors.

/// temperature, top_p, min_p, top_k, seed, the penalties and logit_bias.
void read_sampling(FieldReader& fields, SamplingParams& out);

/// A string or an array of strings; empty ones are dropped.
void read_stop(FieldReader& fields, std::string_view key, std::vector<std::string>& out);

/// The first of `keys` that is there.
void read_budget(
    FieldReader& fields, std::initializer_list<std::string_view> keys, std::optional<int64_t>& out);

/// model, with the aliases that turn thinking on or off.
void read_model(FieldReader& fields, ChatRequest& out);

/// thinking, think, reasoning_effort and chat_template_kwargs.
void read_thinking(FieldReader& fields, std::optional<Effort>& out);

/// The word of an effort field.
void read_effort(FieldReader& fields, std::string_view key, std::optional<Effort>& out);

/// {"type": "text" | "json_object" | "json_schema", ...}; the schema is in the object itself or
/// under "json_schema". A bare string is the type.
void read_format(FieldReader& fields, std::string_view key, ChatRequest& out);

/// One function declaration: {"name", "description", "parameters"}. Adds it to the request.
void read_function(
    const Json& function, const std::string& path, RequestErrors& errors, ChatRequest& out);

/// tool_choice where it is a string: none, auto or required.
void read_tool_choice_word(FieldReader& fields, ChatRequest& out);

/// Checks that a named tool choice names a tool, and that required has one to choose from.
void check_tool_choice(FieldReader& fields, ChatRequest& request);

/// Text of a content part that must not be anything but text; `what` names the part in the error.
void refuse_part(RequestErrors& errors, const std::string& path, std::string_view part_type);

/// A call's arguments: JSON text, or an object that is written as such.
std::string arguments_text(FieldReader& fields, std::string_view key);

}  // namespace tandem::api
