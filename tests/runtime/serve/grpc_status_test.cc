#include "runtime/serve/grpc_status.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/utf8.h"
#include "tests/support/service_client.h"

namespace trireme::serve {
namespace {

using testing::HasSubstr;
using testing::Not;

CallResult Details(const absl::Status& status, absl::string_view incident = "") {
  const ErrorForm form = FormOfError(status, incident);
  return ReadDetails(form.code, form.message, form.details);
}

TEST(GrpcStatus, CarriesReasonDomainAndEveryViolation) {
  absl::Status status = WithReason(absl::InvalidArgumentError("two faults"), kReasonBadParameter);
  status = WithField(status, "a.b", "first");
  status = WithField(status, "c[3]", "second");
  const CallResult result = Details(status);
  EXPECT_EQ(result.code, absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(result.message, "two faults");
  EXPECT_EQ(result.reason, "BAD_PARAMETER");
  EXPECT_EQ(result.domain, "trireme");
  ASSERT_EQ(result.violations.size(), 2u);
  EXPECT_EQ(result.violations[1].field, "c[3]");
  EXPECT_EQ(result.violations[1].description, "second");
  EXPECT_FALSE(result.has_retry_info);
}

TEST(GrpcStatus, TellsWhenToRetryWhereARetryCanHelp) {
  EXPECT_TRUE(Details(absl::UnavailableError("x")).has_retry_info);
  EXPECT_TRUE(Details(WithReason(absl::UnavailableError("x"), kReasonDraining)).has_retry_info);
  EXPECT_TRUE(
      Details(WithReason(absl::ResourceExhaustedError("x"), kReasonOverloaded)).has_retry_info);
  EXPECT_FALSE(Details(WithReason(absl::ResourceExhaustedError("x"), kReasonMessageTooLarge))
                   .has_retry_info);
  EXPECT_FALSE(Details(absl::AbortedError("x")).has_retry_info);
}

TEST(GrpcStatus, TellsTheDelayThatTheStatusCarries) {
  const absl::Status status = WithReason(absl::ResourceExhaustedError("x"), kReasonRate);
  EXPECT_FALSE(Details(status).has_retry_info);
  const CallResult told = Details(WithRetryDelay(status, absl::Milliseconds(1500)));
  EXPECT_TRUE(told.has_retry_info);
}

TEST(GrpcStatus, EveryCodeGetsAReasonOfTheList) {
  const auto reasons = AllErrorReasons();
  for (int code = 1; code <= 16; ++code) {
    const CallResult result = Details(absl::Status(static_cast<absl::StatusCode>(code), "x"));
    EXPECT_NE(std::find(reasons.begin(), reasons.end(), result.reason), reasons.end()) << code;
  }
}

TEST(GrpcStatus, HidesTheTextOfAnInternalError) {
  const CallResult result = Details(absl::InternalError("/secret/path at 0x1234"), "abc123");
  EXPECT_EQ(result.code, absl::StatusCode::kInternal);
  EXPECT_EQ(result.reason, "BUG");
  EXPECT_THAT(result.message, Not(HasSubstr("secret")));
  EXPECT_THAT(result.message, HasSubstr("abc123"));
  EXPECT_EQ(Details(absl::UnknownError("x")).code, absl::StatusCode::kInternal);
  EXPECT_EQ(Details(absl::OutOfRangeError("x")).code, absl::StatusCode::kInternal);
}

// Clients accept 8 KiB of trailers by default; more would turn our status into one of the library.
TEST(GrpcStatus, HostileTextsStaySmall) {
  absl::Status status = absl::InvalidArgumentError(std::string(1 << 20, 'm'));
  for (int index = 0; index < 100; ++index) {
    status = WithField(status, std::string(10000, 'f'), std::string(10000, 'd'));
  }
  const ErrorForm form = FormOfError(status, "");
  EXPECT_LE(form.message.size() + form.details.size(), 6000u);
}

TEST(GrpcStatus, CutsTextsBetweenCharacters) {
  std::string text;
  while (text.size() < 2000) {
    text += "\xE2\x82\xAC";  // the euro sign, three bytes
  }
  for (const char* prefix : {"", "a", "ab"}) {
    const ErrorForm form = FormOfError(absl::InvalidArgumentError(prefix + text), "");
    EXPECT_TRUE(IsValidUtf8(form.message));
    EXPECT_LE(form.message.size(), 1024u);
  }
}

TEST(GrpcStatus, BecomesAStatusOfGrpc) {
  const grpc::Status status = ToGrpcStatus(absl::NotFoundError("gone"), "");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "gone");
  EXPECT_EQ(ReadDetails(absl::StatusCode::kNotFound, "", status.error_details()).resource_type,
            "request");
}

TEST(GrpcStatus, QuotedTextIsPrintableAndShort) {
  EXPECT_EQ(Quoted("a\nb"), "\"a\\nb\"");
  EXPECT_LE(Quoted(std::string(1000, '\x01')).size(), 200u);
}

// docs/errors.md has a table row "| `REASON` |" for each reason, and no others.
TEST(GrpcStatus, ThePageOfErrorsListsExactlyTheReasonsInTheCode) {
  std::ifstream file("docs/errors.md");
  ASSERT_TRUE(file.good());
  std::set<std::string> documented;
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("| `", 0) == 0) {
      const std::string name = line.substr(3, line.find('`', 3) - 3);
      if (name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string::npos) {
        documented.insert(name);
      }
    }
  }
  std::set<std::string> in_code;
  for (const absl::string_view reason : AllErrorReasons()) {
    in_code.insert(std::string(reason));
  }
  EXPECT_EQ(documented, in_code);
}

}  // namespace
}  // namespace trireme::serve
