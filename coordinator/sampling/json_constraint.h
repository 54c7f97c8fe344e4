#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "coordinator/sampling/json_grammar.h"
#include "coordinator/sampling/json_machine.h"
#include "coordinator/sampling/token_constraint.h"
#include "coordinator/sampling/vocabulary_trie.h"

namespace tandem {

/// Keeps the output inside a JSON grammar. At a whole value the end tokens may come as well, and
/// where nothing can be added only they may.
///
/// Threads: one owner; grammar and vocabulary may be shared.
/// Cost:    a mask that was not made before walks the part of the vocabulary that fits, which is
///          under a millisecond for 129,280 tokens; the last kMasksMax are kept.
class JsonConstraint : public TokenConstraint {
 public:
  /// Errors: kInvalidArgument if there is no end token or one is outside the vocabulary.
  static Result<JsonConstraint> create(
      std::shared_ptr<const JsonGrammar> grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
      std::vector<int32_t> end_tokens);

  /// Limits: logits has the size of the vocabulary; further entries are excluded.
  void mask(std::span<float> logits) override;
  void accept(int32_t token) override;
  bool complete() const override;

 private:
  using FrameSet = JsonMachine::FrameSet;
  static constexpr size_t kMasksMax = 32;
  static constexpr size_t kFramesMax = 1 << 16;  // then those out of use are dropped

  struct Mask {
    FrameSet frames;
    std::vector<uint64_t> bits;  // token id / 64, bit id % 64
  };

  JsonConstraint(
      std::shared_ptr<const JsonGrammar> grammar, std::shared_ptr<const VocabularyTrie> vocabulary,
      std::vector<int32_t> end_tokens);

  const Mask& current_mask();
  void fill(std::vector<uint64_t>* bits);

  std::shared_ptr<const VocabularyTrie> vocabulary_;
  std::vector<int32_t> end_tokens_;
  JsonMachine machine_;
  FrameSet frames_;  // empty after an end token or a token that did not fit
  bool ended_whole_ = false;

  std::vector<Mask> masks_;
  size_t oldest_mask_ = 0;
  std::vector<FrameSet> walk_;  // by depth in the vocabulary
};

}  // namespace tandem
