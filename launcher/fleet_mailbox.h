// FleetMailbox: what gRPC's threads leave for the thread that runs a fleet (load reports,
// operators' wishes), and what that thread hangs out for them (the view).
#ifndef TRIREME_LAUNCHER_FLEET_MAILBOX_H_
#define TRIREME_LAUNCHER_FLEET_MAILBOX_H_

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "launcher/fleet_service.h"
#include "launcher/fleet_view.h"
#include "runtime/base/mutex.h"

namespace trireme::launcher {

// Any thread may put and read; one takes.
class FleetMailbox {
 public:
  struct LoadMail {
    int child;
    uint64_t epoch;
    LoadView load;
  };
  struct Wish {
    std::string name;
    bool restart = false;
    bool stop = false;
    FleetControl::Done done;
  };

  FleetMailbox() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~FleetMailbox() { ::close(event_); }

  // Readable when there is a wish.
  int descriptor() const { return event_; }

  void PutLoad(LoadMail mail) {
    MutexLock lock(&mutex_);
    loads_.push_back(std::move(mail));
  }
  void PutWish(Wish wish) {
    {
      MutexLock lock(&mutex_);
      wishes_.push_back(std::move(wish));
    }
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event_, &one, sizeof(one));
  }
  std::vector<LoadMail> TakeLoads() {
    MutexLock lock(&mutex_);
    return std::exchange(loads_, {});
  }
  std::vector<Wish> TakeWishes() {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(event_, &count, sizeof(count));
    MutexLock lock(&mutex_);
    return std::exchange(wishes_, {});
  }
  void SetView(FleetView view) {
    MutexLock lock(&mutex_);
    view_ = std::move(view);
  }
  FleetView view() {
    MutexLock lock(&mutex_);
    return view_;
  }

 private:
  const int event_;
  Mutex mutex_;
  std::vector<LoadMail> loads_ ABSL_GUARDED_BY(mutex_);
  std::vector<Wish> wishes_ ABSL_GUARDED_BY(mutex_);
  FleetView view_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_MAILBOX_H_
