#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "coordinator/tokenizer/merges.h"
#include "coordinator/tokenizer/pre_tokenizer.h"
#include "coordinator/tokenizer/special_tokens.h"
#include "coordinator/tokenizer/token_index.h"
#include "model/spec/prompt.h"

namespace tandem {

/// A byte-level BPE vocabulary as its file has it. All views are borrowed during create().
struct VocabularySource {
  std::vector<std::string_view> tokens;  // by id; byte-level text, special tokens literally
  std::vector<std::string_view> merges;  // "left right", the first one first
  // GGUF numbers: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. One a token, or
  // empty: then a token that is neither a byte nor the result of a merge is special.
  std::vector<int32_t> token_types;
  std::string pre;  // name of the pre-tokenizer, as in tokenizer.ggml.pre
};

/// Turns text into token ids and back. Immutable.
///
/// A token is special if it is of type 3 or 4 or if its text is not byte-level, so that no text can
/// produce it. Types 1, 2, 5 and 6 are ordinary: `<0x0A>` is six characters here, whatever its
/// type, for a byte-level vocabulary has all bytes already.
///
/// Text must be well-formed UTF-8 without surrogates: anything else is an error that names the byte
/// offset. Nothing is replaced or dropped on the way in, so text survives a round trip.
///
/// Limits:  kVocabMax, kMergesMax, kVocabularyBytesMax, kEncodeBytesMax.
/// Threads: any.
class Tokenizer {
 public:
  /// Errors: kInvalidArgument names the token or merge that is wrong, or both counts where two
  /// arrays differ; kUnimplemented if the pre-tokenizer is unknown.
  /// Cost: about 0.1 s for 128k tokens.
  static Result<std::shared_ptr<const Tokenizer>> create(const VocabularySource& source);
  /// From the text of a Hugging Face tokenizer.json. Added tokens are special, whether they say so
  /// themselves or not. Its post-processor is ignored: a rendered prompt has its tokens already.
  /// Limits: kTokenizerJsonBytesMax, kTokenizerJsonDepthMax.
  /// Errors: kInvalidArgument names the field; kUnimplemented if it asks for something else than
  /// plain byte-level BPE with a known pre-tokenizer.
  static Result<std::shared_ptr<const Tokenizer>> from_hf_json(std::string_view json);

  /// Appends the ids of `utf8`, of which none is special, whatever the text spells.
  /// Errors: kInvalidArgument, with `out` as it was, for bytes that are no UTF-8 or too many.
  Status encode_text(std::string_view utf8, std::vector<int32_t>& out) const;
  /// Appends the ids of text that is rendered already: spellings of special tokens become those
  /// (the leftmost, and there the longest), and what is between is text of its own.
  /// Errors: as encode_text.
  Status encode_raw(std::string_view utf8, std::vector<int32_t>& out) const;
  /// Appends the ids of a rendered prompt. Neighbouring text pieces are one text, as if they had
  /// been written in one go; a character may be cut between them.
  /// Errors: as encode_text; kInvalidArgument for a control piece that is no special token.
  Status encode(std::span<const Piece> pieces, std::vector<int32_t>& out) const;

  std::optional<int32_t> special_id(std::string_view spelling) const {
    return specials_.find(spelling);
  }
  bool is_special(int32_t id) const { return in_range(id) && special_[static_cast<size_t>(id)]; }
  /// The bytes a token stands for, possibly a part of a character; literal text if it is special,
  /// empty if there is no such id. Valid while the tokenizer lives.
  std::string_view token_bytes(int32_t id) const {
    if (!in_range(id)) return {};
    const auto i = static_cast<size_t>(id);
    return std::string_view(bytes_).substr(offsets_[i], offsets_[i + 1] - offsets_[i]);
  }
  /// The bytes of all tokens in order. They need not be UTF-8: see StreamDecoder.
  std::string decode(std::span<const int32_t> ids, bool skip_special) const;
  /// Number of ids.
  int32_t size() const { return static_cast<int32_t>(special_.size()); }

 private:
  Tokenizer() = default;

  Status read_tokens(const VocabularySource& source);
  Status read_merges(const VocabularySource& source);
  Status settle_specials(bool types_known);
  void index_whole_pieces();

  bool in_range(int32_t id) const { return id >= 0 && id < size(); }
  void encode_valid(std::string_view utf8, PieceMerger& merger, std::vector<int32_t>& out) const;

  PreTokenizer pre_ = PreTokenizer::kDeepSeekV3;
  std::string bytes_;              // of all tokens
  std::vector<uint32_t> offsets_;  // size() + 1, into bytes_
  std::vector<bool> special_;
  TokenIndex ordinary_;      // every token that text may produce
  TokenIndex whole_pieces_;  // those whose own bytes merge into themselves: no merging needed
  MergeTable merges_;
  SpecialTokens specials_;
};

}  // namespace tandem
