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
inline constexpr int64_t kEncodeCacheBytesMax = 32 << 20;   // remembered texts and their ids

inline constexpr int64_t kTopKMax = 1024;            // a larger top_k means this
inline constexpr int64_t kLogprobsMax = 128;         // alternatives listed for one token
inline constexpr int64_t kLogitBiasMax = 1024;       // entries of one request
inline constexpr int64_t kStopStringsMax = 16;       // of one request
inline constexpr int64_t kStopStringBytesMax = 256;  // of one stop string
inline constexpr int64_t kSchemaBytesMax = 1 << 18;  // JSON text of one schema
inline constexpr int64_t kSchemaNodesMax = 1 << 12;  // subschemas and properties of one schema
inline constexpr int64_t kSchemaDepthMax = 64;       // nested objects and arrays of a schema's text
inline constexpr int64_t kJsonDepthMax = 256;        // nested objects and arrays

inline constexpr int64_t kHttpHeadBytesMax = 64 << 10;              // request line and headers
inline constexpr int64_t kHttpTargetBytesMax = 1024;                // of a request line
inline constexpr int64_t kHttpHeadersMax = 128;                     // of one request
inline constexpr int64_t kHttpBodyBytesMax = int64_t{64} << 20;     // after chunked decoding
inline constexpr int64_t kHttpBodiesBytesMax = int64_t{256} << 20;  // of all requests in flight
inline constexpr int64_t kHttpClientsMax = 256;                     // connections that are served
inline constexpr int64_t kHttpQueueMax = 256;                 // generations that wait for a bank
inline constexpr int64_t kRequestJsonDepthMax = 128;          // nested objects and arrays
inline constexpr int64_t kRequestJsonValuesMax = 1 << 20;     // values and keys of one body
inline constexpr int64_t kMessagesMax = 1 << 16;              // of one request
inline constexpr int64_t kToolsMax = 1024;                    // of one request
inline constexpr int64_t kChoicesMax = 16;                    // n of one request
inline constexpr int64_t kChatLogprobsMax = 20;               // top_logprobs of one request
inline constexpr int64_t kUnreadBytesMax = int64_t{4} << 20;  // of an answer, not yet sent
inline constexpr int64_t kToolReplayIdsMax = 100000;          // remembered calls
inline constexpr int64_t kToolReplayBytesMax = int64_t{512} << 20;  // of their sampled blocks

static_assert(kHttpBodyBytesMax <= kHttpBodiesBytesMax, "the largest body is admitted when alone");
static_assert(
    kChatLogprobsMax <= kLogprobsMax, "a surface asks for no more than the sampler lists");
static_assert(kLogprobsMax <= kTopKMax, "alternatives are found by the same selection");
static_assert(kChunkTokensMax % kChunkGridTokens == 0, "a full chunk ends on the grid");
static_assert(kContextTokensMax % kChunkGridTokens == 0, "the context ends on the grid");

}  // namespace tandem
