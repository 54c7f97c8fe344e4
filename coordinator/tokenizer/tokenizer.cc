#include "coordinator/tokenizer/tokenizer.h"

#include <utility>

#include "base/limits.h"
#include "base/utf8.h"
#include "coordinator/tokenizer/byte_level.h"

namespace tandem {
namespace {

enum TokenType { kNormal = 1, kControl = 3, kUserDefined = 4, kByte = 6 };

// Text from a file, made fit for one line of a message.
std::string quoted(std::string_view text) {
  constexpr size_t kShownBytesMax = 40;
  std::string shown = repair_utf8(text.substr(0, kShownBytesMax));
  for (char& c : shown) {
    if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return str_cat('"', shown, text.size() > kShownBytesMax ? "...\"" : "\"");
}

Status check_text(std::string_view utf8, const char* what) {
  TANDEM_REQUIRE(
      utf8.size() <= static_cast<size_t>(kEncodeBytesMax),
      str_cat(what, " has ", utf8.size(), " bytes, at most ", kEncodeBytesMax, " can be encoded"));
  const std::optional<size_t> invalid = find_invalid_utf8(utf8);
  TANDEM_REQUIRE(!invalid.has_value(), str_cat(what, " is not UTF-8 at byte ", *invalid));
  return {};
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> Tokenizer::create(const VocabularySource& source) {
  const std::optional<PreTokenizer> pre = pre_tokenizer_by_name(source.pre);
  if (!pre.has_value()) {
    return Status(
        StatusCode::kUnimplemented,
        str_cat("vocabulary: pre-tokenizer ", quoted(source.pre), " is not known"));
  }
  std::shared_ptr<Tokenizer> tokenizer(new Tokenizer);
  tokenizer->pre_ = *pre;
  TANDEM_TRY(tokenizer->read_tokens(source));
  TANDEM_TRY(tokenizer->read_merges(source));
  TANDEM_TRY(tokenizer->settle_specials(!source.token_types.empty()));
  tokenizer->index_whole_pieces();
  return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Status Tokenizer::read_tokens(const VocabularySource& source) {
  const size_t num_tokens = source.tokens.size();
  TANDEM_REQUIRE(
      num_tokens >= 1 && num_tokens <= static_cast<size_t>(kVocabMax),
      str_cat("vocabulary: ", num_tokens, " tokens, expected 1 to ", kVocabMax));
  const bool types_known = !source.token_types.empty();
  TANDEM_REQUIRE(
      !types_known || source.token_types.size() == num_tokens,
      str_cat(
          "vocabulary: ", source.token_types.size(), " token types for ", num_tokens, " tokens"));
  special_.assign(num_tokens, false);
  offsets_.reserve(num_tokens + 1);
  offsets_.push_back(0);
  for (size_t id = 0; id < num_tokens; ++id) {
    const std::string_view text = source.tokens[id];
    const int32_t type = types_known ? source.token_types[id] : int32_t{kNormal};
    TANDEM_REQUIRE(
        type >= kNormal && type <= kByte,
        str_cat("vocabulary: token ", id, " has type ", type, ", expected 1 to 6"));
    TANDEM_REQUIRE(!text.empty(), str_cat("vocabulary: token ", id, " is empty"));
    TANDEM_REQUIRE(
        bytes_.size() + text.size() <= static_cast<size_t>(kVocabularyBytesMax),
        str_cat("vocabulary: texts exceed ", kVocabularyBytesMax, " bytes at token ", id));
    std::optional<std::string> bytes;
    if (type != kControl && type != kUserDefined) bytes = decode_byte_level(text);
    special_[id] = !bytes.has_value();
    bytes_ += bytes.has_value() ? std::string_view(*bytes) : text;
    offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  // Only now: bytes_ no longer moves.
  ordinary_ = TokenIndex(num_tokens);
  for (int32_t id = 0; id < size(); ++id) {
    if (is_special(id)) continue;
    const int32_t other = ordinary_.add(token_bytes(id), id);
    TANDEM_REQUIRE(
        other < 0, str_cat(
                       "vocabulary: tokens ", other, " and ", id, " are both ",
                       quoted(source.tokens[static_cast<size_t>(id)])));
  }
  return {};
}

Status Tokenizer::read_merges(const VocabularySource& source) {
  TANDEM_REQUIRE(
      source.merges.size() <= static_cast<size_t>(kMergesMax),
      str_cat("vocabulary: ", source.merges.size(), " merges, at most ", kMergesMax));
  merges_ = MergeTable(source.merges.size());
  for (size_t i = 0; i < source.merges.size(); ++i) {
    const std::string_view merge = source.merges[i];
    const auto describe = [&] { return str_cat("vocabulary: merge ", i, " ", quoted(merge)); };
    const size_t space = merge.find(' ');
    TANDEM_REQUIRE(
        space != std::string_view::npos && merge.find(' ', space + 1) == std::string_view::npos,
        str_cat(describe(), " is not two texts with one space between"));
    const auto left = decode_byte_level(merge.substr(0, space));
    const auto right = decode_byte_level(merge.substr(space + 1));
    TANDEM_REQUIRE(
        left.has_value() && right.has_value(), str_cat(describe(), " is not byte-level text"));
    const int32_t left_id = ordinary_.find(*left);
    const int32_t right_id = ordinary_.find(*right);
    const int32_t merged_id = ordinary_.find(*left + *right);
    TANDEM_REQUIRE(left_id >= 0, str_cat(describe(), ": its left side is no token"));
    TANDEM_REQUIRE(right_id >= 0, str_cat(describe(), ": its right side is no token"));
    TANDEM_REQUIRE(merged_id >= 0, str_cat(describe(), ": its result is no token"));
    TANDEM_REQUIRE(
        merges_.add(left_id, right_id, merged_id), str_cat(describe(), " is there twice"));
  }
  std::array<int32_t, 256> byte_ids;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const auto i = static_cast<size_t>(byte);
    byte_ids[i] = ordinary_.find({&c, 1});
    TANDEM_REQUIRE(byte_ids[i] >= 0, str_cat("vocabulary: no token for byte ", byte));
  }
  merges_.set_bytes(byte_ids);
  return {};
}

Status Tokenizer::settle_specials(bool types_known) {
  if (!types_known) {
    std::vector<bool> reachable(special_.size(), false);
    for (int byte = 0; byte < 256; ++byte) {
      reachable[static_cast<size_t>(merges_.byte_id(static_cast<uint8_t>(byte)))] = true;
    }
    for (size_t i = 0; i < merges_.size(); ++i) {
      reachable[static_cast<size_t>(merges_.merged(static_cast<int32_t>(i)))] = true;
    }
    for (size_t id = 0; id < special_.size(); ++id) {
      if (!reachable[id]) special_[id] = true;
    }
  }
  std::vector<std::pair<std::string, int32_t>> spellings;
  TokenIndex seen(special_.size());
  for (int32_t id = 0; id < size(); ++id) {
    if (!is_special(id)) continue;
    const std::string_view spelling = token_bytes(id);
    TANDEM_REQUIRE(
        spelling.size() <= static_cast<size_t>(kSpecialTokenBytesMax),
        str_cat(
            "vocabulary: special token ", id, " has ", spelling.size(), " bytes, at most ",
            kSpecialTokenBytesMax));
    // A spelling that starts inside a character would leave half of it as text.
    TANDEM_REQUIRE(
        !find_invalid_utf8(spelling).has_value(),
        str_cat("vocabulary: special token ", id, " ", quoted(spelling), " is not UTF-8"));
    const int32_t other = seen.add(spelling, id);
    TANDEM_REQUIRE(
        other < 0,
        str_cat("vocabulary: special tokens ", other, " and ", id, " are both ", quoted(spelling)));
    spellings.emplace_back(spelling, id);
  }
  specials_ = SpecialTokens(std::move(spellings));
  return {};
}

void Tokenizer::index_whole_pieces() {
  whole_pieces_ = TokenIndex(special_.size());
  PieceMerger merger(merges_);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < size(); ++id) {
    if (is_special(id)) continue;
    ids.clear();
    merger.merge(token_bytes(id), ids);
    if (ids.size() == 1) whole_pieces_.add(token_bytes(id), id);
  }
}

void Tokenizer::encode_valid(
    std::string_view utf8, PieceMerger& merger, std::vector<int32_t>& out) const {
  PieceSplitter splitter(utf8);
  for (std::string_view piece; splitter.next(piece);) {
    const int32_t whole = whole_pieces_.find(piece);
    if (whole >= 0) {
      out.push_back(whole);
    } else {
      merger.merge(piece, out);
    }
  }
}

Status Tokenizer::encode_text(std::string_view utf8, std::vector<int32_t>& out) const {
  TANDEM_TRY(check_text(utf8, "text"));
  PieceMerger merger(merges_);
  encode_valid(utf8, merger, out);
  return {};
}

Status Tokenizer::encode_raw(std::string_view utf8, std::vector<int32_t>& out) const {
  TANDEM_TRY(check_text(utf8, "text"));
  PieceMerger merger(merges_);
  size_t at = 0;
  while (const auto match = specials_.next(utf8, at)) {
    encode_valid(utf8.substr(at, match->offset - at), merger, out);
    out.push_back(match->id);
    at = match->offset + match->num_bytes;
  }
  encode_valid(utf8.substr(at), merger, out);
  return {};
}

Status Tokenizer::encode(std::span<const Piece> pieces, std::vector<int32_t>& out) const {
  PieceMerger merger(merges_);
  std::vector<int32_t> ids;
  std::string text;
  for (size_t i = 0; i < pieces.size();) {
    if (pieces[i].kind == Piece::Kind::kControl) {
      const std::optional<int32_t> id = special_id(pieces[i].bytes);
      TANDEM_REQUIRE(
          id.has_value(),
          str_cat("prompt piece ", i, ": ", quoted(pieces[i].bytes), " is no special token"));
      ids.push_back(*id);
      ++i;
      continue;
    }
    const size_t first = i;
    text.clear();
    for (; i < pieces.size() && pieces[i].kind == Piece::Kind::kText; ++i) text += pieces[i].bytes;
    TANDEM_TRY(check_text(text, str_cat("text from prompt piece ", first).c_str()));
    encode_valid(text, merger, ids);
  }
  out.insert(out.end(), ids.begin(), ids.end());
  return {};
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  std::string bytes;
  for (const int32_t id : ids) {
    if (!(skip_special && is_special(id))) bytes += token_bytes(id);
  }
  return bytes;
}

}  // namespace tandem
