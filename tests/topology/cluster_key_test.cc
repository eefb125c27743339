#include "topology/cluster_key.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/topology/cluster_file_text.h"
#include "topology/yaml_tree.h"

namespace trireme::topology {
namespace {

TEST(ClusterKeyTest, ParentsStandBeforeTheirChildrenAndNoKeyTwice) {
  std::set<std::string> seen = {""};
  for (const ClusterKey& key : ClusterKeys()) {
    EXPECT_EQ(seen.count(key.parent()), 1U) << key.pattern;
    EXPECT_TRUE(seen.insert(key.pattern).second) << key.pattern;
  }
}

void CollectPatterns(const YamlNode& node, const std::string& pattern, bool has_names,
                     std::set<std::string>* patterns) {
  for (const YamlEntry& entry : node.entries) {
    const std::string child =
        absl::StrCat(pattern, pattern.empty() ? "" : ".", has_names ? "*" : entry.key);
    patterns->insert(child);
    CollectPatterns(entry.value, child, child == "nodes" || child == "replicas", patterns);
  }
  for (const YamlNode& item : node.items) {
    if (item.kind == YamlNode::Kind::kMap) {
      patterns->insert(pattern + "[]");
      CollectPatterns(item, pattern + "[]", false, patterns);
    }
  }
}

TEST(ClusterKeyTest, TheTestsUseEveryKey) {
  std::set<std::string> used;
  CollectPatterns(ReadYaml(kWholeClusterFile).root, "", false, &used);
  for (const ClusterKey& key : ClusterKeys()) {
    EXPECT_EQ(used.count(key.pattern), key.shape == KeyShape::kUnsupported ? 0U : 1U)
        << key.pattern;
  }
}

// What docs/topology_file.md must say: the same settings stand under `defaults` and each replica,
// and are told once.
std::vector<std::string> RowsOfThePage() {
  std::vector<std::string> rows;
  for (const ClusterKey& key : ClusterKeys()) {
    const bool is_told_already = key.pattern.rfind("replicas.*.", 0) == 0 &&
                                 key.pattern.rfind("replicas.*.stages", 0) != 0 &&
                                 key.pattern.rfind("replicas.*.engine", 0) != 0;
    if (key.shape == KeyShape::kUnsupported || is_told_already) {
      continue;
    }
    rows.push_back(absl::StrCat("| `", key.pattern, "` | ", key.wanted, " | ", key.fallback, " | ",
                                key.meaning, " |"));
  }
  return rows;
}

TEST(ClusterKeyTest, ThePageSaysWhatTheTableSays) {
  std::ifstream file("docs/topology_file.md");
  std::ostringstream text;
  text << file.rdbuf();
  std::vector<std::string> rows;
  const std::vector<std::string> lines = absl::StrSplit(text.str(), '\n');
  for (const std::string& line : lines) {
    if (line.rfind("| `", 0) == 0) {
      rows.push_back(line);
    }
  }
  EXPECT_EQ(rows, RowsOfThePage());
  for (const ClusterKey& key : ClusterKeys()) {
    if (key.shape == KeyShape::kUnsupported && key.pattern.rfind("replicas.*.", 0) != 0) {
      EXPECT_NE(text.str().find(absl::StrCat("`", key.pattern, "`")), std::string::npos)
          << key.pattern;
    }
  }
}

}  // namespace
}  // namespace trireme::topology
