#include "runtime/comm/control_message.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace trireme::comm {
namespace {

TEST(ControlMessageTest, BytesAreAsTheHeaderSays) {
  const std::string frame = EncodeControlMessage({.kind = ControlKind::kLeaving,
                                                  .is_waiting = true,
                                                  .code = 14,
                                                  .finished_step = 258,
                                                  .text = "ab"});
  const std::string want(
      "\x10\0\0\0"            // 16 bytes follow
      "\x02\x01"              // leaving, waiting
      "\x0e\0\0\0"            // code 14
      "\x02\x01\0\0\0\0\0\0"  // step 258
      "ab",
      20);
  EXPECT_EQ(frame, want);
}

TEST(ControlMessageTest, MessagesComeOutOfAnySplitOfTheStream) {
  std::string stream;
  for (int step = 0; step < 5; ++step) {
    stream += EncodeControlMessage({.kind = ControlKind::kHeartbeat,
                                    .is_waiting = step % 2 == 0,
                                    .code = -step,
                                    .finished_step = step - 2,
                                    .text = std::string(static_cast<size_t>(step), 'x')});
  }
  for (size_t piece = 1; piece < stream.size(); ++piece) {
    ControlDecoder decoder;
    int step = 0;
    for (size_t at = 0; at < stream.size(); at += piece) {
      decoder.Append(stream.substr(at, piece));
      auto message = decoder.Next();
      for (; message.ok() && message->has_value(); message = decoder.Next()) {
        EXPECT_EQ((*message)->finished_step, step - 2);
        EXPECT_EQ((*message)->code, -step);
        EXPECT_EQ((*message)->is_waiting, step % 2 == 0);
        EXPECT_EQ((*message)->text.size(), static_cast<size_t>(step));
        ++step;
      }
      ASSERT_TRUE(message.ok()) << message.status();
    }
    EXPECT_EQ(step, 5);
  }
}

TEST(ControlMessageTest, ALongTextIsCutToAFrame) {
  const std::string frame = EncodeControlMessage({.kind = ControlKind::kLeaving,
                                                  .is_waiting = false,
                                                  .code = 1,
                                                  .finished_step = 0,
                                                  .text = std::string(100000, 'x')});
  EXPECT_EQ(frame.size(), kControlFrameBytesMax);
  ControlDecoder decoder;
  decoder.Append(frame);
  EXPECT_TRUE(decoder.Next().ok());
}

TEST(ControlMessageTest, SizesAndKindsOutsideTheRangeAreRefused) {
  for (const std::string& bytes : {std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\0", 4),
                                   std::string("\x0d\0\0\0", 4), std::string("\xfd\x03\0\0", 4),
                                   std::string("\x0e\0\0\0\x03", 5) + std::string(13, '\0'),
                                   std::string("\x0e\0\0\0\0", 5) + std::string(13, '\0')}) {
    ControlDecoder decoder;
    decoder.Append(bytes);
    EXPECT_EQ(decoder.Next().status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ControlMessageTest, RandomBytesNeverBreakTheDecoder) {
  std::mt19937 random(11);
  for (int turn = 0; turn < 2000; ++turn) {
    ControlDecoder decoder;
    std::string bytes(random() % 200, '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(random() % 4 == 0 ? random() : random() % 20);
    }
    decoder.Append(bytes);
    auto message = decoder.Next();
    while (message.ok() && message->has_value()) {
      message = decoder.Next();
    }
  }
}

}  // namespace
}  // namespace trireme::comm
