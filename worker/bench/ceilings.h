#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/thread_pool.h"
#include "kernels/cpu/isa.h"

namespace tandem {

/// What this machine can do at best with these threads, measured on the spot.
struct Ceilings {
  double memory_bytes_per_s = 0;  // reads of a buffer far larger than any cache
  double cached_bytes_per_s = 0;  // reads of a buffer of `working_set_bytes`, again and again
  double int8_macs_per_s = 0;     // the int8 blocked product on data in the nearest caches
  double f32_macs_per_s = 0;      // the float32 one
};

/// Cost: about a second, and 512 MB of memory while it runs.
Ceilings measure_ceilings(
    ThreadPool& pool, CpuIsa isa, int64_t working_set_bytes, const Clock& clock);

/// Bytes a second that all threads together read from a buffer of `bytes`; the best of several
/// passes. Each thread reads its own contiguous part.
double measure_read_rate(ThreadPool& pool, int64_t bytes, const Clock& clock);

}  // namespace tandem
