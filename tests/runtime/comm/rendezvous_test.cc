#include "runtime/comm/rendezvous.h"

#include <gtest/gtest.h>

namespace trireme::comm {
namespace {

TEST(RendezvousTest, AnOfferSurvivesItsText) {
  const Offer offer = {.addresses = {"10.0.0.1", "fe80::1"}, .port = 65535, .secret = ~uint64_t{0}};
  const auto decoded = Offer::Decode(offer.Encode());
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->addresses, offer.addresses);
  EXPECT_EQ(decoded->port, offer.port);
  EXPECT_EQ(decoded->secret, offer.secret);
}

TEST(RendezvousTest, TextThatIsNoOfferIsRefused) {
  for (const char* text : {"", "1", "1 2", "0 2 a", "65536 2 a", "x 2 a", "1 y a", "1 2 a b",
                           "-1 2 a", "1 99999999999999999999999 a"}) {
    EXPECT_EQ(Offer::Decode(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(RendezvousTest, OnlyAVisitorThatKnowsTheSecretIsWelcome) {
  auto door = OpenADoor(ListenScope::kLoopback, "");
  ASSERT_TRUE(door.ok()) << door.status();
  Offer wrong = door->offer;
  wrong.secret ^= 1;
  const auto stranger = Visit(wrong, 1, absl::Seconds(5));
  ASSERT_TRUE(stranger.ok()) << stranger.status();
  const auto guest = Visit(door->offer, 2, absl::Seconds(5));
  ASSERT_TRUE(guest.ok()) << guest.status();
  const auto visitor = Welcome(*door, absl::Seconds(5));
  ASSERT_TRUE(visitor.ok()) << visitor.status();
  EXPECT_EQ(visitor->rank, 2);
  std::byte byte{};
  EXPECT_EQ(ReceiveWithin(*stranger, absl::MakeSpan(&byte, 1), absl::Seconds(5)).code(),
            absl::StatusCode::kUnavailable);
}

TEST(RendezvousTest, ADoorThatNobodyComesToIsClosedInTime) {
  auto door = OpenADoor(ListenScope::kLoopback, "");
  ASSERT_TRUE(door.ok()) << door.status();
  const auto visitor = Welcome(*door, absl::Milliseconds(30));
  EXPECT_EQ(visitor.status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace trireme::comm
