#include "runtime/comm/socket.h"

#include <gtest/gtest.h>

#include <thread>

namespace trireme::comm {
namespace {

TEST(SocketTest, ConnectedEndsExchangeBytesAndSeeTheClose) {
  auto listener = Listen(ListenScope::kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status();
  // The first address refuses: nothing listens there.
  auto client = Connect({"127.0.0.2", "127.0.0.1"}, listener->port, absl::Seconds(5));
  ASSERT_TRUE(client.ok()) << client.status();
  auto server = Accept(*listener, absl::Seconds(5));
  ASSERT_TRUE(server.ok()) << server.status();
  const std::byte sent[] = {std::byte{4}, std::byte{2}};
  ASSERT_TRUE(SendWithin(*client, sent, absl::Seconds(5)).ok());
  client->Close();
  std::byte received[2] = {};
  ASSERT_TRUE(ReceiveWithin(*server, absl::MakeSpan(received), absl::Seconds(5)).ok());
  EXPECT_EQ(received[0], std::byte{4});
  EXPECT_EQ(received[1], std::byte{2});
  EXPECT_EQ(ReceiveWithin(*server, absl::MakeSpan(received), absl::Seconds(5)).code(),
            absl::StatusCode::kUnavailable);
}

TEST(SocketTest, DeadlinesEndEveryWait) {
  auto listener = Listen(ListenScope::kLoopback);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_EQ(Accept(*listener, absl::Milliseconds(20)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  auto client = Connect({"127.0.0.1"}, listener->port, absl::Seconds(5));
  ASSERT_TRUE(client.ok()) << client.status();
  std::byte byte{};
  EXPECT_EQ(ReceiveWithin(*client, absl::MakeSpan(&byte, 1), absl::Milliseconds(20)).code(),
            absl::StatusCode::kDeadlineExceeded);
  const uint16_t port = listener->port;
  listener->socket.Close();
  const auto refused = Connect({"127.0.0.1"}, port, absl::Milliseconds(50));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kDeadlineExceeded) << refused.status();
  EXPECT_NE(refused.status().message().find("127.0.0.1"), std::string::npos);
}

TEST(SocketTest, AnAddressThatIsNoNumberIsNotLookedUp) {
  const auto socket = Connect({"localhost"}, 1, absl::Milliseconds(30));
  EXPECT_FALSE(socket.ok());
  EXPECT_NE(socket.status().message().find("not a numeric address"), std::string::npos)
      << socket.status();
}

TEST(SocketTest, AnUnknownInterfaceIsNamed) {
  EXPECT_TRUE(LocalAddresses("").ok());
  const auto addresses = LocalAddresses("nonsense7");
  EXPECT_EQ(addresses.status().code(), absl::StatusCode::kNotFound);
  EXPECT_NE(addresses.status().message().find("nonsense7"), std::string::npos);
}

TEST(SocketTest, AMovedSocketIsOwnedOnce) {
  auto listener = Listen(ListenScope::kAllInterfaces);
  ASSERT_TRUE(listener.ok()) << listener.status();
  Socket other = std::move(listener->socket);
  EXPECT_FALSE(listener->socket.is_open());
  EXPECT_TRUE(other.is_open());
  other = Socket();
  EXPECT_FALSE(other.is_open());
}

}  // namespace
}  // namespace trireme::comm
