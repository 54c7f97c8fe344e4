#include "worker/cuda_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "model/families/families.h"
#include "model/formats/blocks.h"
#include "model/formats/dequantize.h"
#include "model/gguf/gguf_file.h"
#include "tests/support/oracle.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"
#include "worker/synthetic_weights.h"

namespace tandem::test {
namespace {

constexpr int64_t kContext = 4096;

int32_t argmax(const std::vector<float>& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class CudaStageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Result<int> count = cuda::device_count();
    if (!count.ok()) GTEST_SKIP() << "no GPU: " << count.status().message();
    Result<GgufFile> file = GgufFile::open(repo_path("models/nano-q4_k.gguf"));
    ASSERT_OK(file);
    file_ = std::make_unique<GgufFile>(std::move(file).value());
    Result<std::shared_ptr<const Model>> model = open_model(*file_);
    ASSERT_OK(model);
    model_ = *model;
  }

  std::unique_ptr<CudaStage> open_stage(bool use_graphs, DType state = DType::kF32) {
    return open_range(whole_model(model_->spec()), use_graphs, state);
  }

  std::unique_ptr<CudaStage> open_range(const LayerRange& range, bool use_graphs, DType state) {
    CudaStageOptions options;
    options.use_graphs = use_graphs;
    options.stage.state_dtype = state;
    options.stage.num_banks = 16;
    options.stage.context_tokens = kContext;
    options.stage.max_rows = 512;
    auto stage = CudaStage::create(model_, *file_, range, options);
    EXPECT_OK(stage);
    return std::move(stage).value();
  }

  /// The logits of the rows of one step.
  static std::vector<std::vector<float>> step(CudaStage& stage, const StepBatch& batch) {
    WorkItem item;
    item.batch = &batch;
    EXPECT_OK(stage.submit(item));
    Result<StageResult> result = stage.collect();
    EXPECT_OK(result);
    std::vector<std::vector<float>> out;
    for (int64_t i = 0; i < result->logits.rows; ++i) {
      const float* row = result->logits.row(i);
      out.emplace_back(row, row + result->logits.cols);
    }
    return out;
  }

  /// Feeds tokens to a bank in steps of `chunk` rows; the logits of every row.
  static std::vector<std::vector<float>> feed(
      CudaStage& stage, int32_t bank, const std::vector<int32_t>& tokens, int64_t chunk,
      Phase phase = Phase::kDecode) {
    std::vector<std::vector<float>> out;
    const int64_t begin_pos = stage.length(bank);
    const auto size = static_cast<int64_t>(tokens.size());
    for (int64_t begin = 0; begin < size; begin += chunk) {
      StepBatch batch;
      for (int64_t i = begin; i < std::min(size, begin + chunk); ++i) {
        batch.rows.push_back(
            {bank, static_cast<int32_t>(begin_pos + i), tokens[static_cast<size_t>(i)], true,
             phase});
      }
      for (auto& row : step(stage, batch)) out.push_back(std::move(row));
    }
    return out;
  }

  /// The longest prompt of the oracle that is shorter than `end`.
  static std::vector<int32_t> longest_prompt(size_t end) {
    std::vector<int32_t> tokens;
    for (const OraclePrompt& prompt : load_oracle("q4_k")) {
      if (prompt.ids.size() > tokens.size() && prompt.ids.size() < end) tokens = prompt.ids;
    }
    return tokens;
  }

  /// Every way of running a prompt gives the oracle's likeliest token at 99 % of positions, all in
  /// all and in each long prompt.
  static void expect_follows_oracle(CudaStage& stage) {
    struct Way {
      Phase phase;
      int64_t chunk;
      size_t tokens_max;  // of a prompt
    };
    for (const Way way :
         {Way{Phase::kPrefill, 512, kContext}, Way{Phase::kDecode, 16, kContext},
          Way{Phase::kDecode, 1, 400}}) {
      int64_t same = 0;
      int64_t total = 0;
      for (const OraclePrompt& prompt : load_oracle("q4_k")) {
        if (prompt.ids.size() > way.tokens_max) continue;
        ASSERT_OK(stage.reset(0));
        const auto logits = feed(stage, 0, prompt.ids, way.chunk, way.phase);
        int64_t prompt_same = 0;
        for (size_t i = 0; i < logits.size(); ++i) {
          prompt_same += argmax(logits[i]) == prompt.argmax[i] ? 1 : 0;
        }
        const auto count = static_cast<int64_t>(logits.size());
        std::printf(
            "%-16s %s, chunk %3ld: %5ld of %5ld positions\n", prompt.name.c_str(),
            way.phase == Phase::kPrefill ? "prefill" : "decode", static_cast<long>(way.chunk),
            static_cast<long>(prompt_same), static_cast<long>(count));
        if (count >= 100) {
          EXPECT_GE(static_cast<double>(prompt_same), 0.99 * static_cast<double>(count))
              << prompt.name << ", chunk " << way.chunk;
        }
        same += prompt_same;
        total += count;
      }
      EXPECT_GE(static_cast<double>(same), 0.99 * static_cast<double>(total))
          << "chunk " << way.chunk;
    }
  }

  std::unique_ptr<GgufFile> file_;
  std::shared_ptr<const Model> model_;
};

TEST_F(CudaStageTest, FollowsTheOracle) {
  expect_follows_oracle(*open_stage(true));
}

/// The file's weights as F16: other kernels, and values that differ from the file's by 2^-12.
class HalfWeightSource final : public WeightSource {
 public:
  HalfWeightSource(
      const TensorPlan& plan, const TensorTable& tensors, cuda::WeightUploader uploader)
      : plan_(plan), tensors_(tensors), uploader_(std::move(uploader)) {}

  std::optional<DType> dtype(size_t plan_idx) const override {
    const TensorInfo* tensor = tensors_.find(plan_idx);
    if (tensor == nullptr) return std::nullopt;
    return is_matrix(*tensor) ? DType::kF16 : tensor->dtype;
  }

  Status fill(size_t plan_idx, const ExpertWeightView& to) override {
    const TensorInfo* tensor = tensors_.find(plan_idx);
    const ExpertWeightView from = weight_view(tensor->data, tensor->dtype, plan_[plan_idx].dims);
    for (int64_t e = 0; e < from.experts; ++e) {
      const WeightView blocks = from.expert(e);
      if (!is_matrix(*tensor)) {
        TANDEM_TRY(uploader_.upload(blocks, to.expert(e)));
        continue;
      }
      std::vector<float> row(static_cast<size_t>(blocks.cols));
      std::vector<uint16_t> half(static_cast<size_t>(blocks.rows * blocks.cols));
      for (int64_t r = 0; r < blocks.rows; ++r) {
        dequantize_row(blocks.dtype, blocks.row(r), blocks.cols, row.data());
        std::transform(row.begin(), row.end(), half.begin() + r * blocks.cols, f32_to_f16);
      }
      const WeightView rounded = {
          reinterpret_cast<const std::byte*>(half.data()), DType::kF16, blocks.rows, blocks.cols,
          blocks.cols * 2};
      TANDEM_TRY(uploader_.upload(rounded, to.expert(e)));
    }
    return {};
  }

  Status finish() override { return uploader_.finish(); }

 private:
  static bool is_matrix(const TensorInfo& tensor) {
    return tensor.dtype == DType::kQ4_K || tensor.dtype == DType::kQ8_0 ||
           tensor.dtype == DType::kQ6_K;
  }

  const TensorPlan& plan_;
  const TensorTable& tensors_;
  cuda::WeightUploader uploader_;
};

TEST_F(CudaStageTest, FollowsTheOracleWithF16Weights) {
  ASSERT_OK(cuda::use_device(0));
  const LayerRange range = whole_model(model_->spec());
  const Result<TensorTable> tensors = bind_tensors(model_->tensors(), *file_, range);
  ASSERT_OK(tensors);
  Result<cuda::WeightUploader> uploader = cuda::WeightUploader::create(16 << 20);
  ASSERT_OK(uploader);
  HalfWeightSource source(model_->tensors(), *tensors, std::move(uploader).value());
  CudaStageOptions options;
  options.stage.context_tokens = kContext;
  options.stage.max_rows = 512;
  const auto stage = CudaStage::create(model_, source, range, options);
  ASSERT_OK(stage);
  expect_follows_oracle(**stage);
}

TEST_F(CudaStageTest, ContinuesGreedilyAsTheOracleDoes) {
  const auto stage = open_stage(true);
  for (const OraclePrompt& prompt : load_oracle("q4_k")) {
    SCOPED_TRACE(prompt.name);
    ASSERT_OK(stage->reset(0));
    std::vector<float> logits = feed(*stage, 0, prompt.ids, 512, Phase::kPrefill).back();
    for (size_t i = 0; i < prompt.greedy.size(); ++i) {
      const int32_t expected = prompt.greedy[i];
      const int32_t actual = argmax(logits);
      if (actual != expected) {
        // Two tokens that are nearly as likely may change places, and the rest then differs.
        const float margin =
            logits[static_cast<size_t>(actual)] - logits[static_cast<size_t>(expected)];
        EXPECT_LT(margin, 0.01f) << "token " << i << ": " << actual << ", expected " << expected;
        break;
      }
      logits = feed(*stage, 0, {expected}, 1).back();
    }
  }
}

TEST_F(CudaStageTest, DirectLaunchGraphAndReplayAgreeBitwise) {
  const auto direct = open_stage(false);
  const auto recorded = open_stage(true);
  const std::vector<int32_t> tokens = load_oracle("q4_k").front().ids;
  const auto expected = feed(*direct, 0, tokens, 1);
  for (int pass = 0; pass < 2; ++pass) {  // the second pass replays every step
    ASSERT_OK(recorded->reset(0));
    const auto actual = feed(*recorded, 0, tokens, 1);
    for (size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(actual[i], expected[i]) << "pass " << pass << " position " << i;
    }
  }
}

TEST_F(CudaStageTest, ARowDoesNotDependOnItsBatch) {
  const auto stage = open_stage(true);
  const std::vector<int32_t> tokens = longest_prompt(600);
  ASSERT_GT(tokens.size(), 20u);
  const auto alone = feed(*stage, 0, tokens, 1);
  // The same sequence in bank 5 of steps with up to 15 other sequences that run ahead or behind.
  for (int32_t b = 0; b < 16; ++b) ASSERT_OK(stage->reset(b));
  for (size_t i = 0; i < tokens.size(); ++i) {
    StepBatch batch;
    size_t row = 0;
    const int32_t num_banks = i % 3 == 0 ? 16 : (i % 3 == 1 ? 7 : 2);
    for (int32_t k = 0; k < num_banks; ++k) {
      const int32_t bank = (5 + k * 3) % 16;
      if (bank == 5) row = batch.rows.size();
      const auto pos = static_cast<int32_t>(stage->length(bank));
      batch.rows.push_back(
          {bank, pos, bank == 5 ? tokens[i] : static_cast<int32_t>(1 + (pos * 31 + bank) % 200),
           true});
    }
    const auto logits = step(*stage, batch);
    ASSERT_EQ(logits[row], alone[i]) << "position " << i;
  }
}

TEST_F(CudaStageTest, ShortChunksAgreeBitwiseWithSingleSteps) {
  const auto stage = open_stage(true);
  const std::vector<int32_t> tokens = longest_prompt(600);
  const auto alone = feed(*stage, 0, tokens, 1);
  for (const int64_t chunk : {3, 16, 40}) {
    ASSERT_OK(stage->reset(0));
    const auto chunked = feed(*stage, 0, tokens, chunk);
    for (size_t i = 0; i < tokens.size(); ++i) {
      ASSERT_EQ(chunked[i], alone[i]) << "chunk " << chunk << " position " << i;
    }
  }
}

TEST_F(CudaStageTest, APromptInOneChunkEqualsItInManyHoweverShortTheLast) {
  const auto stage = open_stage(true);
  std::vector<int32_t> tokens = longest_prompt(kContext);
  for (const size_t length : {385, 386, 399, 400, 401, 512}) {  // 1, 2, 15, 16, 17, 128 in the last
    ASSERT_GE(tokens.size(), length);
    const std::vector<int32_t> prompt(tokens.begin(), tokens.begin() + static_cast<long>(length));
    ASSERT_OK(stage->reset(0));
    const auto whole = feed(*stage, 0, prompt, 512, Phase::kPrefill);
    for (const int64_t chunk : {128, 256, 384}) {
      ASSERT_OK(stage->reset(0));
      const auto chunked = feed(*stage, 0, prompt, chunk, Phase::kPrefill);
      for (size_t i = 0; i < length; ++i) {
        ASSERT_EQ(chunked[i], whole[i])
            << length << " tokens, chunk " << chunk << " position " << i;
      }
    }
  }
}

TEST_F(CudaStageTest, PromptsAndGeneratedRowsOfOneStepDoNotAffectEachOther) {
  const auto stage = open_stage(true);
  const std::vector<int32_t> tokens = longest_prompt(600);
  const std::vector<int32_t> prompt(tokens.begin(), tokens.begin() + 140);
  const std::vector<int32_t> answer(tokens.begin() + 140, tokens.begin() + 150);
  feed(*stage, 0, prompt, 512, Phase::kPrefill);
  const auto decoded = feed(*stage, 0, answer, 1);
  const auto read = feed(*stage, 1, prompt, 128, Phase::kPrefill);
  ASSERT_OK(stage->reset(0));
  ASSERT_OK(stage->reset(1));
  feed(*stage, 0, prompt, 512, Phase::kPrefill);
  // Bank 0 generates while bank 1 reads a prompt in two chunks, the second one short.
  size_t next = 0;
  for (const auto& [begin, end] : {std::pair<int32_t, int32_t>{0, 128}, {128, 140}}) {
    StepBatch batch;
    batch.rows.push_back(
        {0, static_cast<int32_t>(prompt.size() + next), answer[next], true, Phase::kDecode});
    for (int32_t pos = begin; pos < end; ++pos) {
      batch.rows.push_back({1, pos, prompt[static_cast<size_t>(pos)], true, Phase::kPrefill});
    }
    const auto logits = step(*stage, batch);
    ASSERT_EQ(logits[0], decoded[next]) << "answer " << next;
    for (int32_t pos = begin; pos < end; ++pos) {
      ASSERT_EQ(logits[static_cast<size_t>(1 + pos - begin)], read[static_cast<size_t>(pos)])
          << "prompt " << pos;
    }
    ++next;
  }
}

TEST_F(CudaStageTest, TwoStagesEqualOneAtEveryCut) {
  const auto whole = open_stage(true);
  const std::vector<int32_t> tokens = longest_prompt(600);
  // Two banks read a prompt; then one generates while the other reads on, in one step.
  const auto batch_of = [&](int step_idx) {
    StepBatch batch;
    if (step_idx == 1) batch.rows.push_back({0, 60, tokens[60], true, Phase::kDecode});
    const int32_t begin = step_idx == 0 ? 0 : 60;
    const int32_t end = step_idx == 0 ? 60 : 65;
    for (int32_t bank = step_idx; bank < 2; ++bank) {
      for (int32_t pos = begin; pos < end; ++pos) {
        batch.rows.push_back({bank, pos, tokens[static_cast<size_t>(pos)], true, Phase::kPrefill});
      }
    }
    return batch;
  };
  std::vector<std::vector<std::vector<float>>> expected;
  for (int i = 0; i < 2; ++i) expected.push_back(step(*whole, batch_of(i)));
  const int32_t num_layers = model_->spec().num_layers;
  for (int32_t cut = 1; cut < num_layers; ++cut) {
    SCOPED_TRACE(str_cat("cut=", cut));
    const auto first = open_range({0, cut, true, false}, true, DType::kF32);
    const auto second = open_range({cut, num_layers, false, true}, true, DType::kF32);
    for (int i = 0; i < 2; ++i) {
      const StepBatch batch = batch_of(i);
      ASSERT_OK(first->submit({&batch, {}}));
      const Result<StageResult> boundary = first->collect();
      ASSERT_OK(boundary);
      ASSERT_OK(second->submit({&batch, boundary->boundary}));
      const Result<StageResult> result = second->collect();
      ASSERT_OK(result);
      ASSERT_EQ(result->logits.rows, static_cast<int64_t>(expected[static_cast<size_t>(i)].size()));
      for (int64_t r = 0; r < result->logits.rows; ++r) {
        const float* row = result->logits.row(r);
        ASSERT_EQ(
            std::vector<float>(row, row + result->logits.cols),
            expected[static_cast<size_t>(i)][static_cast<size_t>(r)])
            << "step " << i << " row " << r;
      }
    }
  }
}

TEST_F(CudaStageTest, ATruncatedBankContinuesBitwise) {
  const auto stage = open_stage(true);
  std::vector<int32_t> tokens = load_oracle("q4_k").front().ids;
  const auto expected = feed(*stage, 0, tokens, 1);
  ASSERT_OK(stage->reset(0));
  const size_t keep = tokens.size() / 2;
  feed(
      *stage, 0, std::vector<int32_t>(tokens.begin(), tokens.begin() + static_cast<long>(keep)), 1);
  feed(*stage, 0, {5, 6, 7}, 1);
  ASSERT_OK(stage->truncate(0, static_cast<int64_t>(keep)));
  const auto rest = feed(
      *stage, 0, std::vector<int32_t>(tokens.begin() + static_cast<long>(keep), tokens.end()), 1);
  for (size_t i = 0; i < rest.size(); ++i) ASSERT_EQ(rest[i], expected[keep + i]) << i;
}

TEST_F(CudaStageTest, RunsASyntheticModelOfPublishedShapes) {
  Result<SyntheticModel> synthetic = make_synthetic_model("flash-q2", 4);
  ASSERT_OK(synthetic);
  ASSERT_OK(cuda::use_device(0));
  auto source = SyntheticWeightSource::create(synthetic->model->tensors(), synthetic->mix);
  ASSERT_OK(source);
  CudaStageOptions options;
  options.stage.state_dtype = DType::kF16;
  options.stage.num_banks = 2;
  options.stage.context_tokens = 1024;
  auto stage =
      CudaStage::create(synthetic->model, **source, whole_model(synthetic->model->spec()), options);
  ASSERT_OK(stage);
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 300; ++i) tokens.push_back(i * 401 % 129280);
  const auto one = feed(**stage, 0, tokens, 1);
  for (const float value : one.back()) ASSERT_TRUE(std::isfinite(value));
  const auto sixteen = feed(**stage, 1, tokens, 16);
  for (size_t i = 0; i < tokens.size(); ++i) ASSERT_EQ(sixteen[i], one[i]) << "position " << i;
}

TEST_F(CudaStageTest, NamesADeviceThatIsNotThere) {
  CudaStageOptions options;
  options.device = 99;
  const auto stage = CudaStage::create(model_, *file_, whole_model(model_->spec()), options);
  EXPECT_ERROR(stage, StatusCode::kNotFound, "GPU");
}

}  // namespace
}  // namespace tandem::test
