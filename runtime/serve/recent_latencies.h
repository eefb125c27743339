// How long clients waited for the latest streams that ended: for `trireme top`. Metrics have
// histograms since the start beside it.
#ifndef TRIREME_RUNTIME_SERVE_RECENT_LATENCIES_H_
#define TRIREME_RUNTIME_SERVE_RECENT_LATENCIES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

namespace trireme::serve {

// All zero where nothing was seen yet.
struct RequestLatency {
  int64_t streams = 0;             // that count, at most RecentLatencies::kStreams
  absl::Duration first_token_p50;  // from arrival
  absl::Duration first_token_p99;
  absl::Duration token_p50;  // each token after the first, the mean of its stream
  absl::Duration token_p99;
};

// One thread at a time.
class RecentLatencies {
 public:
  static constexpr size_t kStreams = 256;

  // A stream that brought its first token so long after its arrival.
  void AddFirstToken(absl::Duration from_arrival);
  // The mean of a stream with more than one token.
  void AddToken(absl::Duration mean);

  RequestLatency Read() const;

 private:
  struct Ring {
    void Add(absl::Duration time);
    size_t count() const { return added < kStreams ? added : kStreams; }

    std::array<absl::Duration, kStreams> times;
    size_t added = 0;  // since the start
  };

  Ring first_tokens_;
  Ring tokens_;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_RECENT_LATENCIES_H_
