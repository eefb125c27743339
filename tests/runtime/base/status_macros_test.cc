#include "runtime/base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace trireme {
namespace {

absl::Status CountsAndReturns(absl::Status status, int& calls) {
  ++calls;
  return status;
}

absl::StatusOr<std::string> ReturnsAfter(absl::Status status, int& calls) {
  RETURN_IF_ERROR(CountsAndReturns(std::move(status), calls));
  return std::string("reached");
}

absl::StatusOr<int> Half(int number) {
  if (number % 2 != 0) {
    return absl::InvalidArgumentError("odd");
  }
  return number / 2;
}

absl::StatusOr<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  int quarter = 0;
  ASSIGN_OR_RETURN(quarter, Half(half));
  return quarter;
}

absl::StatusOr<std::unique_ptr<int>> MakesOwned() { return std::make_unique<int>(7); }

absl::StatusOr<int> ReadsOwned() {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> owned, MakesOwned());
  return *owned;
}

TEST(StatusMacrosTest, GoesOnAfterSuccessAndEvaluatesOnce) {
  int calls = 0;
  EXPECT_EQ(*ReturnsAfter(absl::OkStatus(), calls), "reached");
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacrosTest, ReturnsTheErrorUnchanged) {
  int calls = 0;
  EXPECT_EQ(ReturnsAfter(absl::NotFoundError("gone"), calls).status(), absl::NotFoundError("gone"));
  EXPECT_EQ(calls, 1);
}

TEST(StatusMacrosTest, DeclaresAndAssignsValues) {
  EXPECT_EQ(*Quarter(12), 3);
  EXPECT_EQ(Quarter(3).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
}

TEST(StatusMacrosTest, MovesValuesThatCannotBeCopied) { EXPECT_EQ(*ReadsOwned(), 7); }

}  // namespace
}  // namespace trireme
