#include "tests/support/stages.h"

#include <algorithm>

#include "model/families/families.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {

OpenModel open_test_model(const std::string& path) {
  Result<GgufFile> file = GgufFile::open(path);
  EXPECT_OK(file);
  if (!file.ok()) return {};
  OpenModel out;
  out.file = std::make_shared<const GgufFile>(std::move(file).value());
  Result<std::shared_ptr<const Model>> model = open_model(*out.file);
  EXPECT_OK(model);
  if (model.ok()) out.model = *model;
  return out;
}

OpenModel open_nano() {
  return open_test_model(repo_path("models/nano-q4_k.gguf"));
}

Stages::Stages(
    const OpenModel& opened, const std::vector<int32_t>& cuts, const LocalStageOptions& options,
    int num_threads)
    : pool_(num_threads), vocab_size_(opened.model->spec().vocab_size) {
  const int32_t num_layers = opened.model->spec().num_layers;
  int32_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const int32_t end = i < cuts.size() ? cuts[i] : num_layers;
    const LayerRange range{begin, end, begin == 0, end == num_layers};
    Result<std::unique_ptr<LocalStage>> stage =
        LocalStage::create(opened.model, opened.file, range, options, pool_);
    EXPECT_OK(stage);
    TANDEM_CHECK(stage.ok());
    stages_.push_back(std::move(stage).value());
    begin = end;
  }
}

Tensor Stages::step(const std::vector<Feed>& feeds) {
  StepBatch batch;
  for (const Feed& feed : feeds) {
    auto pos = static_cast<int32_t>(length(feed.bank));
    for (const int32_t token : feed.tokens) batch.rows.push_back({feed.bank, pos++, token, true});
  }
  ConstRows boundary;
  for (size_t i = 0; i < stages_.size(); ++i) {
    const Status status = stages_[i]->submit({&batch, boundary});
    EXPECT_OK(status);
    if (!status.ok()) return {};
    const Result<StageResult> result = stages_[i]->collect();
    EXPECT_OK(result);
    if (i + 1 < stages_.size()) {
      boundary = result->boundary;
      continue;
    }
    Tensor out(result->logits.rows, result->logits.cols);
    for (int64_t r = 0; r < out.rows; ++r) {
      std::copy_n(result->logits.row(r), out.cols, out.row(r));
    }
    return out;
  }
  return {};
}

Tensor Stages::feed(int32_t bank, const std::vector<int32_t>& tokens, int64_t chunk) {
  Tensor out(0, vocab_size_);
  for (size_t begin = 0; begin < tokens.size(); begin += static_cast<size_t>(chunk)) {
    const size_t end = std::min(tokens.size(), begin + static_cast<size_t>(chunk));
    const Tensor part = step({{bank, slice(tokens, begin, end)}});
    out.values.insert(out.values.end(), part.values.begin(), part.values.end());
    out.rows += part.rows;
  }
  return out;
}

std::vector<int32_t> slice(const std::vector<int32_t>& tokens, size_t begin, size_t end) {
  return {
      tokens.begin() + static_cast<std::ptrdiff_t>(begin),
      tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

}  // namespace tandem::test
