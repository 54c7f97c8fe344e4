#include "coordinator/tokenizer/encode_cache.h"

#include <utility>

namespace tandem {
namespace {

constexpr size_t kTextBytesMin = 256;  // below, tokenizing costs about as much as looking up

}  // namespace

std::shared_ptr<const EncodeCache::Entry> EncodeCache::find(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto found = by_text_.find(text);
  if (found == by_text_.end()) {
    ++stats_.misses;
    return nullptr;
  }
  ++stats_.hits;
  order_.splice(order_.end(), order_, found->second);
  return *found->second;
}

void EncodeCache::add(std::shared_ptr<const Entry> entry) {
  const auto size_of = [](const Entry& of) {
    return static_cast<int64_t>(of.text.size() + of.ids.size() * sizeof(int32_t));
  };
  const int64_t size = size_of(*entry);
  if (size > bytes_max_) return;
  const std::lock_guard lock(mutex_);
  const auto place = order_.insert(order_.end(), std::move(entry));
  if (!by_text_.try_emplace((*place)->text, place).second) {  // another thread was quicker
    order_.erase(place);
    return;
  }
  ++stats_.num_texts;
  stats_.bytes += size;
  while (stats_.bytes > bytes_max_) {
    const Entry& oldest = *order_.front();
    by_text_.erase(oldest.text);
    --stats_.num_texts;
    stats_.bytes -= size_of(oldest);
    order_.pop_front();
  }
}

Status EncodeCache::encode_run(std::span<const Piece> run, std::vector<int32_t>& out) {
  std::string joined;
  if (run.size() > 1) {
    for (const Piece& piece : run) joined += piece.bytes;
  }
  const std::string_view text = run.size() == 1 ? std::string_view(run[0].bytes) : joined;
  if (text.size() < kTextBytesMin) return tokenizer_->encode_text(text, out);
  std::shared_ptr<const Entry> entry = find(text);
  if (entry == nullptr) {
    auto made = std::make_shared<Entry>();
    TANDEM_TRY(tokenizer_->encode_text(text, made->ids));
    made->text = text;
    entry = std::move(made);
    add(entry);
  }
  out.insert(out.end(), entry->ids.begin(), entry->ids.end());
  return {};
}

Status EncodeCache::encode(std::span<const Piece> pieces, std::vector<int32_t>& out) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < pieces.size();) {
    size_t end = i + 1;
    Status status;
    if (pieces[i].kind == Piece::Kind::kControl) {
      status = tokenizer_->encode(pieces.subspan(i, 1), ids);
    } else {
      while (end < pieces.size() && pieces[end].kind == Piece::Kind::kText) ++end;
      status = encode_run(pieces.subspan(i, end - i), ids);
    }
    // The whole prompt's own error says which piece it is.
    if (!status.ok()) return tokenizer_->encode(pieces, out);
    i = end;
  }
  out.insert(out.end(), ids.begin(), ids.end());
  return {};
}

EncodeCache::Stats EncodeCache::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace tandem
