#include "runtime/comm/agreement.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

// The answers of three ranks, which bring `facts_of(rank)`.
std::vector<absl::Status> Ask(const std::function<std::vector<Fact>(int)>& facts_of) {
  const std::vector<RankPlace> places = {{"n0", "a"}, {"n1", "b"}, {"n2", "c"}};
  std::vector<absl::Status> answers(3);
  auto group = MakeThreadCommunicators(3);
  EXPECT_TRUE(group.ok());
  RunOnThreads(*group, [&](Communicator& communicator) {
    answers[static_cast<size_t>(communicator.rank())] =
        CheckAgreement(communicator, places, facts_of(communicator.rank()));
  });
  return answers;
}

TEST(AgreementTest, EqualFactsAreFine) {
  for (const absl::Status& answer : Ask([](int) {
         return std::vector<Fact>{{"build", "1.0"}, {"model", "cafe"}, {"settings", ""}};
       })) {
    EXPECT_TRUE(answer.ok()) << answer;
  }
}

TEST(AgreementTest, EveryRankLearnsWhoDiffersAndHow) {
  for (const absl::Status& answer : Ask([](int rank) {
         return std::vector<Fact>{{"build", "1.0"}, {"model", rank == 2 ? "beef" : "cafe"}};
       })) {
    EXPECT_EQ(answer.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(answer.message(),
              "ranks disagree on model: rank=0 host=n0 has \"cafe\", rank=2 host=n2 has \"beef\"; "
              "start all ranks with the same program, model and settings");
  }
}

TEST(AgreementTest, OtherFactsAreADisagreementAndNotAHang) {
  for (const absl::Status& answer : Ask([](int rank) {
         return std::vector<Fact>(static_cast<size_t>(rank + 1), {"build", "1.0"});
       })) {
    EXPECT_EQ(answer.code(), absl::StatusCode::kFailedPrecondition) << answer;
  }
}

TEST(AgreementTest, AVeryLongValueIsNoError) {
  for (const absl::Status& answer : Ask([](int) {
         return std::vector<Fact>{{"settings", std::string(100'000, 'x')}};
       })) {
    EXPECT_TRUE(answer.ok()) << answer;
  }
}

}  // namespace
}  // namespace trireme::comm
