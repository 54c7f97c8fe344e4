#include "coordinator/sampling/json_constraint.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

namespace tandem {

Result<JsonConstraint> JsonConstraint::create(
    std::shared_ptr<const JsonGrammar> grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
    std::vector<int32_t> end_tokens) {
  TANDEM_REQUIRE(!end_tokens.empty(), "a constrained output needs an end token");
  for (const int32_t token : end_tokens) {
    TANDEM_REQUIRE(
        token >= 0 && token < vocabulary->vocab_size(),
        str_cat("end token ", token, " is outside the vocabulary of ", vocabulary->vocab_size()));
  }
  return JsonConstraint(std::move(grammar), std::move(vocabulary), std::move(end_tokens));
}

JsonConstraint::JsonConstraint(
    std::shared_ptr<const JsonGrammar> grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
    std::vector<int32_t> end_tokens)
    : vocabulary_(std::move(vocabulary)),
      end_tokens_(std::move(end_tokens)),
      machine_(std::move(grammar)),
      frames_(machine_.start()) {
  size_t deepest = 0;
  for (const VocabularyTrie::Node& node : vocabulary_->nodes()) {
    deepest = std::max<size_t>(deepest, node.depth);
  }
  walk_.resize(deepest + 1);
}

bool JsonConstraint::complete() const {
  return ended_whole_ || machine_.is_complete(frames_);
}

void JsonConstraint::accept(int32_t token) {
  const bool is_end = std::find(end_tokens_.begin(), end_tokens_.end(), token) != end_tokens_.end();
  if (is_end) {
    ended_whole_ = machine_.is_complete(frames_);
    frames_.clear();
    return;
  }
  const std::string_view text = vocabulary_->text(token);
  if (text.empty()) frames_.clear();
  FrameSet next;
  for (const char byte : text) {
    machine_.step(frames_, static_cast<uint8_t>(byte), &next);
    std::swap(frames_, next);
  }
  if (frames_.empty()) ended_whole_ = false;
}

void JsonConstraint::mask(std::span<float> logits) {
  const std::vector<uint64_t>& bits = current_mask().bits;
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  for (size_t begin = 0; begin < logits.size(); begin += 64) {
    const uint64_t word = begin / 64 < bits.size() ? bits[begin / 64] : 0;
    if (word == ~uint64_t{0}) continue;
    const size_t size = std::min<size_t>(64, logits.size() - begin);
    for (size_t i = 0; i < size; ++i) {
      if ((word >> i & 1) == 0) logits[begin + i] = kExcluded;
    }
  }
}

const JsonConstraint::Mask& JsonConstraint::current_mask() {
  for (const Mask& known : masks_) {
    if (known.frames == frames_) return known;
  }
  if (machine_.num_frames() > kFramesMax) {
    machine_.collect(&frames_);
    masks_.clear();
    oldest_mask_ = 0;
  }
  if (masks_.size() < kMasksMax) {
    masks_.emplace_back();
    oldest_mask_ = masks_.size() - 1;
  } else {
    oldest_mask_ = (oldest_mask_ + 1) % kMasksMax;
  }
  Mask& made = masks_[oldest_mask_];
  made.frames = frames_;
  fill(&made.bits);
  return made;
}

void JsonConstraint::fill(std::vector<uint64_t>* bits) {
  bits->assign((static_cast<size_t>(vocabulary_->vocab_size()) + 63) / 64, 0);
  const auto allow = [&](uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; ++i) {
      const auto id = static_cast<size_t>(vocabulary_->tokens()[i]);
      (*bits)[id / 64] |= uint64_t{1} << (id % 64);
    }
  };
  const auto nodes = vocabulary_->nodes();
  const auto is_in_string = [&](JsonMachine::FrameId id) { return machine_.is_in_string(id); };
  walk_[0] = frames_;
  for (uint32_t i = 1; i + 1 < nodes.size();) {
    const VocabularyTrie::Node& node = nodes[i];
    FrameSet& here = walk_[node.depth];
    machine_.step(walk_[node.depth - 1], node.byte, &here);
    if (here.empty()) {
      i = node.end;
    } else if (node.plain_below && std::any_of(here.begin(), here.end(), is_in_string)) {
      // Whatever else may be read here, a string takes all of it.
      allow(node.first_token, nodes[node.end].first_token);
      i = node.end;
    } else {
      allow(node.first_token, nodes[i + 1].first_token);
      ++i;
    }
  }
  // An end token stands for no text, even if the vocabulary spells one.
  const bool may_end = machine_.is_complete(frames_);
  for (const int32_t token : end_tokens_) {
    const auto id = static_cast<size_t>(token);
    const uint64_t bit = uint64_t{1} << (id % 64);
    (*bits)[id / 64] = may_end ? (*bits)[id / 64] | bit : (*bits)[id / 64] & ~bit;
  }
}

}  // namespace tandem
