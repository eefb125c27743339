#include "topology/nearest_word.h"

#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

TEST(NearestWordTest, TakesTheWordWithTheFewestEdits) {
  EXPECT_EQ(NearestWord("polcy", {"police", "policy", "retry"}), "policy");  // 1 edit; police 2
  EXPECT_EQ(NearestWord("grcp", {"http", "grpc"}), "grpc");
}

TEST(NearestWordTest, AnotherWordIsNotOffered) {
  EXPECT_EQ(NearestWord("x", {"id"}), "");              // all letters differ
  EXPECT_EQ(NearestWord("anchors", {"balancer"}), "");  // more than three edits
  EXPECT_EQ(NearestWord("anything", {}), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'a'), {"a"}), "");
}

}  // namespace
}  // namespace trireme::topology
