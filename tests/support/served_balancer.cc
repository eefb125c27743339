#include "tests/support/served_balancer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/check.h"

namespace trireme {

ServedBalancer::ServedBalancer(ServedBalancerOptions options) {
  auto server = serve::Server::Create(options.server);
  CHECK(server.ok());
  server_ = *std::move(server);
  for (const std::string& address : options.replicas) {
    options.forwarding.replicas.push_back(
        {absl::StrCat("r", options.forwarding.replicas.size() + 1), address});
  }
  options.forwarding.lease = "test";
  controller_ = balance::ForwardingController::Create(options.forwarding, SteadyClock());
  serve::ReplicaFacade facade;
  facade.controller = controller_.get();
  facade.model.id = "fake";
  facade.model.context_length = 100'000;
  facade.model.vocabulary_size = 300;
  facade.model.fingerprint = "f1";
  facade.model.is_balanced = true;
  server_->Open(facade);
  client_ = ServiceClient::Connect(address());
}

std::string ServedBalancer::address() const { return absl::StrCat("127.0.0.1:", server_->port()); }

bool ServedBalancer::WaitUntilServing(size_t replicas) {
  const absl::Time end = absl::Now() + absl::Seconds(10);
  while (absl::Now() < end) {
    size_t serving = 0;
    for (const balance::ReplicaView& view : controller_->Replicas()) {
      serving += view.state == "fresh" ? 1 : 0;
    }
    if (serving >= replicas) {
      return true;
    }
    absl::SleepFor(absl::Milliseconds(2));
  }
  return false;
}

}  // namespace trireme
