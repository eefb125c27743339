// trireme.v1.Admin, for the operator.
#ifndef TRIREME_RUNTIME_SERVE_ADMIN_SERVICE_H_
#define TRIREME_RUNTIME_SERVE_ADMIN_SERVICE_H_

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "runtime/serve/door.h"
#include "runtime/serve/reload_hook.h"
#include "runtime/serve/replica_facade.h"

namespace grpc {
class Service;
}

namespace trireme::serve {

struct AdminHooks {
  std::function<StatusSnapshot()> status;              // null: nothing known of ranks. Any thread
  std::function<void(absl::Duration deadline)> drain;  // starts a drain and returns at once
  absl::Duration drain_deadline;                       // when a request names none
  ReloadHook reload;  // null: there is nothing to reload. May block
};

// `door` must outlive it.
std::shared_ptr<grpc::Service> MakeAdminService(Door* door, AdminHooks hooks);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_ADMIN_SERVICE_H_
