// The gRPC server of a replica: Inference, Engine and health on the public listener; Admin, health
// and reflection (and the others, so that reflection shows them) on the admin listener.
//
// Life: Create listens at once and answers UNAVAILABLE STARTING; Open, after the warm-up token,
// turns health SERVING. A drain announces NOT_SERVING, waits, finishes the open streams and shuts
// down. gRPC's own shutdown comes last, since it would cut streams without our statuses.
//
// Thread rule: any thread may call any method; the destructor shuts down.
#ifndef TRIREME_RUNTIME_SERVE_SERVER_H_
#define TRIREME_RUNTIME_SERVE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/serve/door.h"
#include "runtime/serve/reload_hook.h"
#include "runtime/serve/replica_facade.h"

namespace trireme::serve {

// A health name that exists only where faults are injected on purpose (ServerOptions).
inline constexpr char kFaultInjectionName[] = "trireme.FaultInjection";

struct ServerOptions {
  std::string listen = "127.0.0.1:0";  // HOST:PORT; port 0 takes a free one
  std::string admin_listen;  // HOST:PORT, or unix:PATH (mode 0600); empty: no admin listener
  bool reflection_on_public = false;
  int metadata_bytes_max = 16 << 10;
  int concurrent_streams_max = 1024;            // of one connection
  int64_t memory_bytes_max = int64_t{1} << 30;  // what gRPC may hold for all connections
  absl::Duration handshake_timeout = absl::Seconds(3);
  absl::Duration drain_announce = absl::Seconds(2);
  absl::Duration drain_deadline = absl::Seconds(120);
  DoorOptions door;
  bool fault_injection = false;  // health has kFaultInjectionName, SERVING or not like the rest
  std::function<StatusSnapshot()> status;  // for GetStatus; null: ranks are not shown
  ReloadHook reload;                       // for Reload; null: there is nothing to reload
};

class Server {
 public:
  // Errors: InvalidArgument for an address that means nothing, FailedPrecondition for one that is
  // taken or is not this machine's. `clock` must outlive the server; null: the steady clock.
  static absl::StatusOr<std::unique_ptr<Server>> Create(ServerOptions options,
                                                        Clock* clock = nullptr);
  virtual ~Server() = default;

  virtual int port() const = 0;
  virtual int admin_port() const = 0;  // 0 without one, or for a Unix socket

  // Once, when a warm-up token has come out of all ranks: requests are taken, health is SERVING.
  virtual void Open(ReplicaFacade replica) = 0;

  // Health only: NOT_SERVING while the replica makes no progress, SERVING when it does again.
  // Ignored before Open, in a drain and after a loss.
  virtual void SetServing(bool serving) = 0;

  // Starts a drain and returns; streams that run longer than `deadline` end with UNAVAILABLE
  // DRAINING. A second call ends the open streams now.
  virtual void Drain(absl::Duration deadline) = 0;

  // The replica is lost: ends every stream with `reason` (UNAVAILABLE, RANK_LOST and details) at
  // once and refuses new ones with it. Health is NOT_SERVING. The listeners stay until Shutdown.
  virtual void EndStreams(const absl::Status& reason) = 0;

  // Blocks until the ended streams have left, at most `patience`; true when none is left.
  virtual bool WaitForStreams(absl::Duration patience) = 0;

  // Stops listening and cuts what is still open; idempotent.
  virtual void Shutdown() = 0;

  // Blocks until the end of a drain or of Shutdown.
  virtual void Wait() = 0;
};

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_SERVER_H_
