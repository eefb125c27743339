#include "runtime/engine/response_stream.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace trireme::engine {
namespace {

// More is not reserved ahead: a reader that keeps up never has so many unread, and 32 KiB for each
// of some hundred streams is what a slow one may cost at rest.
constexpr int64_t kReservedTokensMax = 4096;
constexpr int64_t kTextBytesPerToken = 4;

void Empty(Delta* delta) {
  delta->accepted = false;
  delta->fingerprint.clear();
  delta->first_position = 0;
  delta->token_ids.clear();
  delta->logprobs.clear();
  delta->text.clear();
  delta->text_tail_bytes = 0;
  delta->ending.reset();
}

}  // namespace

ResponseStream::ResponseStream(int64_t expected_tokens)
    : reserved_tokens_(
          static_cast<size_t>(std::clamp<int64_t>(expected_tokens, 0, kReservedTokensMax))) {
  Reserve(&pending_);
}

void ResponseStream::Reserve(Delta* delta) const {
  delta->token_ids.reserve(reserved_tokens_);
  delta->text.reserve(reserved_tokens_ * kTextBytesPerToken);
}

void ResponseStream::SetListener(std::function<void()> listener) {
  listener_ = std::move(listener);
}

bool ResponseStream::Take(Delta* delta) {
  Empty(delta);
  // The engine writes into this memory next, so the reader is the one who takes it.
  Reserve(delta);
  MutexLock lock(&mutex_);
  if (!has_pending_) {
    return false;
  }
  delta->logprobs.reserve(pending_.logprobs.capacity());
  std::swap(*delta, pending_);
  pending_.first_position = next_position_;
  has_pending_ = false;
  return true;
}

void ResponseStream::Wait() {
  MutexLock lock(&mutex_);
  while (!has_pending_ && !ended_) {
    news_.Wait(&mutex_);
  }
}

void ResponseStream::Cancel() { cancelled_.store(true, std::memory_order_relaxed); }

bool ResponseStream::cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

void ResponseStream::Accept(int64_t first_position, absl::string_view fingerprint) {
  {
    MutexLock lock(&mutex_);
    CHECK(!ended_);
    next_position_ = first_position;
    pending_.first_position = first_position;
    pending_.accepted = true;
    pending_.fingerprint.assign(fingerprint.data(), fingerprint.size());
    has_pending_ = true;
    news_.SignalAll();
  }
  Notify();
}

void ResponseStream::Push(int32_t token_id, std::optional<float> logprob, absl::string_view text) {
  {
    MutexLock lock(&mutex_);
    CHECK(!ended_);
    pending_.token_ids.push_back(token_id);
    if (logprob.has_value()) {
      pending_.logprobs.reserve(reserved_tokens_);
      pending_.logprobs.push_back(*logprob);
    }
    pending_.text.append(text.data(), text.size());
    ++next_position_;
    has_pending_ = true;
    news_.SignalAll();
  }
  Notify();
}

void ResponseStream::PushAll(absl::Span<const int32_t> token_ids, absl::Span<const float> logprobs,
                             absl::string_view text) {
  CHECK(logprobs.empty() || logprobs.size() == token_ids.size());
  {
    MutexLock lock(&mutex_);
    CHECK(!ended_);
    pending_.token_ids.insert(pending_.token_ids.end(), token_ids.begin(), token_ids.end());
    pending_.logprobs.insert(pending_.logprobs.end(), logprobs.begin(), logprobs.end());
    pending_.text.append(text.data(), text.size());
    next_position_ += static_cast<int64_t>(token_ids.size());
    has_pending_ = true;
    news_.SignalAll();
  }
  Notify();
}

void ResponseStream::Finish(Ending ending, absl::string_view text_tail) {
  {
    MutexLock lock(&mutex_);
    CHECK(!ended_);
    pending_.text.append(text_tail.data(), text_tail.size());
    pending_.text_tail_bytes = text_tail.size();
    pending_.ending = std::move(ending);
    has_pending_ = true;
    news_.SignalAll();
    ended_ = true;
  }
  Notify();
}

void ResponseStream::Notify() {
  if (listener_ != nullptr) {
    listener_();
  }
}

}  // namespace trireme::engine
