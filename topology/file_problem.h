// A mistake in a text file that an operator wrote: where it is, which key it is about, what is
// wrong.
#ifndef TRIREME_TOPOLOGY_FILE_PROBLEM_H_
#define TRIREME_TOPOLOGY_FILE_PROBLEM_H_

#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace trireme::topology {

// Both count from 1; columns count bytes.
struct TextPlace {
  int line = 1;
  int column = 1;
};

// Where the value of each key path stands.
using KeyPlaces = std::map<std::string, TextPlace>;

// The place of the path, or of the nearest key above it that has one.
TextPlace PlaceOfKey(const KeyPlaces& places, std::string path);

struct FileProblem {
  TextPlace place;
  std::string key_path;  // "replicas.r1.stages[0].cores"; empty: about the file
  std::string text;      // the value found, what was wanted, what to do
};

// Lines "FILE:LINE:COLUMN: KEY PATH: TEXT" in the order of the file, at most 100 of them, and a
// last one, "N errors; nothing was started.".
std::string DescribeProblems(absl::string_view file_name, std::vector<FileProblem> problems);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_FILE_PROBLEM_H_
