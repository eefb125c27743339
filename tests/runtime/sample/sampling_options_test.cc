#include "runtime/sample/sampling_options.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/error_reason.h"

namespace trireme::sample {
namespace {

TEST(SamplingOptionsTest, AcceptsTheBordersOfEachRange) {
  EXPECT_TRUE(ValidateSamplingOptions({}).ok());
  EXPECT_TRUE(ValidateSamplingOptions({.temperature = -0.0f}).ok());
  EXPECT_TRUE(ValidateSamplingOptions({.temperature = 1e-30f}).ok());
  EXPECT_TRUE(
      ValidateSamplingOptions({.temperature = 2, .top_k = 1, .top_p = 1e-9f, .min_p = 1}).ok());
  EXPECT_TRUE(
      ValidateSamplingOptions({.top_k = std::numeric_limits<int32_t>::max(), .top_p = 1}).ok());
}

TEST(SamplingOptionsTest, RefusesEachFieldOutOfRangeByName) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const struct {
    SamplingOptions options;
    const char* field;
  } cases[] = {
      {{.temperature = kNan}, "sampling.temperature"},
      {{.temperature = kInfinity}, "sampling.temperature"},
      {{.temperature = 2.0001f}, "sampling.temperature"},
      {{.temperature = -1e-30f}, "sampling.temperature"},
      {{.top_k = -1}, "sampling.top_k"},
      {{.top_p = 0}, "sampling.top_p"},
      {{.top_p = kNan}, "sampling.top_p"},
      {{.top_p = 1.0001f}, "sampling.top_p"},
      {{.min_p = -0.1f}, "sampling.min_p"},
      {{.min_p = 1.0001f}, "sampling.min_p"},
      {{.min_p = kNan}, "sampling.min_p"},
  };
  for (const auto& bad : cases) {
    const absl::Status status = ValidateSamplingOptions(bad.options);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ReasonOf(status), kReasonBadParameter);
    ASSERT_EQ(FieldViolationsOf(status).size(), 1u) << status;
    EXPECT_EQ(FieldViolationsOf(status)[0].field, bad.field);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(bad.field));
  }
}

TEST(SamplingOptionsTest, NamesAllFieldsAtFault) {
  const absl::Status status =
      ValidateSamplingOptions({.temperature = 3, .top_k = -2, .top_p = 2, .min_p = 2});
  EXPECT_EQ(FieldViolationsOf(status).size(), 4u);
}

}  // namespace
}  // namespace trireme::sample
