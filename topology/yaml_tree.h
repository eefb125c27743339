// A strict subset of YAML as a tree that knows where each word stands: maps, lists and scalars, all
// of them still text. Scalars get their type from whoever reads them, so "no" is a word and "010"
// no octal number. Anchors, aliases, tags, merges, directives, tabs, Windows line ends and several
// documents are refused, not interpreted; what is wrong is listed, never thrown.
#ifndef TRIREME_TOPOLOGY_YAML_TREE_H_
#define TRIREME_TOPOLOGY_YAML_TREE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "topology/file_problem.h"

namespace trireme::topology {

inline constexpr size_t kYamlBytesMax = 1 << 20;
inline constexpr int kYamlDepthMax = 16;

struct YamlEntry;

struct YamlNode {
  enum class Kind : uint8_t { kEmpty, kScalar, kList, kMap };

  Kind kind = Kind::kEmpty;  // kEmpty: nothing, "~" or "null"
  TextPlace place;
  std::string text;                // kScalar
  std::vector<YamlNode> items;     // kList
  std::vector<YamlEntry> entries;  // kMap, in the order of the file; keys differ

  // The entry of a map, or null.
  const YamlEntry* Find(absl::string_view key) const;
};

struct YamlEntry {
  std::string key;
  TextPlace place;  // of the key
  YamlNode value;
};

struct YamlTree {
  YamlNode root;
  std::vector<FileProblem> problems;  // what is no YAML, or none of this subset
  bool is_complete = false;           // false: the text could not be read to its end
};

YamlTree ReadYaml(const std::string& text);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_YAML_TREE_H_
