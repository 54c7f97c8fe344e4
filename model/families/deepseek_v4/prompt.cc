#include "model/families/deepseek_v4/prompt.h"

#include <array>
#include <span>
#include <string>

#include "model/families/deepseek_v4/dsml_render.h"
#include "model/families/deepseek_v4/markers.h"
#include "model/families/deepseek_v4/output_parser.h"
#include "model/families/deepseek_v4/prompt_render.h"

namespace tandem {
namespace {

class V4PromptProtocol final : public PromptProtocol {
 public:
  Result<std::vector<Piece>> render(
      std::span<const Message> messages, const RenderOptions& options) const override {
    return v4::render_prompt(messages, options);
  }
  std::unique_ptr<StreamParser> parser(const ParserOptions& options) const override {
    return std::make_unique<v4::OutputParser>(options);
  }
  std::span<const std::string> stop_tokens() const override { return stop_tokens_; }
  std::string_view bos() const override { return v4::kBos; }
  SamplingDefaults sampling() const override {
    return {.temperature = 1.0f, .top_p = 1.0f, .min_p = 0.0f, .top_k = 0};
  }
  std::string_view reasoning_end() const override { return v4::kThinkClose; }
  std::vector<Piece> call_opening(std::string_view tool_name) const override {
    v4::PieceList out;
    v4::render_call_opening(tool_name, out);
    return out.take();
  }

 private:
  std::array<std::string, 3> stop_tokens_ = {
      std::string(v4::kEos), std::string(v4::kUser), std::string(v4::kBos)};
};

}  // namespace

std::unique_ptr<PromptProtocol> v4_prompt_protocol() {
  return std::make_unique<V4PromptProtocol>();
}

std::vector<Event> v4_parse_output(std::string_view text, const ParserOptions& options) {
  return v4::parse_output(text, options);
}

}  // namespace tandem
