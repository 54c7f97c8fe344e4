#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/families/deepseek_v4/markers.h"
#include "model/spec/prompt.h"

namespace tandem::v4 {

/// Collects a prompt. Neighbouring text is one piece, so that it is tokenized as one string.
class PieceList {
 public:
  /// Appends text of outside origin; it never becomes a control token.
  void text(std::string_view bytes) {
    if (bytes.empty()) return;
    if (pieces_.empty() || pieces_.back().kind != Piece::Kind::kText) {
      pieces_.push_back({Piece::Kind::kText, {}});
    }
    pieces_.back().bytes += bytes;
  }

  /// Appends one special token.
  void control(std::string_view spelling) {
    pieces_.push_back({Piece::Kind::kControl, std::string(spelling)});
  }

  /// Appends trusted text in which each of `spellings` is a special token.
  template <class Spellings>
  void markup(std::string_view bytes, const Spellings& spellings) {
    size_t start = 0;
    for (size_t pos = 0; pos < bytes.size(); ++pos) {
      for (const std::string_view spelling : spellings) {
        if (bytes.substr(pos, spelling.size()) != spelling) continue;
        text(bytes.substr(start, pos - start));
        control(spelling);
        start = pos + spelling.size();
        pos = start - 1;
        break;
      }
    }
    text(bytes.substr(start));
  }

  std::vector<Piece> take() { return std::move(pieces_); }

 private:
  std::vector<Piece> pieces_;
};

}  // namespace tandem::v4
