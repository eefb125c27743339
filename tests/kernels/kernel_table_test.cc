#include "kernels/kernel_table.h"

#include <cstring>

#include "gtest/gtest.h"
#include "kernels/cpu/cpu_features.h"

namespace trireme::kernels {
namespace {

TEST(KernelTable, ReferenceIsAlwaysThereAndLast) {
  const KernelTableList list = RunnableKernelTables();
  ASSERT_GE(list.count, 1);
  EXPECT_STREQ(list.tables[list.count - 1]->name, "reference");
}

TEST(KernelTable, PortableIsThereOnEveryMachineBeforeReference) {
  const KernelTableList list = RunnableKernelTables();
  ASSERT_GE(list.count, 2);
  EXPECT_STREQ(list.tables[list.count - 2]->name, "portable");
}

TEST(KernelTable, TheEmptyNameFindsTheBest) {
  EXPECT_EQ(FindKernelTable(""), RunnableKernelTables().tables[0]);
  EXPECT_EQ(FindKernelTable(nullptr), RunnableKernelTables().tables[0]);
}

TEST(KernelTable, EveryTableIsFoundByName) {
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    EXPECT_EQ(FindKernelTable(list.tables[i]->name), list.tables[i]);
  }
}

TEST(KernelTable, AnUnknownNameFindsNothing) {
  EXPECT_EQ(FindKernelTable("avx9000"), nullptr);
  EXPECT_EQ(FindKernelTable("reference "), nullptr);
}

TEST(KernelTable, EveryEntryIsFilled) {
  const KernelTableList list = RunnableKernelTables();
  for (int i = 0; i < list.count; ++i) {
    const KernelTable& table = *list.tables[i];
    EXPECT_NE(table.packed_bytes, nullptr) << table.name;
    EXPECT_NE(table.quantized_bytes, nullptr) << table.name;
    EXPECT_NE(table.rounded_bytes, nullptr) << table.name;
    EXPECT_NE(table.shared_scratch_bytes, nullptr) << table.name;
    EXPECT_NE(table.pack, nullptr) << table.name;
    EXPECT_NE(table.quantize, nullptr) << table.name;
    EXPECT_NE(table.round, nullptr) << table.name;
    EXPECT_NE(table.matmul, nullptr) << table.name;
    EXPECT_NE(table.embedding, nullptr) << table.name;
    EXPECT_NE(table.rms_norm, nullptr) << table.name;
    EXPECT_NE(table.gated_activation, nullptr) << table.name;
    EXPECT_NE(table.add, nullptr) << table.name;
    EXPECT_NE(table.rope_and_store, nullptr) << table.name;
    EXPECT_NE(table.attention, nullptr) << table.name;
    EXPECT_NE(table.argmax, nullptr) << table.name;
  }
}

TEST(KernelTable, OnlyTablesThatTheProcessorRunsAreListed) {
  const cpu::CpuFeatures features = cpu::DetectCpuFeatures();
  EXPECT_EQ(FindKernelTable("avx2") != nullptr, features.has_avx2);
  EXPECT_EQ(FindKernelTable("avx512") != nullptr, features.has_avx512);
  EXPECT_EQ(FindKernelTable("avx512bf16") != nullptr, features.has_avx512_bf16);
  EXPECT_EQ(FindKernelTable("neon") != nullptr, features.has_neon_dot);
  EXPECT_TRUE(features.has_amx || FindKernelTable("amx") == nullptr);
}

TEST(KernelTable, AMissingTableHasAReason) {
  const bool is_missing = cpu::DetectCpuFeatures().has_amx && FindKernelTable("amx") == nullptr;
  EXPECT_EQ(std::strlen(RunnableKernelTables().missing) > 0, is_missing);
}

// Only the table that has a use for it asks for room behind the rows of activations.
TEST(KernelTable, TilesOfActivationsNeedRoomForManyTokensOnly) {
  const KernelTable* const amx = FindKernelTable("amx");
  if (amx == nullptr) {
    GTEST_SKIP() << "AMX not run";
  }
  const KernelTable& avx512 = *FindKernelTable("avx512");
  EXPECT_EQ(amx->quantized_bytes(8, 64), avx512.quantized_bytes(8, 64));
  // 33 tokens are three tiles of two groups, each 1024 bytes and four vectors of 64.
  EXPECT_EQ(amx->quantized_bytes(33, 64), avx512.quantized_bytes(33, 64) + 3 * 2 * 1280);
}

}  // namespace
}  // namespace trireme::kernels
