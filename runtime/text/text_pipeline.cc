#include "runtime/text/text_pipeline.h"

#include <algorithm>

#include "runtime/text/unicode_classes.h"
#include "runtime/text/utf8.h"

namespace trireme::text {

Trust LeastTrust(absl::Span<const TextSource> sources, size_t begin, size_t end) {
  auto source =
      std::upper_bound(sources.begin(), sources.end(), begin,
                       [](size_t value, const TextSource& each) { return value < each.end; });
  Trust least = Trust::kTemplate;
  for (; source != sources.end(); ++source) {
    least = std::max(least, source->trust);
    if (source->end >= end) {
      break;
    }
  }
  return least;
}

bool CanMarkTurns(absl::string_view spelling) {
  int characters = 0;
  bool all_spaces = true;
  while (!spelling.empty()) {
    const Utf8Unit unit = FirstUtf8Unit(spelling);
    all_spaces = all_spaces && CategoryOf(unit.code_point) == UnicodeCategory::kWhiteSpace;
    ++characters;
    spelling.remove_prefix(unit.bytes);
  }
  return characters > 1 && !all_spaces;
}

}  // namespace trireme::text
