#include "runtime/base/metric_catalogue.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace trireme {
namespace {

// The working directory of tests is the root of the repository.
std::set<std::string> RowsOfThePage() {
  std::ifstream page("docs/metrics.md");
  std::set<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| `trireme_")) {
      rows.insert(line);
    }
  }
  return rows;
}

std::string RowOf(const MetricEntry& entry) {
  return absl::StrCat("| `", entry.name, "` | ", MetricKindName(entry.kind), " | ",
                      absl::StrJoin(entry.labels, ", "), " | ", entry.processes, " | ",
                      entry.meaning, " |");
}

TEST(MetricCatalogueTest, G2_ThePageAndTheCatalogueAreEqual) {
  std::set<std::string> rows;
  for (const MetricEntry& entry : MetricCatalogue()) {
    rows.insert(RowOf(entry));
  }
  EXPECT_EQ(RowsOfThePage(), rows);
}

TEST(MetricCatalogueTest, NamesAreUniqueAndFollowTheConvention) {
  std::set<std::string> names;
  for (const MetricEntry& entry : MetricCatalogue()) {
    EXPECT_TRUE(names.insert(std::string(entry.name)).second) << entry.name;
    EXPECT_TRUE(absl::StartsWith(entry.name, "trireme_")) << entry.name;
    EXPECT_EQ(absl::EndsWith(entry.name, "_total"), entry.kind == MetricKind::kCounter)
        << entry.name;
    EXPECT_FALSE(entry.meaning.empty()) << entry.name;
    EXPECT_EQ(FindMetric(entry.name), &entry);
  }
  EXPECT_EQ(FindMetric("trireme_nonsense"), nullptr);
}

}  // namespace
}  // namespace trireme
