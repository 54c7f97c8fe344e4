#pragma once

#include <cstdint>
#include <vector>

namespace tandem {

/// Instruction sets with kernels of their own. Every one gives the same bits
/// (kernels/cpu/README.md), so a choice is a matter of speed alone.
enum class CpuIsa : uint8_t {
  kBest,      // the fastest that this machine has
  kPortable,  // plain C++, the judge of the others
  kAvx2,      // with FMA and F16C
  kAvx512,    // F, BW, VL, DQ and VNNI
  kAmx,       // int8 tiles, on top of kAvx512
  kNeon,      // aarch64 with dot product
};

const char* cpu_isa_name(CpuIsa isa);

/// What this machine has and this build supports, kPortable first, the fastest last.
std::vector<CpuIsa> available_cpu_isas();

}  // namespace tandem
