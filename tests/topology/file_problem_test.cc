#include "topology/file_problem.h"

#include <gtest/gtest.h>

namespace trireme::topology {
namespace {

TEST(FileProblemTest, LinesComeInTheOrderOfTheFileAndAreCounted) {
  EXPECT_EQ(DescribeProblems("prod.yaml", {{{44, 5}, "balancer.polcy", "unknown key"},
                                           {{2, 9}, "", "a tab; use spaces"}}),
            "prod.yaml:2:9: a tab; use spaces\n"
            "prod.yaml:44:5: balancer.polcy: unknown key\n"
            "2 errors; nothing was started.");
  EXPECT_EQ(DescribeProblems("a", {{{1, 1}, "k", "bad"}}),
            "a:1:1: k: bad\n1 error; nothing was started.");
}

TEST(FileProblemTest, NoMoreThanAHundredLinesAreShown) {
  const std::string text = DescribeProblems("a", std::vector<FileProblem>(250));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 101);
  EXPECT_NE(text.find("a: and 150 more\n250 errors;"), std::string::npos) << text;
}

TEST(FileProblemTest, AKeyWithoutAPlaceStandsWhereItsParentDoes) {
  const KeyPlaces places = {{"a", {1, 2}}, {"a.b[0]", {3, 4}}};
  EXPECT_EQ(PlaceOfKey(places, "a.b[0].c").line, 3);
  EXPECT_EQ(PlaceOfKey(places, "a.b[1].c").line, 1);
  EXPECT_EQ(PlaceOfKey(places, "x.y").line, 1);
  EXPECT_EQ(PlaceOfKey(places, "x.y").column, 1);
}

}  // namespace
}  // namespace trireme::topology
