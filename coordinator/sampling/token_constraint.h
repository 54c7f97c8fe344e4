#pragma once

#include <cstdint>
#include <span>

namespace tandem {

/// What may come next in one sequence, for output that must follow a grammar.
///
/// Order of calls: mask before a token is chosen, accept with the token that was.
/// Threads: one owner, the thread that samples.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  /// Sets the logit of every token that may not come next to minus infinity and leaves the others.
  ///
  /// Shapes: logits [vocab_size].
  virtual void mask(std::span<float> logits) = 0;

  /// Moves past `token`. A token that mask had excluded ends the constraint: from then on every
  /// token is excluded and complete() is false.
  virtual void accept(int32_t token) = 0;

  /// Whether what was accepted so far is a whole output; it may still be possible to add to it.
  virtual bool complete() const = 0;
};

}  // namespace tandem
