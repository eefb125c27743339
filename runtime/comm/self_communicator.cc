#include "runtime/comm/self_communicator.h"

#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/abort_state.h"

namespace trireme::comm {
namespace {

class SelfCommunicator final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }

  absl::Status AllReduceSum(absl::Span<float>) override { return abort_.Get(); }

  absl::Status AllGather(absl::Span<const std::byte> mine, absl::Span<std::byte> all) override {
    CHECK_EQ(mine.size(), all.size());
    RETURN_IF_ERROR(abort_.Get());
    if (!mine.empty() && mine.data() != all.data()) {
      std::memcpy(all.data(), mine.data(), mine.size());
    }
    return absl::OkStatus();
  }

  absl::Status AllGatherVariable(absl::Span<const std::byte> mine,
                                 absl::Span<const int64_t> byte_counts,
                                 absl::Span<std::byte> all) override {
    CHECK_EQ(byte_counts.size(), 1U);
    CHECK_EQ(byte_counts[0], static_cast<int64_t>(mine.size()));
    return AllGather(mine, all);
  }

  absl::Status Broadcast(absl::Span<std::byte>, int root) override {
    CHECK_EQ(root, 0);
    return abort_.Get();
  }

  absl::Status Send(int peer, absl::Span<const std::byte>) override { return NoPeer(peer); }
  absl::Status Receive(int peer, absl::Span<std::byte>) override { return NoPeer(peer); }
  absl::Status Barrier() override { return abort_.Get(); }
  void Abort(absl::Status reason) override { abort_.Set(std::move(reason)); }
  bool IsWaiting() const override { return false; }

 private:
  static absl::Status NoPeer(int peer) {
    CHECK_LT(peer, 0);  // a group of one has no peer, so any peer is a caller's mistake
    return absl::InternalError("a group of one rank has no peers");
  }

  AbortState abort_;
};

}  // namespace

std::unique_ptr<Communicator> MakeSelfCommunicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace trireme::comm
