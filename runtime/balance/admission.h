// Who may come in, and who goes next. Requests that no replica has room for wait here, in a bounded
// queue with the order: priority band, then the tenant that was served least (Sheng and others:
// Fairness in serving large language models; OSDI 2024, the virtual token counter), then the
// earliest deadline, then arrival.
//
// A tenant's counter grows by the tokens it is served, divided by its weight. Who comes with
// nothing waiting is lifted to the least counter of those who wait: idle tenants hoard no credit.
#ifndef TRIREME_RUNTIME_BALANCE_ADMISSION_H_
#define TRIREME_RUNTIME_BALANCE_ADMISSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/request_facts.h"
#include "runtime/balance/tenant_limits.h"

namespace trireme::balance {

// Thread rule: one thread. Times do not go back.
class Admission {
 public:
  static constexpr double kGeneratedTokenCost = 2;  // of a prompt token's, in a tenant's counter
  static constexpr size_t kTenantsMax = 4096;       // remembered while idle

  class Tenant;

  // One request in the queue.
  struct Waiting {
    RequestKey request = 0;
    Tenant* tenant = nullptr;
    Priority priority = Priority::kStandard;
    absl::Time deadline = absl::InfiniteFuture();
    uint64_t arrival = 0;  // of Push
  };

  // `options` must outlive it.
  explicit Admission(const AdmissionOptions* options);
  ~Admission();

  // Takes `tokens` out of the tenant's limits, or ResourceExhausted (RATE, TOKENS, CONCURRENCY)
  // with the delay after which the same call succeeds if nothing else comes. The tenant lives until
  // its Leave.
  absl::StatusOr<Tenant*> Enter(absl::string_view tenant, int64_t tokens, absl::Time now);
  // One for each Enter that was OK: gives back what was reserved and not used.
  void Leave(Tenant* tenant, int64_t reserved_tokens, int64_t used_tokens, absl::Time now);

  // The tenant was served so much.
  void Charge(Tenant* tenant, double tokens);

  bool full() const { return queued_ >= options_->queued_requests_max; }
  // Who must go so that one more of this tenant and priority may wait: the latest one of the
  // longest queue in the lowest band. Nothing when the newcomer itself is the one to refuse.
  std::optional<RequestKey> VictimFor(const Tenant* tenant, Priority priority) const;
  // Puts it into the queue, and sets its arrival. The queue is not full.
  void Push(Waiting* waiting);
  void Remove(const Waiting& waiting);
  // The one that goes next; null when nobody waits. Remove it, then tell Dispatched.
  const Waiting* Next() const;
  // The tenant's request leaves for a replica.
  void Dispatched(const Tenant* tenant);

  int64_t queued() const { return queued_; }
  // Those that go before a newcomer of this priority, at most.
  int64_t QueuedBefore(Priority priority) const;
  double counter(const Tenant* tenant) const;
  size_t tenants() const { return tenants_.size(); }

 private:
  struct Earlier {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return std::tie(a.deadline, a.arrival) < std::tie(b.deadline, b.arrival);
    }
  };
  using Queue = std::set<Waiting, Earlier>;

  struct Band {
    std::vector<Tenant*> tenants;  // with somebody waiting
    int64_t queued = 0;
  };

  void Lift(Tenant* tenant);
  void ForgetIdle();

  const AdmissionOptions* options_;
  absl::flat_hash_map<std::string, std::unique_ptr<Tenant>> tenants_;
  std::array<Band, kPriorities> bands_;
  int64_t queued_ = 0;
  uint64_t arrivals_ = 0;
  double floor_ = 0;  // the counter of the tenant that was dispatched last
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_ADMISSION_H_
