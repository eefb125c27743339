// Whether all ranks of a replica were started alike: the same program, model and settings. Asked
// once at start; a difference found later would be a wrong answer or a hang.
#ifndef TRIREME_RUNTIME_COMM_AGREEMENT_H_
#define TRIREME_RUNTIME_COMM_AGREEMENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_place.h"

namespace trireme::comm {

// Something that must be equal on all ranks, such as {"model", its hash}.
struct Fact {
  std::string name;   // at most 100 bytes
  std::string value;  // at most 4000 bytes; longer ones are compared by their beginning
};

// A collective; all ranks get the same answer. FailedPrecondition names the fact, the first two
// ranks that differ, their hosts and both values. `places` is [size()], as RankGroups has them.
absl::Status CheckAgreement(Communicator& world, absl::Span<const RankPlace> places,
                            absl::Span<const Fact> facts);

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_AGREEMENT_H_
