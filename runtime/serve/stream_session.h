// One stream of tokens from its request to its last event, whatever becomes of the connection that
// asked for it. What a client's call does is StreamWire's; a session has at most one at a time. One
// write is in flight; what the engine makes meanwhile is joined into the next event, so memory is
// bounded by the request's max_tokens whatever the client does.
//
// A stream ends with exactly one Finished and status OK, or with another status. Whoever comes
// first decides: the engine, the client (cancel, deadline), a slow reader's clock, or the loss of
// the replica. A resumable one outlives its wire, and its end, for the door's grace time.
//
// Thread rule: any thread.
#ifndef TRIREME_RUNTIME_SERVE_STREAM_SESSION_H_
#define TRIREME_RUNTIME_SERVE_STREAM_SESSION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/door.h"
#include "runtime/serve/stream_kind.h"

namespace trireme::serve {

// Keys and values that follow a stream's end.
using StreamTrailers = std::vector<std::pair<std::string, std::string>>;

// A client's call. The session calls these with its lock held, so they must not call back; the
// events (OnWritten, OnLost, OnGone) come from other stacks.
class StreamWire {
 public:
  virtual ~StreamWire() = default;
  virtual void Write(const std::string& event) = 0;
  // The last event, with status OK.
  virtual void WriteLast(const std::string& event, const StreamTrailers& trailers) = 0;
  virtual void Finish(const absl::Status& status, const StreamTrailers& trailers) = 0;
  // Ends the call without waiting for what the client does not read.
  virtual void Cut() = 0;
};

// What a call says besides its message.
struct CallFacts {
  absl::Duration time_left = absl::InfiniteDuration();  // until the client's deadline
  std::string tenant;
  bool explain = false;
};

class StreamSession final : public StreamPump::Client,
                            public LiveCall,
                            public std::enable_shared_from_this<StreamSession> {
 public:
  StreamSession(Door* door, std::unique_ptr<StreamKind> kind, CallFacts facts);

  // Before all others: the wire of the call that asked.
  void Open(std::shared_ptr<StreamWire> wire);
  // Whether Begin takes microseconds. Before Begin.
  bool IsQuick(const std::string& request_bytes) const { return kind_->IsQuick(request_bytes); }
  // Reads the request and submits it; on the door's threads unless it is quick.
  void Begin(const std::string& request_bytes);

  // Goes on at `wire` with the events after `after_seq`; a wire that is still there is ended.
  // NotFound (REQUEST) for another tenant or when those events are gone, InvalidArgument when they
  // are in the future; nothing was done then.
  absl::Status Attach(std::shared_ptr<StreamWire> wire, uint64_t after_seq,
                      const std::string& tenant);

  // From a wire. Those of one that was replaced are ignored.
  void OnWritten(const StreamWire* wire, bool ok);
  void OnLost(const StreamWire* wire);  // the client cancelled, left, or its deadline passed
  void OnGone(const StreamWire* wire);  // the call is over

  absl::Time Pump(absl::Time now) override;
  void End(const absl::Status& status) override;

 private:
  struct Choice {
    schedule::Request request;
    std::shared_ptr<engine::ResponseStream> stream;
    int64_t tokens = 0;   // generated so far
    engine::Delta delta;  // given back at each Take, so that its memory is used again
    std::optional<engine::Ending> ending;  // also one that failed
  };

  absl::Status Submit(const ReplicaFacade& replica, PreparedStream prepared);
  // Into the lists of open streams; false when the stream has ended meanwhile.
  absl::StatusOr<bool> Enter(const PreparedStream& prepared);
  void AddChoices(const std::vector<schedule::Request>& requests)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After each change, without the lock: leaves the lists that the stream is through with, and
  // tells the engine what nobody wants any more.
  void Settle() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Time Deadline(absl::Duration budget) const;
  void CollectEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CollectChoice(Choice& choice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEvent(std::string event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropEvents() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool HasUnwritten() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return written_seq_ < last_seq_;
  }
  void WriteNext(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteWaiting(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteSlowReader(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Lose(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Detach(absl::Time now, const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Conclude(const absl::Status& status, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishWire(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  RequestRecord Record() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllChoicesFinished() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StreamTrailers Trailers() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Time NextDue(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Door* const door_;
  const std::unique_ptr<StreamKind> kind_;
  const CallFacts facts_;
  const absl::Time arrival_;

  Mutex mutex_;
  std::string live_id_ ABSL_GUARDED_BY(mutex_);
  std::string lease_ ABSL_GUARDED_BY(mutex_);
  bool resumable_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Choice> choices_ ABSL_GUARDED_BY(mutex_);

  // Events first_seq_ to last_seq_. Without resuming only those that were not written: a few, of
  // one Take of each choice. With it also earlier ones, as far back as their bytes are allowed.
  std::deque<std::string> events_ ABSL_GUARDED_BY(mutex_);
  size_t events_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t first_seq_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t last_seq_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t written_seq_ ABSL_GUARDED_BY(mutex_) = 0;  // handed to the wire
  bool accepted_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_event_made_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> error_ ABSL_GUARDED_BY(mutex_);  // to end with after the events
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);    // how it ended; nothing is computed
  std::string incident_ ABSL_GUARDED_BY(mutex_);
  absl::Time ended_at_ ABSL_GUARDED_BY(mutex_);
  absl::Time accepted_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Time> first_token_at_ ABSL_GUARDED_BY(mutex_);
  absl::Time queued_noted_ ABSL_GUARDED_BY(mutex_);

  std::shared_ptr<StreamWire> wire_ ABSL_GUARDED_BY(mutex_);  // null: detached, or over
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool wire_finished_ ABSL_GUARDED_BY(mutex_) = false;  // its last write or Finish was called
  bool cut_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time write_started_ ABSL_GUARDED_BY(mutex_);
  absl::Time wire_finished_at_ ABSL_GUARDED_BY(mutex_);
  absl::Time detached_at_ ABSL_GUARDED_BY(mutex_);

  // For Settle.
  bool is_live_ ABSL_GUARDED_BY(mutex_) = false;      // in live_calls
  bool is_kept_ ABSL_GUARDED_BY(mutex_) = false;      // in the resume board
  bool is_recorded_ ABSL_GUARDED_BY(mutex_) = false;  // in the journal
  std::vector<std::string> unwanted_ids_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_STREAM_SESSION_H_
