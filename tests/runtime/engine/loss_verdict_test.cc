#include "runtime/engine/loss_verdict.h"

#include <gtest/gtest.h>

#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace trireme::engine {
namespace {

const absl::Status kSymptom = absl::UnavailableError("rank 2 is lost: connection reset");
const absl::Status kCulprit = absl::UnavailableError("rank=2 host=n1 step=7: its process ended");

TEST(LossVerdictTest, TheFirstWordOfTheLinkStays) {
  LossVerdict verdict;
  EXPECT_TRUE(verdict.Get().ok());
  verdict.Set(kCulprit);
  verdict.Set(absl::UnavailableError("rank=3 host=n1 step=7: its process ended"));
  EXPECT_EQ(verdict.Get(), kCulprit);
}

TEST(LossVerdictTest, ASymptomIsReplacedByAVerdictThatStands) {
  LossVerdict verdict;
  verdict.Set(kCulprit);
  EXPECT_EQ(verdict.Explain(kSymptom, absl::ZeroDuration()), kCulprit);
}

TEST(LossVerdictTest, ASymptomWaitsForAVerdictThatComesLater) {
  LossVerdict verdict;
  std::thread link([&verdict] { verdict.Set(kCulprit); });
  EXPECT_EQ(verdict.Explain(kSymptom, absl::InfiniteDuration()), kCulprit);
  link.join();
}

TEST(LossVerdictTest, ASymptomStandsWhenTheLinkKeepsSilent) {
  const LossVerdict verdict;
  EXPECT_EQ(verdict.Explain(kSymptom, absl::Milliseconds(1)), kSymptom);
}

TEST(LossVerdictTest, AnOrderedEndIsNoSymptom) {
  LossVerdict verdict;
  EXPECT_TRUE(verdict.Explain(absl::OkStatus(), absl::InfiniteDuration()).ok());
  const absl::Status end = absl::CancelledError("the replica ends");
  EXPECT_EQ(verdict.Explain(end, absl::InfiniteDuration()), end);
  verdict.Set(kCulprit);
  EXPECT_EQ(verdict.Explain(end, absl::InfiniteDuration()), end);
}

}  // namespace
}  // namespace trireme::engine
