#pragma once

#include "base/thread_pool.h"
#include "kernels/core/phase.h"
#include "kernels/core/scratch.h"
#include "kernels/cpu/isa.h"

struct CUstream_st;

namespace tandem {

enum class Device { kCpu, kCuda };

/// kExact: float32 throughout, plain loops. kFast: what the device does best.
enum class Numerics { kExact, kFast };

/// Where and how an operation runs. Borrowed by the call; on CUDA also until the queued work is
/// done.
struct Exec {
  Device device = Device::kCpu;
  Numerics numerics = Numerics::kExact;
  Phase phase = Phase::kDecode;
  ThreadPool* pool = nullptr;     // CPU
  CpuIsa isa = CpuIsa::kBest;     // CPU, kFast: every choice gives the same bits
  CUstream_st* stream = nullptr;  // CUDA; never the default stream
  bool any_chip = false;          // CUDA: only what every supported chip runs, as its tests want
  Scratch* scratch = nullptr;     // memory of `device`; an operation takes and gives back
};

}  // namespace tandem
