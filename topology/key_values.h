// How the setters of the key table (cluster_key.h) put a value of the file into its place: read it
// (value_text.h), check it, store it. All return InvalidArgument with what was found and wanted.
#ifndef TRIREME_TOPOLOGY_KEY_VALUES_H_
#define TRIREME_TOPOLOGY_KEY_VALUES_H_

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace trireme::topology {

using Values = absl::Span<const std::string>;

// Stores what was parsed, or says what is wrong with it.
template <typename Parsed, typename Place>
absl::Status Put(absl::StatusOr<Parsed> parsed, Place* place) {
  if (!parsed.ok()) {
    return parsed.status();
  }
  if constexpr (std::is_arithmetic_v<Place>) {
    *place = static_cast<Place>(*parsed);
  } else {
    *place = *std::move(parsed);
  }
  return absl::OkStatus();
}

// A duration above 0.
absl::Status PutPositive(absl::string_view text, absl::Duration* place);

// One of the words, and a check for one of them.
absl::Status PutWord(absl::string_view text, const std::vector<std::string>& words,
                     std::string* place);
absl::Status OneOf(absl::string_view text, const std::vector<std::string>& words);

// "0-1", or a list of such.
absl::Status PutCores(Values values, std::vector<int>* place);

// Appends every value.
absl::Status PutTexts(Values values, std::vector<std::string>* place);

// HOST:PORT.
absl::Status PutAddress(absl::string_view text, std::string* place);

// Whether one more than `count` things may stand there.
absl::Status CheckRoom(size_t count, size_t maximum);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_KEY_VALUES_H_
