// LoadWatch: hears the load reports of one running replica or balancer (Engine.WatchLoad), for the
// supervisor's table and as a sign of life. Connects again and again until it is destroyed.
#ifndef TRIREME_LAUNCHER_LOAD_WATCH_H_
#define TRIREME_LAUNCHER_LOAD_WATCH_H_

#include <functional>
#include <memory>
#include <string>

#include "launcher/fleet_view.h"

namespace trireme::launcher {

class LoadWatch {
 public:
  // Called on the watch's own thread; must not block. `epoch` is the replica's.
  using OnLoad = std::function<void(uint64_t epoch, const LoadView& load)>;

  // `address`: HOST:PORT or unix:PATH.
  static std::unique_ptr<LoadWatch> Start(const std::string& address, OnLoad on_load);

  virtual ~LoadWatch() = default;  // no call comes after it
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_LOAD_WATCH_H_
