#include "runtime/serve/violations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme::serve {
namespace {

using testing::HasSubstr;

TEST(Violations, NoneIsOk) { EXPECT_TRUE(Violations().ToStatus().ok()); }

TEST(Violations, TellsEveryInvalidFieldWithTheReasonOfTheFirst) {
  Violations violations;
  violations.Invalid("a.b", "3 is above 2", kReasonBadTokenId);
  violations.Invalid("c", "is empty");
  violations.Unsupported("d");
  const absl::Status status = violations.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReasonOf(status), kReasonBadTokenId);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.b: 3 is above 2; c: is empty"));
  const std::vector<FieldViolation> fields = FieldViolationsOf(status);
  ASSERT_EQ(fields.size(), 2u);
  EXPECT_EQ(fields[0].field, "a.b");
  EXPECT_EQ(fields[1].field, "c");
}

TEST(Violations, NamesUnsupportedFieldsWhenNothingIsInvalid) {
  Violations violations;
  violations.Unsupported("x.y");
  const absl::Status status = violations.ToStatus();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(status), kReasonFieldNotSupported);
  ASSERT_EQ(FieldViolationsOf(status).size(), 1u);
  EXPECT_EQ(FieldViolationsOf(status)[0].field, "x.y");
}

TEST(Violations, AMillionAreNotAllKept) {
  Violations violations;
  for (int index = 0; index < 1'000'000; ++index) {
    violations.Invalid("f", "bad");
  }
  EXPECT_LE(FieldViolationsOf(violations.ToStatus()).size(), 64u);
  EXPECT_LE(violations.ToStatus().message().size(), 200u);
}

}  // namespace
}  // namespace trireme::serve
