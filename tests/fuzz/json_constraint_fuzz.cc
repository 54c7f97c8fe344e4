#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "coordinator/sampling/json_grammar.h"
#include "coordinator/sampling/json_machine.h"

/// Input: a schema, a zero byte, then bytes that steer a walk. Each either is taken as it is or, if
/// it may not come, stands for the next one that may. The walk must never get stuck, and what it
/// calls whole must be JSON.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t cut = input.find('\0');
  auto grammar = tandem::JsonGrammar::from_schema(input.substr(0, cut));
  if (!grammar.ok() || cut == std::string_view::npos) return 0;

  tandem::JsonMachine machine(
      std::make_shared<const tandem::JsonGrammar>(std::move(grammar).value()));
  tandem::JsonMachine::FrameSet frames = machine.start();
  tandem::JsonMachine::FrameSet next;
  std::string output;
  for (const char steer : input.substr(cut + 1)) {
    // ASCII only: a byte of a broken character would not parse.
    unsigned byte = static_cast<unsigned char>(steer) & 0x7F;
    unsigned tried = 0;
    for (; tried < 128; ++tried, byte = (byte + 1) & 0x7F) {
      machine.step(frames, static_cast<uint8_t>(byte), &next);
      if (!next.empty()) break;
    }
    if (tried == 128) {
      if (!machine.is_complete(frames)) std::abort();
      break;
    }
    std::swap(frames, next);
    output.push_back(static_cast<char>(byte));
    if (output.size() % 16 == 0) machine.collect(&frames);
    if (machine.is_complete(frames) && !nlohmann::json::accept(output)) std::abort();
  }
  return 0;
}
