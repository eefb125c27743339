#include "runtime/comm/rank_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "absl/strings/str_format.h"
#include "runtime/base/status_macros.h"
#include "runtime/comm/message.h"

namespace trireme::comm {
namespace {

constexpr int64_t kNameBytesMax = 1024;

std::string FileIdentity(const char* path) {
  struct stat status = {};
  return ::stat(path, &status) == 0 ? absl::StrFormat("%d:%d", status.st_dev, status.st_ino)
                                    : std::string("none");
}

}  // namespace

RankPlace LocalPlace(const std::string& host) {
  std::array<char, 256> name = {};
  ::gethostname(name.data(), name.size() - 1);
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return {.host = host.empty() ? std::string(name.data()) : host,
          .identity = absl::StrFormat("%s/%s/%s/%s", name.data(), boot, FileIdentity("/dev/shm"),
                                      FileIdentity("/proc/self/ns/net"))};
}

absl::StatusOr<std::vector<RankPlace>> GatherPlaces(Communicator& world, const RankPlace& mine) {
  ASSIGN_OR_RETURN(const std::vector<std::string> hosts,
                   GatherMessages(world, mine.host, kNameBytesMax));
  ASSIGN_OR_RETURN(const std::vector<std::string> identities,
                   GatherMessages(world, mine.identity, kNameBytesMax));
  std::vector<RankPlace> places;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    places.push_back({.host = hosts[rank], .identity = identities[rank]});
  }
  return places;
}

bool AreOnOneHost(absl::Span<const RankPlace> places) {
  for (const RankPlace& place : places) {
    if (place.identity != places[0].identity) {
      return false;
    }
  }
  return true;
}

}  // namespace trireme::comm
