// Prompts that were under way on two replicas when these died: they are not tried again for a
// while, by whomever they come. Holds salted hashes only, and a bounded number of them.
#ifndef TRIREME_RUNTIME_BALANCE_QUARANTINE_H_
#define TRIREME_RUNTIME_BALANCE_QUARANTINE_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "runtime/balance/request_facts.h"

namespace trireme::balance {

// What kills does so at the same token wherever it is computed. A request that brings so many new
// tokens after a death is past that token and was only near: more than the tokens that a dying
// replica computed and could not send any more, which are those of the steps in flight.
inline constexpr int64_t kInnocentTokens = 4;

// Of a replica, under an attempt of a request.
struct Death {
  ReplicaKey replica = 0;
  uint64_t epoch = 0;
  int64_t tokens = 0;  // of the request, then
};

// What one request has to do with the deaths of replicas. Thread rule: a value.
class Suspicion {
 public:
  const Death& last() const { return last_; }

  // False when this death is known already. `at_work`: the replica was computing the request; one
  // that only waited has half the blame, and two deaths at work are enough.
  bool NoteDeath(const Death& death, bool at_work);

  // The last one was a lost connection only: its replica goes on.
  void ForgiveLast();

  bool IsPoison() const;

 private:
  Death last_;
  int last_blame_ = 0;
  int blame_ = 0;
};

// Thread rule: one thread.
class Quarantine {
 public:
  static constexpr size_t kPromptsMax = 4096;  // the one that ends first makes room

  void Add(uint64_t prompt_hash, absl::Time until);
  bool Holds(uint64_t prompt_hash, absl::Time now);
  void Clear() { until_.clear(); }
  size_t size() const { return until_.size(); }

 private:
  absl::flat_hash_map<uint64_t, absl::Time> until_;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_QUARANTINE_H_
