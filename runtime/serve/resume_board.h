// Streams that a client may come back to, by request id: those that run, and for the door's grace
// time those that have ended.
#ifndef TRIREME_RUNTIME_SERVE_RESUME_BOARD_H_
#define TRIREME_RUNTIME_SERVE_RESUME_BOARD_H_

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"

namespace trireme::serve {

class StreamSession;

class ResumeBoard {
 public:
  // Holds the session until Remove. One of the same id that has ended gives way. Any thread, as
  // all of these.
  void Put(const std::string& id, std::shared_ptr<StreamSession> session);
  // Null when there is none.
  std::shared_ptr<StreamSession> Find(absl::string_view id) const;
  // It has ended: beyond a thousand such the oldest are dropped, since each may hold its events.
  void NoteEnded(const std::string& id, const StreamSession* session);
  // Nothing when `id` means another session by now.
  void Remove(const std::string& id, const StreamSession* session);

 private:
  // The dropped one, so that it is destroyed without the lock.
  std::shared_ptr<StreamSession> Drop(const std::string& id, const StreamSession* session)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<StreamSession>> sessions_
      ABSL_GUARDED_BY(mutex_);
  // Oldest first; some are gone already.
  std::deque<std::pair<std::string, const StreamSession*>> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_RESUME_BOARD_H_
