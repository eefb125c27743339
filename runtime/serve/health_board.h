// grpc.health.v1: which names are SERVING. Our own, because gRPC's default service says SERVING
// from its first moment and sends no NOT_SERVING before a shutdown.
#ifndef TRIREME_RUNTIME_SERVE_HEALTH_BOARD_H_
#define TRIREME_RUNTIME_SERVE_HEALTH_BOARD_H_

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "runtime/base/mutex.h"

namespace grpc {
class Service;
}

namespace trireme::serve {

enum class Health : uint8_t { kUnknownService, kNotServing, kServing };

// Any thread may call any of these.
class HealthBoard {
 public:
  // Hears of changes; called with the board's lock held, so it must not call the board.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    virtual void OnHealth(Health health) = 0;
    virtual void OnShutdown() = 0;
  };

  void Set(const std::string& name, Health health);
  void SetAll(Health health);  // of the names that are set
  Health Get(const std::string& name) const;

  // Calls OnHealth at once and at each change until Remove; after Shutdown, OnShutdown instead.
  void Add(const std::string& name, Watcher* watcher);
  void Remove(const std::string& name, Watcher* watcher);

  // Ends every watch, those that come later too.
  void Shutdown();

 private:
  void Tell(const std::string& name, Health health) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::map<std::string, Health> healths_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::set<Watcher*>> watchers_ ABSL_GUARDED_BY(mutex_);
  bool shut_down_ ABSL_GUARDED_BY(mutex_) = false;
};

// `board` must outlive it. Several may share one board: each listener has its own.
std::shared_ptr<grpc::Service> MakeHealthService(HealthBoard* board);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_HEALTH_BOARD_H_
