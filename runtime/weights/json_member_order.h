// In which order a JSON text names the members of one of its objects: where rules of a file
// overlap the first one holds, and nlohmann::json sorts an object's members by name. Its ordered
// kind would keep their order, but looks for a name from the first to the last: quadratic in a
// hostile file.
#ifndef TRIREME_RUNTIME_WEIGHTS_JSON_MEMBER_ORDER_H_
#define TRIREME_RUNTIME_WEIGHTS_JSON_MEMBER_ORDER_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::weights {

// Names of the members of the object that `path` leads to from the outermost one, each once, where
// it comes first. Of several objects of one path the last one counts, as it does for their values.
// Empty where there is no such object. Reads all of `text`, which is JSON.
std::vector<std::string> JsonMemberOrder(absl::string_view text,
                                         absl::Span<const std::string> path);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_JSON_MEMBER_ORDER_H_
