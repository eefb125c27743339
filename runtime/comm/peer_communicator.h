// PeerCommunicator: the collectives as patterns of messages between pairs, for kinds whose one
// means is a message (Tcp, Mpi). AllReduceSum is recursive doubling, which is the tree order.
#ifndef TRIREME_RUNTIME_COMM_PEER_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_PEER_COMMUNICATOR_H_

#include <vector>

#include "runtime/comm/communicator.h"

namespace trireme::comm {

class PeerCommunicator : public Communicator {
 public:
  int rank() const final { return rank_; }
  int size() const final { return size_; }
  absl::Status AllReduceSum(absl::Span<float> values) final;
  absl::Status AllGather(absl::Span<const std::byte> mine, absl::Span<std::byte> all) final;
  absl::Status AllGatherVariable(absl::Span<const std::byte> mine,
                                 absl::Span<const int64_t> byte_counts,
                                 absl::Span<std::byte> all) final;
  absl::Status Broadcast(absl::Span<std::byte> bytes, int root) final;
  absl::Status Send(int peer, absl::Span<const std::byte> bytes) final;
  absl::Status Receive(int peer, absl::Span<std::byte> bytes) final;
  absl::Status Barrier() final;

 protected:
  PeerCommunicator(int rank, int size);

  struct Outgoing {
    int peer;
    absl::Span<const std::byte> bytes;
  };
  struct Incoming {
    int peer;
    absl::Span<std::byte> bytes;
  };

  // Sends and receives all of these messages, at most one a peer and direction, and returns when
  // the spans are no longer needed; empty messages count. One thread may be in a call with sends
  // while another is in one with receives only. After an error every call fails.
  virtual absl::Status Transfer(absl::Span<const Outgoing> sends,
                                absl::Span<const Incoming> receives) = 0;

  // OK until Abort or a loss; the verbs ask it where nothing has to be transferred.
  virtual absl::Status State() const = 0;

 private:
  absl::Status Gather(absl::Span<const std::byte> mine, absl::Span<const int64_t> byte_counts,
                      absl::Span<std::byte> all);

  const int rank_;
  const int size_;
  // The thread of the collectives; kept, so that a step allocates nothing.
  std::vector<Outgoing> sends_;
  std::vector<Incoming> receives_;
  std::vector<float> partner_values_;
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_PEER_COMMUNICATOR_H_
