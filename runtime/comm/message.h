// Messages whose size only the sender knows, over any Communicator: the length goes first and is
// checked against a limit before anything is allocated.
#ifndef TRIREME_RUNTIME_COMM_MESSAGE_H_
#define TRIREME_RUNTIME_COMM_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

// Pairs with ReceiveMessage on `peer`. Errors and thread rule: those of Communicator::Send.
absl::Status SendMessage(Communicator& communicator, int peer, absl::string_view message);

// Receives into `message`, whose memory is used again when it suffices (a step allocates nothing).
// ResourceExhausted, which ends the use of the group, when the peer announces more than
// `bytes_max`.
absl::Status ReceiveMessage(Communicator& communicator, int peer, int64_t bytes_max,
                            std::string& message);

// A collective: `message` of `root` replaces that of every other rank. The limit holds as above.
absl::Status BroadcastMessage(Communicator& communicator, int root, int64_t bytes_max,
                              std::string& message);

// A collective: every rank's message, index = rank. The limit holds for each of them.
absl::StatusOr<std::vector<std::string>> GatherMessages(Communicator& communicator,
                                                        absl::string_view mine, int64_t bytes_max);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_MESSAGE_H_
