// RegionCommunicator: the verbs over a Region, for the Thread and Shm kinds.
//
// AllReduceSum is one-shot (each rank reads and adds everything) to 2 KiB, else two-shot (each rank
// adds one part and puts the sums back where it found them): both add in tree order, to the same
// bits.
#ifndef TRIREME_RUNTIME_COMM_REGION_COMMUNICATOR_H_
#define TRIREME_RUNTIME_COMM_REGION_COMMUNICATOR_H_

#include <atomic>
#include <cstdint>
#include <functional>

#include "runtime/comm/communicator.h"
#include "runtime/comm/region.h"
#include "runtime/comm/shared_word.h"

namespace trireme::comm {

class RegionCommunicator final : public Communicator {
 public:
  // `check_peer(rank)` says whether a peer can still answer (OK) or why not; asked now and then
  // during long waits, from the waiting thread. May be empty: peers then live as long as we do.
  RegionCommunicator(Region region, int rank, std::function<absl::Status(int)> check_peer);

  int rank() const override { return rank_; }
  int size() const override { return region_.ranks(); }
  absl::Status AllReduceSum(absl::Span<float> values) override;
  absl::Status AllGather(absl::Span<const std::byte> mine, absl::Span<std::byte> all) override;
  absl::Status AllGatherVariable(absl::Span<const std::byte> mine,
                                 absl::Span<const int64_t> byte_counts,
                                 absl::Span<std::byte> all) override;
  absl::Status Broadcast(absl::Span<std::byte> bytes, int root) override;
  absl::Status Send(int peer, absl::Span<const std::byte> bytes) override;
  absl::Status Receive(int peer, absl::Span<std::byte> bytes) override;
  absl::Status Barrier() override;
  void Abort(absl::Status reason) override;
  bool IsWaiting() const override { return waiting_.load(std::memory_order_relaxed) > 0; }

 private:
  class RingWriter;
  struct GatherPlan;

  absl::Status Wait(SharedWord& word, uint32_t target, int peer, SpinBudget& budget);
  absl::Status BeginRound();
  void PublishRound(uint64_t note);
  absl::Status AwaitRound(int peer, uint64_t note);
  absl::Status AwaitRoundOfAll(uint64_t note);
  absl::Status ReduceChunk(absl::Span<float> values, uint64_t note);
  absl::Status ReduceChunkInParts(absl::Span<float> values, uint64_t note);
  absl::Status Gather(absl::Span<const std::byte> mine, const GatherPlan& plan,
                      absl::Span<std::byte> all);
  absl::Status Read(int peer, absl::Span<std::byte> bytes);

  Region region_;
  const int rank_;
  const std::function<absl::Status(int)> check_peer_;
  uint32_t round_ = 0;          // the thread of the collectives
  SpinBudget collective_spin_;  // the same
  SpinBudget send_spin_;        // the sending thread
  SpinBudget receive_spin_;     // the receiving thread
  std::atomic<int> waiting_{0};
};

}  // namespace trireme::comm

#endif  // TRIREME_RUNTIME_COMM_REGION_COMMUNICATOR_H_
