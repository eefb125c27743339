#include "runtime/serve/listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "runtime/serve/health_board.h"
#include "tests/support/service_client.h"

namespace trireme::serve {
namespace {

using testing::HasSubstr;

constexpr char kCheck[] = "/grpc.health.v1.Health/Check";

ListenerOptions Options(const std::string& address) {
  ListenerOptions options;
  options.address = address;
  options.request_bytes_max = 1 << 20;
  options.metadata_bytes_max = 16 << 10;
  options.concurrent_streams_max = 16;
  options.memory_bytes_max = 64 << 20;
  options.handshake_timeout = absl::Seconds(3);
  return options;
}

class ListenerTest : public testing::Test {
 protected:
  ListenerTest() { board_.Set("", Health::kServing); }

  absl::StatusOr<std::unique_ptr<Listener>> Listen(const std::string& address) {
    return Listener::Create(Options(address), {MakeHealthService(&board_)});
  }

  HealthBoard board_;
};

// G-9.
TEST_F(ListenerTest, RefusesAPortThatIsTaken) {
  const auto first = Listen("127.0.0.1:0").value();
  const std::string address = absl::StrCat("127.0.0.1:", first->port());
  const auto second = Listen(address);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(address));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another process listens there"));
}

TEST_F(ListenerTest, SaysWhatIsWrongWithAnAddress) {
  for (const char* address : {"", "localhost", ":7000", "127.0.0.1:x", "127.0.0.1:65536"}) {
    const auto listener = Listen(address);
    EXPECT_EQ(listener.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(listener.status().message()), HasSubstr("HOST:PORT"));
  }
  const auto unknown = Listen("no-such-host.invalid:0");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("no-such-host.invalid"));
}

TEST_F(ListenerTest, AUnixSocketIsTheOwnersAlone) {
  const std::string path = absl::StrCat(testing::TempDir(), "/listener-", getpid(), ".sock");
  {
    const auto listener = Listen(absl::StrCat("unix:", path)).value();
    EXPECT_EQ(listener->port(), 0);
    struct stat info = {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
    std::string response;
    EXPECT_TRUE(
        ServiceClient::Connect(absl::StrCat("unix:", path))->Call(kCheck, "", &response).ok());
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the socket is left behind";
}

}  // namespace
}  // namespace trireme::serve
