// A regular file mapped read-only into memory: the bytes of a model without reading them. Not for
// writing, and not for pipes or devices, which are refused at once (they could block for ever).
// The map follows the file: if somebody cuts the file while it is mapped, reading the lost pages
// raises SIGBUS. CheckUnchanged() tells before a long use whether the file is still the same one.
#ifndef TRIREME_RUNTIME_BASE_MAPPED_FILE_H_
#define TRIREME_RUNTIME_BASE_MAPPED_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace trireme {

// What tells one state of a file from another without reading it.
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  int64_t modified_ns = 0;  // since 1970

  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
};

// Immutable after Open; threads may read it at any time. Spans are valid while the object lives.
class MappedFile {
 public:
  // Maps the whole file; symbolic links are followed, an empty file gives an empty span. Errors:
  // NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT (a directory, pipe, socket or device),
  // RESOURCE_EXHAUSTED (no address space). Never waits for another process.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  absl::Span<const uint8_t> bytes() const { return bytes_; }
  int64_t size_bytes() const { return identity_.size_bytes; }
  const FileIdentity& identity() const { return identity_; }

  // FAILED_PRECONDITION when the path no longer leads to the file that was opened, or its size or
  // modification time changed since.
  [[nodiscard]] absl::Status CheckUnchanged() const;

 private:
  MappedFile(std::string path, FileIdentity identity, absl::Span<const uint8_t> bytes);

  const std::string path_;
  const FileIdentity identity_;
  const absl::Span<const uint8_t> bytes_;
};

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_MAPPED_FILE_H_
