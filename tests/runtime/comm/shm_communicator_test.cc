#include "runtime/comm/shm_communicator.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "runtime/comm/region.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

// All ranks attach in this process, each with its own mapping of the segment.
std::vector<std::unique_ptr<Communicator>> MakeGroup(int size) {
  const std::string name = MakeShmName();
  std::vector<std::unique_ptr<Communicator>> group(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&group, &name, rank, size] {
      auto made = MakeShmCommunicator({.name = name, .rank = rank, .size = size});
      EXPECT_TRUE(made.ok()) << made.status();
      group[static_cast<size_t>(rank)] = *std::move(made);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return group;
}

INSTANTIATE_TEST_SUITE_P(Shm, ConformanceTest,
                         testing::Values(ConformanceParameter{"Shm", 1, MakeGroup},
                                         ConformanceParameter{"Shm", 2, MakeGroup},
                                         ConformanceParameter{"Shm", 3, MakeGroup},
                                         ConformanceParameter{"Shm", 4, MakeGroup}),
                         ConformanceTest::Name);

bool NameExists(const std::string& name) {
  struct stat status = {};
  return ::stat(("/dev/shm" + name).c_str(), &status) == 0;
}

// Runs rank 1 of a group of two in a child process, which ends with _exit(body's result).
template <typename Body>
pid_t ForkRankOne(const std::string& name, Body body) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto communicator = MakeShmCommunicator({.name = name, .rank = 1, .size = 2});
    ::_exit(communicator.ok() ? body(**communicator) : 99);
  }
  return child;
}

int ExitCode(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ShmCommunicatorTest, AddsBetweenProcessesAndLeavesNoNameBehind) {
  const std::string name = MakeShmName();
  const pid_t child = ForkRankOne(name, [](Communicator& communicator) {
    float value = 2.0F;
    const bool added = communicator.AllReduceSum(absl::MakeSpan(&value, 1)).ok();
    return added && value == 5.0F ? 0 : 1;
  });
  auto communicator = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  EXPECT_FALSE(NameExists(name));
  float value = 3.0F;
  ASSERT_TRUE((*communicator)->AllReduceSum(absl::MakeSpan(&value, 1)).ok());
  EXPECT_EQ(value, 5.0F);
  EXPECT_EQ(ExitCode(child), 0);
}

TEST(ShmCommunicatorTest, AKilledPeerEndsTheWait) {
  const std::string name = MakeShmName();
  const pid_t child = ForkRankOne(name, [](Communicator&) {
    ::pause();
    return 0;
  });
  auto communicator = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  std::thread killer([&communicator, child] {
    while (!(*communicator)->IsWaiting()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ::kill(child, SIGKILL);
  });
  const absl::Status status = (*communicator)->Barrier();
  killer.join();
  EXPECT_EQ(ExitCode(child), 128 + SIGKILL);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_NE(status.message().find("rank 1"), std::string::npos) << status;
}

TEST(ShmCommunicatorTest, WhatAPeerSentBeforeItLeftIsReceived) {
  const std::string name = MakeShmName();
  const pid_t child = ForkRankOne(name, [](Communicator& communicator) {
    const std::byte news{42};
    return communicator.Send(0, absl::MakeSpan(&news, 1)).ok() ? 0 : 1;
  });
  auto communicator = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
  ASSERT_TRUE(communicator.ok()) << communicator.status();
  EXPECT_EQ(ExitCode(child), 0);
  std::byte news{0};
  ASSERT_TRUE((*communicator)->Receive(1, absl::MakeSpan(&news, 1)).ok());
  EXPECT_EQ(news, std::byte{42});
  EXPECT_EQ((*communicator)->Receive(1, absl::MakeSpan(&news, 1)).code(),
            absl::StatusCode::kUnavailable);
}

TEST(ShmCommunicatorTest, AMissingRankIsReportedAfterTheDeadline) {
  const std::string name = MakeShmName();
  const auto lonely = MakeShmCommunicator(
      {.name = name, .rank = 0, .size = 3, .attach_timeout = absl::Milliseconds(100)});
  EXPECT_EQ(lonely.status().code(), absl::StatusCode::kDeadlineExceeded) << lonely.status();
  EXPECT_NE(lonely.status().message().find("1 of 3"), std::string::npos) << lonely.status();
  EXPECT_FALSE(NameExists(name));
  const auto early = MakeShmCommunicator(
      {.name = name, .rank = 1, .size = 3, .attach_timeout = absl::Milliseconds(20)});
  EXPECT_EQ(early.status().code(), absl::StatusCode::kDeadlineExceeded) << early.status();
}

TEST(ShmCommunicatorTest, RefusesWrongNamesAndRanks) {
  const auto code = [](const std::string& name, int rank, int size) {
    return MakeShmCommunicator(
               {.name = name, .rank = rank, .size = size, .attach_timeout = absl::ZeroDuration()})
        .status()
        .code();
  };
  EXPECT_EQ(code("no-slash", 0, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("/", 0, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("/two/parts", 0, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("/" + std::string(300, 'a'), 0, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(MakeShmName(), 2, 2), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(MakeShmName(), 0, 65), absl::StatusCode::kInvalidArgument);
}

TEST(ShmCommunicatorTest, ATakenNameIsRefused) {
  const std::string name = MakeShmName();
  const int descriptor = ::shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);
  ASSERT_GE(descriptor, 0);
  const auto first = MakeShmCommunicator({.name = name, .rank = 0, .size = 2});
  EXPECT_EQ(first.status().code(), absl::StatusCode::kAlreadyExists) << first.status();
  ASSERT_EQ(::ftruncate(descriptor, Region::Bytes(2) + 1), 0);
  const auto second = MakeShmCommunicator({.name = name, .rank = 1, .size = 2});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition) << second.status();
  ::shm_unlink(name.c_str());
  ::close(descriptor);
}

}  // namespace
}  // namespace trireme::comm
