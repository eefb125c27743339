#include "launcher/host_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "runtime/comm/socket.h"

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;

TEST(HostReportTest, ComesBackAsItWasSent) {
  const HostReport report = {.host = "a\nb\xFF",
                             .version = "trireme 1",
                             .model_error = "no \"file\"",
                             .model_error_code = 66,
                             .model_fingerprint = ~uint64_t{0},
                             .memory_available_bytes = int64_t{1} << 40,
                             .cores = {0, 5},
                             .shared_memory_free_bytes = 3,
                             .open_files_max = INT64_MAX,
                             .threads_max = 96,
                             .clock_unix_ns = 123456789012345678,
                             .ports = {{"a:1", ""}, {"b:2", "taken"}}};
  const std::string line = EncodeHostReport(report);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto back = DecodeHostReport(line);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(EncodeHostReport(*back), line);
  EXPECT_EQ(back->model_fingerprint, ~uint64_t{0});
  EXPECT_EQ(back->open_files_max, INT64_MAX);
  EXPECT_EQ(back->threads_max, 96);
  EXPECT_EQ(back->ports, report.ports);
  EXPECT_EQ(back->cores, report.cores);
}

TEST(HostReportTest, AnythingElseIsNone) {
  for (const char* text : {"", "{}", "[]", "no such command", "{\"host\": 5}"}) {
    EXPECT_THAT(std::string(DecodeHostReport(text).status().message()), HasSubstr("no host report"))
        << text;
  }
}

TEST(HostReportTest, ThisHostHasWhatEveryHostHas) {
  const auto taken = comm::Listen(comm::ListenScope::kLoopback);
  ASSERT_TRUE(taken.ok());
  const std::string address = absl::StrCat("127.0.0.1:", taken->port);
  const HostReport report =
      LookAtThisHost("/no/such/model.gguf", {address, "no.such.name.invalid:1"});
  EXPECT_FALSE(report.cores.empty());
  EXPECT_GT(report.memory_available_bytes, 0);
  EXPECT_GT(report.open_files_max, 0);
  EXPECT_GT(report.threads_max, 0);
  EXPECT_GT(report.clock_unix_ns, 0);
  EXPECT_THAT(report.version, HasSubstr("trireme "));
  EXPECT_THAT(report.model_error, HasSubstr("/no/such/model.gguf"));
  EXPECT_EQ(report.model_error_code, 66);
  EXPECT_THAT(report.ports.at(address), HasSubstr("in use"));
  EXPECT_THAT(report.ports.at("no.such.name.invalid:1"), HasSubstr("leads nowhere"));
}

}  // namespace
}  // namespace trireme::launcher
