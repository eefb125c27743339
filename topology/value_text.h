// Values as an operator writes them, "8GiB", "250ms", "10Gbit/s", "0-3,8", read strictly: a unit
// where there must be one, decimal numbers only, nothing after them. Every error is InvalidArgument
// and says what was found and what was wanted.
#ifndef TRIREME_TOPOLOGY_VALUE_TEXT_H_
#define TRIREME_TOPOLOGY_VALUE_TEXT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "topology/partition.h"

namespace trireme::topology {

struct CountLimits {
  int64_t minimum = 0;
  int64_t maximum = INT32_MAX;
};
absl::StatusOr<int64_t> ParseCount(absl::string_view text, CountLimits limits);

struct NumberLimits {
  double minimum = 0;
  double maximum = 0;
};
absl::StatusOr<double> ParseNumber(absl::string_view text, NumberLimits limits);

absl::StatusOr<int64_t> ParseSize(absl::string_view text);             // above 0, in bytes
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);  // 0 to a week
absl::StatusOr<double> ParseByteRate(absl::string_view text);          // above 0, in bytes/s
absl::StatusOr<double> ParseOperationRate(absl::string_view text);     // above 0, per second

// "0-3,8": cores, each once, in the order written; at most 1024 of them.
absl::StatusOr<std::vector<int>> ParseCores(absl::string_view text);

// "10-19": layers 10 to 19, both included.
absl::StatusOr<Range> ParseLayers(absl::string_view text);

// HOST:PORT, with [..] around an IPv6 address; port 1 to 65535, since others must know it.
struct Address {
  std::string host;
  int port = 0;
};
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// A name: letters, digits, '-' and '_', beginning with a letter or digit, at most 63.
absl::StatusOr<std::string> ParseName(absl::string_view text);

// Any text without control characters, not empty, at most 4096 bytes.
absl::StatusOr<std::string> ParseText(absl::string_view text);

// One of the words.
absl::StatusOr<int> ParseChoice(absl::string_view text, const std::vector<std::string>& words);

}  // namespace trireme::topology

#endif  // TRIREME_TOPOLOGY_VALUE_TEXT_H_
