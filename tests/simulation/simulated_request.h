// What a simulated client asks, and the one right answer to it: the tokens are a pure function of
// the replica's fingerprint, the request and the tokens before. So every stream can be checked
// without a model, and a resume from wrong tokens goes wrong visibly.
#ifndef TRIREME_TESTS_SIMULATION_SIMULATED_REQUEST_H_
#define TRIREME_TESTS_SIMULATION_SIMULATED_REQUEST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "runtime/balance/request_facts.h"
#include "runtime/balance/seeded_random.h"
#include "runtime/base/fingerprint.h"

namespace trireme::simulation {

struct SimulatedRequest {
  int64_t id = 0;
  std::string tenant;
  std::vector<int32_t> prompt;
  int64_t max_tokens = 1;
  uint64_t sampling_seed = 0;  // 0: greedy
  balance::Priority priority = balance::Priority::kStandard;
  balance::DisruptionPolicy policy = balance::DisruptionPolicy::kResume;
  absl::Duration time_limit = absl::InfiniteDuration();
  absl::Duration cancel_after = absl::InfiniteDuration();
  bool bad = false;     // a replica answers INVALID_ARGUMENT
  bool poison = false;  // kills the replica that computes it

  uint64_t Key(const std::string& fingerprint) const {
    Fingerprint hash;
    hash.Add(fingerprint);
    for (const int32_t token : prompt) {
      hash.Add(int64_t{token});
    }
    hash.Add(static_cast<int64_t>(sampling_seed));
    return hash.value();
  }
  // Tokens of the whole answer.
  int64_t Length() const {
    return 1 + static_cast<int64_t>(Key("length") % static_cast<uint64_t>(max_tokens));
  }
  // The token after `previous` (-1 at the start); `key` is Key of the replica's fingerprint.
  static int32_t Token(uint64_t key, int64_t position, int32_t previous) {
    const uint64_t mixed = balance::SeededRandom::Mix(
        key ^ balance::SeededRandom::Mix((static_cast<uint64_t>(position) << 32) ^
                                         static_cast<uint32_t>(previous)));
    return static_cast<int32_t>(mixed & 0x7fffffff);  // so many that chance makes no equals
  }
};

// One attempt as it goes to a replica.
struct ExecuteCall {
  const SimulatedRequest* request = nullptr;
  int balancer = 0;
  uint64_t balancer_incarnation = 0;
  balance::RequestKey key = 0;
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  std::vector<int32_t> emitted;
};

// What comes back.
struct Answer {
  enum class Kind : uint8_t { kAccepted, kTokens, kFinished, kFailed };
  Kind kind = Kind::kAccepted;
  balance::RequestKey key = 0;
  uint32_t attempt = 0;
  std::string fingerprint;
  int64_t cached_tokens = 0;
  int64_t first_position = 0;
  std::vector<int32_t> token_ids;
  int64_t generated_tokens = 0;
  absl::Status status;
};

}  // namespace trireme::simulation

#endif  // TRIREME_TESTS_SIMULATION_SIMULATED_REQUEST_H_
