// Lists of processor cores as people write them, "0-3,8": of this process, of a stage, of a rank.
#ifndef TRIREME_LAUNCHER_CORE_LIST_H_
#define TRIREME_LAUNCHER_CORE_LIST_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace trireme::launcher {

// Runs of neighbours become ranges; the order is kept. "" for none.
std::string CoreListText(absl::Span<const int> cores);

// The reverse; empty text is no core. InvalidArgument naming the part that is neither a core number
// below 1024 nor a rising range of them.
absl::StatusOr<std::vector<int>> ParseCoreList(absl::string_view text);

// Keeps this thread, and threads that it starts later, on these cores. InvalidArgument when the
// system refuses: a core that does not exist, or that this process may not use.
absl::Status BindToCores(absl::Span<const int> cores);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_CORE_LIST_H_
