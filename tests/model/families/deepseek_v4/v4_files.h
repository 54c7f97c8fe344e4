#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "model/families/deepseek_v4/config.h"
#include "model/gguf/gguf_file.h"

namespace tandem::test {

using KeyValue = std::variant<
    uint32_t, int64_t, float, bool, std::string, std::vector<int32_t>, std::vector<float>,
    std::vector<std::string>>;

/// One tensor of a synthetic file.
struct FileTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> dims;
};

/// A V4 file as data that a test changes before it is written: metadata and tensors of zeros.
struct V4File {
  std::map<std::string, KeyValue> keys;
  std::vector<FileTensor> tensors;

  FileTensor& tensor(const std::string& name);
  void rename(const std::string& from, const std::string& to) { tensor(from).name = to; }
  void drop(const std::string& name);
  /// Writes a sparse file and opens it. The file is removed at once; the mapping keeps its bytes.
  GgufFile open() const;
};

/// Types of the routed experts: gate and up, down.
struct ExpertMix {
  DType gate_up = DType::kIQ2_XXS;
  DType down = DType::kQ2_K;
};

V4Config flash_config();
V4Config pro_config();
/// Five layers with every kind of layer, hash-routed and not.
V4Config small_config();

/// A complete file of that configuration, types as in the published files.
V4File v4_file(const V4Config& config, const ExpertMix& mix = {DType::kQ4_K, DType::kQ4_K});

}  // namespace tandem::test
