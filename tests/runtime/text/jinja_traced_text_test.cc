#include <string>

#include "gtest/gtest.h"
#include "runtime/text/jinja_traced_text.h"

namespace trireme::text::jinja {
namespace {

std::string Shown(const TracedText& text) {
  std::string shown;
  for (const TracedText::Run& run : text.Runs()) {
    const std::string piece(text.bytes().substr(run.begin, run.end - run.begin));
    shown += run.origin == Origin::kTrusted ? piece : "(" + piece + ")";
  }
  return shown;
}

TEST(JinjaTracedTextTest, KeepsRunsThroughAppending) {
  TracedText text("a", Origin::kTrusted);
  text.Append("b", Origin::kTrusted);
  text.Append("", Origin::kUntrusted);
  text.Append("cd", Origin::kUntrusted);
  text.Append(TracedText("e", Origin::kTrusted));
  EXPECT_EQ(text.bytes(), "abcde");
  EXPECT_EQ(Shown(text), "ab(cd)e");
  EXPECT_EQ(text.WeakestOrigin(), Origin::kUntrusted);
}

TEST(JinjaTracedTextTest, CutsAnywhere) {
  TracedText text("ab", Origin::kTrusted);
  text.Append("cd", Origin::kUntrusted);
  text.Append("ef", Origin::kTrusted);
  EXPECT_EQ(Shown(text.Slice(0, 2)), "ab");
  EXPECT_EQ(Shown(text.Slice(1, 3)), "b(c)");
  EXPECT_EQ(Shown(text.Slice(2, 4)), "(cd)");
  EXPECT_EQ(Shown(text.Slice(3, 6)), "(d)ef");
  EXPECT_EQ(Shown(text.Slice(5, 5)), "");
  EXPECT_EQ(text.Slice(2, 4).WeakestOrigin(), Origin::kUntrusted);
  EXPECT_EQ(text.Slice(4, 6).WeakestOrigin(), Origin::kTrusted);
}

TEST(JinjaTracedTextTest, TakesTheOriginOfTheFirstTextPutIn) {
  TracedText text;
  EXPECT_TRUE(text.Runs().empty());
  text.Append("x", Origin::kUntrusted);
  EXPECT_EQ(Shown(text), "(x)");
}

}  // namespace
}  // namespace trireme::text::jinja
