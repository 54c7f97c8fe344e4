#include "kernels/cuda/device_weights.h"

#include <cmath>

#include "kernels/cuda/error.h"
#include "kernels/linear/iq2_words.cuh"
#include "model/formats/blocks.h"

namespace tandem::cuda {
namespace {

constexpr int kNumThreads = 256;
// The fields of a block in the order of their planes.
struct Field {
  int offset;  // in the file's block
  int bytes;   // of one block
};
struct Fields {
  int count;
  Field field[3];
};

constexpr Fields plane_fields(DType dtype) {
  switch (dtype) {
    case DType::kQ8_0: return {2, {{2, 32}, {0, 2}}};
    case DType::kQ2_K: return {3, {{16, 64}, {0, 16}, {80, 4}}};
    case DType::kMXFP4: return {2, {{1, 16}, {0, 1}}};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_K:
    case DType::kQ6_K:
    case DType::kIQ2_XXS:  // to_iq2_words_kernel
    case DType::kI32: break;
  }
  return {};
}

// One thread a block.
__global__ void to_planes_kernel(
    const std::byte* blocks, std::byte* to, int64_t to_row_bytes, int64_t num_rows,
    int64_t num_blocks, int bytes_per_block, Fields fields) {
  const int64_t idx = static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x;
  if (idx >= num_rows * num_blocks) return;
  const int64_t block = idx % num_blocks;
  std::byte* plane = to + idx / num_blocks * to_row_bytes;
  for (int f = 0; f < fields.count; ++f) {
    const auto [offset, bytes] = fields.field[f];
    const std::byte* from = blocks + idx * bytes_per_block + offset;
    for (int i = 0; i < bytes; ++i) plane[block * bytes + i] = from[i];
    plane += num_blocks * bytes;
  }
}

// One thread a block. The words of a block are read by halves: it starts on two bytes.
__global__ void to_iq2_words_kernel(
    const std::byte* blocks, std::byte* to, int64_t to_row_bytes, int64_t num_rows,
    int64_t num_blocks) {
  const int64_t idx = static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x;
  if (idx >= num_rows * num_blocks) return;
  const int64_t block = idx % num_blocks;
  const auto* halves = reinterpret_cast<const uint16_t*>(blocks + idx * sizeof(BlockIQ2XXS));
  uint32_t file[kIq2Words];
  for (int i = 0; i < kIq2Words; ++i) {
    file[i] = halves[1 + 2 * i] | static_cast<uint32_t>(halves[2 + 2 * i]) << 16;
  }
  std::byte* row = to + idx / num_blocks * to_row_bytes;
  auto* words = reinterpret_cast<uint32_t*>(row + block * 64);
  for (int i = 0; i < kIq2Words; ++i) words[i] = iq2_word(file, i / 4, i % 4);
  reinterpret_cast<uint16_t*>(row + num_blocks * 64)[block] = halves[0];
}

__device__ uint32_t hash(uint64_t seed, uint64_t idx) {
  uint64_t z = seed + (idx + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<uint32_t>((z ^ (z >> 31)) >> 16);
}

// Uniform in -1 ... 1.
__device__ float uniform(uint32_t bits) {
  return static_cast<float>(static_cast<int32_t>(bits)) * 0x1p-31f;
}

__device__ void fill_bytes(std::byte* to, int count, uint64_t seed, uint64_t idx) {
  for (int i = 0; i < count; ++i) {
    to[i] = static_cast<std::byte>(hash(seed, idx * 64 + i / 4) >> (8 * (i % 4)));
  }
}

__device__ void store_u16(std::byte* to, uint16_t bits) {
  to[0] = static_cast<std::byte>(bits & 255U);
  to[1] = static_cast<std::byte>(bits >> 8);
}

struct FillScales {
  float d;     // f16 scale of a block
  float dmin;  // f16 minimum
  uint8_t e;   // e8m0 scale
};

// One thread a block; a value of the plain types counts as a block.
__global__ void fill_weight_kernel(
    std::byte* to, DType dtype, int64_t to_row_bytes, int64_t num_rows, int64_t num_blocks,
    uint64_t seed, FillScales scales) {
  const int64_t idx = static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x;
  if (idx >= num_rows * num_blocks) return;
  const int64_t block = idx % num_blocks;
  std::byte* row = to + idx / num_blocks * to_row_bytes;
  // Scales vary by a quarter, so that a kernel that mixes them up is found out.
  const float factor = 1.0f + 0.25f * uniform(hash(~seed, static_cast<uint64_t>(idx)));
  const uint16_t d = f32_to_f16(scales.d * factor);
  const uint16_t dmin = f32_to_f16(scales.dmin * factor);
  const auto key = static_cast<uint64_t>(idx);
  switch (dtype) {
    case DType::kF32:
      reinterpret_cast<float*>(row)[block] = scales.d * uniform(hash(seed, key));
      break;
    case DType::kF16:
      reinterpret_cast<uint16_t*>(row)[block] = f32_to_f16(scales.d * uniform(hash(seed, key)));
      break;
    case DType::kBF16:
      reinterpret_cast<uint16_t*>(row)[block] = f32_to_bf16(scales.d * uniform(hash(seed, key)));
      break;
    case DType::kI32: reinterpret_cast<uint32_t*>(row)[block] = hash(seed, key); break;
    case DType::kQ8_0:
      fill_bytes(row + block * 32, 32, seed, key);
      store_u16(row + num_blocks * 32 + block * 2, d);
      break;
    case DType::kIQ2_XXS:
      fill_bytes(row + block * 64, 64, seed, key);
      store_u16(row + num_blocks * 64 + block * 2, d);
      break;
    case DType::kMXFP4:
      fill_bytes(row + block * 16, 16, seed, key);
      row[num_blocks * 16 + block] = static_cast<std::byte>(scales.e + (key & 1U));
      break;
    case DType::kQ2_K:
      fill_bytes(row + block * 64, 64, seed, key);
      fill_bytes(row + num_blocks * 64 + block * 16, 16, ~seed, key);
      store_u16(row + num_blocks * 80 + block * 4, d);
      store_u16(row + num_blocks * 80 + block * 4 + 2, dmin);
      break;
    case DType::kQ4_K: {
      auto* out = reinterpret_cast<BlockQ4K*>(row + block * 144);
      fill_bytes(reinterpret_cast<std::byte*>(out) + 4, 140, seed, key);
      out->d = d;
      out->dmin = dmin;
      break;
    }
    case DType::kQ6_K: {
      auto* out = reinterpret_cast<BlockQ6K*>(row + block * 210);
      fill_bytes(reinterpret_cast<std::byte*>(out), 208, seed, key);
      out->d = d;
      break;
    }
  }
}

__global__ void fill_vector_kernel(
    float* to, int64_t size, uint64_t seed, float mean, float width) {
  const int64_t idx = static_cast<int64_t>(blockIdx.x) * kNumThreads + threadIdx.x;
  if (idx < size) to[idx] = mean + width * uniform(hash(seed, static_cast<uint64_t>(idx)));
}

// The scale at which uniformly random codes have the given standard deviation.
FillScales scales_for(DType dtype, float deviation) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kI32: return {deviation * 1.732f, 0, 0};
    case DType::kQ8_0: return {deviation / 74, 0, 0};
    case DType::kIQ2_XXS: return {deviation / 48, 0, 0};
    case DType::kQ2_K: return {deviation / 15, deviation * 1.5f / 15, 0};
    case DType::kQ4_K: return {deviation / 260, deviation * 7.5f / 260, 0};
    case DType::kQ6_K: return {deviation / 1350, 0, 0};
    case DType::kMXFP4:
      return {0, 0, static_cast<uint8_t>(127 + std::lround(std::log2(deviation / 4)))};
  }
  TANDEM_UNREACHABLE();
}

unsigned ctas_for(int64_t count) {
  return static_cast<unsigned>((count + kNumThreads - 1) / kNumThreads);
}

}  // namespace

Status convert_weight(const std::byte* blocks, const WeightView& to, const Stream& stream) {
  const int64_t bytes = row_bytes(to.dtype, to.cols);
  if (to.layout == WeightLayout::kBlocks) {
    return to_status(
        cudaMemcpy2DAsync(
            const_cast<std::byte*>(to.data), static_cast<size_t>(to.row_bytes), blocks,
            static_cast<size_t>(bytes), static_cast<size_t>(bytes), static_cast<size_t>(to.rows),
            cudaMemcpyDeviceToDevice, stream.get()),
        "convert_weight");
  }
  const int64_t num_blocks = to.cols / block_values(to.dtype);
  if (to.dtype == DType::kIQ2_XXS) {
    to_iq2_words_kernel<<<ctas_for(to.rows * num_blocks), kNumThreads, 0, stream.get()>>>(
        blocks, const_cast<std::byte*>(to.data), to.row_bytes, to.rows, num_blocks);
    return to_status(cudaGetLastError(), "convert_weight");
  }
  to_planes_kernel<<<ctas_for(to.rows * num_blocks), kNumThreads, 0, stream.get()>>>(
      blocks, const_cast<std::byte*>(to.data), to.row_bytes, to.rows, num_blocks,
      block_bytes(to.dtype), plane_fields(to.dtype));
  return to_status(cudaGetLastError(), "convert_weight");
}

Status fill_random_weight(
    const WeightView& to, uint64_t seed, float deviation, const Stream& stream) {
  const int64_t num_blocks = to.cols / block_values(to.dtype);
  fill_weight_kernel<<<ctas_for(to.rows * num_blocks), kNumThreads, 0, stream.get()>>>(
      const_cast<std::byte*>(to.data), to.dtype, to.row_bytes, to.rows, num_blocks, seed,
      scales_for(to.dtype, deviation));
  return to_status(cudaGetLastError(), "fill_random_weight");
}

Status fill_random_vector(
    float* to, int64_t size, uint64_t seed, float mean, float deviation, const Stream& stream) {
  fill_vector_kernel<<<ctas_for(size), kNumThreads, 0, stream.get()>>>(
      to, size, seed, mean, deviation);
  return to_status(cudaGetLastError(), "fill_random_vector");
}

}  // namespace tandem::cuda
