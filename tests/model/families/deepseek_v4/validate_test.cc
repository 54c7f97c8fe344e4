#include "model/families/deepseek_v4/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/log.h"
#include "tests/model/families/deepseek_v4/v4_files.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::KeyValue;
using test::V4File;

using Texts = std::vector<std::string>;

std::string full(const std::string& key) {
  return "deepseek4." + key;
}

Texts issues_of(const V4File& file) {
  const GgufFile opened = file.open();
  std::vector<Issue> issues;
  const auto config = validate_v4(opened, &issues);
  EXPECT_EQ(config.ok(), issues.empty());
  Texts texts;
  for (const Issue& issue : issues) texts.push_back(issue.code + " " + issue.key);
  return texts;
}

V4File header_of(const V4Config& config) {
  V4File file = test::v4_file(config);
  file.tensors.clear();  // metadata alone decides, unless a key is recovered
  return file;
}

TEST(V4ValidateTest, AcceptsTheBundledModel) {
  const auto file = GgufFile::open(test::repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(file);
  const auto config = validate_v4(*file);
  ASSERT_OK(config);
  EXPECT_EQ(config->variant, V4Variant::kSmall);
  EXPECT_EQ(config->num_layers, 6);
  EXPECT_EQ(config->compress_ratios, (std::vector<int64_t>{0, 0, 4, 128, 4, 128}));
  EXPECT_EQ(config->expert_scale, 1.5f);
  EXPECT_EQ(config->shared_swiglu_limit, 10.0f);
  EXPECT_FALSE(config->official_rounding);
}

// Keys that a file may leave out: optional ones, and those that are recovered from the tensors.
const std::set<std::string> kMayBeAbsent = {
    "context_length",
    "nextn_predict_layers",
    "expert_gating_func",
    "expert_group_count",
    "expert_group_used_count",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    "rope.scaling.type",
    "swiglu_clamp_shexp",
    "attention.output_lora_rank",
    "attention.output_group_count",
    "hash_layer_count",
    "hyper_connection.count",
    "hyper_connection.sinkhorn_iterations",
    "hyper_connection.epsilon",
    "attention.compress_rope_freq_base",
    "attention.compress_ratios",
};

class V4MutationTest : public ::testing::TestWithParam<V4Config (*)()> {
 protected:
  V4Config config() const { return GetParam()(); }
  bool is_small() const { return config().variant == V4Variant::kSmall; }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [key, value] : header_of(config()).keys) names.push_back(key);
    return names;
  }
};

TEST_P(V4MutationTest, TheUnchangedFileIsGood) {
  EXPECT_EQ(issues_of(header_of(config())), Texts{});
}

TEST_P(V4MutationTest, EveryDroppedKeyIsNamedOrRecovered) {
  const auto good = validate_v4(test::v4_file(config()).open());
  ASSERT_OK(good);
  for (const std::string& key : keys()) {
    if (key == "tandem.fake_quant") continue;
    V4File file = test::v4_file(config());
    file.keys.erase(key);
    const bool optional = key.starts_with("deepseek4.") && kMayBeAbsent.contains(key.substr(10));
    if (!optional) {
      const Texts issues = issues_of(file);
      // Without the hidden size, the shape itself is unknown.
      EXPECT_EQ(std::count(issues.begin(), issues.end(), "missing-key " + key), 1) << key;
      continue;
    }
    const auto read = validate_v4(file.open());
    ASSERT_OK(read);
    EXPECT_EQ(v4_config_text(*read), v4_config_text(*good)) << key;
  }
}

TEST_P(V4MutationTest, EveryRetypedKeyIsNamed) {
  for (const std::string& key : keys()) {
    V4File file = header_of(config());
    const bool is_text = std::holds_alternative<std::string>(file.keys[key]);
    file.keys[key] = is_text ? KeyValue(uint32_t{1}) : KeyValue(std::string("text"));
    const Texts issues = issues_of(file);
    EXPECT_EQ(std::count(issues.begin(), issues.end(), "bad-type " + key), 1) << key;
  }
}

// Another value of the same type, which no model of this shape may have.
KeyValue wrong_value(const std::string& key, const KeyValue& value, bool is_small) {
  if (std::holds_alternative<uint32_t>(value)) {
    const auto number = std::get<uint32_t>(value);
    if (key == full("context_length")) return uint32_t{1 << 21};
    if (key == full("nextn_predict_layers")) return uint32_t{1000};
    return is_small ? uint32_t{1} << 30 : number + 1;
  }
  if (std::holds_alternative<float>(value)) {
    const bool is_epsilon = key.ends_with("epsilon");
    return is_small || is_epsilon ? -1.0f : std::get<float>(value) * 1.00001f;
  }
  if (std::holds_alternative<bool>(value)) return !std::get<bool>(value);
  if (std::holds_alternative<std::string>(value)) return std::string("other");
  if (std::holds_alternative<std::vector<int32_t>>(value)) {
    auto ratios = std::get<std::vector<int32_t>>(value);
    ratios.back() = 8;
    return ratios;
  }
  auto limits = std::get<std::vector<float>>(value);
  limits.back() = 11.0f;
  return limits;
}

TEST_P(V4MutationTest, EveryChangedValueIsNamed) {
  for (const std::string& key : keys()) {
    V4File file = header_of(config());
    file.keys[key] = wrong_value(key, file.keys[key], is_small());
    const Texts issues = issues_of(file);
    const auto named = std::count_if(issues.begin(), issues.end(), [&](const std::string& text) {
      return text == "mismatch " + key || text == "out-of-range " + key;
    });
    EXPECT_EQ(named, 1) << key << ": " << ::testing::PrintToString(issues);
    // Only the two keys that choose the shape may blame others as well.
    const bool chooses_shape = key == full("embedding_length") || key == full("block_count");
    if (!chooses_shape) {
      EXPECT_EQ(issues.size(), 1U) << ::testing::PrintToString(issues);
    }
  }
}

TEST_P(V4MutationTest, WiderIntegersAreAccepted) {
  V4File file = header_of(config());
  for (auto& [key, value] : file.keys) {
    if (const auto* number = std::get_if<uint32_t>(&value)) value = static_cast<int64_t>(*number);
  }
  EXPECT_EQ(issues_of(file), Texts{});
}

TEST_P(V4MutationTest, ClampsMayBeScalars) {
  V4File file = header_of(config());
  file.keys[full("swiglu_clamp_exp")] = 10.0f;
  file.keys[full("swiglu_clamp_shexp")] =
      std::vector<float>(static_cast<size_t>(config().num_layers + 1), 10.0f);
  EXPECT_EQ(issues_of(file), Texts{});
}

TEST_P(V4MutationTest, ArraysMayCoverTheDraftBlockAndNotFewerLayers) {
  V4File file = header_of(config());
  auto& ratios = std::get<std::vector<int32_t>>(file.keys[full("attention.compress_ratios")]);
  ratios.push_back(0);
  EXPECT_EQ(issues_of(file), Texts{});
  ratios.resize(ratios.size() - 2);
  EXPECT_EQ(issues_of(file), Texts{"mismatch deepseek4.attention.compress_ratios"});
}

std::string shape_name(const ::testing::TestParamInfo<V4Config (*)()>& shape) {
  constexpr const char* kNames[] = {"Flash", "Pro", "Small"};
  return kNames[shape.index];
}
INSTANTIATE_TEST_SUITE_P(
    Shapes, V4MutationTest,
    ::testing::Values(&test::flash_config, &test::pro_config, &test::small_config), shape_name);

TEST(V4ValidateTest, B052UsesAndAnnouncesAnUnusualEpsilon) {
  for (const char* key : {"attention.layer_norm_rms_epsilon", "hyper_connection.epsilon"}) {
    V4File file = header_of(test::flash_config());
    file.keys[full(key)] = 1e-20f;
    const GgufFile opened = file.open();
    ::testing::internal::CaptureStderr();
    const auto config = validate_v4(opened);
    const std::string log = ::testing::internal::GetCapturedStderr();
    ASSERT_OK(config);
    const bool is_norm = std::string(key).starts_with("attention");
    EXPECT_EQ(is_norm ? config->rms_eps : config->hc_eps, 1e-20f);
    EXPECT_NE(log.find("unusual_value"), std::string::npos) << log;
    EXPECT_NE(log.find(full(key)), std::string::npos) << log;
    EXPECT_NE(v4_config_hash(*config), v4_config_hash(test::flash_config()));
  }
  V4File zero = header_of(test::flash_config());
  zero.keys[full("attention.layer_norm_rms_epsilon")] = 0.0f;
  EXPECT_EQ(issues_of(zero), Texts{"out-of-range deepseek4.attention.layer_norm_rms_epsilon"});
}

TEST(V4ValidateTest, B052PrintsAHashOfTheEffectiveValues) {
  const GgufFile file = header_of(test::flash_config()).open();
  ::testing::internal::CaptureStderr();
  set_log_level(LogLevel::kInfo);
  const auto config = validate_v4(file);
  set_log_level(LogLevel::kWarning);
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_OK(config);
  char hash[24];
  std::snprintf(
      hash, sizeof(hash), "hash=%016llx", static_cast<unsigned long long>(v4_config_hash(*config)));
  EXPECT_NE(log.find(hash), std::string::npos) << log;
}

TEST(V4ValidateTest, B052ComparesSmallConstantsRelatively) {
  // An absolute tolerance of 1e-6 would take any of these for the other.
  V4File file = header_of(test::flash_config());
  file.keys[full("rope.freq_base")] = 10000.0f * (1 + 5e-7f);
  EXPECT_EQ(issues_of(file), Texts{});
  file.keys[full("rope.freq_base")] = 10000.1f;
  EXPECT_EQ(issues_of(file), Texts{"mismatch deepseek4.rope.freq_base"});
}

TEST(V4ValidateTest, RecoversAllOmittedKeysAtOnce) {
  for (const auto& config : {test::flash_config(), test::small_config()}) {
    V4File file = test::v4_file(config);
    for (const std::string& key : kMayBeAbsent) file.keys.erase(full(key));
    const auto read = validate_v4(file.open());
    ASSERT_OK(read);
    EXPECT_EQ(v4_config_text(*read), v4_config_text(config));
  }
}

TEST(V4ValidateTest, RecoversFromALaterPartOfAModel) {
  V4File file = test::v4_file(test::pro_config());
  for (const std::string& key : kMayBeAbsent) file.keys.erase(full(key));
  std::erase_if(file.tensors, [](const test::FileTensor& tensor) {
    return !tensor.name.starts_with("blk.5") && !tensor.name.starts_with("output");
  });
  file.drop("blk.5.attn_output_a.weight");  // leaves layers 50 to 59 to read it from
  const auto read = validate_v4(file.open());
  ASSERT_OK(read);
  EXPECT_EQ(v4_config_text(*read), v4_config_text(test::pro_config()));
}

TEST(V4ValidateTest, NamesRatiosThatCannotBeRecovered) {
  V4File file = header_of(test::small_config());
  file.keys.erase(full("attention.compress_ratios"));
  EXPECT_EQ(issues_of(file), Texts{"missing-key deepseek4.attention.compress_ratios"});
}

TEST(V4ValidateTest, ReadsTheRoundingKey) {
  V4File file = header_of(test::small_config());
  EXPECT_TRUE(validate_v4(file.open())->official_rounding);
  file.keys["tandem.fake_quant"] = std::string("none");
  EXPECT_FALSE(validate_v4(file.open())->official_rounding);
  file.keys.erase("tandem.fake_quant");
  EXPECT_TRUE(validate_v4(file.open())->official_rounding);
  file.keys["tandem.fake_quant"] = std::string("maybe");
  EXPECT_EQ(issues_of(file), Texts{"mismatch tandem.fake_quant"});
}

TEST(V4ValidateTest, RefusesValuesThatDoNotFitTogether) {
  const auto issues_with = [](const char* key, uint32_t value) {
    V4File file = header_of(test::small_config());
    file.keys[full(key)] = value;
    return issues_of(file);
  };
  EXPECT_EQ(
      issues_with("attention.output_group_count", 3),
      Texts{"mismatch deepseek4.attention.output_group_count"});
  EXPECT_EQ(issues_with("expert_count", 5), Texts{"mismatch deepseek4.expert_used_count"});
  EXPECT_EQ(issues_with("hash_layer_count", 6), Texts{"mismatch deepseek4.hash_layer_count"});
  EXPECT_EQ(issues_with("embedding_length", 100), Texts{"out-of-range deepseek4.embedding_length"});
  EXPECT_EQ(issues_with("block_count", 0), Texts{"out-of-range deepseek4.block_count"});
  EXPECT_EQ(issues_with("expert_count", 0), Texts{"out-of-range deepseek4.expert_count"});
  V4File file = header_of(test::small_config());
  file.keys[full("rope.scaling.yarn_beta_slow")] = 64.0f;
  EXPECT_EQ(issues_of(file), Texts{"mismatch deepseek4.rope.scaling.yarn_beta_slow"});
}

TEST(V4ValidateTest, RefusesOtherArchitecturesAndVariants) {
  V4File file = header_of(test::small_config());
  file.keys["general.architecture"] = std::string("llama");
  EXPECT_EQ(issues_of(file), Texts{"mismatch general.architecture"});
  file = header_of(test::small_config());
  file.keys[full("variant")] = std::string("v41_flash");
  EXPECT_EQ(issues_of(file), Texts{"mismatch deepseek4.variant"});
}

TEST(V4ValidateTest, B007ChecksTheTokenArrays) {
  V4File file = header_of(test::small_config());
  file.keys["tokenizer.ggml.tokens"] = std::vector<std::string>(40, "t");
  EXPECT_EQ(issues_of(file), Texts{});
  file.keys["tokenizer.ggml.tokens"] = std::vector<std::string>(39, "t");
  EXPECT_EQ(issues_of(file), Texts{"mismatch tokenizer.ggml"});
  EXPECT_ERROR(
      validate_v4(file.open()), StatusCode::kInvalidArgument,
      "mismatch tokenizer.ggml (key tokenizer.ggml.tokens has 39 entries, the vocabulary has 40)");
}

TEST(V4ValidateTest, ListsSeveralIssuesOnOneLine) {
  V4File file = header_of(test::flash_config());
  file.keys[full("expert_count")] = uint32_t{255};
  file.keys.erase(full("vocab_size"));
  const Status status = validate_v4(file.open()).status();
  EXPECT_ERROR(status, StatusCode::kInvalidArgument, "2 problems: ");
  EXPECT_ERROR(status, StatusCode::kInvalidArgument, "missing-key deepseek4.vocab_size");
  EXPECT_ERROR(
      status, StatusCode::kInvalidArgument,
      "mismatch deepseek4.expert_count (V4 Flash has 256, found 255)");
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace tandem
