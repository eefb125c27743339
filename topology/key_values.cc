#include "topology/key_values.h"

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "topology/value_text.h"

namespace trireme::topology {

absl::Status PutPositive(absl::string_view text, absl::Duration* place) {
  const absl::Status status = Put(ParseDuration(text), place);
  if (status.ok() && *place <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" must be above 0"));
  }
  return status;
}

absl::Status PutWord(absl::string_view text, const std::vector<std::string>& words,
                     std::string* place) {
  const absl::StatusOr<int> index = ParseChoice(text, words);
  if (!index.ok()) {
    return index.status();
  }
  *place = words[*index];
  return absl::OkStatus();
}

absl::Status OneOf(absl::string_view text, const std::vector<std::string>& words) {
  return ParseChoice(text, words).status();
}

absl::Status PutCores(Values values, std::vector<int>* place) {
  return Put(ParseCores(absl::StrJoin(values, ",")), place);
}

absl::Status PutTexts(Values values, std::vector<std::string>* place) {
  for (const std::string& value : values) {
    if (const absl::StatusOr<std::string> text = ParseText(value); !text.ok()) {
      return text.status();
    }
    place->push_back(value);
  }
  return absl::OkStatus();
}

absl::Status CheckRoom(size_t count, size_t maximum) {
  if (count < maximum) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("more than ", maximum, " of them"));
}

absl::Status PutAddress(absl::string_view text, std::string* place) {
  const absl::StatusOr<Address> address = ParseAddress(text);
  if (!address.ok()) {
    return address.status();
  }
  *place = std::string(text);
  return absl::OkStatus();
}

}  // namespace trireme::topology
