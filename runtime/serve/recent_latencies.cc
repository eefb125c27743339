#include "runtime/serve/recent_latencies.h"

#include <algorithm>

namespace trireme::serve {
namespace {

// The least of the first `count` times that `percent` of them do not exceed; zero for none.
template <class Times>
absl::Duration Percentile(Times times, size_t count, size_t percent) {
  if (count == 0) {
    return absl::ZeroDuration();
  }
  const auto wanted = times.begin() + static_cast<std::ptrdiff_t>((count * percent + 99) / 100 - 1);
  std::nth_element(times.begin(), wanted, times.begin() + static_cast<std::ptrdiff_t>(count));
  return *wanted;
}

}  // namespace

void RecentLatencies::Ring::Add(absl::Duration time) { times[added++ % kStreams] = time; }

void RecentLatencies::AddFirstToken(absl::Duration from_arrival) {
  first_tokens_.Add(from_arrival);
}

void RecentLatencies::AddToken(absl::Duration mean) { tokens_.Add(mean); }

RequestLatency RecentLatencies::Read() const {
  return {.streams = static_cast<int64_t>(first_tokens_.count()),
          .first_token_p50 = Percentile(first_tokens_.times, first_tokens_.count(), 50),
          .first_token_p99 = Percentile(first_tokens_.times, first_tokens_.count(), 99),
          .token_p50 = Percentile(tokens_.times, tokens_.count(), 50),
          .token_p99 = Percentile(tokens_.times, tokens_.count(), 99)};
}

}  // namespace trireme::serve
