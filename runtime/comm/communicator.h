// Communicator: how the ranks of one group exchange bytes and add partial results.
//
// Kinds: Self (one rank), Thread (ranks are threads of one process), Shm (processes of one host),
// Tcp (processes anywhere; waits cost nothing), Mpi (processes anywhere; fastest networks). All
// keep the contract below, which tests/runtime/comm/communicator_conformance.h holds them to.
// Not for device memory and not for finding peers: groups.h builds the groups of a replica.
//
// Terms: a rank is an index within this group, 0 to size() - 1. A collective is a verb that every
// rank of the group calls, in the same order and with matching sizes.
#ifndef TRIREME_RUNTIME_COMM_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_COMMUNICATOR_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace trireme::comm {

// The group sizes that AllReduceSum adds over: whole levels of one binary tree of at most 8 leaves
// (docs/architecture.md, exactness).
inline constexpr int kReduceRanksMax = 8;
inline constexpr bool IsReduceSize(int size) {
  return size >= 1 && size <= kReduceRanksMax && (size & (size - 1)) == 0;
}

// Thread rule: collectives and Send are called by one thread at a time; Receive by one thread at a
// time, which may be another one. Abort and IsWaiting: any thread. Spans are only used during the
// call.
//
// Errors: after Abort, and after the loss of a peer, every verb returns the reason for ever; a rank
// in that state has nothing to do but leave. Sizes that differ between ranks are reported as
// Internal ("rank 1 is in ..."), where they can be seen. A rank or span that cannot be right in
// itself (root out of range, `all` not size() times `mine`) is a bug of the caller and a CHECK.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Adds `values` over the ranks, in place; every rank gets the same bits. The order is a binary
  // tree: at level l rank r pairs with r XOR 2^l, and the sum is left + right with the lower rank's
  // partial on the left, in float32. A rank with nothing to add brings -0.0f, the value that
  // changes no sum. InvalidArgument where size() is not 1, 2, 4 or 8.
  virtual absl::Status AllReduceSum(absl::Span<float> values) = 0;

  // Every rank's `mine` after another, in rank order, into `all` [size() * mine.size()]. `mine` may
  // be its own place within `all`, but must not overlap it otherwise.
  virtual absl::Status AllGather(absl::Span<const std::byte> mine, absl::Span<std::byte> all) = 0;

  // The same with `byte_counts` [size()] bytes from each rank (0 is allowed); all ranks pass the
  // same counts. mine.size() is byte_counts[rank()], all.size() is their sum.
  virtual absl::Status AllGatherVariable(absl::Span<const std::byte> mine,
                                         absl::Span<const int64_t> byte_counts,
                                         absl::Span<std::byte> all) = 0;

  // `bytes` of `root` to every rank. The root may return before the others have it.
  virtual absl::Status Broadcast(absl::Span<std::byte> bytes, int root) = 0;

  // One message between two different ranks, matched by one Receive of the same size; messages
  // between a pair keep their order. Send may return early or wait until the peer receives.
  virtual absl::Status Send(int peer, absl::Span<const std::byte> bytes) = 0;
  virtual absl::Status Receive(int peer, absl::Span<std::byte> bytes) = 0;

  // Returns when every rank has called it.
  virtual absl::Status Barrier() = 0;

  // Ends the use of the group: every waiter of this process in any verb returns `reason` (not OK)
  // at once, later verbs too. The first reason stays. Thread and Shm wake all ranks of the group;
  // the other kinds leave remote ranks to the control link (control_link.h).
  virtual void Abort(absl::Status reason) = 0;

  // True while a verb of this rank has waited for a peer for longer than a moment: then a step that
  // does not finish is not this rank's fault.
  virtual bool IsWaiting() const = 0;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_COMMUNICATOR_H_
