#include "runtime/balance/quarantine.h"

#include <gtest/gtest.h>

namespace trireme::balance {
namespace {

TEST(QuarantineTest, HoldsAPromptUntilItsTime) {
  Quarantine quarantine;
  const absl::Time now = absl::UnixEpoch();
  quarantine.Add(7, now + absl::Minutes(10));
  EXPECT_TRUE(quarantine.Holds(7, now + absl::Minutes(10) - absl::Nanoseconds(1)));
  EXPECT_FALSE(quarantine.Holds(8, now));
  EXPECT_FALSE(quarantine.Holds(7, now + absl::Minutes(10)));
  EXPECT_EQ(quarantine.size(), 0u);
}

TEST(QuarantineTest, IsBoundedAndDropsTheOneThatEndsFirst) {
  Quarantine quarantine;
  const absl::Time now = absl::UnixEpoch();
  for (size_t prompt = 0; prompt <= Quarantine::kPromptsMax; ++prompt) {
    quarantine.Add(prompt, now + absl::Seconds(static_cast<int64_t>(prompt) + 1));
  }
  EXPECT_EQ(quarantine.size(), Quarantine::kPromptsMax);
  EXPECT_FALSE(quarantine.Holds(0, now));
  EXPECT_TRUE(quarantine.Holds(1, now));
}

TEST(SuspicionTest, TwoDeathsAtWorkAreEnoughAndOneIsNot) {
  Suspicion suspicion;
  EXPECT_TRUE(suspicion.NoteDeath({.replica = 1, .epoch = 5}, /*at_work=*/true));
  EXPECT_FALSE(suspicion.NoteDeath({.replica = 1, .epoch = 5}, /*at_work=*/true));
  EXPECT_FALSE(suspicion.IsPoison());
  EXPECT_TRUE(suspicion.NoteDeath({.replica = 2, .epoch = 5, .tokens = 3}, /*at_work=*/true));
  EXPECT_TRUE(suspicion.IsPoison());
}

TEST(SuspicionTest, EnoughTokensBetweenTwoDeathsClearIt) {
  Suspicion suspicion;
  suspicion.NoteDeath({.replica = 1, .epoch = 5, .tokens = 10}, /*at_work=*/true);
  suspicion.NoteDeath({.replica = 2, .epoch = 5, .tokens = 14}, /*at_work=*/true);
  EXPECT_FALSE(suspicion.IsPoison());
  suspicion.NoteDeath({.replica = 1, .epoch = 6, .tokens = 17}, /*at_work=*/true);
  EXPECT_TRUE(suspicion.IsPoison());
}

TEST(SuspicionTest, WhoOnlyWaitedNeedsFour) {
  Suspicion suspicion;
  for (uint64_t epoch = 1; epoch <= 3; ++epoch) {
    suspicion.NoteDeath({.replica = 1, .epoch = epoch}, /*at_work=*/false);
    EXPECT_FALSE(suspicion.IsPoison());
  }
  suspicion.NoteDeath({.replica = 1, .epoch = 4}, /*at_work=*/false);
  EXPECT_TRUE(suspicion.IsPoison());
}

TEST(SuspicionTest, ALostConnectionIsForgivenOnce) {
  Suspicion suspicion;
  suspicion.NoteDeath({.replica = 1, .epoch = 5}, /*at_work=*/true);
  suspicion.ForgiveLast();
  suspicion.ForgiveLast();
  suspicion.NoteDeath({.replica = 2, .epoch = 5}, /*at_work=*/true);
  EXPECT_FALSE(suspicion.IsPoison());
  suspicion.NoteDeath({.replica = 1, .epoch = 6}, /*at_work=*/true);
  EXPECT_TRUE(suspicion.IsPoison());
}

}  // namespace
}  // namespace trireme::balance
