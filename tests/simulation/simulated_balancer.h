// A balancer process: the real BalancerCore with a shell that carries its actions out over links,
// and the checks that belong to the shell's place: one attempt reaches the client, the retry budget
// holds, tenants that both wait are served alike, the books of attempts are right.
#ifndef TRIREME_TESTS_SIMULATION_SIMULATED_BALANCER_H_
#define TRIREME_TESTS_SIMULATION_SIMULATED_BALANCER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "runtime/balance/balancer_core.h"
#include "tests/simulation/simulated_replica.h"
#include "tests/simulation/simulated_request.h"
#include "tests/simulation/world.h"

namespace trireme::simulation {

// One submission of a request to one balancer, as its client sees it.
class Submission {
 public:
  virtual ~Submission() = default;
  virtual const SimulatedRequest& request() const = 0;
  // An attempt was sent to the replica of this index.
  virtual void OnStarted(size_t replica) = 0;
  virtual void OnTokens(int64_t first_position, const std::vector<int32_t>& tokens) = 0;
  virtual void OnFinished(const balance::RequestStory& story) = 0;
  virtual void OnFailed(const absl::Status& status) = 0;
  // The balancer is gone without a word.
  virtual void OnBroken() = 0;
};

struct BalancerSettings {
  balance::BalancerOptions options;
  // Bound of the difference in service of two tenants that both wait; 0: not checked.
  double fairness_bound = 0;
};

class SimulatedBalancer {
 public:
  SimulatedBalancer(World* world, int index, const BalancerSettings& settings, Plant plant);

  // Set once, before Start: the links to the replicas and these.
  std::vector<Link*> links;
  std::vector<SimulatedReplica*> replicas;

  void Start();
  // Its clients learn of it a little later; it starts again after a while.
  void Kill(absl::Duration restart_after);

  // From `emitted` tokens on, when the client has some already.
  void Submit(Submission* submission, const std::vector<int32_t>& emitted,
              const std::string& fingerprint);
  void Cancel(Submission* submission);

  // What links call, on this process.
  void OnAnswer(size_t replica, const Answer& answer);
  void OnReport(size_t replica, const balance::LoadReport& report);
  void OnLinkReset(size_t replica);

  // Broken books, or nothing.
  std::string CheckBooks();

  Process process;
  const balance::BalancerCore& core() const { return *core_; }

 private:
  struct Live {
    Submission* submission = nullptr;
    std::vector<int32_t> emitted;  // by the client's account, at the start
    bool queued = false;           // waiting for its first attempt
    size_t replica = 0;            // of the current attempt
    uint32_t attempt = 0;          // the current one; 0: none
  };
  struct TenantService {
    int64_t waiting = 0;
    double served = 0;
    std::map<std::string, double> ahead_since;  // of the other, when both had begun to wait
  };

  void SubmitNow(Submission* submission, const std::vector<int32_t>& emitted,
                 const std::string& fingerprint);
  void Carry(balance::Actions* actions, const Answer* answer);
  void CarryOne(const balance::StartAttempt& start);
  void CarryOne(const balance::CancelAttempt& cancel);
  void Deliver(const balance::DeliverTokens& deliver, const Answer* answer);
  void SetWaiting(Live& live, bool waiting);
  void Serve(const std::string& tenant, double tokens);
  void CheckBudget();
  void ScheduleTick();
  void Lease();
  void Reconnect(size_t replica);

  World* const world_;
  const int index_;
  const BalancerSettings settings_;
  const Plant plant_;
  std::unique_ptr<balance::BalancerCore> core_;
  std::vector<balance::ReplicaKey> keys_;  // [replicas]
  std::map<balance::RequestKey, Live> live_;
  std::map<Submission*, balance::RequestKey> by_submission_;
  std::vector<Submission*> arriving_;  // while it stands still
  std::map<std::string, TenantService> tenants_;
  std::deque<absl::Time> request_times_;
  std::deque<absl::Time> retry_times_;
  int64_t retries_seen_ = 0;
  absl::Time tick_ = absl::InfiniteFuture();
  uint64_t tick_number_ = 0;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_SIMULATED_BALANCER_H_
