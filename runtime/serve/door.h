// What the services share: the replica behind them and its phase, the open streams, and the threads
// that work for them. The services are thin; this outlives them.
#ifndef TRIREME_RUNTIME_SERVE_DOOR_H_
#define TRIREME_RUNTIME_SERVE_DOOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/lease_board.h"
#include "runtime/serve/live_calls.h"
#include "runtime/serve/replica_facade.h"
#include "runtime/serve/request_journal.h"
#include "runtime/serve/resume_board.h"
#include "runtime/serve/stream_pump.h"
#include "runtime/serve/task_pool.h"

namespace trireme::serve {

struct DoorOptions {
  absl::Duration queued_after = absl::Seconds(5);          // a waiting stream hears that it waits
  absl::Duration slow_reader_timeout = absl::Seconds(30);  // no completed write for so long
  absl::Duration request_time_max =
      absl::Hours(24);  // for requests without or with a later deadline
  absl::Duration load_report_min = absl::Milliseconds(50);   // not more often
  absl::Duration load_report_max = absl::Milliseconds(500);  // not less often
  absl::Duration lease_patience = absl::Seconds(5);          // without a balancer's ping
  int64_t request_bytes_max = int64_t{16} << 20;
  int text_threads = 1;               // parse, tokenize and render
  size_t queued_texts_max = 256;      // requests waiting for them; each may hold request_bytes_max
  Metrics* metrics = nullptr;         // counts the streams; may be null, outlives the server
  size_t journal_records_max = 4096;  // ended streams that are remembered
  // How long a stream that named its request id outlives its connection (Resume); zero: not at all.
  absl::Duration resume_grace = absl::ZeroDuration();
  uint64_t seed = 0;  // of made-up request ids and sampling seeds; 0: the server takes a random one
};

enum class Phase : uint8_t { kStarting, kServing, kDraining, kLost };

class Door {
 public:
  // `clock` must outlive it.
  Door(const DoorOptions& options, Clock* clock);

  // Once: the replica is ready. Fills in the limits that follow from the model.
  void Open(ReplicaFacade replica);

  // New requests are refused from now on with DRAINING, or with `status` when the replica is lost.
  void SetDraining();
  void SetLost(const absl::Status& status);

  Phase phase() const;

  // The replica, or UNAVAILABLE with STARTING, DRAINING or the reason of the loss. The pointer
  // stays good for the door's life.
  absl::StatusOr<const ReplicaFacade*> Ready() const;

  // The replica whatever its phase; null before Open.
  const ReplicaFacade* replica() const;

  const DoorOptions& options() const { return options_; }
  Clock& clock() { return *clock_; }
  LiveCalls& live_calls() { return live_calls_; }  // token streams: a drain waits for them
  LiveCalls& watches() { return watches_; }        // endless streams: a drain ends them
  RequestJournal& journal() { return journal_; }
  TaskPool& tasks() { return tasks_; }
  ResumeBoard& resume_board() { return resume_board_; }
  const std::shared_ptr<LeaseBoard>& leases() { return leases_; }  // shared: the pump holds it
  // Shared, since a listener of a stream may still hold it (weakly) when the door goes.
  const std::shared_ptr<StreamPump>& pump() { return pump_; }

  uint64_t MakeSeed();
  std::string MakeRequestId();

  // A new incident id if the status is INTERNAL or unknown, after writing the status to the log;
  // otherwise empty.
  std::string NoteIncident(const absl::Status& status);

 private:
  const DoorOptions options_;
  Clock* const clock_;
  LiveCalls live_calls_;
  LiveCalls watches_;
  RequestJournal journal_;
  ResumeBoard resume_board_;
  const std::shared_ptr<LeaseBoard> leases_;
  mutable Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kStarting;
  absl::Status lost_status_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<const ReplicaFacade> replica_ ABSL_GUARDED_BY(mutex_);  // constant once set
  std::mt19937_64 random_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<StreamPump> pump_;
  TaskPool tasks_;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_DOOR_H_
