#include "runtime/weights/manifest.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "runtime/base/check.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace trireme::weights {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDigits = 64;
constexpr size_t kChunkBytes = size_t{1} << 20;

absl::Status LineError(size_t line, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "line %d %s; wanted a SHA-256, two spaces and a file's name, as sha256sum writes them", line,
      problem));
}

bool LeavesFolder(const std::string& name) {
  const fs::path path(name);
  return path.is_absolute() ||
         std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == ".."; });
}

// "hash  name" or "hash *name"; a backslash before it says that newlines and backslashes of the
// name are escaped.
absl::StatusOr<ManifestEntry> ParseLine(absl::string_view text, size_t line) {
  const bool is_escaped = absl::ConsumePrefix(&text, "\\");
  const absl::string_view digits = text.substr(0, kDigits);
  const bool is_hash =
      digits.size() == kDigits &&
      digits.find_first_not_of("0123456789abcdefABCDEF") == absl::string_view::npos;
  const absl::string_view rest = is_hash ? text.substr(kDigits) : "";
  if (rest.size() < 3 || rest[0] != ' ' || (rest[1] != ' ' && rest[1] != '*')) {
    return LineError(line, absl::StrCat("is \"", absl::CHexEscape(text.substr(0, 100)), "\""));
  }
  ManifestEntry entry = {.name = std::string(rest.substr(2)),
                         .sha256 = absl::AsciiStrToLower(digits)};
  if (is_escaped) {
    entry.name = absl::StrReplaceAll(entry.name, {{"\\\\", "\\"}, {"\\n", "\n"}, {"\\r", "\r"}});
  }
  if (LeavesFolder(entry.name)) {
    return LineError(line, absl::StrCat("names \"", absl::CHexEscape(entry.name.substr(0, 100)),
                                        "\", which lies outside the manifest's folder"));
  }
  return entry;
}

struct DigestDeleter {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// SHA-256 of what is added, in hexadecimal digits.
class Digest {
 public:
  Digest() : context_(EVP_MD_CTX_new()) {
    CHECK_EQ(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr), 1);
  }
  void Add(const char* bytes, size_t count) {
    CHECK_EQ(EVP_DigestUpdate(context_.get(), bytes, count), 1);
  }
  std::string Finish() {
    std::string bytes(EVP_MAX_MD_SIZE, '\0');
    unsigned int size = 0;
    CHECK_EQ(
        EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size),
        1);
    return absl::BytesToHexString(absl::string_view(bytes.data(), size));
  }

 private:
  const std::unique_ptr<EVP_MD_CTX, DigestDeleter> context_;
};

// Adds up what was read of all files.
class ReadProgress {
 public:
  ReadProgress(int64_t total_bytes, const LoadProgress& progress)
      : total_bytes_(total_bytes), progress_(progress) {}
  void Add(int64_t bytes) {
    done_bytes_ = std::min(done_bytes_ + bytes, total_bytes_);
    if (progress_ != nullptr) {
      progress_(done_bytes_, total_bytes_);
    }
  }

 private:
  const int64_t total_bytes_;
  const LoadProgress& progress_;
  int64_t done_bytes_ = 0;
};

// Never waits for a pipe, and reads instead of mapping, so a file that shrinks meanwhile only ends
// early.
absl::StatusOr<std::string> HashOf(const std::string& path, ReadProgress* progress) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return absl::NotFoundError(std::strerror(errno));
  }
  const absl::Cleanup close = [file] { ::close(file); };
  struct stat status = {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("is no regular file");
  }
  Digest digest;
  std::string chunk(kChunkBytes, '\0');
  while (true) {
    const ssize_t count = ::read(file, chunk.data(), chunk.size());
    if (count < 0 && errno != EINTR) {
      return absl::UnknownError(std::strerror(errno));
    }
    if (count == 0) {
      return digest.Finish();
    }
    if (count > 0) {
      digest.Add(chunk.data(), static_cast<size_t>(count));
      progress->Add(count);
    }
  }
}

// The weights of the folder, which a manifest of all files must list.
std::vector<std::string> WeightFiles(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const fs::path extension = entry.path().extension();
    if (extension == ".safetensors" || extension == ".gguf") {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

absl::StatusOr<std::vector<ManifestEntry>> ParseManifest(absl::string_view text) {
  std::vector<ManifestEntry> entries;
  std::set<std::string> names;
  size_t line = 0;
  for (absl::string_view each : absl::StrSplit(text, '\n')) {
    ++line;
    absl::ConsumeSuffix(&each, "\r");
    if (each.empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(ManifestEntry entry, ParseLine(each, line));
    if (!names.insert(entry.name).second) {
      return LineError(line, absl::StrCat("names \"", absl::CHexEscape(entry.name.substr(0, 100)),
                                          "\" a second time"));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return absl::InvalidArgumentError("lists no file");
  }
  return entries;
}

absl::StatusOr<ManifestReport> CheckManifest(const std::string& folder,
                                             const std::vector<std::string>& names,
                                             const LoadProgress& progress) {
  const std::string path = absl::StrCat(folder, "/", kManifestName);
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  absl::StatusOr<std::vector<ManifestEntry>> entries = ParseManifest(
      absl::string_view(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size()));
  if (!entries.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", entries.status().message()));
  }
  const std::vector<std::string> wanted = names.empty() ? WeightFiles(folder) : names;
  ManifestReport report;
  for (const std::string& name : wanted) {
    if (std::none_of(entries->begin(), entries->end(),
                     [&name](const ManifestEntry& entry) { return entry.name == name; })) {
      report.faults.push_back(
          absl::StrCat(folder, "/", name, ": is not listed in ", kManifestName));
    }
  }
  if (!names.empty()) {
    std::erase_if(*entries, [&names](const ManifestEntry& entry) {
      return std::find(names.begin(), names.end(), entry.name) == names.end();
    });
  }
  int64_t total_bytes = 0;
  for (const ManifestEntry& entry : *entries) {
    total_bytes += SizeOf(absl::StrCat(folder, "/", entry.name));
  }
  ReadProgress reading(total_bytes, progress);
  for (const ManifestEntry& entry : *entries) {
    const std::string name = absl::StrCat(folder, "/", entry.name);
    const absl::StatusOr<std::string> hash = HashOf(name, &reading);
    if (!hash.ok()) {
      report.faults.push_back(absl::StrCat(name, ": ", hash.status().message()));
      continue;
    }
    ++report.files;
    report.bytes += SizeOf(name);
    if (*hash != entry.sha256) {
      report.faults.push_back(absl::StrFormat("%s: its SHA-256 is %s; %s has %s", name, *hash,
                                              kManifestName, entry.sha256));
    }
  }
  return report;
}

}  // namespace trireme::weights
