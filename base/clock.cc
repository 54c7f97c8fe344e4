#include "base/clock.h"

#include <thread>

namespace tandem {

void SystemClock::sleep_for(std::chrono::nanoseconds duration) {
  std::this_thread::sleep_for(duration);
}

}  // namespace tandem
