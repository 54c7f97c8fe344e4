#include "model/families/deepseek_v4/tensors.h"

#include <gtest/gtest.h>

#include <set>

#include "model/families/deepseek_v4/validate.h"
#include "model/spec/binder.h"
#include "tests/model/families/deepseek_v4/v4_files.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem {
namespace {

using test::ExpertMix;
using test::V4File;

TEST(V4TensorsTest, CountsThePublishedTensors) {
  EXPECT_EQ(v4_tensor_plan(test::flash_config()).size(), 1328U);
  EXPECT_EQ(v4_tensor_plan(test::pro_config()).size(), 1894U);
  EXPECT_EQ(v4_mtp_tensor_plan(test::flash_config()).size(), 32U);
}

TEST(V4TensorsTest, NamesAreUnique) {
  std::set<std::string> names;
  for (const TensorSpec& spec : v4_tensor_plan(test::flash_config())) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name;
    for (const std::string& alias : spec.aliases) EXPECT_TRUE(names.insert(alias).second) << alias;
  }
}

TEST(V4TensorsTest, BindsTheBundledModel) {
  const auto file = GgufFile::open(test::repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(file);
  const auto config = validate_v4(*file);
  ASSERT_OK(config);
  const auto table = bind_tensors(v4_tensor_plan(*config), *file);
  ASSERT_OK(table);
  EXPECT_EQ(table->size(), 178U);
  EXPECT_EQ(table->find("blk.5.attn_kv.weight"), file->find_tensor("blk.5.attn_kv.weight"));
  EXPECT_EQ(table->find("blk.6.attn_kv.weight"), nullptr);
}

TEST(V4TensorsTest, TheFuzzSeedIsACompleteModel) {
  const auto file = GgufFile::open(test::repo_path("tests/fuzz/corpus/gguf_fuzz/small_v4.gguf"));
  ASSERT_OK(file);
  const auto config = validate_v4(*file);
  ASSERT_OK(config);
  EXPECT_OK(bind_tensors(v4_tensor_plan(*config), *file));
}

// Whole files with the published types, written sparse, read back, validated and bound. The sizes
// are the published ones to the last digit that they give.
void expect_file(const V4Config& config, const ExpertMix& mix, double gigabytes, double digit) {
  const GgufFile file = test::v4_file(config, mix).open();
  const auto read = validate_v4(file);
  ASSERT_OK(read);
  EXPECT_EQ(v4_config_text(*read), v4_config_text(config));
  const TensorPlan plan = v4_tensor_plan(*read);
  EXPECT_EQ(file.tensors().size(), plan.size());
  const auto table = bind_tensors(plan, file);
  ASSERT_OK(table);
  EXPECT_NEAR(static_cast<double>(table->bytes()) / 1e9, gigabytes, digit);
}

constexpr ExpertMix kQ2 = {DType::kIQ2_XXS, DType::kQ2_K};
constexpr ExpertMix kQ4 = {DType::kQ4_K, DType::kQ4_K};
constexpr ExpertMix kMxfp4 = {DType::kMXFP4, DType::kMXFP4};

TEST(V4TensorsTest, FlashFilesHaveThePublishedSizes) {
  expect_file(test::flash_config(), kQ2, 86.71, 0.01);
  expect_file(test::flash_config(), kQ4, 164.63, 0.01);
  expect_file(test::flash_config(), kMxfp4, 155.97, 0.01);
}

TEST(V4TensorsTest, ProFilesHaveThePublishedSizes) {
  expect_file(test::pro_config(), kQ2, 464.6, 0.1);
  expect_file(test::pro_config(), kQ4, 899.8, 0.1);
  expect_file(test::pro_config(), kMxfp4, 851.5, 0.1);
}

// What binding the changed small file reports, as "code name".
std::vector<std::string> issues_after(const auto& change) {
  V4File file = test::v4_file(test::small_config());
  change(file);
  std::vector<Issue> issues;
  const GgufFile opened = file.open();
  const auto table = bind_tensors(v4_tensor_plan(test::small_config()), opened, {}, &issues);
  EXPECT_EQ(table.ok(), issues.empty());
  std::vector<std::string> texts;
  for (const Issue& issue : issues) texts.push_back(issue.code + " " + issue.key);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(V4TensorsTest, EveryDroppedTensorIsNamed) {
  for (const TensorSpec& spec : v4_tensor_plan(test::small_config())) {
    EXPECT_EQ(
        issues_after([&](V4File& file) { file.drop(spec.name); }),
        Texts{"missing-tensor " + spec.name});
  }
}

TEST(V4TensorsTest, EveryReshapedTensorIsNamed) {
  for (const TensorSpec& spec : v4_tensor_plan(test::small_config())) {
    for (size_t dim = 0; dim < spec.dims.size(); ++dim) {
      EXPECT_EQ(
          issues_after([&](V4File& file) { file.tensor(spec.name).dims[dim] *= 2; }),
          Texts{"bad-shape " + spec.name});
    }
    EXPECT_EQ(
        issues_after([&](V4File& file) { file.tensor(spec.name).dims.push_back(2); }),
        Texts{"bad-shape " + spec.name});
  }
}

TEST(V4TensorsTest, EveryRetypedTensorIsNamed) {
  for (const TensorSpec& spec : v4_tensor_plan(test::small_config())) {
    const bool is_table = spec.dtypes[0] == DType::kI32;
    EXPECT_EQ(
        issues_after([&](V4File& file) {
          file.tensor(spec.name).dtype = is_table ? DType::kF32 : DType::kI32;
        }),
        Texts{"bad-type " + spec.name});
  }
}

TEST(V4TensorsTest, EveryAcceptedTypeBinds) {
  for (const TensorSpec& spec : v4_tensor_plan(test::small_config())) {
    for (const DType dtype : spec.dtypes) {
      if (spec.dims[0] % block_values(dtype) != 0) continue;
      const auto issues = issues_after([&](V4File& file) {
        file.tensor(spec.name).dtype = dtype;
        // Gate and up change together.
        const size_t gate = spec.name.find("ffn_gate_exps");
        const size_t up = spec.name.find("ffn_up_exps");
        if (gate != std::string::npos) {
          file.tensor(spec.name.substr(0, gate) + "ffn_up_exps.weight").dtype = dtype;
        }
        if (up != std::string::npos) {
          file.tensor(spec.name.substr(0, up) + "ffn_gate_exps.weight").dtype = dtype;
        }
      });
      EXPECT_EQ(issues, Texts{}) << spec.name << " as " << dtype_name(dtype);
    }
  }
}

TEST(V4TensorsTest, EveryAliasBindsAndDuplicatesAreNamed) {
  int num_aliases = 0;
  for (const TensorSpec& spec : v4_tensor_plan(test::small_config())) {
    for (const std::string& alias : spec.aliases) {
      ++num_aliases;
      EXPECT_EQ(issues_after([&](V4File& file) { file.rename(spec.name, alias); }), Texts{});
      EXPECT_EQ(
          issues_after([&](V4File& file) {
            test::FileTensor copy = file.tensor(spec.name);
            copy.name = alias;
            file.tensors.push_back(copy);
          }),
          Texts{"duplicate " + spec.name});
    }
  }
  EXPECT_GT(num_aliases, 50);
}

TEST(V4TensorsTest, UnexpectedTensorsAreNamed) {
  EXPECT_EQ(
      issues_after([](V4File& file) {
        file.tensors.push_back({"blk.9.attn_norm.weight", DType::kF32, {256}});
        file.tensors.push_back({"blk.0.attn_compressor_norm.weight", DType::kF32, {512}});
      }),
      (Texts{
          "unexpected-tensor blk.9.attn_norm.weight",
          "unexpected-tensor blk.0.attn_compressor_norm.weight"}));
}

TEST(V4TensorsTest, GateAndUpShareAType) {
  EXPECT_EQ(
      issues_after(
          [](V4File& file) { file.tensor("blk.2.ffn_up_exps.weight").dtype = DType::kQ2_K; }),
      Texts{"bad-type blk.2.ffn_up_exps.weight"});
}

TEST(V4TensorsTest, ReportsEverythingAtOnce) {
  EXPECT_EQ(
      issues_after([](V4File& file) {
        file.drop("output.weight");
        file.tensor("blk.0.attn_kv.weight").dims[1] = 64;
        file.tensor("blk.1.attn_norm.weight").dtype = DType::kF16;
        file.tensors.push_back({"extra", DType::kF32, {1}});
      }),
      (Texts{
          "bad-shape blk.0.attn_kv.weight", "bad-type blk.1.attn_norm.weight",
          "missing-tensor output.weight", "unexpected-tensor extra"}));
}

TEST(V4TensorsTest, BindsALayerRangeOfAPartialFile) {
  V4File file = test::v4_file(test::small_config());
  std::erase_if(file.tensors, [](const test::FileTensor& tensor) {
    return tensor.name.starts_with("blk.0.") || tensor.name.starts_with("blk.1.") ||
           tensor.name.starts_with("token_embd");
  });
  const GgufFile opened = file.open();
  const TensorPlan plan = v4_tensor_plan(test::small_config());
  EXPECT_ERROR(
      bind_tensors(plan, opened), StatusCode::kInvalidArgument, "missing-tensor token_embd.weight");
  const auto table = bind_tensors(plan, opened, LayerRange{2, 5, false, true});
  ASSERT_OK(table);
  EXPECT_NE(table->find("blk.2.attn_norm.weight"), nullptr);
  EXPECT_NE(table->find("output.weight"), nullptr);
  EXPECT_EQ(table->find("blk.1.attn_norm.weight"), nullptr);

  const auto middle = bind_tensors(plan, opened, LayerRange{2, 4, false, false});
  ASSERT_OK(middle);
  EXPECT_EQ(middle->find("output.weight"), nullptr);
  EXPECT_EQ(middle->find("blk.4.attn_norm.weight"), nullptr);
  EXPECT_ERROR(
      bind_tensors(plan, opened, LayerRange{1, 5, false, true}), StatusCode::kInvalidArgument,
      "missing-tensor blk.1.hc_attn_fn.weight");
}

TEST(V4TensorsTest, IgnoresAnEmbeddedDraftBlock) {
  V4Config config = test::small_config();
  V4File file = test::v4_file(config);
  file.keys["deepseek4.block_count"] = uint32_t{6};
  file.keys["deepseek4.nextn_predict_layers"] = uint32_t{1};
  file.tensors.push_back({"blk.5.nextn.eh_proj.weight", DType::kF16, {512, 256}});
  file.tensors.push_back({"blk.5.attn_norm.weight", DType::kF32, {256}});
  const GgufFile opened = file.open();
  const auto read = validate_v4(opened);
  ASSERT_OK(read);
  EXPECT_EQ(read->num_layers, 5);
  EXPECT_EQ(read->num_mtp_layers, 1);
  EXPECT_OK(bind_tensors(v4_tensor_plan(*read), opened));
}

TEST(V4TensorsTest, B008RunsWithoutAClaimedDraftBlock) {
  V4File file = test::v4_file(test::flash_config());
  file.keys["deepseek4.block_count"] = uint32_t{44};
  file.keys["deepseek4.nextn_predict_layers"] = uint32_t{1};
  const GgufFile opened = file.open();
  ::testing::internal::CaptureStderr();
  const auto read = validate_v4(opened);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no_mtp_tensors"), std::string::npos);
  ASSERT_OK(read);
  EXPECT_EQ(read->num_layers, 43);
  EXPECT_EQ(read->num_mtp_layers, 0);
  EXPECT_OK(bind_tensors(v4_tensor_plan(*read), opened));
}

TEST(V4TensorsTest, AcceptsABlockCountWithoutTheDraftBlock) {
  V4File file = test::v4_file(test::small_config());
  file.keys["deepseek4.nextn_predict_layers"] = uint32_t{1};
  const auto read = validate_v4(file.open());
  ASSERT_OK(read);
  EXPECT_EQ(read->num_layers, 5);
}

}  // namespace
}  // namespace tandem
