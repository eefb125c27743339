// The group of one rank: collectives are copies, and there is nobody to send to.
#ifndef TRIREME_RUNTIME_COMM_SELF_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_SELF_COMMUNICATOR_H_

#include <memory>

#include "runtime/comm/communicator.h"

namespace trireme::comm {

// The caller owns the result. Never fails.
std::unique_ptr<Communicator> MakeSelfCommunicator();

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_SELF_COMMUNICATOR_H_
