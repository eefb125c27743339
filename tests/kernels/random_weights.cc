#include "tests/kernels/random_weights.h"

#include <bit>
#include <cstring>

#include "kernels/formats/all_formats.h"
#include "kernels/kernel_table.h"
#include "kernels/scalar_types.h"

namespace trireme::kernels::check {
namespace {

void StoreBits(std::byte* target, uint16_t bits) { std::memcpy(target, &bits, sizeof(bits)); }

// Byte offsets of a block's half fields; -1: none, or not in one place.
struct HalfFields {
  WeightFormat format;
  int scale;
  int minimum;
};

constexpr HalfFields kHalfFields[kWeightFormatCount] = {
    {WeightFormat::kF32, -1, -1},       {WeightFormat::kF16, -1, -1},
    {WeightFormat::kBF16, -1, -1},      {WeightFormat::kQ8_0, 0, -1},
    {WeightFormat::kQ4_0, 0, -1},       {WeightFormat::kQ4_1, 0, 2},
    {WeightFormat::kQ5_0, 0, -1},       {WeightFormat::kQ5_1, 0, 2},
    {WeightFormat::kQ4_K, 0, 2},        {WeightFormat::kQ5_K, 0, 2},
    {WeightFormat::kQ6_K, 208, -1},     {WeightFormat::kQ2_K, 80, 82},
    {WeightFormat::kQ3_K, 108, -1},     {WeightFormat::kIQ4_NL, 0, -1},
    {WeightFormat::kIQ4_XS, 0, -1},     {WeightFormat::kIQ3_XXS, 0, -1},
    {WeightFormat::kIQ3_S, 0, -1},      {WeightFormat::kIQ2_XXS, 0, -1},
    {WeightFormat::kIQ2_XS, 0, -1},     {WeightFormat::kIQ2_S, 0, -1},
    {WeightFormat::kIQ1_S, 0, -1},      {WeightFormat::kIQ1_M, -1, -1},
    {WeightFormat::kTQ1_0, 52, -1},     {WeightFormat::kTQ2_0, 64, -1},
    {WeightFormat::kMXFP4, -1, -1},     {WeightFormat::kNVFP4, -1, -1},
    {WeightFormat::kF8_E4M3, -1, -1},   {WeightFormat::kF8_E5M2, -1, -1},
    {WeightFormat::kMXFP8, -1, -1},     {WeightFormat::kNF4, -1, -1},
    {WeightFormat::kFP4, -1, -1},       {WeightFormat::kNVFP4_MUL, -1, -1},
    {WeightFormat::kNVFP4_DIV, -1, -1},
};

static_assert(
    [] {
      for (int i = 0; i < kWeightFormatCount; ++i) {
        if (static_cast<int>(kHalfFields[i].format) != i) {
          return false;
        }
      }
      return true;
    }(),
    "kHalfFields is indexed by the enumeration");

// A half of random sign, denormal, or zero one time in four.
uint16_t TinyHalf(Random& random) {
  return random.Below(4) == 0 ? uint16_t{0} : static_cast<uint16_t>(random.Bits() & 0x83FF);
}

// The same of a float32; tiny ones make products that are denormal, or round to zero.
float TinyFloat(Random& random) {
  return random.Below(4) == 0
             ? 0.0F
             : std::bit_cast<float>(static_cast<uint32_t>(random.Bits() & 0x82FFFFFF));
}

bool HasFloatScale(WeightFormat format) {
  return VisitFormat(format, [](auto block) {
    using Block = decltype(block);
    if constexpr (HasGroups(InfoOf(Block::kFormat))) {
      return kernels::HasFloatScale(Block::kTraits);
    } else {
      return false;
    }
  });
}

// E4M3 scales of half groups, 1, ordinary or denormal.
void FillHalfGroupScales(Random& random, WeightFill fill, int count, std::byte* scales) {
  const bool is_tiny = fill == WeightFill::kTinyScales;
  for (int i = 0; i < count; ++i) {
    scales[i] =
        static_cast<std::byte>(fill == WeightFill::kExtremeCodes
                                   ? 0x38
                                   : random.Below(is_tiny ? 0x08 : 0x38) + (is_tiny ? 0 : 0x08));
  }
}

// Scales of ordinary size, near 1, or tiny.
void FillScales(Random& random, WeightFormat format, WeightFill fill, std::byte* block) {
  const HalfFields& fields = kHalfFields[static_cast<int>(format)];
  const bool is_one = fill == WeightFill::kExtremeCodes;
  const bool is_tiny = fill == WeightFill::kTinyScales;
  const uint16_t scale =
      is_tiny ? TinyHalf(random) : FloatToHalf(is_one ? 1.0F : random.Uniform(0.001F, 0.1F));
  if (fields.scale >= 0) {
    StoreBits(block + fields.scale, scale);
  }
  if (fields.minimum >= 0) {
    StoreBits(
        block + fields.minimum,
        is_tiny ? TinyHalf(random) : FloatToHalf(is_one ? -1.0F : random.Uniform(-0.5F, 0.5F)));
  }
  if (format == WeightFormat::kIQ1_M) {  // four bits of the half in the highest of each factor word
    for (int i = 0; i < 4; ++i) {
      const uint8_t rest = static_cast<uint8_t>(block[49 + 2 * i]) & 15;
      block[49 + 2 * i] = static_cast<std::byte>(rest | (scale >> (4 * i) & 15) << 4);
    }
  } else if (format == WeightFormat::kMXFP4 || format == WeightFormat::kMXFP8) {
    block[0] = static_cast<std::byte>(is_one ? 127 : (is_tiny ? 0 : 118) + random.Below(8));
  } else if (format == WeightFormat::kNVFP4) {
    FillHalfGroupScales(random, fill, 4, block);
  } else if (HasFloatScale(format)) {
    const float float_scale = is_tiny  ? TinyFloat(random)
                              : is_one ? 1.0F
                                       : random.Uniform(0.001F, 0.1F);
    std::memcpy(block, &float_scale, sizeof(float_scale));
    if (format == WeightFormat::kNVFP4_MUL || format == WeightFormat::kNVFP4_DIV) {
      FillHalfGroupScales(random, is_tiny ? WeightFill::kOrdinary : fill, 16, block + 4);
    }
  }
}

// Tiny numbers of BF16 lie on both sides of what counts as 0 in its own product.
void FillFloat(Random& random, WeightFormat format, WeightFill fill, std::byte* target) {
  const bool is_tiny = fill == WeightFill::kTinyScales && format == WeightFormat::kBF16;
  const float value = random.Normal() * (is_tiny ? kBFloat16WeightMin : 1);
  if (format == WeightFormat::kF32) {
    std::memcpy(target, &value, sizeof(value));
  } else {
    StoreBits(target, format == WeightFormat::kF16 ? FloatToHalf(value) : FloatToBFloat16(value));
  }
}

void FillBlock(Random& random, const WeightFormatInfo& info, WeightFill fill, std::byte* block) {
  if (!HasGroups(info) && fill != WeightFill::kAnyBits) {
    FillFloat(random, info.format, fill, block);
    return;
  }
  const std::byte extreme = random.Below(2) == 0 ? std::byte{0x00} : std::byte{0xFF};
  for (int i = 0; i < info.storage_bytes; ++i) {
    block[i] = static_cast<std::byte>(random.Bits());
    if (fill == WeightFill::kExtremeCodes) {
      // Signed bytes have their ends at 0x80 and 0x7F, E5M2 numbers at 0x7B and 0xFB.
      block[i] = extreme;
      if (info.format == WeightFormat::kQ8_0) {
        block[i] = extreme == std::byte{0} ? std::byte{0x80} : std::byte{0x7F};
      } else if (info.format == WeightFormat::kF8_E5M2) {
        block[i] = extreme == std::byte{0} ? std::byte{0x7B} : std::byte{0xFB};
      }
    }
  }
  if (fill == WeightFill::kAnyBits) {
    return;
  }
  for (int i = 4; info.format == WeightFormat::kF8_E5M2 && i < info.storage_bytes; ++i) {
    if ((block[i] & std::byte{0x7C}) == std::byte{0x7C}) {  // infinite or NaN
      block[i] ^= std::byte{0x40};
    }
  }
  FillScales(random, info.format, fill, block);
}

}  // namespace

StoredMatrix RandomMatrix(Random& random, WeightFormat format, int64_t rows, int64_t columns,
                          WeightFill fill) {
  const WeightFormatInfo& info = InfoOf(format);
  const int64_t blocks = (columns + info.storage_values - 1) / info.storage_values;
  StoredMatrix matrix;
  matrix.row_bytes = blocks * info.storage_bytes;
  matrix.bytes.resize(static_cast<size_t>(rows * matrix.row_bytes));
  for (int64_t i = 0; i < rows * blocks; ++i) {
    FillBlock(random, info, fill, matrix.bytes.data() + i * info.storage_bytes);
  }
  return matrix;
}

}  // namespace trireme::kernels::check
