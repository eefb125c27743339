#include "runtime/weights/quantized/groups.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/weights/gguf_cursor.h"

namespace trireme::weights {

absl::Status CheckGroupSize(const JsonConfig& config, absl::string_view key, int64_t group_size) {
  return group_size == -1 || group_size > 0
             ? absl::OkStatus()
             : config.Error(key, absl::StrCat("is ", group_size, ", wanted -1 or at least 1"));
}

absl::StatusOr<int64_t> GroupsOf(const ModuleTensors& module, int64_t columns, int64_t group_size) {
  if (group_size == -1 || group_size >= columns) {
    return 1;
  }
  if (columns % group_size != 0) {
    return module.source().PartError(
        module.name(), absl::StrFormat("has %d inputs, which a group_size of %d does not divide",
                                       columns, group_size));
  }
  return columns / group_size;
}

std::string GroupText(int64_t group_columns) { return absl::StrCat("groups of ", group_columns); }

absl::Status ReadGroupIndices(const ModuleTensors& module, const StoredPart& indices,
                              QuantizedParts* parts) {
  const int64_t columns = parts->extents.columns;
  std::vector<int32_t> groups(static_cast<size_t>(columns));
  std::vector<int64_t> members(static_cast<size_t>(parts->groups));
  bool are_runs = true;
  for (int64_t column = 0; column < columns; ++column) {
    const int32_t group = LoadUnaligned<int32_t>(indices.bytes.data() + column * 4);
    if (group < 0 || group >= parts->groups) {
      return module.source().PartError(
          indices.name, absl::StrFormat("puts input %d into group %d; wanted 0 to %d", column,
                                        group, parts->groups - 1));
    }
    groups[static_cast<size_t>(column)] = group;
    ++members[static_cast<size_t>(group)];
    are_runs = are_runs && group == column / parts->group_columns;
  }
  for (size_t group = 0; group < members.size(); ++group) {
    if (members[group] != parts->group_columns) {
      return module.source().PartError(
          indices.name,
          absl::StrFormat("gives group %d %d inputs; a group_size of %d wants %d", group,
                          members[group], parts->group_columns, parts->group_columns));
    }
  }
  if (!are_runs) {
    parts->group_of_column = std::move(groups);
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
