#include "topology/value_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace trireme::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::string ErrorOf(const absl::StatusOr<T>& parsed) {
  return parsed.ok() ? "no error" : std::string(parsed.status().message());
}

TEST(ValueTextTest, SizesAreReadInTheirUnits) {
  EXPECT_EQ(*ParseSize("3KiB"), 3072);
  EXPECT_EQ(*ParseSize("1.5 MiB"), 1572864);
  EXPECT_EQ(*ParseSize("8GiB"), 8589934592);
  EXPECT_EQ(ErrorOf(ParseSize("8")), "\"8\" has no unit; write 8MiB or 8GiB");
  EXPECT_EQ(ErrorOf(ParseSize("8GB")), "\"8GB\": unknown unit \"GB\"; did you mean 8GiB?");
  EXPECT_THAT(ErrorOf(ParseSize("0GiB")), HasSubstr("no size above 0"));
  EXPECT_THAT(ErrorOf(ParseSize("-8GiB")), HasSubstr("no number with a unit"));
  EXPECT_THAT(ErrorOf(ParseSize("999999999999TiB")), HasSubstr("below 1 EB"));
  EXPECT_THAT(ErrorOf(ParseSize("1e3GiB")), HasSubstr("unknown unit"));
}

TEST(ValueTextTest, DurationsAreReadInTheirUnits) {
  EXPECT_EQ(*ParseDuration("250ms"), absl::Milliseconds(250));
  EXPECT_EQ(*ParseDuration("50us"), absl::Microseconds(50));
  EXPECT_EQ(*ParseDuration("1.5s"), absl::Milliseconds(1500));
  EXPECT_EQ(*ParseDuration("2min"), absl::Seconds(120));
  EXPECT_EQ(*ParseDuration("0s"), absl::ZeroDuration());
  EXPECT_EQ(ErrorOf(ParseDuration("15")), "\"15\" has no unit; write 15s or 15min");
  EXPECT_THAT(ErrorOf(ParseDuration("15sec")), HasSubstr("unknown unit \"sec\""));
  EXPECT_THAT(ErrorOf(ParseDuration("200h")), HasSubstr("longer than a week"));
}

TEST(ValueTextTest, RatesAreReadInTheirUnits) {
  EXPECT_DOUBLE_EQ(*ParseByteRate("10Gbit/s"), 1.25e9);
  EXPECT_DOUBLE_EQ(*ParseByteRate("24.5GB/s"), 24.5e9);
  EXPECT_DOUBLE_EQ(*ParseOperationRate("150Gop/s"), 150e9);
  EXPECT_THAT(ErrorOf(ParseByteRate("10Gb/s")), HasSubstr("unknown unit \"Gb/s\""));
  EXPECT_THAT(ErrorOf(ParseByteRate("0GB/s")), HasSubstr("no rate above 0"));
}

TEST(ValueTextTest, CountsAreDecimalWholeNumbersInTheirRange) {
  EXPECT_EQ(*ParseCount("0", {}), 0);
  EXPECT_EQ(*ParseCount("2147483647", {}), 2147483647);
  for (const char* text :
       {"", "010", "0x10", "-1", "+1", "1.0", "1 ", "no", "2147483648", "99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(ParseCount(text, {})), HasSubstr("no whole number from 0 to 2147483647"))
        << text;
  }
}

TEST(ValueTextTest, NumbersAreDecimalAndInTheirRange) {
  EXPECT_DOUBLE_EQ(*ParseNumber("0.01", {0, 1}), 0.01);
  for (const char* text : {"", "nan", "inf", "1e1", ".5", "1.", "1.1", "-0.5", "1,0", "0.1.2"}) {
    EXPECT_THAT(ErrorOf(ParseNumber(text, {0, 1})), HasSubstr("no number from 0 to 1")) << text;
  }
}

TEST(ValueTextTest, CoresAreRunsAndSingles) {
  EXPECT_THAT(*ParseCores("0-3,8"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(ErrorOf(ParseCores("0-2,2")), HasSubstr("has core 2 twice"));
  EXPECT_THAT(ErrorOf(ParseCores("0-99999")), HasSubstr("no list of cores"));
  EXPECT_THAT(ErrorOf(ParseCores("0-65535")), HasSubstr("more than 1024 cores"));
  for (const char* text : {"", "all", "3-1", "0-", "-1", "0,,1", "0-1-2"}) {
    EXPECT_THAT(ErrorOf(ParseCores(text)), HasSubstr("no list of cores")) << text;
  }
}

TEST(ValueTextTest, LayersIncludeBothEnds) {
  EXPECT_EQ(*ParseLayers("0-14"), (Range{0, 15}));
  EXPECT_EQ(*ParseLayers("7"), (Range{7, 8}));
  for (const char* text : {"", "14-0", "a-b", "0-14-20", "0..14"}) {
    EXPECT_THAT(ErrorOf(ParseLayers(text)), HasSubstr("no run of layers")) << text;
  }
}

TEST(ValueTextTest, AddressesHaveAHostAndAPort) {
  const auto address = ParseAddress("node-a:7001");
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "node-a");
  EXPECT_EQ(address->port, 7001);
  EXPECT_EQ(ParseAddress("[::1]:80")->host, "[::1]");
  for (const char* text : {"", ":80", "host", "host:", "host:0", "host:65536", "host:080", "::1:80",
                           "a b:80", "http://host:80"}) {
    EXPECT_THAT(ErrorOf(ParseAddress(text)), HasSubstr("no address with a port")) << text;
  }
}

TEST(ValueTextTest, NamesAreOfLettersDigitsAndHyphens) {
  EXPECT_EQ(*ParseName("node-a_1"), "node-a_1");
  for (const std::string& text : {std::string(), std::string("-a"), std::string("a.b"),
                                  std::string("a b"), std::string(64, 'a')}) {
    EXPECT_THAT(ErrorOf(ParseName(text)), HasSubstr("is no name")) << text;
  }
}

TEST(ValueTextTest, TextsHoldNoControlCharacters) {
  EXPECT_EQ(*ParseText("/models/a b"), "/models/a b");
  EXPECT_EQ(ErrorOf(ParseText("")), "is empty");
  EXPECT_EQ(ErrorOf(ParseText("a\nb")), "holds a control character");
  EXPECT_THAT(ErrorOf(ParseText(std::string(5000, 'a'))), HasSubstr("5000 bytes long; at most"));
}

TEST(ValueTextTest, AChoiceOffersTheNearestWord) {
  EXPECT_EQ(*ParseChoice("srun", {"mpirun", "srun"}), 1);
  EXPECT_EQ(ErrorOf(ParseChoice("mpiru", {"mpirun", "srun"})),
            "\"mpiru\" is not one of mpirun, srun; did you mean \"mpirun\"?");
  EXPECT_EQ(ErrorOf(ParseChoice("no", {"mpirun", "srun"})), "\"no\" is not one of mpirun, srun");
}

}  // namespace
}  // namespace trireme::topology
