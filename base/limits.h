#pragma once

#include <cstdint>

namespace tandem {

// Every fixed maximum of the runtime, with how they relate. A bound that comes from a file or a
// request is checked against these before it sizes anything.

inline constexpr int64_t kContextTokensMax = 1 << 20;  // V4's trained positions
inline constexpr int64_t kChunkTokensMax = 8192;       // rows of one forward step
inline constexpr int64_t kChunkGridTokens = 128;       // chunk edges are absolute multiples of this
inline constexpr int64_t kBanksMax = 256;
inline constexpr int64_t kLayersMax = 256;
inline constexpr int64_t kVocabMax = 1 << 20;
inline constexpr int64_t kHiddenDimMax = 1 << 16;

inline constexpr uint64_t kGgufTensorsMax = 1 << 17;
inline constexpr uint64_t kGgufKeysMax = 1 << 16;
inline constexpr uint64_t kGgufNameBytesMax = 1 << 10;
inline constexpr uint64_t kGgufStringBytesMax = 1 << 26;
inline constexpr uint64_t kGgufArrayItemsMax = 1 << 24;
inline constexpr int kGgufArrayDepthMax = 4;
inline constexpr int kGgufDimsMax = 4;
inline constexpr int kGgufSplitsMax = 999;

inline constexpr int64_t kMergesMax = 1 << 21;              // merge rules of one vocabulary
inline constexpr int64_t kVocabularyBytesMax = 1 << 26;     // all token texts together
inline constexpr int64_t kSpecialTokenBytesMax = 1 << 10;   // one spelling
inline constexpr int64_t kTokenizerJsonBytesMax = 1 << 26;  // a Hugging Face tokenizer.json
inline constexpr int kTokenizerJsonDepthMax = 16;           // real files need 5
inline constexpr int64_t kEncodeBytesMax = 1 << 28;         // text of one encode call

static_assert(kChunkTokensMax % kChunkGridTokens == 0, "a full chunk ends on the grid");
static_assert(kContextTokensMax % kChunkGridTokens == 0, "the context ends on the grid");

}  // namespace tandem
