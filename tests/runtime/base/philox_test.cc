#include "runtime/base/philox.h"

#include "gtest/gtest.h"

namespace trireme {
namespace {

// The known answers that Random123, the authors' library, publishes for philox4x32, 10 rounds.
TEST(PhiloxTest, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox4x32({0, 0, 0, 0}, {0, 0}),
            (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, UniformCoversZeroToOneWithoutOne) {
  EXPECT_EQ(PhiloxUniform({0, 0, 0, 0}), 0.0);
  EXPECT_EQ(PhiloxUniform({0xffffffff, 0xffffffff, 0, 0}), 1.0 - 0x1p-53);
  EXPECT_EQ(PhiloxUniform({0, 0x80000000, 0, 0}), 0.5);
}

}  // namespace
}  // namespace trireme
