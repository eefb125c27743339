#include "runtime/comm/abort_state.h"

#include <gtest/gtest.h>

namespace trireme::comm {
namespace {

TEST(AbortStateTest, KeepsTheFirstReason) {
  AbortState state;
  EXPECT_FALSE(state.IsSet());
  EXPECT_TRUE(state.Get().ok());
  EXPECT_TRUE(state.Set(absl::UnavailableError("first")));
  EXPECT_FALSE(state.Set(absl::InternalError("second")));
  EXPECT_TRUE(state.IsSet());
  EXPECT_EQ(state.Get(), absl::UnavailableError("first"));
}

}  // namespace
}  // namespace trireme::comm
