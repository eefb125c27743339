#include "runtime/comm/agreement.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/base/check.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"

namespace trireme::comm {
namespace {

constexpr size_t kValueBytesMax = 4000;
constexpr int64_t kNamesBytesMax = 64 * 1024;

absl::Status CheckOne(Communicator& world, absl::Span<const RankPlace> places,
                      const std::string& name, const std::string& mine, int64_t bytes_max) {
  ASSIGN_OR_RETURN(const std::vector<std::string> values, GatherMessages(world, mine, bytes_max));
  for (size_t rank = 1; rank < values.size(); ++rank) {
    if (values[rank] != values[0]) {
      return absl::FailedPreconditionError(absl::StrFormat(
          "ranks disagree on %s: rank=0 host=%s has \"%s\", rank=%d host=%s has \"%s\"; start all "
          "ranks with the same program, model and settings",
          name, places[0].host, values[0], rank, places[rank].host, values[rank]));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAgreement(Communicator& world, absl::Span<const RankPlace> places,
                            absl::Span<const Fact> facts) {
  CHECK_EQ(places.size(), static_cast<size_t>(world.size()));
  // The names first: a rank with other facts would take part in another number of rounds.
  std::string names;
  for (const Fact& fact : facts) {
    names += fact.name + " ";
  }
  RETURN_IF_ERROR(CheckOne(world, places, "what to compare", names, kNamesBytesMax));
  for (const Fact& fact : facts) {
    RETURN_IF_ERROR(CheckOne(world, places, fact.name, fact.value.substr(0, kValueBytesMax),
                             static_cast<int64_t>(kValueBytesMax)));
  }
  return absl::OkStatus();
}

}  // namespace trireme::comm
