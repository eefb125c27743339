#include "topology/cluster_file.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "topology/cluster.h"
#include "topology/cluster_key.h"
#include "topology/cluster_rules.h"
#include "topology/file_problem.h"
#include "topology/nearest_word.h"
#include "topology/value_text.h"
#include "topology/yaml_tree.h"

namespace trireme::topology {
namespace {

std::string Join(const std::string& parent, const std::string& name) {
  return parent.empty() || name[0] == '[' ? absl::StrCat(parent, name)
                                          : absl::StrCat(parent, ".", name);
}

const char* NameOf(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::kEmpty:
      return "nothing";
    case YamlNode::Kind::kScalar:
      return "a single value";
    case YamlNode::Kind::kList:
      return "a list";
    case YamlNode::Kind::kMap:
      return "a map";
  }
  return "";
}

// Walks over the tree by the table of keys and fills the draft.
class TreeReader {
 public:
  TreeReader(ClusterDraft* draft, KeyPlaces* places, std::vector<FileProblem>* problems)
      : draft_(*draft), places_(*places), problems_(*problems) {}

  void Read(const YamlNode& root) {
    KeyTarget target;
    target.draft = &draft_;
    ReadMap(root, "", "", target);
  }

 private:
  void Report(TextPlace place, std::string path, absl::string_view text) {
    problems_.push_back({place, std::move(path), std::string(text)});
  }

  std::vector<const ClusterKey*> ChildrenOf(const std::string& pattern) {
    std::vector<const ClusterKey*> children;
    for (const ClusterKey& key : ClusterKeys()) {
      if (key.parent() == pattern) {
        children.push_back(&key);
      }
    }
    return children;
  }

  void ReadMap(const YamlNode& map, const std::string& pattern, const std::string& path,
               KeyTarget target) {
    const std::vector<const ClusterKey*> known = ChildrenOf(pattern);
    ReportUnknown(map, known, path);
    for (const ClusterKey* const key : known) {
      const YamlEntry* const entry = map.Find(key->name());
      if (entry != nullptr) {
        ReadValue(entry->value, entry->place, *key, Join(path, key->name()), target);
      } else if (key->is_required()) {
        Report(map.place, Join(path, key->name()), absl::StrCat("missing; wanted: ", key->wanted));
      }
    }
  }

  void ReportUnknown(const YamlNode& map, const std::vector<const ClusterKey*>& known,
                     const std::string& path) {
    for (const YamlEntry& entry : map.entries) {
      std::vector<std::string> names;
      bool is_known = false;
      for (const ClusterKey* const key : known) {
        is_known = is_known || key->name() == entry.key;
        if (key->shape != KeyShape::kUnsupported) {
          names.push_back(key->name());
        }
      }
      if (is_known) {
        continue;
      }
      const std::string nearest = NearestWord(entry.key, names);
      Report(entry.place, Join(path, entry.key),
             nearest.empty() ? absl::StrCat("unknown key; known here: ", absl::StrJoin(names, ", "))
                             : absl::StrCat("unknown key; did you mean \"", nearest, "\"?"));
    }
  }

  // `place` is the key's.
  void ReadValue(const YamlNode& value, TextPlace place, const ClusterKey& key,
                 const std::string& path, KeyTarget target) {
    if (key.shape == KeyShape::kUnsupported) {
      Report(place, path, "not supported in this version; leave it out");
      return;
    }
    if (!HasShape(value, key.shape)) {
      Report(value.kind == YamlNode::Kind::kEmpty ? place : value.place, path,
             absl::StrCat("is ", NameOf(value.kind), "; wanted: ", key.wanted));
      return;
    }
    places_[path] = value.kind == YamlNode::Kind::kScalar ? value.place : place;
    if (key.shape == KeyShape::kNamedMaps) {
      ReadNamedMaps(value, key, path, target);
    } else if (key.shape == KeyShape::kMapList) {
      ReadMapList(value, key, path, target);
    } else if (value.kind == YamlNode::Kind::kMap) {
      Set(key, {}, value.place, path, target);
      ReadMap(value, key.pattern, path, target);
    } else if (value.kind == YamlNode::Kind::kScalar) {
      Set(key, {value.text}, value.place, path, target);
    } else {
      ReadList(value, key, path, target);
    }
  }

  static bool HasShape(const YamlNode& value, KeyShape shape) {
    const bool is_scalar = value.kind == YamlNode::Kind::kScalar;
    const bool is_list = value.kind == YamlNode::Kind::kList;
    const bool is_map = value.kind == YamlNode::Kind::kMap;
    switch (shape) {
      case KeyShape::kMap:
      case KeyShape::kNamedMaps:
        return is_map;
      case KeyShape::kScalar:
        return is_scalar;
      case KeyShape::kList:
      case KeyShape::kMapList:
        return is_list;
      case KeyShape::kScalarOrList:
        return is_scalar || is_list;
      case KeyShape::kScalarOrMap:
        return is_scalar || is_map;
      case KeyShape::kUnsupported:
        return true;
    }
    return false;
  }

  void Set(const ClusterKey& key, const std::vector<std::string>& values, TextPlace place,
           const std::string& path, KeyTarget& target) {
    if (key.set == nullptr) {
      return;
    }
    if (const absl::Status status = key.set(target, values); !status.ok()) {
      Report(place, path, status.message());
    }
  }

  void ReadList(const YamlNode& list, const ClusterKey& key, const std::string& path,
                KeyTarget target) {
    std::vector<std::string> values;
    for (const YamlNode& item : list.items) {
      if (item.kind != YamlNode::Kind::kScalar) {
        Report(item.place, absl::StrCat(path, "[", values.size(), "]"),
               absl::StrCat("is ", NameOf(item.kind), "; wanted: ", key.wanted));
        return;
      }
      values.push_back(item.text);
    }
    if (values.empty()) {
      Report(list.place, path, absl::StrCat("is empty; wanted: ", key.wanted));
      return;
    }
    Set(key, values, list.place, path, target);
  }

  const ClusterKey& KeyOf(const std::string& pattern) {
    for (const ClusterKey& key : ClusterKeys()) {
      if (key.pattern == pattern) {
        return key;
      }
    }
    return ClusterKeys().front();  // never: the table has an element for each list and map of names
  }

  void ReadElement(const YamlNode& value, TextPlace place, const ClusterKey& key,
                   const std::string& path, const std::vector<std::string>& values,
                   KeyTarget target) {
    places_[path] = place;
    Set(key, values, place, path, target);
    if (!HasShape(value, key.shape)) {
      Report(place, path, absl::StrCat("is ", NameOf(value.kind), "; wanted: a map"));
      return;
    }
    ReadMap(value, key.pattern, path, target);
  }

  void ReadNamedMaps(const YamlNode& map, const ClusterKey& key, const std::string& path,
                     const KeyTarget& target) {
    if (map.entries.empty()) {
      Report(map.place, path, "is empty; wanted: at least one");
    }
    for (const YamlEntry& entry : map.entries) {
      ReadElement(entry.value, entry.place, KeyOf(key.pattern + ".*"), Join(path, entry.key),
                  {entry.key}, target);
    }
  }

  void ReadMapList(const YamlNode& list, const ClusterKey& key, const std::string& path,
                   const KeyTarget& target) {
    if (list.items.empty()) {
      Report(list.place, path, "is empty; wanted: at least one");
    }
    for (size_t i = 0; i < list.items.size(); ++i) {
      ReadElement(list.items[i], list.items[i].place, KeyOf(key.pattern + "[]"),
                  absl::StrCat(path, "[", i, "]"), {}, target);
    }
  }

  ClusterDraft& draft_;
  KeyPlaces& places_;
  std::vector<FileProblem>& problems_;
};

// Other versions may mean other things by the same keys: without the right one nothing else is
// read.
bool CheckVersion(const YamlNode& root, std::vector<FileProblem>* problems) {
  const YamlEntry* const version = root.Find("version");
  if (version != nullptr && version->value.text != absl::StrCat(kClusterFileVersion)) {
    problems->push_back(
        {version->value.place, "version",
         absl::StrCat("\"", version->value.text.substr(0, 20),
                      "\" is unknown; this program reads version ", kClusterFileVersion)});
    return false;
  }
  return true;
}

std::string StemOf(absl::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return std::string(path.substr(0, path.find('.')));
}

}  // namespace

absl::StatusOr<ClusterFile> ParseClusterFile(const std::string& text, absl::string_view file_name) {
  YamlTree tree = ReadYaml(text);
  std::vector<FileProblem>& problems = tree.problems;
  ClusterDraft draft;
  if (tree.is_complete && tree.root.kind != YamlNode::Kind::kMap) {
    problems.push_back(
        {tree.root.place, "",
         absl::StrCat("holds ", NameOf(tree.root.kind),
                      "; wanted: a map that begins with version: ", kClusterFileVersion)});
  } else if (tree.is_complete && CheckVersion(tree.root, &problems)) {
    KeyPlaces& places = draft.file.places;
    TreeReader(&draft, &places, &problems).Read(tree.root);
    const absl::StatusOr<std::string> stem = ParseName(StemOf(file_name));
    if (draft.file.name.empty()) {
      draft.file.name = stem.ok() ? *stem : "trireme";
    }
    ApplyClusterRules(&draft, places, &problems);
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(DescribeProblems(file_name, std::move(problems)));
  }
  return std::move(draft.file);
}

}  // namespace trireme::topology
