#include "topology/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "topology/file_problem.h"

namespace trireme::topology {
namespace {

constexpr absl::string_view kByteOrderMark = "\xEF\xBB\xBF";

TextPlace PlaceOf(const YAML::Mark& mark) {
  return {.line = mark.line + 1, .column = mark.column + 1};
}

// Builds the tree from the parser's events, which come in the order of the text.
class TreeBuilder : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::vector<FileProblem>* problems) : problems_(*problems) {}

  YamlNode TakeRoot() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    CheckProperties(mark, "?", anchor);
    Attach({.kind = YamlNode::Kind::kEmpty, .place = PlaceOf(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    Report(mark, "an alias (*name) is not supported; write the value out");
    Attach({.kind = YamlNode::Kind::kScalar, .place = PlaceOf(mark)});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    CheckProperties(mark, tag, anchor);
    Attach({.kind = YamlNode::Kind::kScalar, .place = PlaceOf(mark), .text = value});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Start(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { End(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Start(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { End(); }

 private:
  // A list or map whose end has not come yet.
  struct Open {
    YamlNode node;
    bool has_key = false;  // of a map: its value comes next
    std::string key;
    TextPlace key_place;
    std::map<std::string, int> lines_of_keys;
  };

  std::string KeyPath() const {
    std::string path;
    for (const Open& open : open_) {
      if (open.node.kind == YamlNode::Kind::kList) {
        absl::StrAppend(&path, "[", open.node.items.size(), "]");
      } else if (open.has_key) {
        absl::StrAppend(&path, path.empty() ? "" : ".", open.key);
      }
    }
    return path;
  }

  void Report(const YAML::Mark& mark, std::string text) {
    if (too_deep_ == 0) {
      problems_.push_back({PlaceOf(mark), KeyPath(), std::move(text)});
    }
  }

  void CheckProperties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != 0) {
      Report(mark, "an anchor (&name) is not supported; write the value out where it is needed");
    }
    if (tag != "?" && tag != "!" && !tag.empty()) {
      Report(mark, absl::StrCat("the tag ", tag, " is not supported; leave it out"));
    }
  }

  void Start(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
             YamlNode::Kind kind) {
    CheckProperties(mark, tag, anchor);
    if (open_.size() == kYamlDepthMax || too_deep_ > 0) {
      if (too_deep_ == 0) {
        Report(mark, absl::StrCat("more than ", kYamlDepthMax, " maps and lists in one another"));
      }
      ++too_deep_;
      return;
    }
    open_.push_back({.node = {.kind = kind, .place = PlaceOf(mark)}});
  }

  void End() {
    if (too_deep_ > 0) {
      if (--too_deep_ == 0) {
        Attach({});
      }
      return;
    }
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    Attach(std::move(node));
  }

  void Attach(YamlNode node) {
    if (too_deep_ > 0) {
      return;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::kList) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      TakeKey(parent, node);
    } else {
      TakeValue(parent, std::move(node));
    }
  }

  void TakeKey(Open& parent, const YamlNode& node) {
    if (node.kind != YamlNode::Kind::kScalar) {
      problems_.push_back({node.place, KeyPath(), "a key must be a word"});
    } else if (node.text == "<<") {
      problems_.push_back({node.place, KeyPath(),
                           "a merge (<<) is not supported; write the keys out where they are "
                           "needed"});
    }
    parent.has_key = true;
    parent.key = node.text;
    parent.key_place = node.place;
  }

  void TakeValue(Open& parent, YamlNode value) {
    const auto [first, is_new] = parent.lines_of_keys.emplace(parent.key, parent.key_place.line);
    if (!is_new) {
      problems_.push_back({parent.key_place, KeyPath(),
                           absl::StrCat("given twice, first in line ", first->second)});
    } else if (!parent.key.empty() && parent.key != "<<") {
      parent.node.entries.push_back({parent.key, parent.key_place, std::move(value)});
    }
    parent.has_key = false;
  }

  std::vector<FileProblem>& problems_;
  YamlNode root_;
  std::vector<Open> open_;
  int too_deep_ = 0;  // open lists and maps beyond the limit
};

// What no text of ours may hold. False: the parser must not see the rest.
bool CheckText(const std::string& text, std::vector<FileProblem>* problems) {
  if (text.size() > kYamlBytesMax) {
    problems->push_back(
        {{},
         "",
         absl::StrFormat("%d bytes; at most %d (1 MiB) are read", text.size(), kYamlBytesMax)});
    return false;
  }
  if (absl::string_view(text).substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    problems->push_back({{}, "", "begins with a byte order mark; save it as plain UTF-8"});
  }
  bool is_readable = true;
  bool has_carriage_return = false;
  int line = 0;
  for (const absl::string_view row : absl::StrSplit(text, '\n')) {
    ++line;
    for (size_t i = 0; i < row.size(); ++i) {
      const TextPlace place = {.line = line, .column = static_cast<int>(i) + 1};
      const auto byte = static_cast<unsigned char>(row[i]);
      if (byte == '\t') {
        problems->push_back({place, "", "a tab; use spaces"});
        is_readable = false;
        break;
      }
      if (byte == '\r' && !has_carriage_return) {
        problems->push_back(
            {place, "", "a carriage return; lines must end as on Unix (dos2unix does that)"});
        has_carriage_return = true;
      } else if ((byte < 0x20 && byte != '\r') || byte == 0x7F) {
        problems->push_back({place, "", absl::StrFormat("a control character (0x%02X)", byte)});
        is_readable = false;
        break;
      }
    }
    if (!row.empty() && row[0] == '%') {
      problems->push_back({{.line = line}, "", "a directive (%) is not supported; leave it out"});
      is_readable = false;
    }
  }
  return is_readable;
}

}  // namespace

const YamlEntry* YamlNode::Find(absl::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) {
      return &entry;
    }
  }
  return nullptr;
}

YamlTree ReadYaml(const std::string& text) {
  YamlTree tree;
  if (!CheckText(text, &tree.problems)) {
    return tree;
  }
  std::istringstream stream(absl::StrReplaceAll(text, {{"\r", ""}}));
  TreeBuilder builder(&tree.problems);
  try {
    YAML::Parser parser(stream);
    parser.HandleNextDocument(builder);
    tree.root = builder.TakeRoot();
    std::vector<FileProblem> ignored;
    TreeBuilder further(&ignored);
    if (parser.HandleNextDocument(further)) {
      const TextPlace place = further.TakeRoot().place;
      tree.problems.push_back({place, "", "a second document; one file describes one cluster"});
    }
    tree.is_complete = true;
  } catch (const YAML::Exception& error) {
    tree.problems.push_back({error.mark.is_null() ? TextPlace() : PlaceOf(error.mark), "",
                             absl::StrCat("no YAML: ", error.msg)});
  }
  return tree;
}

}  // namespace trireme::topology
