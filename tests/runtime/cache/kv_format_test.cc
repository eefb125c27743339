#include "runtime/cache/kv_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace trireme::cache {
namespace {

TEST(KvFormatTest, NamesLeadThereAndBack) {
  for (const char* name : {"f16", "f32", "bf16", "int8", "fp8", "int4"}) {
    const auto format = FindKvFormat(name);
    ASSERT_TRUE(format.ok()) << format.status();
    EXPECT_EQ(KvFormatName(*format), name);
  }
  EXPECT_EQ(*FindKvFormat("fp8"), kernels::KeyValueFormat::kE4M3);
}

TEST(KvFormatTest, AnUnknownNameIsAnsweredWithAllNames) {
  EXPECT_THAT(std::string(FindKvFormat("f8").status().message()),
              ::testing::HasSubstr("\"f8\"; it must be one of f16, f32, bf16, int8, fp8, int4"));
}

}  // namespace
}  // namespace trireme::cache
