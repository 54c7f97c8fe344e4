#include "api/models/model_list.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <regex>

namespace tandem::api {
namespace {

constexpr int64_t kCreated = 1767225600;  // fixed, so that listings compare equal

constexpr std::array<std::string_view, 10> kAliases = {
    "deepseek-v4-flash",
    "deepseek-v4-pro",
    "deepseek-chat",
    "deepseek-reasoner",
    "solar-open2-250b",
    "motif-3",
    "Motif-Technologies/Motif-3",
    "k-exaone-236b-a23b",
    "k-exaone-236b-a23b-chat",
    "dots3-note-prev"};

constexpr std::array<std::string_view, 5> kParentNames = {
    "gguf", "models", "weights", "model", "checkpoints"};

bool names_a_model(const std::string& folder) {
  if (std::find(kParentNames.begin(), kParentNames.end(), folder) != kParentNames.end()) {
    return false;
  }
  return folder.ends_with("GGUF") || folder.find("Mixed-Quant") != std::string::npos;
}

}  // namespace

bool is_model_name(const ServedModel& model, std::string_view name) {
  return name == model.id || std::find(kAliases.begin(), kAliases.end(), name) != kAliases.end();
}

Json model_object(const ServedModel& model) {
  Json out;
  out["id"] = model.id;
  out["object"] = "model";
  out["created"] = kCreated;
  out["owned_by"] = "tandem";
  out["name"] = model.name;
  out["context_length"] = model.context_tokens;
  out["top_provider"] = {
      {"context_length", model.context_tokens},
      {"max_completion_tokens", std::min(model.completion_tokens_max, model.context_tokens)},
      {"is_moderated", false}};
  out["supported_parameters"] = {
      "tools",
      "tool_choice",
      "max_tokens",
      "temperature",
      "top_p",
      "top_k",
      "min_p",
      "stop",
      "seed",
      "stream",
      "reasoning_effort",
      "logprobs",
      "top_logprobs",
      "response_format"};
  return out;
}

Json model_list(const ServedModel& model) {
  Json out;
  out["object"] = "list";
  out["data"] = Json::array({model_object(model)});
  return out;
}

std::string model_id_from_path(std::string_view path) {
  const std::filesystem::path file(path);
  std::string folder = file.parent_path().filename().string();
  if (names_a_model(folder)) return folder;
  std::string stem = file.filename().string();
  if (stem.ends_with(".gguf")) stem.resize(stem.size() - 5);
  static const std::regex kShard("-\\d{5}-of-\\d{5}$");
  return std::regex_replace(stem, kShard, "");
}

}  // namespace tandem::api
