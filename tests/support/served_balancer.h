// A running balancer over replicas at given addresses, and a client connected to it. For tests.
#ifndef TRIREME_TESTS_SUPPORT_SERVED_BALANCER_H_
#define TRIREME_TESTS_SUPPORT_SERVED_BALANCER_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/balance/forwarding_controller.h"
#include "runtime/serve/server.h"
#include "tests/support/service_client.h"

namespace trireme {

struct ServedBalancerOptions {
  std::vector<std::string> replicas;  // addresses; their names are r1, r2, ...
  balance::ForwardingOptions forwarding;
  serve::ServerOptions server;
};

class ServedBalancer {
 public:
  explicit ServedBalancer(ServedBalancerOptions options);

  balance::ForwardingController& controller() { return *controller_; }
  ServiceClient& client() { return *client_; }
  std::string address() const;
  // Until so many replicas take requests; false after ten seconds.
  bool WaitUntilServing(size_t replicas);

 private:
  std::unique_ptr<serve::Server> server_;
  std::unique_ptr<balance::ForwardingController> controller_;
  std::unique_ptr<ServiceClient> client_;
};

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_SERVED_BALANCER_H_
