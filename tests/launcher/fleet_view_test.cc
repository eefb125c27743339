#include "launcher/fleet_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fleet.pb.h"
#include "launcher/fleet_messages.h"

namespace trireme::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FleetView Example() {
  FleetView view = {.name = "laptop", .uptime = absl::Seconds(65)};
  view.children.push_back({.name = "r1",
                           .kind = "replica",
                           .state = "starting",
                           .phase = "load",
                           .epoch = 3,
                           .restarts = 1,
                           .exit_code = 69,
                           .reason = "rank=1 is gone",
                           .address = "127.0.0.1:7101",
                           .in_state = absl::Milliseconds(1500),
                           .ranks = {{.host = "here",
                                      .process = 12,
                                      .phase = "load",
                                      .loaded_percent = 50,
                                      .weight_bytes = 3 << 20},
                                     {}}});
  view.children.push_back({.name = "r2",
                           .kind = "replica",
                           .state = "serving",
                           .phase = "warmup",
                           .epoch = 2,
                           .load = LoadView{.running_sequences = 4,
                                            .kv_blocks_total = 200,
                                            .kv_blocks_free = 150,
                                            .decode_tokens_per_second = 123.4,
                                            .step_time_p50 = absl::Milliseconds(8),
                                            .latency_streams = 3,
                                            .first_token_p50 = absl::Milliseconds(41),
                                            .first_token_p99 = absl::Milliseconds(977),
                                            .token_p50 = absl::Microseconds(8250),
                                            .token_p99 = absl::Microseconds(19500)}});
  return view;
}

TEST(FleetViewTest, TheTableShowsHowFarAStartIsAndWhyTheLastEnded) {
  const std::string table = FleetTable(Example());
  EXPECT_THAT(table, HasSubstr("fleet laptop, up 1m5s"));
  EXPECT_THAT(table, HasSubstr("starting: load"));
  EXPECT_THAT(table, HasSubstr("[###############...............]  50 % of 3.0 MiB"));
  EXPECT_THAT(table, HasSubstr("rank 1  has not started"));
  EXPECT_THAT(table, HasSubstr("last end: code 69 rank=1 is gone"));
}

TEST(FleetViewTest, TheLoadTableHasRatesAndTheShareOfTheCache) {
  const std::string table = FleetLoadTable(Example());
  EXPECT_THAT(table, HasSubstr("123.4"));
  EXPECT_THAT(table, HasSubstr(" 25 %"));  // 50 of 200 blocks
  EXPECT_THAT(table, HasSubstr("     41.0    977.0      8.25    19.50\n"));
}

TEST(FleetViewTest, JsonHoldsTheSame) {
  const nlohmann::json fleet = nlohmann::json::parse(FleetJson(Example()));
  EXPECT_EQ(fleet["name"], "laptop");
  EXPECT_EQ(fleet["children"][0]["exit_code"], 69);
  EXPECT_EQ(fleet["children"][0]["ranks"][0]["process"], 12);
  EXPECT_FALSE(fleet["children"][1].contains("exit_code"));
  EXPECT_EQ(fleet["children"][1]["load"]["running_sequences"], 4);
  EXPECT_EQ(fleet["children"][1]["load"]["first_token_ms_p99"], 977);
}

TEST(FleetViewTest, AMessageCarriesAllOfIt) {
  v1::FleetStatus message;
  SetFleetStatus(Example(), &message);
  EXPECT_EQ(FleetJson(FleetViewOf(message)), FleetJson(Example()));
}

}  // namespace
}  // namespace trireme::launcher
