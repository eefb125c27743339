#include "runtime/balance/admission.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

class AdmissionTest : public ::testing::Test {
 protected:
  Admission::Waiting Push(RequestKey key, absl::string_view tenant,
                          Priority priority = Priority::kStandard,
                          absl::Time deadline = absl::InfiniteFuture()) {
    Admission::Waiting waiting = {.request = key,
                                  .tenant = admission_.Enter(tenant, 10, now_).value(),
                                  .priority = priority,
                                  .deadline = deadline};
    admission_.Push(&waiting);
    return waiting;
  }

  RequestKey Pop() {
    const Admission::Waiting next = *admission_.Next();
    admission_.Remove(next);
    admission_.Dispatched(next.tenant);
    admission_.Leave(next.tenant, 10, 10, now_);
    return next.request;
  }

  AdmissionOptions options_{.queued_requests_max = 4};
  Admission admission_{&options_};
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(AdmissionTest, GoesByBandThenServiceThenDeadlineThenArrival) {
  Push(1, "a", Priority::kBatch);
  Push(2, "a", Priority::kStandard, now_ + absl::Seconds(9));
  Push(3, "a", Priority::kStandard, now_ + absl::Seconds(5));
  const Admission::Waiting served = Push(4, "b");
  EXPECT_TRUE(admission_.full());
  admission_.Charge(served.tenant, 1);
  EXPECT_EQ(Pop(), 3u);
  EXPECT_EQ(Pop(), 2u);
  EXPECT_EQ(Pop(), 4u);
  EXPECT_EQ(Pop(), 1u);
  EXPECT_EQ(admission_.Next(), nullptr);
}

TEST_F(AdmissionTest, B12_AHigherBandShedsALowerOneAndNeverTheOtherWayRound) {
  Push(1, "a", Priority::kBatch);
  Push(2, "a", Priority::kBatch);
  Push(3, "a", Priority::kInteractive);
  const Admission::Waiting last = Push(4, "b", Priority::kInteractive);
  EXPECT_EQ(admission_.VictimFor(last.tenant, Priority::kStandard), RequestKey{2});
  EXPECT_EQ(admission_.VictimFor(last.tenant, Priority::kBatch), RequestKey{2});
  EXPECT_EQ(admission_.VictimFor(admission_.Enter("a", 1, now_).value(), Priority::kBatch),
            std::nullopt);
}

TEST_F(AdmissionTest, F9_ThePlaceOfAQuietTenantIsTakenFromTheFlood) {
  for (RequestKey key = 1; key <= 4; ++key) {
    Push(key, "flood");
  }
  EXPECT_EQ(admission_.VictimFor(admission_.Enter("quiet", 1, now_).value(), Priority::kStandard),
            RequestKey{4});
  EXPECT_EQ(admission_.VictimFor(admission_.Enter("flood", 1, now_).value(), Priority::kStandard),
            std::nullopt);
}

// B-10: both always have somebody waiting; after each service the counters differ by at most the
// largest service, and so do the tokens served.
TEST(AdmissionFairnessTest, B10_BackloggedTenantsAreServedAlike) {
  AdmissionOptions options;
  options.tenants["heavy"].weight = 2;
  Admission admission(&options);
  std::map<std::string, double> served;
  RequestKey key = 0;
  std::map<RequestKey, std::string> owner;
  const auto push = [&](const std::string& tenant) {
    Admission::Waiting waiting = {.request = ++key,
                                  .tenant = admission.Enter(tenant, 1, absl::UnixEpoch()).value()};
    admission.Push(&waiting);
    owner[key] = tenant;
  };
  for (int depth = 0; depth < 20; ++depth) {
    push("flood");
  }
  for (int depth = 0; depth < 2; ++depth) {  // never without somebody waiting
    push("steady");
    push("heavy");
  }
  for (int turn = 0; turn < 3000; ++turn) {
    const Admission::Waiting next = *admission.Next();
    admission.Remove(next);
    admission.Dispatched(next.tenant);
    const std::string tenant = owner[next.request];
    const double tokens = tenant == "flood" ? 70 : 30;
    admission.Charge(next.tenant, tokens);
    admission.Leave(next.tenant, 1, 1, absl::UnixEpoch());
    served[tenant] += tokens;
    push(tenant);
    EXPECT_LE(std::abs(served["flood"] - served["steady"]), 70);
    EXPECT_LE(std::abs(served["heavy"] / 2 - served["steady"]), 70);
  }
  EXPECT_GT(served["flood"], 10000);
}

TEST_F(AdmissionTest, B10_IdleTenantsHoardNoCredit) {
  const Admission::Waiting busy = Push(1, "busy");
  admission_.Charge(busy.tenant, 1000);
  const Admission::Waiting late = Push(2, "late");
  EXPECT_EQ(admission_.counter(late.tenant), 1000);
}

TEST_F(AdmissionTest, B11_WhoWaitsAsToldIsAdmitted) {
  options_.tenants["small"] = {.requests_per_second = 2, .concurrent_requests = 3};
  options_.tenants["tokens"] = {.tokens_per_second = 100};
  Admission admission(&options_);
  EXPECT_TRUE(admission.Enter("small", 5, now_).ok());
  EXPECT_TRUE(admission.Enter("small", 5, now_).ok());
  const absl::Status rate = admission.Enter("small", 5, now_).status();
  EXPECT_EQ(ReasonOf(rate), kReasonRate);
  now_ += RetryDelayOf(rate);
  EXPECT_TRUE(admission.Enter("small", 5, now_).ok());
  now_ += absl::Seconds(1);
  EXPECT_EQ(ReasonOf(admission.Enter("small", 5, now_).status()), kReasonConcurrency);

  Admission::Tenant* tenant = admission.Enter("tokens", 100, now_).value();
  const absl::Status tokens = admission.Enter("tokens", 50, now_).status();
  EXPECT_EQ(ReasonOf(tokens), kReasonTokens);
  EXPECT_TRUE(admission.Enter("tokens", 50, now_ + RetryDelayOf(tokens)).ok());
  admission.Leave(tenant, 100, 20, now_ + RetryDelayOf(tokens));  // 80 were not used
  EXPECT_TRUE(admission.Enter("tokens", 80, now_ + RetryDelayOf(tokens)).ok());
}

TEST(AdmissionMemoryTest, IdleTenantsAreForgotten) {
  const AdmissionOptions options;
  Admission admission(&options);
  for (int index = 0; index < 20000; ++index) {
    Admission::Tenant* tenant =
        admission.Enter(absl::StrCat("tenant", index), 1, absl::UnixEpoch()).value();
    admission.Leave(tenant, 1, 1, absl::UnixEpoch());
  }
  EXPECT_LE(admission.tenants(), Admission::kTenantsMax);
}

}  // namespace
}  // namespace trireme::balance
