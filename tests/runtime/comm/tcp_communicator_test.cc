#include "runtime/comm/tcp_communicator.h"

#include <gtest/gtest.h>

#include <utility>

#include "runtime/comm/socket.h"
#include "runtime/comm/thread_communicator.h"
#include "tests/runtime/comm/communicator_conformance.h"

namespace trireme::comm {
namespace {

// Ranks are threads that find each other through a Thread group and then talk TCP.
std::vector<std::unique_ptr<Communicator>> MakeGroupAt(int size, const std::string& identity) {
  auto world = MakeThreadCommunicators(size);
  EXPECT_TRUE(world.ok()) << world.status();
  TcpOptions options;
  for (int rank = 0; rank < size; ++rank) {
    options.places.push_back({.host = "here", .identity = rank == 0 ? "here" : identity});
  }
  std::vector<std::unique_ptr<Communicator>> group(static_cast<size_t>(size));
  RunOnThreads(*world, [&](Communicator& communicator) {
    auto made = MakeTcpCommunicator(communicator, options);
    ASSERT_TRUE(made.ok()) << made.status();
    group[static_cast<size_t>(communicator.rank())] = *std::move(made);
  });
  return group;
}

std::vector<std::unique_ptr<Communicator>> MakeGroup(int size) { return MakeGroupAt(size, "here"); }

INSTANTIATE_TEST_SUITE_P(Tcp, ConformanceTest,
                         testing::Values(ConformanceParameter{"Tcp", 1, MakeGroup},
                                         ConformanceParameter{"Tcp", 2, MakeGroup},
                                         ConformanceParameter{"Tcp", 3, MakeGroup},
                                         ConformanceParameter{"Tcp", 4, MakeGroup},
                                         ConformanceParameter{"Tcp", 8, MakeGroup}),
                         ConformanceTest::Name);

TEST(TcpCommunicatorTest, RanksOfSeveralHostsUseTheirInterfaces) {
  const auto addresses = LocalAddresses("");
  ASSERT_TRUE(addresses.ok());
  if (addresses->empty()) {
    GTEST_SKIP() << "this machine has no network interface but loopback";
  }
  std::vector<std::unique_ptr<Communicator>> group = MakeGroupAt(2, "there");
  RunOnThreads(group, [](Communicator& communicator) { EXPECT_TRUE(communicator.Barrier().ok()); });
}

TEST(TcpCommunicatorTest, APeerThatEndsEndsTheWait) {
  std::vector<std::unique_ptr<Communicator>> group = MakeGroup(3);
  group[2].reset();
  for (const size_t rank : {0, 1}) {
    std::byte byte{};
    const absl::Status status = group[rank]->Receive(2, absl::MakeSpan(&byte, 1));
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_NE(status.message().find("rank 2"), std::string::npos) << status;
    EXPECT_EQ(group[rank]->Barrier(), status);
  }
}

}  // namespace
}  // namespace trireme::comm
