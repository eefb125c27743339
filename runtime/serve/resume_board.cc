#include "runtime/serve/resume_board.h"

namespace trireme::serve {
namespace {

// With the bytes that a session keeps at most this is half a gibibyte; usual ones take a hundredth.
constexpr size_t kEndedMax = 1024;

}  // namespace

void ResumeBoard::Put(const std::string& id, std::shared_ptr<StreamSession> session) {
  MutexLock lock(&mutex_);
  sessions_[id].swap(session);
}

std::shared_ptr<StreamSession> ResumeBoard::Find(absl::string_view id) const {
  MutexLock lock(&mutex_);
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second;
}

void ResumeBoard::NoteEnded(const std::string& id, const StreamSession* session) {
  std::shared_ptr<StreamSession> dropped;
  MutexLock lock(&mutex_);
  ended_.emplace_back(id, session);
  if (ended_.size() > kEndedMax) {
    dropped = Drop(ended_.front().first, ended_.front().second);
    ended_.pop_front();
  }
}

void ResumeBoard::Remove(const std::string& id, const StreamSession* session) {
  std::shared_ptr<StreamSession> dropped;
  MutexLock lock(&mutex_);
  dropped = Drop(id, session);
}

std::shared_ptr<StreamSession> ResumeBoard::Drop(const std::string& id,
                                                 const StreamSession* session) {
  std::shared_ptr<StreamSession> dropped;
  const auto found = sessions_.find(id);
  if (found != sessions_.end() && found->second.get() == session) {
    dropped = std::move(found->second);
    sessions_.erase(found);
  }
  return dropped;
}

}  // namespace trireme::serve
