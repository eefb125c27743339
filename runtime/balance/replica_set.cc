#include "runtime/balance/replica_set.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace trireme::balance {

absl::string_view ReplicaHealthName(ReplicaHealth health) {
  switch (health) {
    case ReplicaHealth::kUnknown:
      return "unknown";
    case ReplicaHealth::kStarting:
      return "starting";
    case ReplicaHealth::kFresh:
      return "fresh";
    case ReplicaHealth::kStale:
      return "stale";
    case ReplicaHealth::kSuspect:
      return "suspect";
    case ReplicaHealth::kDraining:
      return "draining";
    case ReplicaHealth::kLost:
      return "lost";
  }
  return "";
}

ReplicaHealth Replica::Health(const HealthOptions& options, absl::Time now) const {
  if (!has_report) {
    return ReplicaHealth::kUnknown;
  }
  if (lost || report.phase == ReplicaPhase::kLost) {
    return ReplicaHealth::kLost;
  }
  if (report.phase == ReplicaPhase::kDraining) {
    return ReplicaHealth::kDraining;
  }
  if (report.phase == ReplicaPhase::kStarting) {
    return ReplicaHealth::kStarting;
  }
  const absl::Duration age = now - reported_at;
  if (age > options.suspect_after) {
    return ReplicaHealth::kSuspect;
  }
  return age > options.stale_after ? ReplicaHealth::kStale : ReplicaHealth::kFresh;
}

double Replica::Weight(const HealthOptions& options, absl::Time now) const {
  double share = 1;
  if (serving_since != absl::InfiniteFuture() && now < serving_since + options.slow_start) {
    const double part = absl::FDivDuration(now - serving_since, options.slow_start);
    share = options.slow_start_share + (1 - options.slow_start_share) * part;
  }
  return share * report.weight;
}

int64_t Replica::WaitingRequests(bool stale) const {
  return stale ? attempts_waiting
               : std::max(report.waiting_requests + requests_sent, attempts_waiting);
}

bool Replica::Apply(const LoadReport& new_report, absl::Time now) {
  const bool new_epoch = !has_report || new_report.epoch != report.epoch;
  if (new_epoch) {
    serving_since = absl::InfiniteFuture();
    set_aside_until = absl::InfinitePast();
    breaker.Reset();
    prefixes.Clear();
    running_sequences_max = 0;
  }
  report = new_report;
  running_sequences_max = std::max(running_sequences_max, report.running_sequences);
  has_report = true;
  ++reports;
  reported_at = now;
  heard_at = now;
  lost = false;
  requests_sent = 0;
  tokens_sent = 0;
  if (report.phase == ReplicaPhase::kServing) {
    serving_since = std::min(serving_since, now);
  }
  return new_epoch;
}

bool Replica::MovesFree(absl::Time started, absl::Time now) {
  if (first_loss_at == absl::InfinitePast() || first_loss_epoch != report.epoch) {
    first_loss_epoch = report.epoch;
    first_loss_at = now;
  }
  return started <= first_loss_at;
}

ReplicaSet::ReplicaSet(const HealthOptions* health, const PickOptions* pick, uint64_t hash_seed)
    : health_(health), pick_(pick), hash_seed_(hash_seed) {}

Replica* ReplicaSet::Add(absl::string_view name, absl::Time now) {
  for (const auto& replica : replicas_) {
    CHECK(replica->name != name);
  }
  auto replica = std::make_unique<Replica>(health_);
  replica->key = next_key_++;
  replica->name = std::string(name);
  replica->name_hash = HashReplicaName(hash_seed_, name);
  replica->added_at = now;
  replica->heard_at = now;
  replicas_.push_back(std::move(replica));
  return replicas_.back().get();
}

void ReplicaSet::Remove(ReplicaKey key) {
  replicas_.erase(std::remove_if(replicas_.begin(), replicas_.end(),
                                 [key](const auto& replica) { return replica->key == key; }),
                  replicas_.end());
}

Replica* ReplicaSet::Find(ReplicaKey key) {
  for (const auto& replica : replicas_) {
    if (replica->key == key) {
      return replica.get();
    }
  }
  return nullptr;
}

bool ReplicaSet::Serving(const Replica& replica, absl::Time now) const {
  const ReplicaHealth health = replica.Health(*health_, now);
  return health == ReplicaHealth::kFresh || health == ReplicaHealth::kStale;
}

bool ReplicaSet::HasRoom(const Replica& replica, absl::Time now) const {
  if (!replica.breaker.Allows(now) || now < replica.set_aside_until) {
    return false;
  }
  const bool stale = replica.Health(*health_, now) == ReplicaHealth::kStale;
  if (replica.WaitingRequests(stale) >= pick_->waiting_at_replica_max) {
    return false;
  }
  // A replica that tells no places at all does not count them.
  const bool tells_places =
      replica.report.new_requests_max > 0 || replica.report.waiting_requests > 0;
  return stale || !tells_places || replica.requests_sent < replica.report.new_requests_max;
}

std::vector<Candidate> ReplicaSet::Candidates(const CandidateQuery& query, absl::Time now) const {
  const auto avoided = [&query](const Replica& replica) {
    return std::find(query.avoided.begin(), query.avoided.end(), replica.key) !=
           query.avoided.end();
  };
  const auto fits = [&query](const Replica& replica) {
    return !query.needs_fingerprint || replica.report.fingerprint == query.fingerprint;
  };
  const bool somebody_else =
      std::any_of(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
        return Serving(*replica, now) && fits(*replica) && !avoided(*replica);
      });
  std::vector<Candidate> candidates;
  candidates.reserve(replicas_.size());
  for (const auto& owned : replicas_) {
    const Replica& replica = *owned;
    if (!Serving(replica, now)) {
      continue;
    }
    const bool stale = replica.Health(*health_, now) == ReplicaHealth::kStale;
    const auto guessed =
        static_cast<double>(replica.prefixes.Match(query.prefix_blocks) * kHashTokens);
    const auto begun = static_cast<int64_t>(replica.attempts.size()) - replica.attempts_waiting;
    const bool batch_full = !stale && replica.report.waiting_requests > 0 &&
                            replica.report.running_sequences >= replica.running_sequences_max;
    // What it had to compute, less what it has computed since at its own rate.
    const double since = absl::ToDoubleSeconds(now - replica.reported_at);
    const auto computed = static_cast<int64_t>(since * replica.report.prefill_tokens_per_second);
    const int64_t queued = replica.report.queued_tokens + replica.tokens_sent - computed;
    candidates.push_back({
        .key = replica.key,
        .name_hash = replica.name_hash,
        .usable = fits(replica) && !(avoided(replica) && somebody_else) && HasRoom(replica, now),
        .stale = stale,
        .weight = replica.Weight(*health_, now),
        .tokens_in_flight = replica.tokens_in_flight,
        .queued_tokens = stale ? replica.tokens_waiting : std::max(queued, replica.tokens_waiting),
        .waiting_requests = batch_full ? replica.WaitingRequests(stale) : 0,
        .running_sequences = std::max(stale ? 0 : replica.report.running_sequences, begun),
        .cached_tokens = static_cast<int64_t>(guessed * replica.prefix_credit),
        .prefill_tokens_per_second = replica.report.prefill_tokens_per_second,
        .step_time = replica.report.step_time_p50,
    });
  }
  return candidates;
}

bool ReplicaSet::AnyRoom(absl::Time now) const {
  return std::any_of(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
    return Serving(*replica, now) && HasRoom(*replica, now);
  });
}

bool ReplicaSet::AnyServing(absl::Time now) const {
  return std::any_of(replicas_.begin(), replicas_.end(),
                     [&](const auto& replica) { return Serving(*replica, now); });
}

bool ReplicaSet::AnyExpected(absl::Time now) const {
  return std::any_of(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
    return !replica->has_report && now < replica->added_at + health_->first_report_wait;
  });
}

bool ReplicaSet::MayEject(const Replica& replica, absl::Time now) const {
  int64_t ejected = 0;
  bool another_serves = false;
  for (const auto& other : replicas_) {
    ejected += other->breaker.ejected() ? 1 : 0;
    another_serves = another_serves || (other->key != replica.key && Serving(*other, now) &&
                                        !other->breaker.ejected());
  }
  return another_serves && static_cast<double>(ejected + 1) <=
                               health_->ejected_share_max * static_cast<double>(replicas_.size());
}

bool ReplicaSet::MayHaveFingerprint(absl::string_view fingerprint) const {
  return std::any_of(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
    return !replica->has_report || replica->report.fingerprint == fingerprint;
  });
}

}  // namespace trireme::balance
