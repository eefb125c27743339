// A communicator with a seeded fault in it, for tests of what is built on communicators: verbs come
// late by random times, and one of them may fail or hang.
#ifndef TRIREME_TESTS_SUPPORT_FAULTY_COMMUNICATOR_H_
#define TRIREME_TESTS_SUPPORT_FAULTY_COMMUNICATOR_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>

#include "absl/time/time.h"
#include "runtime/comm/abort_state.h"
#include "runtime/comm/communicator.h"

namespace trireme::comm {

struct FaultPlan {
  uint32_t seed = 1;
  // Before each verb: with probability 1/4 a delay of up to this.
  absl::Duration delay_max = absl::ZeroDuration();
  // The verb (counted from 1) at which the fault comes; 0: none.
  int64_t fault_at_verb = 0;
  enum class Fault : uint8_t {
    kFail,  // aborts the group with Unavailable("injected fault") and returns that
    kHang,  // stays in the verb until Abort is called, like a rank that is stuck
  };
  Fault fault = Fault::kFail;
};

// Keeps the contract and the thread rule of `inner`, which it owns.
class FaultyCommunicator final : public Communicator {
 public:
  FaultyCommunicator(std::unique_ptr<Communicator> inner, const FaultPlan& plan);

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
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
  bool IsWaiting() const override { return inner_->IsWaiting(); }  // not while it hangs

  // How many verbs were called so far. Any thread.
  int64_t verbs() const { return verbs_.load(); }

 private:
  absl::Status BeforeVerb();

  const std::unique_ptr<Communicator> inner_;
  const FaultPlan plan_;
  std::atomic<int64_t> verbs_{0};
  AbortState abort_;
  std::mutex mutex_;
  std::condition_variable aborted_;
  std::mt19937 random_;  // guarded by mutex_
};

}  // namespace trireme::comm

#endif  // TRIREME_TESTS_SUPPORT_FAULTY_COMMUNICATOR_H_
