// The pings with which a balancer keeps its attempts at one replica alive (proto: Engine.Lease).
#ifndef TRIREME_RUNTIME_BALANCE_LEASE_CALL_H_
#define TRIREME_RUNTIME_BALANCE_LEASE_CALL_H_

#include <functional>
#include <memory>
#include <string>

// Named only, so that no gRPC header is needed here.
namespace grpc {
class Channel;
}

namespace trireme::balance {

class LeaseCall {
 public:
  // `on_done` comes once, on one of gRPC's threads, when the call is over.
  static std::shared_ptr<LeaseCall> Start(const std::shared_ptr<grpc::Channel>& channel,
                                          const std::string& lease,
                                          std::function<void(const LeaseCall*)> on_done);
  virtual ~LeaseCall() = default;

  // Skipped while the last one is on its way out. Any thread, as Cancel.
  virtual void Ping() = 0;
  virtual void Cancel() = 0;
};

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_LEASE_CALL_H_
