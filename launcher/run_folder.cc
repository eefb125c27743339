#include "launcher/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace trireme::launcher {
namespace {

absl::Status SystemError(absl::string_view what, const std::string& path) {
  const int error = errno;
  const std::string text = absl::StrCat(path, ": ", what, ": ", std::strerror(error));
  return error == EACCES || error == EPERM || error == EROFS ? absl::PermissionDeniedError(text)
                                                             : absl::UnknownError(text);
}

absl::Status MakeFolder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    errno = error.value();
    return SystemError("cannot make the run folder", path);
  }
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return absl::UnknownError(absl::StrCat(path, ": the run folder is no folder"));
  }
  if (status.st_uid != ::geteuid()) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "%s: the run folder belongs to user %d, not to this one (%d); name another by "
        "observe.admin",
        path, status.st_uid, ::geteuid()));
  }
  if (::chmod(path.c_str(), 0700) != 0) {
    return SystemError("cannot keep the run folder to this user", path);
  }
  return absl::OkStatus();
}

std::string ReadFirstLine(const std::string& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

}  // namespace

std::string RunFolderOf(const topology::ClusterFile& file) {
  absl::string_view admin = file.observe.admin;
  if (absl::ConsumePrefix(&admin, "unix:")) {
    const size_t slash = admin.rfind('/');
    return slash == absl::string_view::npos ? "." : std::string(admin.substr(0, slash));
  }
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool has_runtime = runtime != nullptr && ::access(runtime, W_OK | X_OK) == 0;
  return has_runtime ? absl::StrCat(runtime, "/trireme/", file.name)
                     : absl::StrFormat("/tmp/trireme-%d/%s", ::geteuid(), file.name);
}

std::string FleetAdminAddress(const topology::ClusterFile& file) {
  return file.observe.admin.empty() ? absl::StrCat("unix:", RunFolderOf(file), "/admin.sock")
                                    : file.observe.admin;
}

uint64_t LastEpochIn(const std::string& folder) {
  return std::strtoull(ReadFirstLine(folder + "/epoch").c_str(), nullptr, 10);
}

absl::StatusOr<std::unique_ptr<RunFolder>> RunFolder::Open(std::string path) {
  if (absl::Status status = MakeFolder(path); !status.ok()) {
    return status;
  }
  const std::string lock_path = path + "/lock";
  // Not inherited: the lock must go with this process, whatever its children do.
  const int lock = ::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) {
    return SystemError("cannot open the lock", lock_path);
  }
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return absl::FailedPreconditionError(absl::StrFormat(
        "another supervisor (process %s) runs this fleet: its run folder %s is locked; stop it "
        "first, or give this fleet another name",
        ReadFirstLine(lock_path), path));
  }
  const std::string process = absl::StrCat(::getpid(), "\n");
  if (::ftruncate(lock, 0) != 0 ||
      ::pwrite(lock, process.data(), process.size(), 0) != static_cast<ssize_t>(process.size())) {
    absl::Status status = SystemError("cannot write the lock", lock_path);
    ::close(lock);
    return status;
  }
  const uint64_t epoch = LastEpochIn(path);
  return std::unique_ptr<RunFolder>(new RunFolder(std::move(path), lock, epoch));
}

RunFolder::RunFolder(std::string path, int lock, uint64_t last_epoch)
    : path_(std::move(path)), lock_(lock), last_epoch_(last_epoch) {}

RunFolder::~RunFolder() { ::close(lock_); }

std::string RunFolder::LogPath(absl::string_view child) const {
  return absl::StrCat(path_, "/", child, ".log");
}

absl::Status RunFolder::StoreEpoch(uint64_t epoch) {
  const std::string path = path_ + "/epoch";
  const std::string fresh = path + ".new";
  const std::string text = absl::StrCat(epoch, "\n");
  const int file = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) {
    return SystemError("cannot store the epoch", fresh);
  }
  const bool is_written =
      ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(file) == 0;
  const absl::Status failure =
      is_written ? absl::OkStatus() : SystemError("cannot store the epoch", fresh);
  ::close(file);
  if (!failure.ok()) {
    return failure;
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    return SystemError("cannot store the epoch", path);
  }
  last_epoch_ = epoch;
  return absl::OkStatus();
}

}  // namespace trireme::launcher
