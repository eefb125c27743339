// The list of weight formats: one line a format. Everything else about a format (storage struct,
// Value, decoder) is in its own header in this folder; loops over formats go through this list,
// never through a switch of their own.
#ifndef TRIREME_KERNELS_FORMATS_WEIGHT_FORMAT_H_
#define TRIREME_KERNELS_FORMATS_WEIGHT_FORMAT_H_

#include <cstdint>

namespace trireme::kernels {

enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ2_K,
  kQ3_K,
  kIQ4_NL,
  kIQ4_XS,
  kIQ3_XXS,
  kIQ3_S,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ1_S,
  kIQ1_M,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
};
inline constexpr int kWeightFormatCount = 26;

struct WeightFormatInfo {
  WeightFormat format;
  const char* name;    // as in GGUF: "Q4_K"
  int storage_values;  // values in one storage block of a file: 1, 32, 64 or 256 (a superblock)
  int storage_bytes;   // bytes of that block
  bool is_quantized;   // multiplied as integers with quantised activations, unless float32
                       // activations are asked for
};

inline constexpr WeightFormatInfo kWeightFormats[kWeightFormatCount] = {
    {WeightFormat::kF32, "F32", 1, 4, false},
    {WeightFormat::kF16, "F16", 1, 2, false},
    {WeightFormat::kBF16, "BF16", 1, 2, false},
    {WeightFormat::kQ8_0, "Q8_0", 32, 34, true},
    {WeightFormat::kQ4_0, "Q4_0", 32, 18, true},
    {WeightFormat::kQ4_1, "Q4_1", 32, 20, true},
    {WeightFormat::kQ5_0, "Q5_0", 32, 22, true},
    {WeightFormat::kQ5_1, "Q5_1", 32, 24, true},
    {WeightFormat::kQ4_K, "Q4_K", 256, 144, true},
    {WeightFormat::kQ5_K, "Q5_K", 256, 176, true},
    {WeightFormat::kQ6_K, "Q6_K", 256, 210, true},
    {WeightFormat::kQ2_K, "Q2_K", 256, 84, true},
    {WeightFormat::kQ3_K, "Q3_K", 256, 110, true},
    {WeightFormat::kIQ4_NL, "IQ4_NL", 32, 18, true},
    {WeightFormat::kIQ4_XS, "IQ4_XS", 256, 136, true},
    {WeightFormat::kIQ3_XXS, "IQ3_XXS", 256, 98, true},
    {WeightFormat::kIQ3_S, "IQ3_S", 256, 110, true},
    {WeightFormat::kIQ2_XXS, "IQ2_XXS", 256, 66, true},
    {WeightFormat::kIQ2_XS, "IQ2_XS", 256, 74, true},
    {WeightFormat::kIQ2_S, "IQ2_S", 256, 82, true},
    {WeightFormat::kIQ1_S, "IQ1_S", 256, 50, true},
    {WeightFormat::kIQ1_M, "IQ1_M", 256, 56, true},
    {WeightFormat::kTQ1_0, "TQ1_0", 256, 54, true},
    {WeightFormat::kTQ2_0, "TQ2_0", 256, 66, true},
    {WeightFormat::kMXFP4, "MXFP4", 32, 17, true},
    {WeightFormat::kNVFP4, "NVFP4", 64, 36, true},
};

constexpr const WeightFormatInfo& InfoOf(WeightFormat format) {
  return kWeightFormats[static_cast<int>(format)];
}

static_assert(
    [] {
      for (int i = 0; i < kWeightFormatCount; ++i) {
        if (static_cast<int>(kWeightFormats[i].format) != i) {
          return false;
        }
      }
      return true;
    }(),
    "kWeightFormats is indexed by the enumeration");

}  // namespace trireme::kernels

#endif  // TRIREME_KERNELS_FORMATS_WEIGHT_FORMAT_H_
