// Between the balancer's values and the messages that travel to and from replicas. Pure.
#ifndef TRIREME_RUNTIME_BALANCE_EXECUTE_MESSAGES_H_
#define TRIREME_RUNTIME_BALANCE_EXECUTE_MESSAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/balance/load_report.h"
#include "runtime/balance/request_facts.h"
#include "runtime/engine/response_stream.h"
#include "runtime/schedule/request.h"

namespace trireme::v1 {
class ChoiceFinished;
class ExecuteRequest;
class LoadReport;
}  // namespace trireme::v1

namespace trireme::balance {

LoadReport LoadReportOf(const v1::LoadReport& wire);

// The pointers of the result are into `request`.
RequestFacts FactsOf(const schedule::Request& request);

// What tells one attempt from another.
struct AttemptFacts {
  std::string request_id;  // unique in the fleet, not the client's: two balancers may serve one id
  uint32_t attempt = 0;
  uint64_t epoch = 0;
  std::vector<int32_t> emitted;
  absl::Duration budget_left = absl::InfiniteDuration();
  std::string lease;
};

void SetExecuteRequest(const schedule::Request& request, const AttemptFacts& attempt,
                       v1::ExecuteRequest* out);

// How a replica says that a choice ended, without usage and timings. Internal (BUG) for a reason
// that this build does not know.
absl::StatusOr<engine::Ending> EndingOf(const v1::ChoiceFinished& wire);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_EXECUTE_MESSAGES_H_
