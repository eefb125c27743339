// One client request and what came of it. The client checks all that reaches it: positions, tokens,
// one ending, errors that may be. When its balancer dies it goes to the next one, with the tokens
// it has or from the start.
#ifndef TRIREME_TESTS_SIMULATION_CLIENT_REQUEST_H_
#define TRIREME_TESTS_SIMULATION_CLIENT_REQUEST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/simulated_balancer.h"
#include "tests/simulation/simulated_request.h"
#include "tests/simulation/world.h"

namespace trireme::simulation {

class ClientRequest final : public Submission {
 public:
  ClientRequest(World* world, std::vector<std::unique_ptr<SimulatedBalancer>>* balancers,
                SimulatedRequest request);

  void Submit(size_t balancer);
  void Cancel();

  const SimulatedRequest& request() const override { return request_; }
  void OnStarted(size_t replica) override { replica_ = replica; }
  void OnTokens(int64_t first_position, const std::vector<int32_t>& tokens) override;
  void OnFinished(const balance::RequestStory& story) override;
  void OnFailed(const absl::Status& status) override;
  void OnBroken() override;

  bool ended() const { return ended_; }
  const absl::Status& status() const { return status_; }
  absl::Duration first_token_time() const { return first_token_ - asked_; }
  absl::Duration longest_gap() const { return longest_gap_; }
  uint32_t attempts() const { return attempts_; }
  size_t replica() const { return replica_; }  // of the last attempt
  absl::Time asked() const { return asked_; }

  // Judges an error status: OK, or why it may not be.
  std::function<std::string(const ClientRequest&, const absl::Status&)> judge;
  bool cancelled = false;

 private:
  World* const world_;
  std::vector<std::unique_ptr<SimulatedBalancer>>* const balancers_;
  const SimulatedRequest request_;
  size_t balancer_ = 0;
  bool with_tokens_ = false;  // goes to another balancer with the tokens it has
  std::vector<int32_t> received_;
  std::string fingerprint_;
  uint64_t token_key_ = 0;
  bool ended_ = false;
  absl::Status status_;
  uint32_t attempts_ = 0;
  size_t replica_ = 0;
  absl::Time asked_ = absl::InfiniteFuture();
  absl::Time first_token_ = absl::InfiniteFuture();
  absl::Time last_token_ = absl::InfiniteFuture();
  absl::Duration longest_gap_;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_CLIENT_REQUEST_H_
