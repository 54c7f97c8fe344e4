#include "kernels/cpu/isa.h"

#include "base/check.h"
#include "kernels/cpu/kernel_tables.h"

#if defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace tandem {
namespace {

#if defined(__x86_64__)

struct Cpuid {
  unsigned eax;
  unsigned ebx;
  unsigned ecx;
  unsigned edx;
};

Cpuid cpuid(unsigned leaf) {
  Cpuid out{leaf, 0, 0, 0};
  asm volatile("cpuid" : "+a"(out.eax), "=b"(out.ebx), "+c"(out.ecx), "=d"(out.edx));
  return out;
}

bool has_avx2() {
  constexpr unsigned kF16cBit = 1U << 29;  // clang 14 has no name for it
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         (cpuid(1).ecx & kF16cBit) != 0;
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

/// Tiles need the processor's support and, once for the process, the kernel's permission.
bool has_amx() {
#ifdef SYS_arch_prctl
  constexpr unsigned kAmxTileBit = 1U << 24;
  constexpr unsigned kAmxInt8Bit = 1U << 25;
  constexpr int kRequestPermission = 0x1023;
  constexpr int kTileDataFeature = 18;
  if (!has_avx512()) return false;
  const unsigned features = cpuid(7).edx;
  if ((features & kAmxTileBit) == 0 || (features & kAmxInt8Bit) == 0) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileDataFeature) == 0;
#else
  return false;
#endif
}

#elif defined(__aarch64__)

bool has_dot_product() {
  constexpr unsigned long kHwcapAsimdDotProduct = 1UL << 20;
  return (getauxval(AT_HWCAP) & kHwcapAsimdDotProduct) != 0;
}

#endif

}  // namespace

const char* cpu_isa_name(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kBest: return "best";
    case CpuIsa::kPortable: return "portable";
    case CpuIsa::kAvx2: return "avx2";
    case CpuIsa::kAvx512: return "avx512";
    case CpuIsa::kAmx: return "amx";
    case CpuIsa::kNeon: return "neon";
  }
  TANDEM_UNREACHABLE();
}

std::vector<CpuIsa> available_cpu_isas() {
  std::vector<CpuIsa> isas = {CpuIsa::kPortable};
#if defined(__x86_64__)
  if (has_avx2()) isas.push_back(CpuIsa::kAvx2);
  if (has_avx512()) isas.push_back(CpuIsa::kAvx512);
  if (has_amx()) isas.push_back(CpuIsa::kAmx);
#elif defined(__aarch64__)
  if (has_dot_product()) isas.push_back(CpuIsa::kNeon);
#endif
  return isas;
}

const CpuKernels& cpu_kernels(CpuIsa isa) {
  static const CpuIsa kBest = available_cpu_isas().back();
  switch (isa == CpuIsa::kBest ? kBest : isa) {
    case CpuIsa::kBest: break;
    case CpuIsa::kPortable: return cpu::portable_kernels();
#if defined(__x86_64__)
    case CpuIsa::kAvx2: return cpu::avx2_kernels();
    case CpuIsa::kAvx512: return cpu::avx512_kernels();
    case CpuIsa::kAmx: return cpu::amx_kernels();
    case CpuIsa::kNeon: break;
#elif defined(__aarch64__)
    case CpuIsa::kNeon: return cpu::neon_kernels();
    case CpuIsa::kAvx2:
    case CpuIsa::kAvx512:
    case CpuIsa::kAmx: break;
#else
    case CpuIsa::kAvx2:
    case CpuIsa::kAvx512:
    case CpuIsa::kAmx:
    case CpuIsa::kNeon: break;
#endif
  }
  TANDEM_UNREACHABLE();  // callers choose from available_cpu_isas()
}

}  // namespace tandem
