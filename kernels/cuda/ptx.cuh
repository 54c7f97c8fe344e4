#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace tandem::cuda {

// Single instructions; those of copies with barriers are in barrier.cuh, of the matrix units for
// f16 in mma.cuh and wgmma.cuh, and there is no inline assembly elsewhere. Every kernel that
// launch() starts calls pdl_wait() before it touches what another kernel wrote or reads, and every
// thread of it does.

/// Waits until the kernels queued before this one are done and their writes are visible.
__device__ __forceinline__ void pdl_wait() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

/// Lets the next kernel start its preamble as soon as there is room. Called after pdl_wait(), so
/// that at most two kernels overlap.
__device__ __forceinline__ void pdl_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/// Byte i of the result is byte selector[4 i ... 4 i + 2] of b:a, or its top bit eight times if bit
/// 4 i + 3 of the selector is set.
__device__ __forceinline__ uint32_t permute_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
  return d;
}

// Weights are read once: they are not kept in L1 and leave L2 first.
__device__ __forceinline__ uint4 load_once(const uint4* data) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(data));
  return v;
}
__device__ __forceinline__ uint2 load_once(const uint2* data) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(data));
  return v;
}

__device__ __forceinline__ uint32_t load_once(const uint32_t* data) {
  uint32_t v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(data));
  return v;
}
__device__ __forceinline__ uint32_t load_once(const uint16_t* data) {
  uint32_t v;
  asm("{.reg .b16 h; ld.global.nc.u16 h, [%1]; cvt.u32.u16 %0, h;}" : "=r"(v) : "l"(data));
  return v;
}

/// Starts to copy 16 bytes from device to shared memory, past L1; copy_async_commit() ends a group.
__device__ __forceinline__ void copy_async_16(uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
/// The same for 8 bytes.
__device__ __forceinline__ void copy_async_8(uint32_t shared, const void* global) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(shared), "l"(global) : "memory");
}

/// The f16 of `value` in the low half.
__device__ __forceinline__ uint32_t to_half_bits(float value) {
  uint32_t bits = 0;
  asm("{.reg .b16 h; cvt.rn.f16.f32 h, %1; cvt.u32.u16 %0, h;}" : "=r"(bits) : "f"(value));
  return bits;
}
__device__ __forceinline__ float half_bits_to_float(uint32_t bits) {
  float value = 0;
  asm("{.reg .b16 h; cvt.u16.u32 h, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
}

/// About 1 / x; subnormal numbers count as zero.
__device__ __forceinline__ float approximate_reciprocal(float x) {
  float r = 0;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
  return r;
}

/// d += a b for int8: a 16 x 32, b 32 x 8, d 16 x 8.
__device__ __forceinline__ void mma_s8_k32(
    int (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d += a b for tf32 with f32 sums: a 16 x 8, b 8 x 8, d 16 x 8.
__device__ __forceinline__ void mma_tf32_k8(
    float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// d += a b for f16 with f32 sums: a 16 x 16, b 16 x 8, d 16 x 8.
__device__ __forceinline__ void mma_f16_k16(
    float (&d)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace tandem::cuda
