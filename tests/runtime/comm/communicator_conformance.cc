#include "tests/runtime/comm/communicator_conformance.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <limits>
#include <numeric>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"

namespace trireme::comm {
namespace {

using Bytes = std::vector<std::byte>;

// Test data is cut out of tables at places that differ by rank and message: making it value by
// value takes most of the test's time under a sanitizer.
template <typename T>
std::vector<T> CutFrom(const std::vector<T>& table, size_t place, size_t count) {
  const T* const begin = table.data() + place % (table.size() / 2);
  return std::vector<T>(begin, begin + count);
}

// Values on which the order of addition shows: huge, tiny and cancelling ones.
std::vector<float> AdversarialValues(int rank, size_t count, uint32_t seed) {
  static const std::vector<float>* const table = [] {
    static constexpr float kValues[] = {1e8F,        1.0F, -1e8F, 3.1415927F, 1e-8F, -1.0F,
                                        16777216.0F, 0.5F, -0.0F, 1e-40F,     7e7F,  -3.3333333F};
    std::mt19937 random(977);
    auto* values = new std::vector<float>(2 * 150'000);
    for (float& value : *values) {
      value = kValues[random() % std::size(kValues)];
    }
    return values;
  }();
  return CutFrom(*table, seed * 977U + static_cast<size_t>(rank) * 104'729U, count);
}

// The definition, one level after another: partial r + 2^l is added to partial r.
std::vector<float> SerialTreeSum(int size, size_t count, uint32_t seed) {
  std::vector<std::vector<float>> partials;
  for (int rank = 0; rank < size; ++rank) {
    partials.push_back(AdversarialValues(rank, count, seed));
  }
  for (size_t step = 1; step < partials.size(); step *= 2) {
    for (size_t left = 0; left < partials.size(); left += 2 * step) {
      for (size_t i = 0; i < count; ++i) {
        partials[left][i] += partials[left + step][i];
      }
    }
  }
  return partials[0];
}

void ExpectTreeSum(Communicator& communicator, size_t count, uint32_t seed) {
  std::vector<float> values = AdversarialValues(communicator.rank(), count, seed);
  const absl::Status status = communicator.AllReduceSum(absl::MakeSpan(values));
  ASSERT_TRUE(status.ok()) << status;
  const std::vector<float> want = SerialTreeSum(communicator.size(), count, seed);
  ASSERT_TRUE(count == 0 || std::memcmp(values.data(), want.data(), count * sizeof(float)) == 0)
      << "rank " << communicator.rank() << " differs in " << count << " values";
}

// What `rank` sends in message `message`.
Bytes PatternBytes(int rank, int message, size_t count) {
  static const Bytes* const table = [] {
    std::mt19937 random(31);
    auto* bytes = new Bytes(2 * (3 * 1024 * 1024 + 4096));
    for (std::byte& byte : *bytes) {
      byte = static_cast<std::byte>(random());
    }
    return bytes;
  }();
  return CutFrom(*table, static_cast<size_t>(rank) * 7919U + static_cast<size_t>(message) * 131U,
                 count);
}

bool AreEqual(const Bytes& a, const Bytes& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

// 0, 1, odd, around the slot and ring sizes of the shared-memory kinds, and 1 MiB and some.
constexpr size_t kByteCounts[] = {0,     1,     7,      64,     1000,        65527,  65528,
                                  65536, 65537, 262144, 262145, 1024 * 1024, 1048583};

void AddsInTreeOrder(Communicator& communicator) {
  if (!IsReduceSize(communicator.size())) {
    std::vector<float> values(4);
    EXPECT_EQ(communicator.AllReduceSum(absl::MakeSpan(values)).code(),
              absl::StatusCode::kInvalidArgument);
    return;
  }
  uint32_t seed = 1;
  for (const size_t count : {0, 1, 3, 17, 512, 513, 576, 4096, 8192, 8193, 65536, 65537, 131073}) {
    ExpectTreeSum(communicator, count, seed++);
  }
}

void GathersInRankOrder(Communicator& communicator) {
  int message = 0;
  for (const size_t count : kByteCounts) {
    Bytes want;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const Bytes part = PatternBytes(rank, message, count);
      want.insert(want.end(), part.begin(), part.end());
    }
    Bytes all(count * static_cast<size_t>(communicator.size()));
    const Bytes mine = PatternBytes(communicator.rank(), message, count);
    const absl::Status status = communicator.AllGather(mine, absl::MakeSpan(all));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(AreEqual(all, want)) << count << " bytes";
    // Again in place.
    std::fill(all.begin(), all.end(), std::byte{0});
    const absl::Span<std::byte> place =
        absl::MakeSpan(all).subspan(count * static_cast<size_t>(communicator.rank()), count);
    std::copy(mine.begin(), mine.end(), place.begin());
    ASSERT_TRUE(communicator.AllGather(place, absl::MakeSpan(all)).ok());
    ASSERT_TRUE(AreEqual(all, want)) << count << " bytes in place";
    ++message;
  }
}

void GathersDifferentSizes(Communicator& communicator) {
  for (const size_t unit : {0, 1, 1001, 100003}) {
    std::vector<int64_t> counts;
    Bytes want;
    for (int rank = 0; rank < communicator.size(); ++rank) {
      const size_t count = unit * static_cast<size_t>((rank + 2) % 3);  // 2, 0, 1, 2, 0, ... units
      counts.push_back(static_cast<int64_t>(count));
      const Bytes part = PatternBytes(rank, 5, count);
      want.insert(want.end(), part.begin(), part.end());
    }
    const Bytes mine =
        PatternBytes(communicator.rank(), 5,
                     static_cast<size_t>(counts[static_cast<size_t>(communicator.rank())]));
    Bytes all(want.size());
    const absl::Status status = communicator.AllGatherVariable(mine, counts, absl::MakeSpan(all));
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(AreEqual(all, want)) << "unit " << unit;
  }
}

void BroadcastsFromEveryRoot(Communicator& communicator) {
  for (int root = 0; root < communicator.size(); ++root) {
    for (const size_t count : kByteCounts) {
      const Bytes want = PatternBytes(root, 9, count);
      Bytes bytes = communicator.rank() == root ? want : Bytes(count);
      const absl::Status status = communicator.Broadcast(absl::MakeSpan(bytes), root);
      ASSERT_TRUE(status.ok()) << status;
      ASSERT_TRUE(AreEqual(bytes, want)) << count << " bytes from " << root;
    }
  }
}

void PassesMessagesRoundTheRing(Communicator& communicator) {
  const int size = communicator.size();
  const int next = (communicator.rank() + 1) % size;
  const int previous = (communicator.rank() + size - 1) % size;
  int message = 0;
  for (const size_t count : kByteCounts) {
    const Bytes mine = PatternBytes(communicator.rank(), message, count);
    Bytes got(count);
    const auto send = [&] {
      const absl::Status status = communicator.Send(next, mine);
      ASSERT_TRUE(status.ok()) << status;
    };
    const auto receive = [&] {
      const absl::Status status = communicator.Receive(previous, absl::MakeSpan(got));
      ASSERT_TRUE(status.ok()) << status;
    };
    // Send may wait for its receiver, so one rank of the ring receives first.
    if (communicator.rank() == 0) {
      receive();
      send();
    } else {
      send();
      receive();
    }
    ASSERT_TRUE(AreEqual(got, PatternBytes(previous, message, count))) << count << " bytes";
    ++message;
  }
}

void KeepsTheOrderOfMessagesBetweenAPair(Communicator& communicator) {
  constexpr int kMessages = 200;
  if (communicator.rank() == 0) {
    for (int message = 0; message < kMessages; ++message) {
      const Bytes bytes = PatternBytes(0, message, static_cast<size_t>(message * 37 % 1500));
      ASSERT_TRUE(communicator.Send(1, bytes).ok());
    }
  } else if (communicator.rank() == 1) {
    for (int message = 0; message < kMessages; ++message) {
      Bytes bytes(static_cast<size_t>(message * 37 % 1500));
      ASSERT_TRUE(communicator.Receive(0, absl::MakeSpan(bytes)).ok());
      ASSERT_TRUE(AreEqual(bytes, PatternBytes(0, message, bytes.size()))) << message;
    }
  }
}

void SendsWhileAnotherThreadReceives(Communicator& communicator) {
  // Both directions of a pair are full at once: only works when they do not wait for each other.
  if (communicator.rank() > 1) {
    return;
  }
  const int peer = 1 - communicator.rank();
  constexpr size_t kCount = 3 * 1024 * 1024;
  Bytes got(kCount);
  std::thread receiver([&] { EXPECT_TRUE(communicator.Receive(peer, absl::MakeSpan(got)).ok()); });
  EXPECT_TRUE(communicator.Send(peer, PatternBytes(communicator.rank(), 3, kCount)).ok());
  receiver.join();
  EXPECT_TRUE(AreEqual(got, PatternBytes(peer, 3, kCount)));
}

void BarrierWaitsForTheLastRank(Communicator& communicator) {
  // The last rank sends its news to all before it enters; the others have them after the barrier.
  const int last = communicator.size() - 1;
  for (int turn = 0; turn < 50; ++turn) {
    std::byte news{0};
    if (communicator.rank() == last) {
      news = std::byte{42};
    }
    ASSERT_TRUE(communicator.Broadcast(absl::MakeSpan(&news, 1), last).ok());
    ASSERT_TRUE(communicator.Barrier().ok());
    ASSERT_EQ(news, std::byte{42});
  }
}

void DoOneRandomVerb(Communicator& communicator, std::mt19937& random, int turn) {
  const size_t count = random() % 5000;
  const int root = static_cast<int>(random() % static_cast<uint32_t>(communicator.size()));
  const auto verb = random() % 6;
  const int rank = communicator.rank();
  if (verb == 0 && IsReduceSize(communicator.size())) {
    return ExpectTreeSum(communicator, count, static_cast<uint32_t>(turn));
  }
  if (verb == 1) {
    const Bytes mine = PatternBytes(rank, turn, count);
    Bytes all(count * static_cast<size_t>(communicator.size()));
    ASSERT_TRUE(communicator.AllGather(mine, absl::MakeSpan(all)).ok());
    Bytes want;
    for (int peer = 0; peer < communicator.size(); ++peer) {
      const Bytes part = PatternBytes(peer, turn, count);
      want.insert(want.end(), part.begin(), part.end());
    }
    ASSERT_TRUE(AreEqual(all, want));
  } else if (verb == 2) {
    Bytes bytes = rank == root ? PatternBytes(root, turn, count) : Bytes(count);
    ASSERT_TRUE(communicator.Broadcast(absl::MakeSpan(bytes), root).ok());
    ASSERT_TRUE(AreEqual(bytes, PatternBytes(root, turn, count)));
  } else if (verb == 3) {
    ASSERT_TRUE(communicator.Barrier().ok());
  } else if (communicator.size() > 1) {
    const int to = (root + 1) % communicator.size();
    if (rank == root) {
      ASSERT_TRUE(communicator.Send(to, PatternBytes(root, turn, count)).ok());
    } else if (rank == to) {
      Bytes bytes(count);
      ASSERT_TRUE(communicator.Receive(root, absl::MakeSpan(bytes)).ok());
      ASSERT_TRUE(AreEqual(bytes, PatternBytes(root, turn, count)));
    }
  }
}

void ManyRandomVerbsInARow(Communicator& communicator) {
  std::mt19937 random(20240607);  // the same on all ranks, so that they agree on the verbs
  for (int turn = 0; turn < 1000 && !testing::Test::HasFatalFailure(); ++turn) {
    DoOneRandomVerb(communicator, random, turn);
  }
}

double ThreadCpuSeconds() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

void ALongWaitCostsNoCpu(Communicator& communicator) {
  ASSERT_TRUE(communicator.Barrier().ok());
  constexpr double kWaitSeconds = 1.0;
  if (communicator.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::duration<double>(kWaitSeconds));
  }
  const double before = ThreadCpuSeconds();
  std::byte news{0};
  ASSERT_TRUE(communicator.Broadcast(absl::MakeSpan(&news, 1), 0).ok());
  // An idle rank may use 2 % of a core.
  EXPECT_LT(ThreadCpuSeconds() - before, 0.02 * kWaitSeconds);
}

const absl::Status& Reason() {
  static const absl::Status* const reason =
      new absl::Status(absl::UnavailableError("rank 7 on host nine is lost"));
  return *reason;
}

// Calls Abort from another thread once this rank waits (or another rank's abort has ended the
// wait).
class AbortOnceWaiting {
 public:
  explicit AbortOnceWaiting(Communicator& communicator)
      : thread_([this, &communicator] {
          while (!communicator.IsWaiting() && !wait_is_over_) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          communicator.Abort(Reason());
          communicator.Abort(absl::InternalError("a later reason changes nothing"));
        }) {}
  ~AbortOnceWaiting() {
    wait_is_over_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> wait_is_over_{false};
  std::thread thread_;
};

void AbortWakesAReceiver(Communicator& communicator) {
  {
    AbortOnceWaiting abort(communicator);
    const int peer = (communicator.rank() + 1) % communicator.size();
    std::byte news{0};
    EXPECT_EQ(communicator.Receive(peer, absl::MakeSpan(&news, 1)), Reason());
  }
  std::vector<float> values(3);
  EXPECT_EQ(communicator.Barrier(), Reason());
  EXPECT_EQ(communicator.Send(communicator.rank() == 0 ? 1 : 0, {}), Reason());
  EXPECT_EQ(communicator.Broadcast({}, 0), Reason());
  if (IsReduceSize(communicator.size())) {
    EXPECT_EQ(communicator.AllReduceSum(absl::MakeSpan(values)), Reason());
  }
}

void AbortWakesACollective(Communicator& communicator) {
  // The last rank never comes; the others end only through the abort.
  if (communicator.rank() == communicator.size() - 1) {
    return;
  }
  AbortOnceWaiting abort(communicator);
  EXPECT_EQ(communicator.Barrier(), Reason());
}

void SeesThatRanksDiverged(Communicator& communicator) {
  Bytes bytes(communicator.rank() == 0 ? 64 : 65);
  absl::Status status;
  if (communicator.rank() == 0) {
    status = communicator.Send(1, bytes);
  } else if (communicator.rank() == 1) {
    status = communicator.Receive(0, absl::MakeSpan(bytes));
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
    EXPECT_NE(status.message().find("64"), std::string::npos) << status;
    EXPECT_NE(status.message().find("65"), std::string::npos) << status;
  }
}

}  // namespace

const std::vector<ConformanceCase>& ConformanceCases() {
  static const auto* const cases = new std::vector<ConformanceCase>{
      {"AddsInTreeOrder", 1, AddsInTreeOrder, false},
      {"GathersInRankOrder", 1, GathersInRankOrder, false},
      {"GathersDifferentSizes", 1, GathersDifferentSizes, false},
      {"BroadcastsFromEveryRoot", 1, BroadcastsFromEveryRoot, false},
      {"PassesMessagesRoundTheRing", 2, PassesMessagesRoundTheRing, false},
      {"KeepsTheOrderOfMessagesBetweenAPair", 2, KeepsTheOrderOfMessagesBetweenAPair, false},
      {"SendsWhileAnotherThreadReceives", 2, SendsWhileAnotherThreadReceives, false},
      {"BarrierWaitsForTheLastRank", 1, BarrierWaitsForTheLastRank, false},
      {"ManyRandomVerbsInARow", 1, ManyRandomVerbsInARow, false},
      {"ALongWaitCostsNoCpu", 2, ALongWaitCostsNoCpu, false},
      {"AbortWakesAReceiver", 2, AbortWakesAReceiver, true},
      {"AbortWakesACollective", 2, AbortWakesACollective, true},
      {"SeesThatRanksDiverged", 2, SeesThatRanksDiverged, true},
  };
  return *cases;
}

void RunOnThreads(std::vector<std::unique_ptr<Communicator>>& group,
                  const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (const std::unique_ptr<Communicator>& communicator : group) {
    threads.emplace_back([&body, &communicator] { body(*communicator); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

std::string ConformanceTest::Name(const testing::TestParamInfo<ConformanceParameter>& info) {
  return absl::StrCat(info.param.kind, info.param.size);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ConformanceTest);

TEST_P(ConformanceTest, Holds) {
  for (const ConformanceCase& conformance_case : ConformanceCases()) {
    if (GetParam().size < conformance_case.ranks_min) {
      continue;
    }
    SCOPED_TRACE(conformance_case.name);
    std::vector<std::unique_ptr<Communicator>> group = GetParam().make(GetParam().size);
    ASSERT_EQ(group.size(), static_cast<size_t>(GetParam().size));
    RunOnThreads(group, conformance_case.run);
    ASSERT_FALSE(HasFailure()) << conformance_case.name;
  }
}

}  // namespace trireme::comm
