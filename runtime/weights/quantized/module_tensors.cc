#include "runtime/weights/quantized/module_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {

int64_t StoredPart::values() const {
  int64_t count = 1;
  for (const int64_t extent : extents) {
    count *= extent;  // the container checked the product
  }
  return count;
}

std::string ModuleTensors::NameOf(absl::string_view suffix) const {
  return absl::StrCat(name_, suffix.front() == '_' ? "" : ".", suffix);
}

std::optional<StoredPart> ModuleTensors::Find(absl::string_view suffix) const {
  return source_.FindPart(NameOf(suffix));
}

absl::StatusOr<StoredPart> ModuleTensors::Get(
    absl::string_view suffix, std::initializer_list<absl::string_view> dtypes) const {
  std::optional<StoredPart> part = Find(suffix);
  if (!part.has_value()) {
    return Error(suffix, "is missing; the weights cannot be read without it");
  }
  RETURN_IF_ERROR(CheckDtype(*part, dtypes));
  if (std::find(part->extents.begin(), part->extents.end(), 0) != part->extents.end()) {
    return Error(suffix, "has a dimension of zero, so no elements; wanted some");
  }
  return *std::move(part);
}

absl::StatusOr<StoredPart> ModuleTensors::Get(absl::string_view suffix,
                                              std::initializer_list<absl::string_view> dtypes,
                                              absl::Span<const int64_t> extents) const {
  ASSIGN_OR_RETURN(StoredPart part, Get(suffix, dtypes));
  RETURN_IF_ERROR(CheckExtents(part, extents));
  return part;
}

absl::Status ModuleTensors::CheckDtype(const StoredPart& part,
                                       std::initializer_list<absl::string_view> dtypes) const {
  if (std::find(dtypes.begin(), dtypes.end(), part.dtype) == dtypes.end()) {
    return source_.PartError(part.name, absl::StrCat("has type ", part.dtype, ", wanted ",
                                                     absl::StrJoin(dtypes, " or ")));
  }
  return absl::OkStatus();
}

absl::Status ModuleTensors::CheckExtents(const StoredPart& part,
                                         absl::Span<const int64_t> extents) const {
  if (absl::MakeConstSpan(part.extents) != extents) {
    return source_.PartError(part.name, absl::StrFormat("has the shape [%s], wanted [%s]",
                                                        absl::StrJoin(part.extents, ", "),
                                                        absl::StrJoin(extents, ", ")));
  }
  return absl::OkStatus();
}

absl::Status ModuleTensors::CheckMatrix(absl::string_view suffix, const MatrixExtents& found,
                                        const std::optional<MatrixExtents>& wanted) const {
  if (found.rows < 1 || found.columns < 1) {
    return Error(suffix, "has a dimension of zero, so no elements; wanted some");
  }
  if (wanted.has_value() && found != *wanted) {
    return Error(suffix, absl::StrFormat("makes a matrix of %d outputs and %d inputs; the model "
                                         "wants %d and %d",
                                         found.rows, found.columns, wanted->rows, wanted->columns));
  }
  return absl::OkStatus();
}

absl::Status ModuleTensors::CheckNoPlainWeight(absl::string_view packed_suffix) const {
  if (Has("weight")) {
    return Error(packed_suffix, absl::StrCat("stands beside the plain ", NameOf("weight"),
                                             "; wanted one of them, since they may differ"));
  }
  return absl::OkStatus();
}

}  // namespace trireme::weights
