// What the readers of group-wise schemes share: sizes of groups, and groups that are no runs of
// columns.
#ifndef TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GROUPS_H_
#define TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GROUPS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/weights/json_config.h"
#include "runtime/weights/quantized/module_tensors.h"
#include "runtime/weights/quantized/quantized_matrix.h"

namespace trireme::weights {

// A setting that must be -1 (one group a row) or positive.
absl::Status CheckGroupSize(const JsonConfig& config, absl::string_view key, int64_t group_size);

// Groups of a row of `columns`. One that is longer than the row is the row; else group_size must
// divide it: InvalidArgument names group_size and the module.
absl::StatusOr<int64_t> GroupsOf(const ModuleTensors& module, int64_t columns, int64_t group_size);

// "groups of 128".
std::string GroupText(int64_t group_columns);

// Fills group_of_column from a part of int32, one for each column, unless the groups are the runs
// of group_columns anyway. InvalidArgument names the part for an index that is no group, and
// group_size where a group has not group_columns members.
absl::Status ReadGroupIndices(const ModuleTensors& module, const StoredPart& indices,
                              QuantizedParts* parts);

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_QUANTIZED_GROUPS_H_
