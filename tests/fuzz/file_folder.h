// A folder of its own for the files that an entry point reads by path; removed at the end.
#ifndef TRIREME_TESTS_FUZZ_FILE_FOLDER_H_
#define TRIREME_TESTS_FUZZ_FILE_FOLDER_H_

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/types/span.h"
#include "runtime/base/check.h"

namespace trireme {

class FileFolder {
 public:
  FileFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fuzz_XXXXXX").string();
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~FileFolder() { std::filesystem::remove_all(path_); }
  FileFolder(const FileFolder&) = delete;
  FileFolder& operator=(const FileFolder&) = delete;

  const std::string& path() const { return path_; }

  void Write(const std::string& name, absl::Span<const uint8_t> bytes) const {
    std::ofstream file(path_ + "/" + name, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void Write(const std::string& name, const std::string& text) const {
    Write(name, absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  }

 private:
  std::string path_;
};

}  // namespace trireme

#endif  // TRIREME_TESTS_FUZZ_FILE_FOLDER_H_
