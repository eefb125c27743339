// Scenarios of a whole site, named after the rows of the fault list, and proof that the checks find
// what is wrong: five bugs are planted, and each is found.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/simulation/site.h"

namespace trireme::simulation {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

// The value below which the share lies.
double Percentile(std::vector<double> values, double share) {
  if (values.empty()) {
    return 0;
  }
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(values.size())))];
}

SiteSettings Quiet(uint64_t seed) {
  SiteSettings settings;
  settings.seed = seed;
  settings.faults = std::vector<Fault>{};
  settings.odd_requests = false;
  settings.equal_replicas = true;
  return settings;
}

// ---- The checks find bugs
// ------------------------------------------------------------------------

class PlantedBugTest : public ::testing::TestWithParam<std::pair<Plant, const char*>> {};

TEST_P(PlantedBugTest, IsFoundAndItsSeedRepeatsIt) {
  const auto& [plant, wanted] = GetParam();
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SiteSettings settings;
    settings.seed = seed;
    settings.plant = plant;
    const std::string violation = Site(settings).Run();
    if (violation.find(wanted) == std::string::npos) {
      continue;  // nothing, or an effect farther away
    }
    EXPECT_EQ(Site(settings).Run(), violation);
    settings.plant = Plant::kNone;
    EXPECT_EQ(Site(settings).Run(), "");
    std::printf("found by seed %d: %s\n", static_cast<int>(seed), violation.c_str());
    return;
  }
  ADD_FAILURE() << "200 seeds did not find it";
}

INSTANTIATE_TEST_SUITE_P(Planted, PlantedBugTest,
                         ::testing::Values(std::make_pair(Plant::kLostToken, "got position"),
                                           std::make_pair(Plant::kDoubleSend, "got position"),
                                           std::make_pair(Plant::kSlotLeak, "sequences for"),
                                           std::make_pair(Plant::kMissedFencing, "of attempt"),
                                           std::make_pair(Plant::kUnfairQueue,
                                                          "while both waited")));

TEST(SimulationTest, ASeedTellsEverything) {
  SiteSettings settings;
  settings.seed = 77;
  Site first(settings);
  Site second(settings);
  EXPECT_EQ(first.Run(), "");
  EXPECT_EQ(second.Run(), "");
  EXPECT_EQ(first.world.events(), second.world.events());
  EXPECT_EQ(first.world.now(), second.world.now());
}

// ---- Rows
// ----------------------------------------------------------------------------------------

TEST(SimulationTest, F8_ReplicasDieEveryFiveSecondsAndNoRequestFails) {
  SiteSettings settings = Quiet(8);
  settings.replicas = 3;
  settings.requests_per_second = 12;
  settings.load_time = absl::Minutes(2);
  Site site(settings);
  for (int second = 5; second < 115; second += 5) {
    site.At(absl::Seconds(second), [&site] {
      site.replicas[site.world.random.Below(site.replicas.size())]->KillRank(
          static_cast<int>(site.world.random.Below(2)));
    });
  }
  EXPECT_EQ(site.Run(), "");
  EXPECT_GE(static_cast<double>(site.finished()), 0.99 * static_cast<double>(site.clients.size()));
  EXPECT_GT(site.clients.size(), 500u);
}

TEST(SimulationTest, F10_BalancersDieAndTheirClientsGoOnAtTheOther) {
  SiteSettings settings = Quiet(10);
  settings.requests_per_second = 15;
  settings.no_failures = true;
  Site site(settings);
  for (int second = 3; second < 11; second += 2) {
    site.At(absl::Seconds(second), [&site, second] {
      site.balancers[static_cast<size_t>(second / 2 % 2)]->Kill(absl::Milliseconds(700));
    });
  }
  EXPECT_EQ(site.Run(), "");  // replicas drop the orphans: checked at the end of every run
  EXPECT_EQ(site.failed(), 0);
}

TEST(SimulationTest, F13_ANewReplicaRampsUpAndAnswersAsFastAsThePool) {
  SiteSettings settings = Quiet(13);
  settings.replicas = 4;
  settings.requests_per_second = 28;
  settings.load_time = absl::Seconds(40);
  Site site(settings);
  SimulatedReplica* newcomer = site.replicas[3].get();
  newcomer->set_restart_delay(absl::Seconds(15));
  site.At(absl::Seconds(2), [newcomer] { newcomer->KillNow(); });
  absl::Time joined = absl::InfiniteFuture();
  for (int tick = 0; tick < 400; ++tick) {
    site.At(absl::Seconds(5) + tick * absl::Milliseconds(100), [&] {
      if (newcomer->serving()) {
        joined = std::min(joined, site.world.now());
      }
    });
  }
  EXPECT_EQ(site.Run(), "");
  ASSERT_NE(joined, absl::InfiniteFuture());
  std::vector<double> pool;
  std::vector<double> of_newcomer;
  int64_t first_second = 0;
  int64_t first_second_all = 0;
  for (const auto& client : site.clients) {
    const absl::Duration since = client->asked() - joined;
    if (since < absl::ZeroDuration() || since > absl::Seconds(10)) {
      continue;
    }
    (client->replica() == 3 ? of_newcomer : pool)
        .push_back(Milliseconds(client->first_token_time()));
    if (since < absl::Seconds(1)) {
      ++first_second_all;
      first_second += client->replica() == 3 ? 1 : 0;
    }
  }
  ASSERT_GT(of_newcomer.size(), 10u);
  EXPECT_LE(Percentile(of_newcomer, 0.95), 1.5 * Percentile(pool, 0.95));
  EXPECT_LE(first_second * 4, first_second_all);  // less than its full share
}

TEST(SimulationTest, F14_ARollingRestartOfEverythingFailsNoRequest) {
  SiteSettings settings = Quiet(14);
  settings.replicas = 3;
  settings.requests_per_second = 12;
  settings.load_time = absl::Seconds(40);
  settings.no_failures = true;
  Site site(settings);
  for (size_t replica = 0; replica < 3; ++replica) {
    site.At(absl::Seconds(4 + 8 * static_cast<int>(replica)),
            [&site, replica] { site.replicas[replica]->Drain(); });
  }
  for (size_t balancer = 0; balancer < 2; ++balancer) {
    site.At(absl::Seconds(30 + 4 * static_cast<int>(balancer)),
            [&site, balancer] { site.balancers[balancer]->Kill(absl::Seconds(1)); });
  }
  EXPECT_EQ(site.Run(), "");
  EXPECT_EQ(site.failed(), 0);
  for (const auto& replica : site.replicas) {
    EXPECT_EQ(replica->epoch(), 2u);
  }
}

TEST(SimulationTest, F16_AHotPrefixSpreadsOverAllReplicas) {
  SiteSettings settings = Quiet(16);
  settings.balancers = 1;
  settings.replicas = 4;
  settings.slots = 32;
  settings.requests_per_second = 250;
  settings.hot_share = 0.8;
  settings.groups = 64;
  Site site(settings);
  EXPECT_EQ(site.Run(), "");
  int64_t most = 0;
  int64_t all = 0;
  for (const auto& replica : site.replicas) {
    most = std::max(most, replica->tokens_computed);
    all += replica->tokens_computed;
  }
  EXPECT_LE(static_cast<double>(most), 1.25 * static_cast<double>(all) / 4);
}

TEST(SimulationTest, B2_AtHalfLoadAGroupStaysAtItsReplica) {
  SiteSettings settings = Quiet(2);
  settings.balancers = 1;
  settings.replicas = 4;
  settings.slots = 16;
  settings.requests_per_second = 60;
  settings.load_time = absl::Seconds(30);
  settings.groups = 64;
  Site site(settings);
  EXPECT_EQ(site.Run(), "");
  std::map<std::pair<std::string, int32_t>, std::map<size_t, int>> by_group;  // of a tenant
  int in_all = 0;
  for (const auto& client : site.clients) {
    if (client->asked() - site.clients[0]->asked() > absl::Seconds(5)) {  // past slow start
      ++by_group[{client->request().tenant, client->request().prompt[0]}][client->replica()];
      ++in_all;
    }
  }
  int at_the_favourite = 0;
  for (const auto& [group, replicas] : by_group) {
    int most = 0;
    for (const auto& [replica, count] : replicas) {
      most = std::max(most, count);
    }
    at_the_favourite += most;
  }
  EXPECT_GE(at_the_favourite, 0.95 * in_all);
}

TEST(SimulationTest, F18_APartitionedReplicaWorksOnAndReachesNobody) {
  int64_t stale = 0;
  for (uint64_t seed = 180; seed < 190; ++seed) {
    SiteSettings settings = Quiet(seed);
    settings.replicas = 2;
    settings.requests_per_second = 10;
    settings.no_failures = true;
    Site site(settings);
    for (Link* link : {site.links[0].get(), site.links[3].get()}) {
      site.At(absl::Seconds(4), [link] { link->Cut(/*to=*/0, true); });
      site.At(absl::Seconds(8), [link] { link->Cut(/*to=*/0, false); });
    }
    EXPECT_EQ(site.Run(), "") << "seed " << seed;
    for (const auto& balancer : site.balancers) {
      stale += balancer->core().counts().stale_answers;
    }
  }
  EXPECT_GT(stale, 100);  // so it was fenced
}

TEST(SimulationTest, F26_AfterThreeSecondsOfSilenceStreamsGoOnElsewhere) {
  absl::Duration longest;
  for (uint64_t seed = 260; seed < 265; ++seed) {
    SiteSettings settings = Quiet(seed);
    settings.replicas = 2;
    settings.requests_per_second = 20;
    settings.no_failures = true;
    Site site(settings);
    site.At(absl::Seconds(5), [&site] { site.replicas[0]->process.Pause(); });
    site.At(absl::Seconds(11), [&site] { site.replicas[0]->process.Resume(); });
    EXPECT_EQ(site.Run(), "") << "seed " << seed;
    for (const auto& client : site.clients) {
      longest = std::max(longest, client->longest_gap());
    }
  }
  EXPECT_GT(longest, absl::Seconds(2.5));  // some stream was in the middle
  EXPECT_LT(longest, absl::Seconds(4));
}

}  // namespace
}  // namespace trireme::simulation
