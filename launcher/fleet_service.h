// The Fleet service (proto/fleet.proto) on the supervisor's admin socket, and its client for
// `trireme status`, `drain` and `top`.
#ifndef TRIREME_LAUNCHER_FLEET_SERVICE_H_
#define TRIREME_LAUNCHER_FLEET_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "launcher/fleet_view.h"

namespace trireme::launcher {

// What the service may ask of the supervisor. Called on gRPC's threads; must not block. `done` is
// called once, on any thread.
struct FleetControl {
  using Done = std::function<void(const absl::Status&)>;
  std::function<FleetView()> view;
  // An empty name with restart: all children, one after the other.
  std::function<void(const std::string& name, bool restart, Done done)> drain;
  std::function<void()> stop;
};

class FleetServer {
 public:
  // Listens at once at HOST:PORT or unix:PATH. Errors as serve::Listener's.
  static absl::StatusOr<std::unique_ptr<FleetServer>> Listen(const std::string& address,
                                                             FleetControl control);
  virtual ~FleetServer() = default;
};

// Each is one call with a deadline of 5 s. Unavailable, naming the address, when no supervisor
// answers there; else the supervisor's own status.
absl::StatusOr<FleetView> GetFleet(const std::string& address);
absl::Status DrainChild(const std::string& address, const std::string& name, bool restart);
absl::Status StopFleet(const std::string& address);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_FLEET_SERVICE_H_
