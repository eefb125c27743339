#include "runtime/model/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

namespace trireme::model {
namespace {

using ::testing::ElementsAre;

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights;
};

Choice RouteRow(const spec::ExpertsSpec& experts, std::vector<float> logits,
                const std::vector<float>& correction = {}) {
  const auto used = static_cast<size_t>(experts.used);
  Choice choice = {std::vector<int32_t>(used), std::vector<float>(used)};
  std::vector<float> scratch(static_cast<size_t>(experts.count + experts.groups));
  Route(experts, absl::MakeSpan(logits), correction, absl::MakeSpan(scratch),
        absl::MakeSpan(choice.experts), absl::MakeSpan(choice.weights));
  return choice;
}

// The worked examples of specs/architectures.md 4, printed to 7 digits; float32 softmax over a few
// values errs by some units of 6e-8.
constexpr float kTolerance = 5e-7F;

TEST(RouterTest, SoftmaxOverAllRenormalisedOrNot) {
  spec::ExpertsSpec experts = {.count = 4, .used = 2, .hidden_dim = 1};
  Choice choice = RouteRow(experts, {1, 2, 0.5F, 1.5F});
  EXPECT_THAT(choice.experts, ElementsAre(1, 3));
  EXPECT_NEAR(choice.weights[0], 0.4550542F, kTolerance);
  EXPECT_NEAR(choice.weights[1], 0.2760043F, kTolerance);
  experts.renormalizes = true;
  choice = RouteRow(experts, {1, 2, 0.5F, 1.5F});
  EXPECT_NEAR(choice.weights[0], 0.6224593F, kTolerance);
  EXPECT_NEAR(choice.weights[1], 0.3775407F, kTolerance);
}

TEST(RouterTest, SoftmaxOverTheChosenIsTheRenormalisedOne) {
  const Choice choice =
      RouteRow({.count = 4, .used = 2, .hidden_dim = 1, .routing = spec::Routing::kSoftmaxChosen},
               {1, 2, 0.5F, 1.5F});
  EXPECT_THAT(choice.experts, ElementsAre(1, 3));
  EXPECT_NEAR(choice.weights[0], 0.6224593F, kTolerance);
  EXPECT_NEAR(choice.weights[1], 0.3775407F, kTolerance);
}

TEST(RouterTest, GroupsLimitTheChoiceAndCorrectionsDoNotWeigh) {
  const std::vector<float> logits = {0, 1, 2, -1, 0.5F, 0.4F, -2, 3};
  const std::vector<float> correction = {0.3F, 0, -0.2F, 0, 0.1F, 0.2F, 0, 0};
  spec::ExpertsSpec experts = {.count = 8,
                               .used = 2,
                               .hidden_dim = 1,
                               .routing = spec::Routing::kSigmoid,
                               .renormalizes = true,
                               .scale = 2.5,
                               .groups = 4,
                               .used_groups = 2,
                               .group_score = spec::GroupScore::kSumOfTwo};
  Choice choice = RouteRow(experts, logits, correction);
  EXPECT_THAT(choice.experts, ElementsAre(0, 5));
  EXPECT_NEAR(choice.weights[0], 1.137721F, 2e-6F);
  EXPECT_NEAR(choice.weights[1], 1.362279F, 2e-6F);
  // Without groups expert 7 wins: its score, 0.9526, is above all others.
  experts.groups = 1;
  experts.used_groups = 1;
  EXPECT_EQ(RouteRow(experts, logits, correction).experts[0], 7);
}

TEST(RouterTest, TheLowerIndexWinsAmongEquals) {
  EXPECT_THAT(RouteRow({.count = 4, .used = 3, .hidden_dim = 1}, {1, 5, 1, 5}).experts,
              ElementsAre(1, 3, 0));
}

// An expert that a token used twice would have more rows than there are tokens.
TEST(RouterTest, ExpertsOfARowDifferWhateverItsLogits) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const spec::Routing routing :
       {spec::Routing::kSoftmax, spec::Routing::kSigmoid, spec::Routing::kSoftmaxChosen}) {
    for (const int64_t groups : {1, 4}) {
      spec::ExpertsSpec experts = {
          .count = 8, .used = 4, .hidden_dim = 1, .routing = routing, .groups = groups};
      experts.used_groups = groups == 1 ? 1 : 2;
      for (const std::vector<float>& logits : std::vector<std::vector<float>>{
               std::vector<float>(8, kNaN),
               std::vector<float>(8, -kInfinity),
               std::vector<float>(8, kInfinity),
               {kNaN, 1, kNaN, 2, -kInfinity, -kInfinity, kInfinity, kNaN}}) {
        for (const std::vector<float>& correction :
             std::vector<std::vector<float>>{{}, std::vector<float>(8, -kInfinity)}) {
          const Choice choice = RouteRow(experts, logits, correction);
          EXPECT_EQ(std::set<int32_t>(choice.experts.begin(), choice.experts.end()).size(), 4u);
          EXPECT_THAT(choice.experts,
                      ::testing::Each(::testing::AllOf(::testing::Ge(0), ::testing::Lt(8))));
        }
      }
    }
  }
}

}  // namespace
}  // namespace trireme::model
