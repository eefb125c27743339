#include "topology/file_problem.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace trireme::topology {
namespace {

constexpr size_t kShownMax = 100;  // a screenful or two; the rest is counted

}  // namespace

TextPlace PlaceOfKey(const KeyPlaces& places, std::string path) {
  while (!path.empty()) {
    if (const auto found = places.find(path); found != places.end()) {
      return found->second;
    }
    const size_t cut = path.find_last_of(".[");
    path.resize(cut == std::string::npos ? 0 : cut);
  }
  return {};
}

std::string DescribeProblems(absl::string_view file_name, std::vector<FileProblem> problems) {
  std::stable_sort(
      problems.begin(), problems.end(), [](const FileProblem& a, const FileProblem& b) {
        return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
      });
  std::string text;
  for (size_t i = 0; i < std::min(problems.size(), kShownMax); ++i) {
    const FileProblem& problem = problems[i];
    absl::StrAppend(&text, file_name, ":", problem.place.line, ":", problem.place.column, ": ",
                    problem.key_path, problem.key_path.empty() ? "" : ": ", problem.text, "\n");
  }
  if (problems.size() > kShownMax) {
    absl::StrAppend(&text, file_name, ": and ", problems.size() - kShownMax, " more\n");
  }
  absl::StrAppend(&text, problems.size(), problems.size() == 1 ? " error" : " errors",
                  "; nothing was started.");
  return text;
}

}  // namespace trireme::topology
