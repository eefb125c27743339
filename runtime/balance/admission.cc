#include "runtime/balance/admission.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/error_reason.h"

namespace trireme::balance {
namespace {

constexpr absl::Duration kBurst = absl::Seconds(1);
constexpr absl::Duration kConcurrencyDelay = absl::Seconds(1);  // nobody knows when one ends

absl::Status OverLimit(absl::string_view reason, absl::string_view tenant, absl::string_view what,
                       absl::Duration delay) {
  absl::Status status = absl::ResourceExhaustedError(
      absl::StrFormat("tenant '%s' is at its limit of %s; try again in %s", tenant, what,
                      absl::FormatDuration(delay)));
  return WithRetryDelay(WithReason(std::move(status), reason), delay);
}

}  // namespace

class Admission::Tenant {
 public:
  Tenant(std::string name_in, const TenantLimits& limits_in)
      : name(std::move(name_in)),
        limits(limits_in),
        requests(limits.requests_per_second, kBurst),
        tokens(limits.tokens_per_second, kBurst) {}

  int64_t waiting() const {
    int64_t count = 0;
    for (const Queue& queue : queues) {
      count += static_cast<int64_t>(queue.size());
    }
    return count;
  }

  const std::string name;
  const TenantLimits limits;
  TokenBucket requests;
  TokenBucket tokens;
  int64_t live = 0;
  double counter = 0;
  std::array<Queue, kPriorities> queues;
};

Admission::Admission(const AdmissionOptions* options) : options_(options) {}
Admission::~Admission() = default;

absl::StatusOr<Admission::Tenant*> Admission::Enter(absl::string_view name, int64_t tokens,
                                                    absl::Time now) {
  auto found = tenants_.find(name);
  if (found == tenants_.end()) {
    if (tenants_.size() >= kTenantsMax) {
      ForgetIdle();
    }
    const auto own = options_->tenants.find(name);
    const TenantLimits& limits =
        own == options_->tenants.end() ? options_->default_limits : own->second;
    found = tenants_.emplace(name, std::make_unique<Tenant>(std::string(name), limits)).first;
  }
  Tenant* tenant = found->second.get();
  if (tenant->live >= tenant->limits.concurrent_requests) {
    return OverLimit(kReasonConcurrency, name,
                     absl::StrFormat("%d requests at once", tenant->limits.concurrent_requests),
                     kConcurrencyDelay);
  }
  const absl::Duration request_delay = tenant->requests.WaitFor(1, now);
  const absl::Duration token_delay = tenant->tokens.WaitFor(static_cast<double>(tokens), now);
  if (request_delay > absl::ZeroDuration() && request_delay >= token_delay) {
    return OverLimit(kReasonRate, name,
                     absl::StrFormat("%g requests a second", tenant->limits.requests_per_second),
                     request_delay);
  }
  if (token_delay > absl::ZeroDuration()) {
    return OverLimit(kReasonTokens, name,
                     absl::StrFormat("%g tokens a second", tenant->limits.tokens_per_second),
                     token_delay);
  }
  tenant->requests.Take(1, now);
  tenant->tokens.Take(static_cast<double>(tokens), now);
  ++tenant->live;
  return tenant;
}

void Admission::Leave(Tenant* tenant, int64_t reserved_tokens, int64_t used_tokens,
                      absl::Time now) {
  CHECK_GT(tenant->live, 0);
  --tenant->live;
  tenant->tokens.Take(static_cast<double>(used_tokens - reserved_tokens), now);
}

void Admission::Charge(Tenant* tenant, double tokens) {
  tenant->counter += tokens / tenant->limits.weight;
}

std::optional<RequestKey> Admission::VictimFor(const Tenant* tenant, Priority priority) const {
  const auto own_band = static_cast<size_t>(priority);
  for (size_t band = kPriorities; band-- > own_band;) {
    const std::vector<Tenant*>& tenants = bands_[band].tenants;
    if (tenants.empty()) {
      continue;
    }
    const Tenant* longest =
        *std::max_element(tenants.begin(), tenants.end(), [band](const Tenant* a, const Tenant* b) {
          return std::make_pair(a->queues[band].size(), a->name) <
                 std::make_pair(b->queues[band].size(), b->name);
        });
    const Queue& queue = longest->queues[band];
    if (band == own_band && queue.size() <= tenant->queues[band].size() + 1) {
      return std::nullopt;
    }
    return queue.rbegin()->request;
  }
  return std::nullopt;
}

void Admission::Push(Waiting* waiting) {
  CHECK(!full());
  Tenant* tenant = waiting->tenant;
  Lift(tenant);
  waiting->arrival = ++arrivals_;
  Band& band = bands_[static_cast<size_t>(waiting->priority)];
  Queue& queue = tenant->queues[static_cast<size_t>(waiting->priority)];
  if (queue.empty()) {
    band.tenants.push_back(tenant);
  }
  queue.insert(*waiting);
  ++band.queued;
  ++queued_;
}

void Admission::Remove(const Waiting& waiting) {
  Tenant* tenant = waiting.tenant;
  Band& band = bands_[static_cast<size_t>(waiting.priority)];
  Queue& queue = tenant->queues[static_cast<size_t>(waiting.priority)];
  CHECK_EQ(queue.erase(waiting), 1u);
  if (queue.empty()) {
    const auto place = std::find(band.tenants.begin(), band.tenants.end(), tenant);
    *place = band.tenants.back();
    band.tenants.pop_back();
  }
  --band.queued;
  --queued_;
}

const Admission::Waiting* Admission::Next() const {
  for (size_t index = 0; index < kPriorities; ++index) {
    const Band& band = bands_[index];
    if (band.tenants.empty()) {
      continue;
    }
    const Tenant* least = *std::min_element(
        band.tenants.begin(), band.tenants.end(), [index](const Tenant* a, const Tenant* b) {
          const uint64_t a_arrival = a->queues[index].begin()->arrival;
          const uint64_t b_arrival = b->queues[index].begin()->arrival;
          return std::tie(a->counter, a_arrival) < std::tie(b->counter, b_arrival);
        });
    return &*least->queues[index].begin();
  }
  return nullptr;
}

void Admission::Dispatched(const Tenant* tenant) { floor_ = std::max(floor_, tenant->counter); }

int64_t Admission::QueuedBefore(Priority priority) const {
  int64_t queued = 0;
  for (size_t band = 0; band <= static_cast<size_t>(priority); ++band) {
    queued += bands_[band].queued;
  }
  return queued;
}

double Admission::counter(const Tenant* tenant) const { return tenant->counter; }

void Admission::Lift(Tenant* tenant) {
  if (tenant->waiting() > 0) {
    return;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const Band& band : bands_) {
    for (const Tenant* other : band.tenants) {
      least = std::min(least, other->counter);
    }
  }
  tenant->counter = std::max(tenant->counter, queued_ > 0 ? least : floor_);
}

// Who is at or under the floor would be lifted to it on return, so nothing is lost.
void Admission::ForgetIdle() {
  absl::erase_if(tenants_, [this](const auto& entry) {
    const Tenant& tenant = *entry.second;
    return tenant.live == 0 && tenant.counter <= floor_ && !options_->tenants.contains(entry.first);
  });
}

}  // namespace trireme::balance
