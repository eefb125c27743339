#include "launcher/core_list.h"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace trireme::launcher {
namespace {

constexpr int kCoresMax = 1024;

}  // namespace

std::string CoreListText(absl::Span<const int> cores) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < cores.size();) {
    size_t end = begin + 1;
    while (end < cores.size() && cores[end] == cores[end - 1] + 1) {
      ++end;
    }
    parts.push_back(end - begin == 1 ? absl::StrCat(cores[begin])
                                     : absl::StrCat(cores[begin], "-", cores[end - 1]));
    begin = end;
  }
  return absl::StrJoin(parts, ",");
}

absl::StatusOr<std::vector<int>> ParseCoreList(absl::string_view text) {
  std::vector<int> cores;
  if (text.empty()) {
    return cores;
  }
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = -1;
    int last = -1;
    const bool is_range = ends.size() <= 2 && absl::SimpleAtoi(ends.front(), &first) &&
                          absl::SimpleAtoi(ends.back(), &last);
    if (!is_range || first < 0 || last < first || last >= kCoresMax) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "\"%s\" is no core or range of cores; write numbers below %d such as 0-3,8", part,
          kCoresMax));
    }
    for (int core = first; core <= last; ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

absl::Status BindToCores(absl::Span<const int> cores) {
  if (cores.empty()) {
    return absl::OkStatus();
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) {
    CPU_SET(core, &set);
  }
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (const int core : cores) {
      if (!CPU_ISSET(core, &allowed)) {
        return absl::InvalidArgumentError(
            absl::StrFormat("core %d does not exist here, or this process may not use it", core));
      }
    }
  }
  if (::sched_setaffinity(0, sizeof(set), &set) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("cannot run on cores %s: %s", CoreListText(cores), std::strerror(errno)));
  }
  return absl::OkStatus();
}

}  // namespace trireme::launcher
