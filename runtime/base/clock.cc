#include "runtime/base/clock.h"

#include <chrono>

#include "absl/time/time.h"

namespace trireme {
namespace {

class MachineClock : public Clock {
 public:
  absl::Time Now() override {
    return absl::UnixEpoch() +
           absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

}  // namespace

Clock* SteadyClock() {
  static MachineClock clock;
  return &clock;
}

}  // namespace trireme
