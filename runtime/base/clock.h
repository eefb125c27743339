// Time as a thing that is passed in, so that tests move it by hand (tests/support/manual_clock).
#ifndef TRIREME_RUNTIME_BASE_CLOCK_H_
#define TRIREME_RUNTIME_BASE_CLOCK_H_

#include "absl/time/time.h"

namespace trireme {

class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic: never goes back and ignores changes of the wall clock. Any thread. Only differences
  // mean something.
  virtual absl::Time Now() = 0;
};

// The machine's monotonic clock; lives for ever.
Clock* SteadyClock();

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_CLOCK_H_
