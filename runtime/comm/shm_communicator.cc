#include "runtime/comm/shm_communicator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/region.h"
#include "runtime/comm/region_communicator.h"

namespace trireme::comm {
namespace {

using SteadyClock = std::chrono::steady_clock;

// An open segment; its lock on the rank's byte lives as long as the file is open.
class SegmentFile {
 public:
  explicit SegmentFile(int descriptor) : descriptor_(descriptor) {}
  SegmentFile(SegmentFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  SegmentFile(const SegmentFile&) = delete;
  SegmentFile& operator=(const SegmentFile&) = delete;
  SegmentFile& operator=(SegmentFile&&) = delete;
  ~SegmentFile() {
    if (descriptor_ >= 0) {
      ::close(descriptor_);
    }
  }

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

struct flock LockOfRank(int rank) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = rank;
  lock.l_len = 1;
  return lock;
}

absl::Status HoldRank(const SegmentFile& file, const ShmOptions& options) {
  struct flock lock = LockOfRank(options.rank);
  if (::fcntl(file.descriptor(), F_OFD_SETLK, &lock) != 0) {
    return absl::FailedPreconditionError(absl::StrFormat(
        "rank %d of shared memory %s is already taken or cannot be locked: %s; each process "
        "needs its own rank",
        options.rank, options.name, std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status CheckRankIsHeld(const SegmentFile& file, int rank) {
  struct flock lock = LockOfRank(rank);
  if (::fcntl(file.descriptor(), F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK) {
    return absl::UnavailableError(absl::StrFormat(
        "rank %d of the shared-memory group is gone: its process ended or left the group", rank));
  }
  return absl::OkStatus();
}

absl::StatusOr<SegmentFile> CreateSegment(const ShmOptions& options, int64_t bytes) {
  SegmentFile file(::shm_open(options.name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  if (file.descriptor() < 0) {
    const int error = errno;
    const std::string text =
        absl::StrFormat("cannot create shared memory %s: %s", options.name, std::strerror(error));
    return error == EEXIST ? absl::AlreadyExistsError(text + "; use another name")
                           : absl::FailedPreconditionError(text);
  }
  // The lock first: who sees the segment at full size can then rely on rank 0 being held.
  absl::Status held = HoldRank(file, options);
  // Taken now, so that a full /dev/shm is an error here and not a bus error later.
  const int error = held.ok() ? ::posix_fallocate(file.descriptor(), 0, bytes) : 0;
  if (!held.ok() || error != 0) {
    ::shm_unlink(options.name.c_str());
    RETURN_IF_ERROR(held);
    return absl::ResourceExhaustedError(absl::StrFormat(
        "shared memory for %d ranks needs %d bytes: %s; enlarge /dev/shm (containers often give it "
        "64 MB only)",
        options.size, bytes, std::strerror(error)));
  }
  return file;
}

// Opens the segment once rank 0 has made it at full size.
absl::StatusOr<SegmentFile> OpenSegment(const ShmOptions& options, int64_t bytes,
                                        SteadyClock::time_point deadline) {
  while (true) {
    SegmentFile file(::shm_open(options.name.c_str(), O_RDWR | O_CLOEXEC, 0));
    struct stat status = {};
    if (file.descriptor() >= 0 && ::fstat(file.descriptor(), &status) == 0) {
      if (status.st_uid != ::geteuid() || status.st_size > bytes) {
        return absl::FailedPreconditionError(absl::StrFormat(
            "shared memory %s has %d bytes and owner %d, wanted %d bytes and owner %d; it belongs "
            "to another group",
            options.name, status.st_size, status.st_uid, bytes, ::geteuid()));
      }
      if (status.st_size == bytes) {
        return file;
      }
    } else if (errno != ENOENT) {
      return absl::FailedPreconditionError(
          absl::StrFormat("cannot open shared memory %s: %s", options.name, std::strerror(errno)));
    }
    if (SteadyClock::now() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrFormat("rank 0 did not create shared memory %s within %s", options.name,
                          absl::FormatDuration(options.attach_timeout)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::StatusOr<std::shared_ptr<std::byte>> MapSegment(const SegmentFile& file, int64_t bytes) {
  void* const address = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                               MAP_SHARED, file.descriptor(), 0);
  if (address == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("cannot map %d bytes of shared memory: %s", bytes, std::strerror(errno)));
  }
  return std::shared_ptr<std::byte>(static_cast<std::byte*>(address), [bytes](std::byte* mapped) {
    ::munmap(mapped, static_cast<size_t>(bytes));
  });
}

absl::Status AwaitAllAttached(Region& region, const ShmOptions& options,
                              SteadyClock::time_point deadline) {
  SharedWord& attached = region.attached();
  attached.value.fetch_add(1, std::memory_order_seq_cst);
  WakeSleepers(attached);
  SpinBudget budget;
  std::atomic<int> waiting{0};
  return WaitUntilAtLeast(attached, static_cast<uint32_t>(options.size), budget, waiting, [&] {
    if (SteadyClock::now() < deadline) {
      return region.AbortReason();
    }
    return absl::DeadlineExceededError(
        absl::StrFormat("%d of %d ranks attached to shared memory %s within %s",
                        attached.value.load(std::memory_order_relaxed), options.size, options.name,
                        absl::FormatDuration(options.attach_timeout)));
  });
}

absl::Status CheckOptions(const ShmOptions& options) {
  if (options.size < 1 || options.size > kRegionRanksMax || options.rank < 0 ||
      options.rank >= options.size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("rank %d of %d in shared memory: wanted 1 to %d ranks and a rank below",
                        options.rank, options.size, kRegionRanksMax));
  }
  if (!absl::StartsWith(options.name, "/") || options.name.size() < 2 ||
      options.name.size() > 200 || options.name.find('/', 1) != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "shared memory name \"%s\": wanted a slash and 1 to 199 letters without one",
        options.name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeShmCommunicator(const ShmOptions& options) {
  RETURN_IF_ERROR(CheckOptions(options));
  const auto deadline = SteadyClock::now() + absl::ToChronoNanoseconds(options.attach_timeout);
  const int64_t bytes = Region::Bytes(options.size);
  ASSIGN_OR_RETURN(SegmentFile opened, options.rank == 0 ? CreateSegment(options, bytes)
                                                         : OpenSegment(options, bytes, deadline));
  auto file = std::make_shared<SegmentFile>(std::move(opened));
  if (options.rank != 0) {
    RETURN_IF_ERROR(HoldRank(*file, options));
  }
  auto memory = MapSegment(*file, bytes);
  absl::Status status = memory.status();
  if (status.ok()) {
    Region region(*memory, options.size);
    status = AwaitAllAttached(region, options, deadline);
  }
  if (options.rank == 0) {
    ::shm_unlink(options.name.c_str());
  }
  RETURN_IF_ERROR(status);
  return std::make_unique<RegionCommunicator>(
      Region(*std::move(memory), options.size), options.rank,
      [file](int peer) { return CheckRankIsHeld(*file, peer); });
}

std::string MakeShmName() {
  std::random_device random;
  return absl::StrFormat("/trireme-%08x%08x%08x", random(), random(), random());
}

}  // namespace trireme::comm
