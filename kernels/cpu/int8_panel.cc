#include "kernels/cpu/int8_panel.h"

#include <cstring>

#include "base/check.h"
#include "kernels/cpu/block_codes.h"

namespace tandem {
namespace cpu {
namespace {

/// Copies num_words words of one row into their places of a panel.
void scatter_words(const void* codes, int num_words, int row, uint8_t (*out)[kPanelRows][4]) {
  const auto* bytes = static_cast<const uint8_t*>(codes);
  for (int word = 0; word < num_words; ++word) std::memcpy(out[word][row], bytes + 4 * word, 4);
}

void pack_blocks32(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k, int zero,
    PanelBlock32* panel) {
  const int64_t bytes = block_bytes(dtype);
  BlockCodes32 block;
  for (int64_t b = 0; b < k / 32; ++b) {
    PanelBlock32& out = panel[b];
    for (int64_t r = 0; r < num_rows; ++r) {
      expand_codes(dtype, rows + r * row_bytes + b * bytes, block);
      uint8_t codes[32];
      for (int i = 0; i < 32; ++i) codes[i] = static_cast<uint8_t>(block.values[i] + zero);
      scatter_words(codes, 8, static_cast<int>(r), out.codes);
      out.d[r] = block.d;
    }
  }
}

template <int kGroups>
void pack_blocks256(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k,
    PanelBlock256<kGroups>* panel) {
  const int64_t bytes = block_bytes(dtype);
  const BlockTraits traits = block_traits(dtype);
  BlockCodes256 block;
  for (int64_t b = 0; b < k / 256; ++b) {
    PanelBlock256<kGroups>& out = panel[b];
    for (int64_t r = 0; r < num_rows; ++r) {
      expand_codes(dtype, rows + r * row_bytes + b * bytes, block);
      scatter_words(block.codes, 64, static_cast<int>(r), out.codes);
      for (int g = 0; g < kGroups; ++g) out.scales[g][r] = block.scales[g * (16 / kGroups)];
      for (int g = 0; g < 16; ++g) {
        const int bias = traits.has_mins ? block.mins[g] : traits.zero * block.scales[g];
        out.bias[g / 2][r][g % 2] = static_cast<int16_t>(bias);
      }
      out.d[r] = block.d;
      out.dmin[r] = block.dmin;
    }
  }
}

}  // namespace

void pack_panel(
    DType dtype, const std::byte* rows, int64_t row_bytes, int64_t num_rows, int64_t k, int q8_zero,
    std::byte* panel) {
  if (num_rows < kPanelRows) std::memset(panel, 0, static_cast<size_t>(panel_bytes(dtype, k)));
  const BlockTraits traits = block_traits(dtype);
  switch (traits.groups) {
    case 0:
      pack_blocks32(
          dtype, rows, row_bytes, num_rows, k, dtype == DType::kQ8_0 ? q8_zero : traits.zero,
          reinterpret_cast<PanelBlock32*>(panel));
      return;
    case 8:
      pack_blocks256(
          dtype, rows, row_bytes, num_rows, k, reinterpret_cast<PanelBlock256<8>*>(panel));
      return;
    case 16:
      pack_blocks256(
          dtype, rows, row_bytes, num_rows, k, reinterpret_cast<PanelBlock256<16>*>(panel));
      return;
    default: TANDEM_UNREACHABLE();
  }
}

}  // namespace cpu

int64_t panel_bytes(DType dtype, int64_t k) {
  switch (cpu::block_traits(dtype).groups) {
    case 0: return k / 32 * static_cast<int64_t>(sizeof(cpu::PanelBlock32));
    case 8: return k / 256 * static_cast<int64_t>(sizeof(cpu::PanelBlock256<8>));
    case 16: return k / 256 * static_cast<int64_t>(sizeof(cpu::PanelBlock256<16>));
    default: TANDEM_UNREACHABLE();
  }
}

}  // namespace tandem
