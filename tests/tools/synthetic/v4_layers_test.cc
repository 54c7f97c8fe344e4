#include "tools/synthetic/v4_layers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "model/families/families.h"
#include "tests/support/paths.h"
#include "tests/support/status_matchers.h"

namespace tandem::test {
namespace {

TEST(SyntheticV4Test, WritesAFileThatIsAValidModel) {
  const auto base = GgufFile::open(repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(base);
  SyntheticOptions options;
  options.num_layers = 1;
  options.num_experts = 6;
  const std::string path = temp_path("synthetic.gguf");
  ASSERT_OK(write_synthetic_v4(*base, options, path));
  const auto file = GgufFile::open(path);
  ::unlink(path.c_str());
  ASSERT_OK(file);
  const auto model = open_model(*file);
  ASSERT_OK(model);
  EXPECT_EQ((*model)->spec().hidden_dim, 4096);
  const TensorInfo* experts = file->find_tensor("blk.0.ffn_gate_exps.weight");
  ASSERT_NE(experts, nullptr);
  EXPECT_EQ(experts->dims, (std::vector<uint64_t>{4096, 2048, 6}));
}

TEST(SyntheticV4Test, RefusesOptionsOutOfRange) {
  const auto base = GgufFile::open(repo_path("models/nano-q4_k.gguf"));
  ASSERT_OK(base);
  SyntheticOptions options;
  options.num_layers = 0;
  EXPECT_ERROR(
      write_synthetic_v4(*base, options, "unused"), StatusCode::kInvalidArgument, "layers");
  options.num_layers = 2;
  options.num_experts = 5;
  EXPECT_ERROR(
      write_synthetic_v4(*base, options, "unused"), StatusCode::kInvalidArgument, "experts");
}

}  // namespace
}  // namespace tandem::test
