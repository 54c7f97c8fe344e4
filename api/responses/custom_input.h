#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::api {

/// Takes the free text out of a custom tool's arguments while their JSON arrives. The model is
/// shown such a tool as a function with one string, "input"; arguments that start with it are
/// decoded as they come. Of others, finish() takes the member "input" if it is a string, else the
/// only member if it is a string, else the arguments as they are.
/// Any split of the arguments gives the same text. Threads: one owner.
class CustomInput {
 public:
  /// Appends what is known of the text to `out`.
  void push(std::string_view json, std::string& out);
  /// The arguments are complete.
  void finish(std::string& out);

 private:
  enum class State {
    kStart,  // before the string's opening quote
    kText,
    kEscape,      // after a backslash
    kHex,         // inside \uXXXX
    kAfterHigh,   // after the escape of a high surrogate, before the backslash of the low one
    kHighEscape,  // after that backslash
    kDone,
    kOther,  // the arguments do not start with "input"
  };

  void push_byte(char c, std::string& out);
  void push_unit(uint32_t unit, std::string& out);

  State state_ = State::kStart;
  std::string pending_;  // kStart, kOther: the arguments so far
  uint32_t unit_ = 0;
  int num_digits_ = 0;
  uint32_t high_ = 0;  // a high surrogate that waits for its other half
};

/// The whole at once.
std::string custom_input(std::string_view arguments);

}  // namespace tandem::api
