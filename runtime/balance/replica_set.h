// The replicas as the balancer knows them: their last report, what it has sent to them itself, and
// how far they are to be believed. Candidates() makes the snapshot that pick.h decides on.
#ifndef TRIREME_RUNTIME_BALANCE_REPLICA_SET_H_
#define TRIREME_RUNTIME_BALANCE_REPLICA_SET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/balance/balancer_options.h"
#include "runtime/balance/breaker.h"
#include "runtime/balance/load_report.h"
#include "runtime/balance/pick.h"
#include "runtime/balance/prefix_affinity.h"
#include "runtime/balance/request_facts.h"

namespace trireme::balance {

enum class ReplicaHealth : uint8_t {
  kUnknown,   // no report yet
  kStarting,  // by its own word
  kFresh,     // serving
  kStale,     // serving, but its reports are late: own counters decide
  kSuspect,   // no report for so long that nothing new is sent
  kDraining,  // by its own word
  kLost,      // its load stream broke, an attempt found it dead, or by its own word
};

absl::string_view ReplicaHealthName(ReplicaHealth health);

struct Replica {
  ReplicaKey key = 0;
  std::string name;
  uint64_t name_hash = 0;

  absl::Time added_at = absl::InfinitePast();
  LoadReport report;  // the last accepted one
  bool has_report = false;
  uint64_t reports = 0;               // accepted
  int64_t running_sequences_max = 0;  // reported in this epoch: about as many as its batch holds
  absl::Time reported_at = absl::InfinitePast();
  absl::Time serving_since = absl::InfiniteFuture();  // in this epoch
  bool lost = false;                                  // until the next report
  absl::Time heard_at = absl::InfinitePast();         // any sign of life
  absl::Time set_aside_until = absl::InfinitePast();  // it asked for a pause
  // Requests that were under way at the first loss of an epoch move without a charge.
  uint64_t first_loss_epoch = 0;
  absl::Time first_loss_at = absl::InfinitePast();

  Breaker breaker;
  PrefixIndex prefixes;
  double prefix_credit = 1;  // cached tokens that came true, of those guessed

  std::set<RequestKey> attempts;  // of this balancer, now
  int64_t attempts_waiting = 0;   // of those, not taken by the replica yet
  int64_t tokens_waiting = 0;     // uncached ones of these
  int64_t tokens_in_flight = 0;   // load of all attempts
  int64_t requests_sent = 0;      // since the last report
  int64_t tokens_sent = 0;        // uncached ones, since the last report

  explicit Replica(const HealthOptions* options) : breaker(options) {}

  // Serving and to be believed.
  ReplicaHealth Health(const HealthOptions& options, absl::Time now) const;
  // Share of the work: slow start times its own wish, in (0, 1].
  double Weight(const HealthOptions& options, absl::Time now) const;
  // Requests in its queue, as far as one can know.
  int64_t WaitingRequests(bool stale) const;
  // Its first report of an epoch, or a later one that was accepted. True: a new epoch.
  bool Apply(const LoadReport& new_report, absl::Time now);
  // A loss or refusal at `now`. True when an attempt sent at `started` was under way at the first
  // one of this epoch.
  bool MovesFree(absl::Time started, absl::Time now);
};

// What a request asks of a replica.
struct CandidateQuery {
  absl::Span<const uint64_t> prefix_blocks;
  bool needs_fingerprint = false;
  absl::string_view fingerprint;
  absl::Span<const ReplicaKey> avoided;  // unless nobody else serves
};

// Thread rule: one thread.
class ReplicaSet {
 public:
  // `health` and `pick` must outlive it.
  ReplicaSet(const HealthOptions* health, const PickOptions* pick, uint64_t hash_seed);

  // `name` must not be in use.
  Replica* Add(absl::string_view name, absl::Time now);
  void Remove(ReplicaKey key);
  // Null when there is none.
  Replica* Find(ReplicaKey key);
  const std::vector<std::unique_ptr<Replica>>& all() const { return replicas_; }

  // Every replica that is serving, with those marked usable that can take the request now.
  std::vector<Candidate> Candidates(const CandidateQuery& query, absl::Time now) const;
  // Whether any replica could take some request now.
  bool AnyRoom(absl::Time now) const;
  // Whether any replica is serving, however busy.
  bool AnyServing(absl::Time now) const;
  // Whether some replica was added so lately that it may not have had time to report.
  bool AnyExpected(absl::Time now) const;
  // Whether one more replica may be ejected: at most a share, and never the last one that serves.
  bool MayEject(const Replica& replica, absl::Time now) const;
  // Whether some replica has, had last, or may yet have this fingerprint.
  bool MayHaveFingerprint(absl::string_view fingerprint) const;

 private:
  bool Serving(const Replica& replica, absl::Time now) const;
  bool HasRoom(const Replica& replica, absl::Time now) const;

  const HealthOptions* health_;
  const PickOptions* pick_;
  const uint64_t hash_seed_;
  std::vector<std::unique_ptr<Replica>> replicas_;  // by key
  ReplicaKey next_key_ = 1;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_REPLICA_SET_H_
