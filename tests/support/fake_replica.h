// A replica that misbehaves as told: a real gRPC Engine service whose answers and load reports are
// a script. For tests of who talks to replicas; a well-behaved one is ServedReplica.
#ifndef TRIREME_TESTS_SUPPORT_FAKE_REPLICA_H_
#define TRIREME_TESTS_SUPPORT_FAKE_REPLICA_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine.pb.h"

namespace trireme {

// What one Execute brings: the events at once and in order, then nothing for ever (until the caller
// cancels) or the status.
struct FakeAnswer {
  std::vector<v1::ExecuteEvent> events;
  bool hangs = false;
  absl::Status status;   // with a reason: our details go along
  bool is_bare = false;  // a status of gRPC's own, without details: the connection broke
};

class FakeReplica {
 public:
  using Script = std::function<FakeAnswer(const v1::ExecuteRequest& request)>;
  // `number` counts the reports of all watchers from 1.
  using Reports = std::function<v1::LoadReport(uint64_t number)>;

  // Reports that it serves until told otherwise, each 50 ms. Port 0: any.
  static std::unique_ptr<FakeReplica> Start(Script script, int port = 0);
  virtual ~FakeReplica() = default;

  virtual std::string address() const = 0;
  virtual int port() const = 0;
  virtual void SetReports(Reports reports) = 0;
  // No more reports, and no end of the watch either: as if it were stopped.
  virtual void FallSilent() = 0;
  virtual std::vector<v1::ExecuteRequest> executed() const = 0;
  // Calls that the other side ended.
  virtual int64_t cancelled() const = 0;
  virtual bool WaitUntilCancelled(int64_t count, absl::Duration patience) const = 0;
  virtual int64_t lease_pings() const = 0;
  virtual bool WaitUntilPinged(absl::Duration patience) const = 0;
  // Ends all calls and connections.
  virtual void Die() = 0;

  static v1::LoadReport ServingReport(uint64_t number);
};

// Events of an honest answer: accepted, the tokens of FakeController after what is emitted, up to
// `tokens` in all, each in an event of its own; with `with_end` also both ends.
std::vector<v1::ExecuteEvent> HonestEvents(const v1::ExecuteRequest& request, int64_t tokens,
                                           bool with_end);

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_FAKE_REPLICA_H_
