#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "runtime/base/status_macros.h"

namespace trireme {
namespace {

absl::Status SystemError(absl::string_view path, absl::string_view action, int error) {
  const std::string text =
      absl::StrCat(path, ": cannot ", action, " the file: ", std::strerror(error));
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(absl::StrCat(text, "; check the path"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(text, "; check who may read it"));
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return absl::ResourceExhaustedError(text);
    default:
      return absl::InvalidArgumentError(text);
  }
}

absl::string_view KindName(mode_t mode) {
  if (S_ISDIR(mode)) {
    return "a directory";
  }
  if (S_ISFIFO(mode)) {
    return "a pipe";
  }
  if (S_ISSOCK(mode)) {
    return "a socket";
  }
  if (S_ISCHR(mode) || S_ISBLK(mode)) {
    return "a device";
  }
  return "no regular file";
}

absl::Status CheckRegular(absl::string_view path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(path, ": this is ", KindName(status.st_mode),
                                                 ", wanted a regular file; name the file itself"));
}

FileIdentity IdentityOf(const struct stat& status) {
  return FileIdentity{
      .device = static_cast<uint64_t>(status.st_dev),
      .inode = static_cast<uint64_t>(status.st_ino),
      .size_bytes = static_cast<int64_t>(status.st_size),
      .modified_ns = static_cast<int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                     static_cast<int64_t>(status.st_mtim.tv_nsec),
  };
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) {
      ::close(value_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  const int value_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(const std::string& path) {
  // Asked before opening, because opening a device can already do something.
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0) {
    return SystemError(path, "find", errno);
  }
  RETURN_IF_ERROR(CheckRegular(path, status));
  // O_NONBLOCK and the second look: the path may lead to a pipe by now.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (descriptor.value() < 0) {
    return SystemError(path, "open", errno);
  }
  if (::fstat(descriptor.value(), &status) != 0) {
    return SystemError(path, "examine", errno);
  }
  RETURN_IF_ERROR(CheckRegular(path, status));
  const FileIdentity identity = IdentityOf(status);
  if (identity.size_bytes == 0) {
    return std::unique_ptr<MappedFile>(new MappedFile(path, identity, {}));
  }
  const size_t size = static_cast<size_t>(identity.size_bytes);
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor.value(), 0);
  if (start == MAP_FAILED) {
    return SystemError(path, "map", errno);
  }
  return std::unique_ptr<MappedFile>(new MappedFile(
      path, identity, absl::MakeConstSpan(static_cast<const uint8_t*>(start), size)));
}

MappedFile::MappedFile(std::string path, FileIdentity identity, absl::Span<const uint8_t> bytes)
    : path_(std::move(path)), identity_(identity), bytes_(bytes) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) {
    ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
  }
}

absl::Status MappedFile::CheckUnchanged() const {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": the file went away after it was opened: ", std::strerror(errno)));
  }
  const FileIdentity now = IdentityOf(status);
  if (now == identity_) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path_, ": the file changed after it was opened: ", identity_.size_bytes, " bytes then, ",
      now.size_bytes, " bytes now, modified ", now.modified_ns - identity_.modified_ns,
      " ns later; start again, and replace a model by renaming a new file over it"));
}

}  // namespace trireme
