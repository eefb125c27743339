#include "topology/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"

namespace trireme::topology {
namespace {

using ::testing::HasSubstr;

// "LINE:COLUMN PATH TEXT" of each problem.
std::string ProblemsOf(const std::string& text) {
  std::string lines;
  for (const FileProblem& problem : ReadYaml(text).problems) {
    absl::StrAppend(&lines, problem.place.line, ":", problem.place.column, " ", problem.key_path,
                    " ", problem.text, "\n");
  }
  return lines;
}

TEST(YamlTreeTest, KnowsWhereEveryWordStands) {
  const YamlTree tree = ReadYaml("a: 1\nb:\n  - {c: 010, d: no}\n  - \"x y\"\n");
  ASSERT_TRUE(tree.is_complete);
  EXPECT_TRUE(tree.problems.empty());
  const YamlEntry* const a = tree.root.Find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->value.text, "1");
  EXPECT_EQ(a->value.place.column, 4);
  const YamlEntry* const b = tree.root.Find("b");
  ASSERT_NE(b, nullptr);
  ASSERT_EQ(b->value.items.size(), 2U);
  const YamlEntry* const d = b->value.items[0].Find("d");
  ASSERT_NE(d, nullptr);
  EXPECT_EQ(d->place.line, 3);
  EXPECT_EQ(d->place.column, 14);
  EXPECT_EQ(d->value.text, "no");                             // not false
  EXPECT_EQ(b->value.items[0].Find("c")->value.text, "010");  // not eight
  EXPECT_EQ(b->value.items[1].text, "x y");
}

TEST(YamlTreeTest, NullsAreEmpty) {
  const YamlTree tree = ReadYaml("a:\nb: ~\nc: null\n");
  for (const char* key : {"a", "b", "c"}) {
    EXPECT_EQ(tree.root.Find(key)->value.kind, YamlNode::Kind::kEmpty) << key;
  }
  EXPECT_EQ(tree.root.Find("d"), nullptr);
}

TEST(YamlTreeTest, D13_DuplicateKeysAreNamedWithBothLines) {
  EXPECT_EQ(ProblemsOf("a:\n  b: 1\n  c: 2\n  b: 3\n"), "4:3 a.b given twice, first in line 2\n");
}

TEST(YamlTreeTest, D13_AnchorsAliasesTagsAndMergesAreRefused) {
  const std::string problems = ProblemsOf("a: &x 1\nb: *x\nc: !!int 5\nd: {<<: 1}\n");
  EXPECT_THAT(problems, HasSubstr("1:4 a an anchor (&name) is not supported"));
  EXPECT_THAT(problems, HasSubstr("2:4 b an alias (*name) is not supported"));
  EXPECT_THAT(problems, HasSubstr("3:4 c the tag tag:yaml.org,2002:int is not supported"));
  EXPECT_THAT(problems, HasSubstr("4:5 d a merge (<<) is not supported"));
}

TEST(YamlTreeTest, D13_AnAnchorBombIsNotExpanded) {
  std::string bomb = "a0: &a0 [x]\n";
  for (int i = 1; i < 40; ++i) {  // 9^39 words, if it were
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int copy = 0; copy < 9; ++copy) {
      absl::StrAppend(&bomb, copy == 0 ? "" : ",", "*a", i - 1);
    }
    absl::StrAppend(&bomb, "]\n");
  }
  EXPECT_EQ(ReadYaml(bomb).problems.size(), 40U + 39U * 9U);
}

TEST(YamlTreeTest, D13_TabsAreRefusedWhereTheyStand) {
  EXPECT_EQ(ProblemsOf("a: 1\nb:\n\tc: 2\nd:\t5\n"),
            "3:1  a tab; use spaces\n4:3  a tab; use spaces\n");
}

TEST(YamlTreeTest, D13_WindowsLineEndsAndByteOrderMarksAreRefusedAndTheRestIsRead) {
  const YamlTree tree = ReadYaml(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n");
  ASSERT_EQ(tree.problems.size(), 2U);
  EXPECT_THAT(tree.problems[0].text, HasSubstr("byte order mark"));
  EXPECT_THAT(tree.problems[1].text, HasSubstr("carriage return"));
  ASSERT_TRUE(tree.is_complete);
  EXPECT_EQ(tree.root.Find("b")->value.text, "2");
}

TEST(YamlTreeTest, D13_SizeAndDepthAreLimited) {
  EXPECT_EQ(ProblemsOf(std::string(2 << 20, 'a')),
            "1:1  2097152 bytes; at most 1048576 (1 MiB) are read\n");
  EXPECT_EQ(ProblemsOf("a: " + std::string(15, '[') + std::string(15, ']')), "");
  EXPECT_THAT(ProblemsOf("a: " + std::string(16, '[') + std::string(16, ']')),
              HasSubstr("more than 16 maps and lists in one another"));
  EXPECT_FALSE(ReadYaml(std::string(1 << 20, '[')).is_complete);
}

TEST(YamlTreeTest, D13_SeveralDocumentsAndDirectivesAreRefused) {
  EXPECT_THAT(ProblemsOf("a: 1\n---\nb: 2\n"), HasSubstr("3:1  a second document"));
  EXPECT_EQ(ProblemsOf("---\na: 1\n"), "");
  EXPECT_THAT(ProblemsOf("%YAML 1.2\n---\na: 1\n"), HasSubstr("1:1  a directive (%)"));
}

TEST(YamlTreeTest, WhatIsNoYamlIsNamedByItsPlace) {
  EXPECT_THAT(ProblemsOf("a: 1\nb: [1, 2\n"), HasSubstr("no YAML: "));
  EXPECT_THAT(ProblemsOf("a: 1\nb: {c: 2]\n"), HasSubstr("2:"));
  EXPECT_THAT(ProblemsOf(std::string("a: 1\nb: \0\n", 10)), HasSubstr("2:4  a control character"));
  EXPECT_THAT(ProblemsOf("[a]: 1\n"), HasSubstr("1:1  a key must be a word"));
}

TEST(YamlTreeTest, AnyBytesAreReadOrRefused) {
  const std::string seed_text =
      "a: {b: [1, 2], c: \"x\"}\nd:\n  - e: 'f'\n  - |\n    g\n? h\n: i\n";
  std::mt19937 random(1);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string text = seed_text;
    for (int edit = 0; edit < 4; ++edit) {
      text[random() % text.size()] = "\n :-[]{}&*!|>'\"%@`#?,a\\\xC3\x80"[random() % 25];
    }
    refused += ReadYaml(text).problems.empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 100);
  EXPECT_LT(refused, 1000);
}

}  // namespace
}  // namespace trireme::topology
