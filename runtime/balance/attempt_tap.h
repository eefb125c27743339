// One attempt as its replica answers it: checks that the events follow each other as the protocol
// says, and hands on what they mean. What breaks the order is a failure of the attempt, and what
// comes after it is not looked at.
#ifndef TRIREME_RUNTIME_BALANCE_ATTEMPT_TAP_H_
#define TRIREME_RUNTIME_BALANCE_ATTEMPT_TAP_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/balance/replica_link.h"
#include "runtime/balance/request_facts.h"
#include "runtime/engine/response_stream.h"

namespace trireme::v1 {
class ExecuteAccepted;
class ExecuteTokens;
}  // namespace trireme::v1

namespace trireme::balance {

// Who wants to know. Called on gRPC's threads, for one attempt one at a time: OnAccepted, OnTokens
// as often as there are, then OnFinished or OnFailed once, and OnOver last.
class AttemptObserver {
 public:
  virtual ~AttemptObserver() = default;
  virtual void OnAccepted(RequestKey request, uint32_t attempt,
                          const v1::ExecuteAccepted& accepted) = 0;
  // At least one token, of the right choice; logprobs for all of them or none.
  virtual void OnTokens(RequestKey request, uint32_t attempt, v1::ExecuteTokens& tokens) = 0;
  // `generated_tokens` by the replica's count; negative: it was lost before it told.
  virtual void OnFinished(RequestKey request, uint32_t attempt, int64_t generated_tokens,
                          const engine::Ending& ending, absl::string_view text_tail) = 0;
  virtual void OnFailed(RequestKey request, uint32_t attempt, const absl::Status& status,
                        absl::Duration retry_after) = 0;
  // The call is over; nothing more is heard of it.
  virtual void OnOver(RequestKey request, uint32_t attempt) = 0;
};

// `observer` must outlive the result. `choice` is the only one that the attempt may answer.
std::shared_ptr<AttemptListener> MakeAttemptTap(AttemptObserver* observer, RequestKey request,
                                                uint32_t attempt, uint32_t choice);

}  // namespace trireme::balance

#endif  // TRIREME_RUNTIME_BALANCE_ATTEMPT_TAP_H_
