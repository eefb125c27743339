// The journal of ended streams: what became of each, for the metrics, for one log line a request
// and for `trireme why`. It keeps the latest records only, and never prompts or outputs.
#ifndef TRIREME_RUNTIME_SERVE_REQUEST_JOURNAL_H_
#define TRIREME_RUNTIME_SERVE_REQUEST_JOURNAL_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/metrics.h"
#include "runtime/base/mutex.h"
#include "runtime/engine/response_stream.h"
#include "runtime/serve/recent_latencies.h"

namespace trireme::serve {

struct RequestRecord {
  std::string id;       // as LiveCalls knows it: an attempt of a balancer is "id@attempt"
  absl::Status status;  // of the stream
  std::string finish;   // OK: the first choice's finish reason
  int64_t choices = 1;
  engine::Usage usage;  // over all choices
  absl::Duration queue;
  std::optional<absl::Duration> first_token;  // from arrival; unset: none came
  absl::Duration total;
  absl::Time ended;                   // wall clock, for people
  std::vector<engine::Route> routes;  // of a balancer: one for each choice that ended
};

// Any thread.
class RequestJournal {
 public:
  // `metrics` may be null and outlives it.
  RequestJournal(Metrics* metrics, size_t records_max);

  void Add(RequestRecord record);

  // The latest record of exactly this id, or of its attempts ("id@1", ...), newest first; empty
  // when none is remembered.
  std::vector<RequestRecord> Find(absl::string_view id) const;

  // Of the latest streams that brought a token.
  RequestLatency latency() const;

 private:
  void Count(const RequestRecord& record);
  void AddLatency(const RequestRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Metrics* const metrics_;
  const size_t records_max_;
  mutable Mutex mutex_;
  std::deque<RequestRecord> records_ ABSL_GUARDED_BY(mutex_);  // oldest first
  RecentLatencies latencies_ ABSL_GUARDED_BY(mutex_);
};

// "ok", or the reason of the error (error_reason.h), or the code's name when it has none.
std::string OutcomeOf(const absl::Status& status);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_REQUEST_JOURNAL_H_
