// The folder in which a running fleet keeps what outlives its supervisor: the lock that refuses a
// second one, the last epoch, the logs of its children, and the admin sockets.
#ifndef TRIREME_LAUNCHER_RUN_FOLDER_H_
#define TRIREME_LAUNCHER_RUN_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "topology/cluster.h"

namespace trireme::launcher {

// Of the file's observe.admin, else of the fleet's name: XDG_RUNTIME_DIR/trireme/NAME, or
// /tmp/trireme-UID/NAME without that variable.
std::string RunFolderOf(const topology::ClusterFile& file);

// "unix:PATH" of the supervisor: observe.admin, else "admin.sock" in the run folder.
std::string FleetAdminAddress(const topology::ClusterFile& file);

// The last epoch that a supervisor of this folder stored; 0: none.
uint64_t LastEpochIn(const std::string& folder);

class RunFolder {
 public:
  // Makes the folder (mode 0700) and locks it until the object or the process dies.
  // FailedPrecondition, naming the other process, when another supervisor has it;
  // PermissionDenied and Unknown, naming the path, when the system refuses.
  static absl::StatusOr<std::unique_ptr<RunFolder>> Open(std::string path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string LogPath(absl::string_view child) const;  // "PATH/CHILD.log"

  // The last epoch that was stored; 0: none.
  uint64_t last_epoch() const { return last_epoch_; }
  // On disk when it returns OK.
  absl::Status StoreEpoch(uint64_t epoch);

 private:
  RunFolder(std::string path, int lock, uint64_t last_epoch);

  const std::string path_;
  const int lock_;
  uint64_t last_epoch_;
};

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_RUN_FOLDER_H_
