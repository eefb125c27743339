#include "runtime/comm/mpi_communicator.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/cpu_relax.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/abort_state.h"
#include "runtime/comm/peer_communicator.h"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

// MPI counts are int; longer messages go in pieces of this size.
constexpr size_t kPieceBytesMax = size_t{1} << 30;
constexpr auto kSpin = std::chrono::microseconds(50);
constexpr auto kYield = std::chrono::microseconds(200);
constexpr auto kSleepMin = std::chrono::microseconds(20);
// At most 200 looks a second: about 0.2 % of a core.
constexpr auto kSleepMax = std::chrono::milliseconds(5);
// A sleep is this part of the wait so far, so it adds at most about an eighth to it.
constexpr int kSleepShare = 8;

std::string ErrorText(int error) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(error, text.data(), &length);
  return std::string(text.data(), static_cast<size_t>(length));
}

// What all groups of a world share, and the lock under which MPI is entered.
struct WorldState {
  std::mutex mutex;
  AbortState abort;
};

class MpiCommunicator final : public PeerCommunicator {
 public:
  MpiCommunicator(std::shared_ptr<WorldState> world, std::vector<int> members, int own_rank,
                  int tag)
      : PeerCommunicator(own_rank, static_cast<int>(members.size())),
        world_(std::move(world)),
        members_(std::move(members)),
        tag_(tag) {}

  void Abort(absl::Status reason) override { world_->abort.Set(std::move(reason)); }
  bool IsWaiting() const override { return waiting_.load(std::memory_order_relaxed) > 0; }

 protected:
  absl::Status Transfer(absl::Span<const Outgoing> sends,
                        absl::Span<const Incoming> receives) override;
  absl::Status State() const override { return world_->abort.Get(); }

 private:
  struct Request {
    int peer;
    size_t bytes;
    bool is_receive;
  };
  struct Pending {
    absl::InlinedVector<MPI_Request, 16> handles;
    absl::InlinedVector<MPI_Status, 16> statuses;
    absl::InlinedVector<Request, 16> requests;
  };

  absl::Status Post(absl::Span<const Outgoing> sends, absl::Span<const Incoming> receives,
                    Pending& pending);
  absl::StatusOr<bool> Test(Pending& pending);
  absl::Status CheckSizes(const Pending& pending);
  absl::Status Await(Pending& pending);

  const std::shared_ptr<WorldState> world_;  // shared with the other groups and the MpiWorld
  const std::vector<int> members_;           // [size()], world ranks
  const int tag_;
  std::atomic<int> waiting_{0};
};

absl::Status MpiCommunicator::Transfer(absl::Span<const Outgoing> sends,
                                       absl::Span<const Incoming> receives) {
  RETURN_IF_ERROR(world_->abort.Get());
  Pending pending;
  absl::Status status = Post(sends, receives, pending);
  if (status.ok()) {
    status = Await(pending);
  }
  if (status.ok()) {
    status = CheckSizes(pending);
  }
  if (!status.ok()) {
    // Requests may still be open on the caller's memory. Nobody enters MPI after this, so nothing
    // is ever written there.
    Abort(std::move(status));
    return world_->abort.Get();
  }
  return absl::OkStatus();
}

absl::Status MpiCommunicator::Post(absl::Span<const Outgoing> sends,
                                   absl::Span<const Incoming> receives, Pending& pending) {
  const auto post = [this, &pending](int peer, std::byte* bytes, size_t count, bool is_receive) {
    size_t begin = 0;
    do {
      const size_t piece = std::min(kPieceBytesMax, count - begin);
      MPI_Request handle = MPI_REQUEST_NULL;
      const int world_rank = members_[static_cast<size_t>(peer)];
      const int error = is_receive ? MPI_Irecv(bytes + begin, static_cast<int>(piece), MPI_BYTE,
                                               world_rank, tag_, MPI_COMM_WORLD, &handle)
                                   : MPI_Isend(bytes + begin, static_cast<int>(piece), MPI_BYTE,
                                               world_rank, tag_, MPI_COMM_WORLD, &handle);
      if (error != MPI_SUCCESS) {
        return absl::UnavailableError(
            absl::StrFormat("MPI message with rank %d: %s", peer, ErrorText(error)));
      }
      pending.handles.push_back(handle);
      pending.requests.push_back({.peer = peer, .bytes = piece, .is_receive = is_receive});
      begin += piece;
    } while (begin < count);
    return absl::OkStatus();
  };
  const std::lock_guard lock(world_->mutex);
  for (const Incoming& receive : receives) {
    RETURN_IF_ERROR(post(receive.peer, receive.bytes.data(), receive.bytes.size(), true));
  }
  for (const Outgoing& send : sends) {
    RETURN_IF_ERROR(
        post(send.peer, const_cast<std::byte*>(send.bytes.data()), send.bytes.size(), false));
  }
  pending.statuses.resize(pending.handles.size());
  return absl::OkStatus();
}

absl::StatusOr<bool> MpiCommunicator::Test(Pending& pending) {
  const std::lock_guard lock(world_->mutex);
  RETURN_IF_ERROR(world_->abort.Get());  // under the lock: after an abort MPI is not entered
  int done = 0;
  const int error = MPI_Testall(static_cast<int>(pending.handles.size()), pending.handles.data(),
                                &done, pending.statuses.data());
  if (error == MPI_SUCCESS) {
    return done != 0;
  }
  for (size_t i = 0; i < pending.statuses.size(); ++i) {
    int error_class = MPI_SUCCESS;
    MPI_Error_class(pending.statuses[i].MPI_ERROR, &error_class);
    const Request& request = pending.requests[i];
    if (request.is_receive && error_class == MPI_ERR_TRUNCATE) {
      return absl::InternalError(
          absl::StrFormat("ranks diverged: rank %d sent more than the %d bytes that rank %d "
                          "receives",
                          request.peer, request.bytes, rank()));
    }
  }
  return absl::UnavailableError(absl::StrFormat("MPI wait: %s", ErrorText(error)));
}

absl::Status MpiCommunicator::CheckSizes(const Pending& pending) {
  for (size_t i = 0; i < pending.requests.size(); ++i) {
    const Request& request = pending.requests[i];
    if (!request.is_receive) {
      continue;
    }
    int received = 0;
    MPI_Get_count(&pending.statuses[i], MPI_BYTE, &received);
    if (static_cast<size_t>(received) != request.bytes) {
      return absl::InternalError(
          absl::StrFormat("ranks diverged: rank %d sent %d bytes where rank %d receives %d",
                          request.peer, received, rank(), request.bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status MpiCommunicator::Await(Pending& pending) {
  const Clock::time_point start = Clock::now();
  bool is_counted = false;
  absl::StatusOr<bool> done = Test(pending);
  while (done.ok() && !*done) {
    const Clock::duration waited = Clock::now() - start;
    if (waited < kSpin) {
      CpuRelax();
    } else if (waited < kYield) {
      ::sched_yield();
    } else {
      if (!is_counted) {
        waiting_.fetch_add(1, std::memory_order_relaxed);
        is_counted = true;
      }
      std::this_thread::sleep_for(
          std::clamp<Clock::duration>(waited / kSleepShare, kSleepMin, kSleepMax));
    }
    done = Test(pending);
  }
  if (is_counted) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
  }
  return done.status();
}

class LibraryMpiWorld final : public MpiWorld {
 public:
  LibraryMpiWorld(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::unique_ptr<Communicator> MakeGroup(std::vector<int> members, int tag) override {
    CHECK(tag >= 0 && tag <= 32767);
    const auto found = std::find(members.begin(), members.end(), rank_);
    CHECK(found != members.end());
    const auto own_rank = static_cast<int>(found - members.begin());
    return std::make_unique<MpiCommunicator>(state_, std::move(members), own_rank, tag);
  }

  absl::Status Finish() override {
    const std::lock_guard lock(state_->mutex);
    RETURN_IF_ERROR(state_->abort.Get());
    const int error = MPI_Finalize();
    return error == MPI_SUCCESS ? absl::OkStatus() : absl::InternalError(ErrorText(error));
  }

  void AbortJob(int code) override {
    const std::lock_guard lock(state_->mutex);
    MPI_Abort(MPI_COMM_WORLD, code);
  }

 private:
  const int rank_;
  const int size_;
  const std::shared_ptr<WorldState> state_ = std::make_shared<WorldState>();
};

}  // namespace

bool IsStartedByMpi() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(name) != nullptr) {
      return true;
    }
  }
  return false;
}

int RankBeforeMpi() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char* const text = std::getenv(name);
    int rank = 0;
    if (text != nullptr && absl::SimpleAtoi(text, &rank)) {
      return rank;
    }
  }
  return 0;
}

absl::StatusOr<std::unique_ptr<MpiWorld>> MpiWorld::Create() {
  int provided = 0;
  const int error = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (error != MPI_SUCCESS) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "MPI does not start: error %d; is this process run by mpirun or srun?", error));
  }
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        absl::StrFormat("MPI offers thread level %d, wanted %d (serialized); use a library built "
                        "with threads",
                        provided, MPI_THREAD_SERIALIZED));
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<LibraryMpiWorld>(rank, size);
}

}  // namespace trireme::comm
