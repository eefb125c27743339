#include "runtime/text/unicode_classes.h"

#include <algorithm>

namespace trireme::text {
namespace {

struct PackedRun {
  uint32_t first;
  uint8_t category;
};

constexpr PackedRun kPackedRuns[] = {
#include "runtime/text/unicode_classes.inc"
};

constexpr int64_t kRuns = sizeof(kPackedRuns) / sizeof(kPackedRuns[0]);

struct Runs {
  UnicodeRun values[kRuns];
};

constexpr Runs Unpack() {
  Runs runs = {};
  for (int64_t i = 0; i < kRuns; ++i) {
    runs.values[i] = {static_cast<char32_t>(kPackedRuns[i].first),
                      static_cast<UnicodeCategory>(kPackedRuns[i].category)};
  }
  return runs;
}

constexpr Runs kUnicodeRuns = Unpack();
static_assert(kUnicodeRuns.values[0].first == 0);

}  // namespace

absl::Span<const UnicodeRun> UnicodeRuns() { return kUnicodeRuns.values; }

UnicodeCategory CategoryOf(char32_t code_point) {
  const auto after =
      std::upper_bound(std::begin(kUnicodeRuns.values), std::end(kUnicodeRuns.values), code_point,
                       [](char32_t value, const UnicodeRun& run) { return value < run.first; });
  return (after - 1)->category;
}

}  // namespace trireme::text
