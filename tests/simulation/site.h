// A whole site in one thread: clients, balancers, replicas, the network and what befalls them, all
// from one seed. Every step is checked; what breaks a promise is told with the time it happened.
#ifndef TRIREME_TESTS_SIMULATION_SITE_H_
#define TRIREME_TESTS_SIMULATION_SITE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/simulation/client_request.h"
#include "tests/simulation/simulated_balancer.h"
#include "tests/simulation/simulated_replica.h"
#include "tests/simulation/simulated_request.h"
#include "tests/simulation/world.h"

namespace trireme::simulation {

// What may befall a site. Each is armed in a quarter of the seeds.
enum class Fault : uint8_t {
  kKillRank,      // any rank but 0
  kKillReplica,   // rank 0, without a word
  kPauseReplica,  // stands still, then goes on
  kPauseBalancer,
  kKillBalancer,
  kCutLink,  // both ways, then heals
  kCutOneWay,
  kResetLink,
  kLoseReports,  // some load reports never arrive
  kQuirk,        // a replica answers wrongly for a time
  kDrain,        // a replica is taken out in order and started again
  kChangeModel,  // a replica comes back with another model
  kPoison,       // some requests kill whoever computes them
  kSlowNetwork,
};
inline constexpr int kFaults = 14;

struct SiteSettings {
  uint64_t seed = 1;
  Plant plant = Plant::kNone;
  int balancers = 2;
  int replicas = 0;  // 0: 2 to 4, by the seed
  absl::Duration load_time = absl::Seconds(12);
  double requests_per_second = 0;  // 0: by the seed
  // Which faults are armed; nothing: a quarter of all, by the seed.
  std::optional<std::vector<Fault>> faults;
  // Nothing may fail but what must (bad, cancelled, poison, late).
  bool no_failures = false;
  bool odd_requests = true;  // some are bad, cancelled or have deadlines
  bool equal_replicas = false;
  int32_t slots = 4;
  double hot_share = 0;  // of the requests that begin alike
  uint64_t groups = 8;   // of requests that begin alike
  int64_t events_max = 5'000'000;
};

class Site {
 public:
  explicit Site(const SiteSettings& settings);

  // The whole run with all checks; the first broken promise, or nothing.
  std::string Run();

  // For scenarios: what happens at a time after the start.
  void At(absl::Duration time, std::function<void()> happening);
  ClientRequest* Ask(SimulatedRequest request);

  World world;
  std::vector<std::unique_ptr<SimulatedReplica>> replicas;
  std::vector<std::unique_ptr<SimulatedBalancer>> balancers;
  std::vector<std::unique_ptr<Link>> links;  // [balancers, replicas]
  std::vector<std::unique_ptr<ClientRequest>> clients;
  // Makes the next random request.
  SimulatedRequest RandomRequest();

  int64_t finished() const;
  int64_t failed() const;

 private:
  void Build();
  void ConnectLink(size_t balancer, size_t replica);
  void PlanLoad();
  void PlanFaults();
  void Befall(Fault fault);
  void CutLink(bool both);
  std::string Judge(const ClientRequest& client, const absl::Status& status) const;
  bool armed(Fault fault) const;
  void CheckBooks();
  void CheckAtTheEnd();
  void RunUntilAllEnded(absl::Time end);

  const SiteSettings settings_;
  std::vector<Fault> armed_;
  bool flood_ = false;
  double rate_ = 0;
  int64_t next_id_ = 1;
  absl::Time start_;
  absl::Time faults_end_;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_SITE_H_
