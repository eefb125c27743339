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
  kF8_E4M3,
  kF8_E5M2,
  kMXFP8,
  kNF4,
  kFP4,
  kNVFP4_MUL,
  kNVFP4_DIV,
};
inline constexpr int kWeightFormatCount = 33;

struct WeightFormatInfo {
  WeightFormat format;
  const char* name;    // as in GGUF: "Q4_K"; of formats that no file has, as publishers say
  int storage_values;  // values in one storage block of a file: 1, 32, 64, 128 or 256
  int storage_bytes;   // bytes of that block
  bool is_quantized;   // multiplied as integers
  bool is_in_files;    // else blocks of it are made when a published matrix is loaded
};

// What weights multiply, unless float32 activations are asked for.
enum class ActivationKind : uint8_t {
  kFloat32,
  kBFloat16,
  kInt8,  // in groups of 32 with scales
};
inline constexpr int kActivationKindCount = 3;
constexpr ActivationKind ActivationKindOf(const WeightFormatInfo& info) {
  return info.is_quantized                    ? ActivationKind::kInt8
         : info.format == WeightFormat::kBF16 ? ActivationKind::kBFloat16
                                              : ActivationKind::kFloat32;
}

// Whether weights come in groups of 32 columns, with scales.
constexpr bool HasGroups(const WeightFormatInfo& info) { return info.storage_values > 1; }

inline constexpr WeightFormatInfo kWeightFormats[kWeightFormatCount] = {
    {WeightFormat::kF32, "F32", 1, 4, false, true},
    {WeightFormat::kF16, "F16", 1, 2, false, true},
    {WeightFormat::kBF16, "BF16", 1, 2, false, true},
    {WeightFormat::kQ8_0, "Q8_0", 32, 34, true, true},
    {WeightFormat::kQ4_0, "Q4_0", 32, 18, true, true},
    {WeightFormat::kQ4_1, "Q4_1", 32, 20, true, true},
    {WeightFormat::kQ5_0, "Q5_0", 32, 22, true, true},
    {WeightFormat::kQ5_1, "Q5_1", 32, 24, true, true},
    {WeightFormat::kQ4_K, "Q4_K", 256, 144, true, true},
    {WeightFormat::kQ5_K, "Q5_K", 256, 176, true, true},
    {WeightFormat::kQ6_K, "Q6_K", 256, 210, true, true},
    {WeightFormat::kQ2_K, "Q2_K", 256, 84, true, true},
    {WeightFormat::kQ3_K, "Q3_K", 256, 110, true, true},
    {WeightFormat::kIQ4_NL, "IQ4_NL", 32, 18, true, true},
    {WeightFormat::kIQ4_XS, "IQ4_XS", 256, 136, true, true},
    {WeightFormat::kIQ3_XXS, "IQ3_XXS", 256, 98, true, true},
    {WeightFormat::kIQ3_S, "IQ3_S", 256, 110, true, true},
    {WeightFormat::kIQ2_XXS, "IQ2_XXS", 256, 66, true, true},
    {WeightFormat::kIQ2_XS, "IQ2_XS", 256, 74, true, true},
    {WeightFormat::kIQ2_S, "IQ2_S", 256, 82, true, true},
    {WeightFormat::kIQ1_S, "IQ1_S", 256, 50, true, true},
    {WeightFormat::kIQ1_M, "IQ1_M", 256, 56, true, true},
    {WeightFormat::kTQ1_0, "TQ1_0", 256, 54, true, true},
    {WeightFormat::kTQ2_0, "TQ2_0", 256, 66, true, true},
    {WeightFormat::kMXFP4, "MXFP4", 32, 17, true, true},
    {WeightFormat::kNVFP4, "NVFP4", 64, 36, true, true},
    {WeightFormat::kF8_E4M3, "F8_E4M3", 128, 132, false, false},
    {WeightFormat::kF8_E5M2, "F8_E5M2", 128, 132, false, false},
    {WeightFormat::kMXFP8, "MXFP8", 32, 33, false, false},
    {WeightFormat::kNF4, "NF4", 64, 36, false, false},
    {WeightFormat::kFP4, "FP4", 64, 36, false, false},
    {WeightFormat::kNVFP4_MUL, "NVFP4_MUL", 256, 148, false, false},
    {WeightFormat::kNVFP4_DIV, "NVFP4_DIV", 256, 148, false, false},
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
