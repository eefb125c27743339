// What a sum over the ranks of one host costs: `mpirun -n RANKS --bind-to none all_reduce [ROUNDS]`
// times MPI_Allreduce, the Shm kind over the same processes, and the Thread kind with as many
// threads of rank 0, in turn in every round. Rank R runs on the R-th core, round and round. A call
// counts from when the last rank enters until the last has its sums, which are checked. Printed are
// the lowest median and 99th percentile of all rounds: what else runs on the machine disturbs some
// rounds more than others.

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "absl/types/span.h"
#include "runtime/base/check.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/shm_communicator.h"
#include "runtime/comm/thread_communicator.h"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<int64_t, 11> kKibibytes = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024};
constexpr int64_t kKibibytesPerRound = 8 * 1024;
constexpr size_t kWarmCalls = 10;
constexpr int kDefaultRounds = 15;

// Adds `values` over the ranks, in place.
using Sum = std::function<void(absl::Span<float> values)>;

struct Figures {
  double p50_us = std::numeric_limits<double>::infinity();
  double p99_us = std::numeric_limits<double>::infinity();

  void KeepLower(std::vector<double> times_us) {
    std::sort(times_us.begin(), times_us.end());
    p50_us = std::min(p50_us, times_us[times_us.size() / 2]);
    p99_us = std::min(p99_us, times_us[times_us.size() * 99 / 100]);
  }
};

// One row of the table.
struct Row {
  Figures mpi;
  Figures shm;
  Figures threads;
};

// What rank `rank` brings: small whole numbers, whose sums are exact in any order.
float Value(size_t index, int rank) { return static_cast<float>((index % 61) * (rank + 1)); }

struct Call {
  double begin_us;
  double end_us;
};

double NowMicroseconds() {
  // The clock of the host: all processes read the same.
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

// What each call took all ranks together, in us. Every rank of `group` calls it.
std::vector<double> TimeCalls(Communicator& group, int64_t kibibytes, const Sum& sum) {
  const auto count = static_cast<size_t>(kibibytes * 1024) / sizeof(float);
  std::vector<float> mine(count);
  for (size_t i = 0; i < count; ++i) {
    mine[i] = Value(i, group.rank());
  }
  std::vector<float> values(count);
  std::vector<Call> calls(
      static_cast<size_t>(std::clamp<int64_t>(kKibibytesPerRound / kibibytes, 60, 300)));
  for (Call& call : calls) {
    std::copy(mine.begin(), mine.end(), values.begin());
    CHECK(group.Barrier().ok());
    call.begin_us = NowMicroseconds();
    sum(absl::MakeSpan(values));
    call.end_us = NowMicroseconds();
  }
  const auto ranks = static_cast<size_t>(group.size());
  for (size_t i = 0; i < count; ++i) {
    CHECK_EQ(values[i], Value(i, 0) * static_cast<float>(ranks * (ranks + 1) / 2));
  }
  std::vector<Call> all(calls.size() * ranks);
  CHECK(group
            .AllGather(
                {reinterpret_cast<const std::byte*>(calls.data()), calls.size() * sizeof(Call)},
                {reinterpret_cast<std::byte*>(all.data()), all.size() * sizeof(Call)})
            .ok());
  std::vector<double> times_us;
  for (size_t call = kWarmCalls; call < calls.size(); ++call) {
    Call together = all[call];
    for (size_t i = call; i < all.size(); i += calls.size()) {
      together.begin_us = std::max(together.begin_us, all[i].begin_us);
      together.end_us = std::max(together.end_us, all[i].end_us);
    }
    times_us.push_back(together.end_us - together.begin_us);
  }
  return times_us;
}

void SumWithMpi(absl::Span<float> values) {
  CHECK_EQ(MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_FLOAT,
                         MPI_SUM, MPI_COMM_WORLD),
           MPI_SUCCESS);
}

// Keeps the calling thread on the core whose turn `rank` is, of those that it may use.
void StayOnCore(const cpu_set_t& cores, int rank) {
  int turn = rank % CPU_COUNT(&cores);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores) && turn-- == 0) {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(core, &one);
      CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    }
  }
}

std::vector<double> TimeThreads(const cpu_set_t& cores, int ranks, int64_t kibibytes) {
  auto group = MakeThreadCommunicators(ranks);
  CHECK(group.ok());
  std::vector<std::vector<double>> times_us(group->size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < group->size(); ++rank) {
    threads.emplace_back([&, rank] {
      Communicator& communicator = *(*group)[rank];
      StayOnCore(cores, communicator.rank());
      times_us[rank] =
          TimeCalls(communicator, kibibytes, [&communicator](absl::Span<float> values) {
            CHECK(communicator.AllReduceSum(values).ok());
          });
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return times_us[0];
}

std::unique_ptr<Communicator> MakeShmGroup(int rank, int size) {
  std::array<char, 64> name = {};
  if (rank == 0) {
    MakeShmName().copy(name.data(), name.size() - 1);
  }
  CHECK_EQ(MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, MPI_COMM_WORLD),
           MPI_SUCCESS);
  auto group = MakeShmCommunicator({.name = name.data(), .rank = rank, .size = size});
  if (!group.ok()) {
    std::fprintf(stderr, "%s\n", group.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(group);
}

void Print(int64_t kibibytes, const Row& row) {
  const auto print = [&row](const Figures& figures) {
    std::printf("  %9.2f %9.2f %6.1f", figures.p50_us, figures.p99_us,
                row.mpi.p50_us / figures.p50_us);
  };
  std::printf("%5d  %9.2f %9.2f", static_cast<int>(kibibytes), row.mpi.p50_us, row.mpi.p99_us);
  print(row.shm);
  print(row.threads);
  std::printf("\n");
}

// Threads of a process that mpirun has bound to one core would take turns on it.
cpu_set_t CoresOf(int rank, int ranks) {
  cpu_set_t cores;
  CHECK_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  const int wanted = std::min(ranks, static_cast<int>(std::thread::hardware_concurrency()));
  if (CPU_COUNT(&cores) < wanted) {
    if (rank == 0) {
      std::fprintf(stderr, "rank 0 is bound to %d cores, wanted %d: give mpirun --bind-to none\n",
                   CPU_COUNT(&cores), wanted);
    }
    MPI_Finalize();
    std::exit(64);
  }
  return cores;
}

int Run(int rounds) {
  int rank = 0;
  int ranks = 0;
  CHECK_EQ(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
  CHECK_EQ(MPI_Comm_size(MPI_COMM_WORLD, &ranks), MPI_SUCCESS);
  if (rounds < 1 || ranks < 2 || !IsReduceSize(ranks)) {
    std::fprintf(stderr, "%d rounds, %d ranks: wanted at least 1 round and 2, 4 or 8 ranks\n",
                 rounds, ranks);
    MPI_Finalize();
    return 64;
  }
  const cpu_set_t cores = CoresOf(rank, ranks);
  StayOnCore(cores, rank);
  const std::unique_ptr<Communicator> group = MakeShmGroup(rank, ranks);
  const Sum sum_with_shm = [&group](absl::Span<float> values) {
    CHECK(group->AllReduceSum(values).ok());
  };
  std::array<Row, kKibibytes.size()> rows;
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i].mpi.KeepLower(TimeCalls(*group, kKibibytes[i], SumWithMpi));
      rows[i].shm.KeepLower(TimeCalls(*group, kKibibytes[i], sum_with_shm));
      if (rank == 0) {
        rows[i].threads.KeepLower(TimeThreads(cores, ranks, kKibibytes[i]));
      }
      CHECK(group->Barrier().ok());  // the others sleep in it meanwhile
    }
  }
  if (rank == 0) {
    std::printf("%d ranks, %d rounds, us; x: how many times as fast as Open MPI (p50)\n", ranks,
                rounds);
    std::printf(
        "  KiB    MPI p50       p99    Shm p50       p99      x   Thr. p50       p99      x\n");
    for (size_t i = 0; i < rows.size(); ++i) {
      Print(kKibibytes[i], rows[i]);
    }
  }
  MPI_Finalize();
  return 0;
}

}  // namespace
}  // namespace trireme::comm

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  return trireme::comm::Run(argc > 1 ? std::atoi(argv[1]) : trireme::comm::kDefaultRounds);
}
