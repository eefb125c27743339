#include "runtime/serve/stream_pump.h"

#include <utility>

namespace trireme::serve {

StreamPump::StreamPump(Clock* clock) : clock_(clock), thread_([this] { Run(); }) {}

StreamPump::~StreamPump() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalOne();
  }
  thread_.join();
}

void StreamPump::Wake(std::shared_ptr<Client> client) {
  MutexLock lock(&mutex_);
  if (stopping_ || client->ready_) {
    return;
  }
  client->ready_ = true;
  ready_clients_.push_back(std::move(client));
  changed_.SignalOne();
}

void StreamPump::PumpHere(const std::shared_ptr<Client>& client) {
  const absl::Time next = client->Pump(clock_->Now());
  if (next != absl::InfiniteFuture() && absl::ToUnixNanos(next) < client->due_ns_) {
    Wake(client);  // its thread keeps the timers
  }
}

void StreamPump::Run() {
  std::vector<std::shared_ptr<Client>> clients;
  while (true) {
    {
      MutexLock lock(&mutex_);
      if (ready_clients_.empty() && !stopping_) {
        const absl::Duration pause = UntilNextTimer(clock_->Now());
        if (pause == absl::InfiniteDuration()) {
          changed_.Wait(&mutex_);
        } else if (pause > absl::ZeroDuration()) {
          changed_.WaitFor(&mutex_, pause);
        }
      }
      if (stopping_) {
        return;
      }
      clients.swap(ready_clients_);
      for (const std::shared_ptr<Client>& client : clients) {
        client->ready_ = false;
      }
    }
    for (const std::shared_ptr<Client>& client : clients) {
      RunClient(client);
    }
    clients.clear();
    const absl::Time now = clock_->Now();
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const int64_t due_ns = absl::ToUnixNanos(timers_.begin()->first);
      const std::shared_ptr<Client> client = timers_.begin()->second.lock();
      timers_.erase(timers_.begin());
      if (client != nullptr && client->due_ns_ == due_ns) {
        RunClient(client);
      }
    }
  }
}

absl::Duration StreamPump::UntilNextTimer(absl::Time now) const {
  return timers_.empty() ? absl::InfiniteDuration() : timers_.begin()->first - now;
}

void StreamPump::RunClient(const std::shared_ptr<Client>& client) {
  const absl::Time next = client->Pump(clock_->Now());
  // A later timer than the one that is set already is not needed: Pump says again what it wants
  // when that one fires.
  const bool passed = client->due_ns_ <= absl::ToUnixNanos(clock_->Now());
  if (next != absl::InfiniteFuture() && (passed || absl::ToUnixNanos(next) < client->due_ns_)) {
    client->due_ns_ = absl::ToUnixNanos(next);
    timers_.emplace(absl::FromUnixNanos(client->due_ns_), client);
  } else if (passed) {
    client->due_ns_ = std::numeric_limits<int64_t>::max();
  }
}

}  // namespace trireme::serve
