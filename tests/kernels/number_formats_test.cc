// Formats of floating point numbers in groups, by the definitions of their numbers in double
// precision: OCP 8-bit Floating Point Specification 1.0 (E4M3, E5M2), OCP Microscaling 1.0 (E2M1,
// E8M0), the tables of bitsandbytes (NF4, FP4).
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/formats/all_formats.h"
#include "kernels/formats/decode.h"
#include "kernels/kernel_table.h"
#include "tests/kernels/check_harness.h"

namespace trireme::kernels {
namespace {

// Sign, exponent, mantissa; subnormal below exponent 1.
double FloatOf(int code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = code >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = code & ((1 << mantissa_bits) - 1);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                    : std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
  return code >> (exponent_bits + mantissa_bits) & 1 ? -magnitude : magnitude;
}

bool IsNumber(NumberKind kind, int code) {
  return kind == NumberKind::kE4M3   ? (code & 0x7F) != 0x7F
         : kind == NumberKind::kE5M2 ? (code & 0x7C) != 0x7C
                                     : true;
}

// One row of a block whose codes are all there are, or repeat.
template <typename Block>
Block BlockOf(float scale) {
  Block block;
  std::memset(&block, 0, sizeof(block));
  if constexpr (Block::kTraits.code_bits == 8) {
    for (int i = 0; i < InfoOf(Block::kFormat).storage_values; ++i) {
      block.codes[i] = static_cast<uint8_t>(2 * i + 1);
    }
  } else {
    for (int i = 0; i < InfoOf(Block::kFormat).storage_values; ++i) {
      uint8_t& byte = block.nibbles[i / 32][i % 16];
      byte = static_cast<uint8_t>(byte | (i * 7 + i / 16) % 16 << (i % 32 < 16 ? 0 : 4));
    }
  }
  if constexpr (HasHalfGroups(Block::kTraits)) {
    block.tensor_scale = scale;
    for (int run = 0; run < 16; ++run) {
      block.scales[run] = static_cast<uint8_t>(7 * run + 1);
    }
  } else if constexpr (HasFloatScale(Block::kTraits)) {
    block.scale = scale;
  }
  return block;
}

// number * scale in double is exact (at most 24 + 24 bits), so its float is rounded once.
template <typename Block, typename NumberOf>
void ExpectRoundedProducts(const Block& block, double scale, const NumberOf& number_of) {
  std::vector<float> values(InfoOf(Block::kFormat).storage_values);
  DecodeRow(Block::kFormat, reinterpret_cast<const std::byte*>(&block), 0,
            static_cast<int64_t>(values.size()), values.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const WeightGroup group = block.Group(static_cast<int>(i / 32));
    const uint8_t code = group.codes[i % 32];
    if (IsNumber(Block::kTraits.numbers, code)) {
      EXPECT_EQ(values[i], static_cast<float>(number_of(code) * scale)) << i;
    }
  }
}

TEST(NumberFormats, EightBitNumbersTimesTheScaleAreRoundedOnce) {
  constexpr float kScale = 0.0123456789F;
  ExpectRoundedProducts(BlockOf<WeightF8_E4M3>(kScale), double{kScale},
                        [](int code) { return FloatOf(code, 4, 3); });
  ExpectRoundedProducts(BlockOf<WeightF8_E5M2>(kScale), double{kScale},
                        [](int code) { return FloatOf(code, 5, 2); });
}

TEST(NumberFormats, ExponentsOfMxfp8ArePowersOfTwo) {
  WeightMXFP8 block = BlockOf<WeightMXFP8>(0);
  for (const int exponent : {0, 1, 2, 100, 127, 200}) {
    block.exponent = static_cast<uint8_t>(exponent);
    ExpectRoundedProducts(block, std::ldexp(1.0, exponent - 127),
                          [](int code) { return FloatOf(code, 4, 3); });
  }
}

TEST(NumberFormats, FourBitCodesAreTheNumbersOfBitsandbytes) {
  // Of specs/hf-quants.md: FP4 in twelfths.
  constexpr double kTwelfths[8] = {0, 0.0625, 8, 12, 4, 6, 2, 3};
  constexpr float kScale = 1.7F;
  ExpectRoundedProducts(BlockOf<WeightFP4>(kScale), double{kScale}, [&](int code) {
    const double magnitude = static_cast<float>(kTwelfths[code % 8] / 12);
    return code < 8 ? magnitude : -magnitude;
  });
  const NumberTable nf4 = NumbersOf(NumberKind::kNF4);
  ExpectRoundedProducts(BlockOf<WeightNF4>(kScale), double{kScale},
                        [&](int code) { return double{nf4.numbers[code]}; });
  // Codes 1 and 9 by their printed values, the ends and zero by definition.
  EXPECT_EQ(nf4.numbers[0], -1.0F);
  EXPECT_EQ(nf4.numbers[1], -0.6961928009986877F);
  EXPECT_EQ(nf4.numbers[7], 0.0F);
  EXPECT_EQ(nf4.numbers[9], 0.16093020141124725F);
  EXPECT_EQ(nf4.numbers[15], 1.0F);
}

template <typename Block>
void ExpectTwoRoundings(const Block& block, float (*combine)(float scale, float tensor_scale)) {
  for (int i = 0; i < 256; ++i) {
    const auto scale = static_cast<float>(FloatOf(block.scales[i / 16], 4, 3));
    const double product =
        FloatOf(block.Code(i), 2, 1) * double{combine(scale, block.tensor_scale)};
    EXPECT_EQ(block.Value(i), static_cast<float>(product)) << i;
  }
}

TEST(NumberFormats, BothLevelsOfNvfp4AreRoundedBeforeTheNumber) {
  ExpectTwoRoundings(BlockOf<WeightNVFP4_MUL>(0.0123456789F),
                     [](float a, float b) { return a * b; });
  ExpectTwoRoundings(BlockOf<WeightNVFP4_DIV>(765.4321F), [](float a, float b) { return a / b; });
}

// Every code, through every table's own layout.
TEST(NumberFormats, EveryTableReturnsThePackedBlocksToTheBit) {
  const auto check = [](auto block) {
    using Block = decltype(block);
    const WeightFormatInfo& info = InfoOf(Block::kFormat);
    const int64_t columns = info.storage_values;
    std::vector<float> wanted(static_cast<size_t>(columns));
    const auto* bytes = reinterpret_cast<const std::byte*>(&block);
    DecodeRow(info.format, bytes, 0, columns, wanted.data());
    const SliceShape shape{info.format, 1, columns, 0};
    const int32_t row = 0;
    check::TestExecution execution(1, 64);
    const KernelTableList list = RunnableKernelTables();
    for (int i = 0; i < list.count; ++i) {
      const KernelTable& table = *list.tables[i];
      check::GuardedBytes packed(table.packed_bytes(shape));
      table.pack({shape, bytes, info.storage_bytes, packed.data()});
      std::vector<float> found(static_cast<size_t>(columns));
      table.embedding(execution.get(), {{shape, 0, packed.data()}, 0, &row, 1, found.data()});
      for (size_t k = 0; k < found.size(); ++k) {
        EXPECT_TRUE(std::memcmp(&found[k], &wanted[k], sizeof(float)) == 0 ||
                    (std::isnan(found[k]) && std::isnan(wanted[k])))
            << table.name << " " << info.name << " " << k;
      }
      EXPECT_TRUE(packed.GuardsAreIntact()) << table.name;
    }
  };
  check(BlockOf<WeightF8_E4M3>(0.3F));
  check(BlockOf<WeightF8_E5M2>(0.3F));
  check(BlockOf<WeightMXFP8>(0));
  check(BlockOf<WeightNF4>(0.3F));
  check(BlockOf<WeightFP4>(0.3F));
  check(BlockOf<WeightNVFP4_MUL>(0.3F));
  check(BlockOf<WeightNVFP4_DIV>(0.3F));
}

}  // namespace
}  // namespace trireme::kernels
