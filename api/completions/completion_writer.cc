#include "api/completions/completion_writer.h"

#include "api/surface/common_json.h"
#include "api/surface/openai_encoder.h"
#include "base/utf8.h"

namespace tandem::api {
namespace {

/// {tokens, token_logprobs, top_logprobs, text_offset}; offsets count from `offset`, in bytes.
Json logprobs_object(std::span<const TokenInfo> tokens, int64_t offset) {
  Json texts = Json::array();
  Json logprobs = Json::array();
  Json tops = Json::array();
  Json offsets = Json::array();
  for (const TokenInfo& token : tokens) {
    if (token.is_special || !token.logprob.has_value()) continue;
    texts.push_back(repair_utf8(token.bytes));
    logprobs.push_back(written_logprob(*token.logprob));
    Json top = Json::object();
    for (const auto& other : token.top) {
      top[repair_utf8(other.bytes)] = written_logprob(other.logprob);
    }
    tops.push_back(std::move(top));
    offsets.push_back(offset);
    offset += static_cast<int64_t>(token.bytes.size());
  }
  Json out;
  out["tokens"] = std::move(texts);
  out["token_logprobs"] = std::move(logprobs);
  out["top_logprobs"] = std::move(tops);
  out["text_offset"] = std::move(offsets);
  return out;
}

class CompletionEncoder final : public OpenAiEncoder {
 public:
  CompletionEncoder(const ChatRequest& request, const ResponseHead& head)
      : OpenAiEncoder(request, head, "text_completion"),
        with_logprobs_(request.sampling.logprobs),
        offsets_(static_cast<size_t>(request.num_choices), 0) {}

  void begin(std::string&) override {}

  void delta(const Delta& delta, std::string& out) override {
    if (delta.kind == Delta::Kind::kContent) {
      write_text(delta, delta.text, nullptr, out);
    } else if (delta.kind == Delta::Kind::kFinish) {
      write_text(delta, "", openai_finish_reason(delta.finish), out);
    }
  }

 private:
  void write_text(
      const Delta& delta, std::string_view text, const char* finish_reason, std::string& out) {
    int64_t& offset = offsets_[static_cast<size_t>(delta.choice_idx)];
    Json choice;
    choice["text"] = text;
    choice["index"] = delta.choice_idx;
    choice["logprobs"] = with_logprobs_ ? logprobs_object(delta.tokens, offset) : Json(nullptr);
    choice["finish_reason"] = finish_reason == nullptr ? Json(nullptr) : Json(finish_reason);
    offset += static_cast<int64_t>(text.size());
    write_choice(std::move(choice), out);
  }

  const bool with_logprobs_;
  std::vector<int64_t> offsets_;  // by choice: bytes of text so far
};

}  // namespace

Json completion_response(const ChatRequest& request, const Completion& completion) {
  Json out;
  out["id"] = completion.head.id;
  out["object"] = "text_completion";
  out["created"] = completion.head.created_s;
  out["model"] = completion.head.model;
  Json& choices = out["choices"] = Json::array();
  for (size_t i = 0; i < completion.choices.size(); ++i) {
    const Answer& answer = completion.choices[i];
    Json choice;
    choice["text"] = answer.content;
    choice["index"] = i;
    choice["logprobs"] =
        request.sampling.logprobs ? logprobs_object(answer.content_tokens, 0) : Json(nullptr);
    choice["finish_reason"] = openai_finish_reason(answer.finish);
    choices.push_back(std::move(choice));
  }
  out["usage"] = openai_usage(completion.usage);
  out["timings"] = timings_json(completion.timings);
  return out;
}

std::unique_ptr<StreamEncoder> completion_encoder(
    const ChatRequest& request, const ResponseHead& head) {
  return std::make_unique<CompletionEncoder>(request, head);
}

}  // namespace tandem::api
