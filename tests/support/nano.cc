#include "tests/support/nano.h"

#include "base/check.h"
#include "tests/support/paths.h"

namespace tandem::test {

const LoadedModel& loaded_nano() {
  static const LoadedModel loaded = [] {
    auto made = load_model(repo_path("models/nano-q4_k.gguf"));
    TANDEM_CHECK(made.ok());
    return std::move(made).value();
  }();
  return loaded;
}

}  // namespace tandem::test
