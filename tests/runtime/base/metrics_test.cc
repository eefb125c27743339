#include "runtime/base/metrics.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MetricsTest, TextHasWhatWasCounted) {
  Metrics metrics;
  metrics.Counter("trireme_requests_total", {{"outcome", "ok"}}).Increment();
  metrics.Counter("trireme_requests_total", {{"outcome", "ok"}}).Increment(2);
  metrics.Gauge("trireme_epoch").Set(7);
  metrics.Histogram("trireme_ttft_seconds").Observe(0.03);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("# TYPE trireme_requests_total counter\n"));
  EXPECT_THAT(text, HasSubstr("trireme_requests_total{outcome=\"ok\"} 3"));
  EXPECT_THAT(text, HasSubstr("trireme_epoch 7"));
  // 0.03 s lies above the 0.02 bucket and below the 0.05 one.
  EXPECT_THAT(text, HasSubstr("trireme_ttft_seconds_bucket{le=\"0.02\"} 0"));
  EXPECT_THAT(text, HasSubstr("trireme_ttft_seconds_bucket{le=\"0.05\"} 1"));
  EXPECT_THAT(text, Not(HasSubstr("trireme_queue_seconds")));
}

TEST(MetricsTest, RefreshesBeforeEachReadingWhileTheHookLives) {
  Metrics metrics;
  int readings = 0;
  {
    const ScrapeHook hook =
        metrics.OnScrape([&] { metrics.Gauge("trireme_epoch").Set(++readings); });
    EXPECT_THAT(metrics.Text(), HasSubstr("trireme_epoch 1"));
    EXPECT_THAT(metrics.Text(), HasSubstr("trireme_epoch 2"));
  }
  EXPECT_THAT(metrics.Text(), HasSubstr("trireme_epoch 2"));
}

TEST(MetricsDeathTest, RefusesWhatTheCatalogueDoesNotHave) {
  Metrics metrics;
  EXPECT_DEATH(metrics.Counter("trireme_nonsense_total"), "");
  EXPECT_DEATH(metrics.Gauge("trireme_requests_total", {{"outcome", "ok"}}), "");
  EXPECT_DEATH(metrics.Counter("trireme_requests_total", {{"request_id", "r1"}}), "");
}

// One HTTP/1.0 request to a port of this machine.
std::string Get(int port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::send(descriptor, request.data(), request.size(), 0) ==
        static_cast<ssize_t>(request.size())) {
      char bytes[4096];
      for (ssize_t read = 0; (read = ::recv(descriptor, bytes, sizeof(bytes), 0)) > 0;) {
        answer.append(bytes, static_cast<size_t>(read));
      }
    }
  }
  ::close(descriptor);
  return answer;
}

TEST(MetricsTest, ServesTheTextOverHttp) {
  Metrics metrics;
  metrics.Gauge("trireme_epoch").Set(7);
  const auto port = metrics.Listen("127.0.0.1:0");
  ASSERT_TRUE(port.ok()) << port.status();
  const std::string answer = Get(*port);
  EXPECT_THAT(answer, HasSubstr("200 OK"));
  EXPECT_THAT(answer, HasSubstr("trireme_epoch 7"));
}

TEST(MetricsTest, ATakenPortIsRefusedByItsAddress) {
  Metrics first;
  const auto port = first.Listen("127.0.0.1:0");
  ASSERT_TRUE(port.ok()) << port.status();
  Metrics second;
  const std::string address = absl::StrCat("127.0.0.1:", *port);
  const auto taken = second.Listen(address);
  EXPECT_EQ(taken.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(taken.status().message()), HasSubstr(address));
}

}  // namespace
}  // namespace trireme
