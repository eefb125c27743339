#include "runtime/base/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

namespace trireme {
namespace {

using ::testing::HasSubstr;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    std::string pattern = ::testing::TempDir() + "mapped_file_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~MappedFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream(Path(name), std::ios::binary) << content;
    return Path(name);
  }

  std::string folder_;
};

std::string Text(const MappedFile& file) {
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

TEST_F(MappedFileTest, ShowsTheBytesOfAFile) {
  const auto file = MappedFile::Open(Write("a", std::string("one\0two", 7)));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Text(**file), std::string("one\0two", 7));
  EXPECT_EQ((*file)->size_bytes(), 7);
  EXPECT_EQ((*file)->path(), Path("a"));
}

TEST_F(MappedFileTest, AnEmptyFileGivesNoBytes) {
  const auto file = MappedFile::Open(Write("empty", ""));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE((*file)->bytes().empty());
  EXPECT_TRUE((*file)->CheckUnchanged().ok());
}

TEST_F(MappedFileTest, FollowsASymbolicLink) {
  std::filesystem::create_symlink(Write("target", "abc"), Path("link"));
  const auto file = MappedFile::Open(Path("link"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(Text(**file), "abc");
}

TEST_F(MappedFileTest, NamesAMissingFile) {
  const absl::Status status = MappedFile::Open(Path("missing")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr(Path("missing")));
  std::filesystem::create_symlink(Path("nowhere"), Path("dangling"));
  EXPECT_EQ(MappedFile::Open(Path("dangling")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(MappedFile::Open(Write("file", "x") + "/below").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(MappedFileTest, RefusesAFileThatMayNotBeRead) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may read everything";
  }
  const std::string path = Write("secret", "x");
  ::chmod(path.c_str(), 0);
  EXPECT_EQ(MappedFile::Open(path).status().code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(MappedFileTest, D1_RefusesADirectory) {
  const absl::Status status = MappedFile::Open(folder_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a directory"));
}

// Opening a pipe that nobody writes to blocks a careless reader for ever.
TEST_F(MappedFileTest, D1_RefusesAPipeWithoutWaiting) {
  ASSERT_EQ(::mkfifo(Path("pipe").c_str(), 0600), 0);
  const absl::Status status = MappedFile::Open(Path("pipe")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("a pipe"));
}

TEST_F(MappedFileTest, D1_RefusesDevices) {
  for (const char* const path : {"/dev/zero", "/dev/null", "/dev/tty"}) {
    if (!std::filesystem::exists(path)) {
      continue;
    }
    const absl::Status status = MappedFile::Open(path).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr("a device")) << path;
  }
}

TEST_F(MappedFileTest, D1_RefusesASocket) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(descriptor, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const std::string path = Path("socket");
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THAT(std::string(MappedFile::Open(path).status().message()), HasSubstr("a socket"));
  ::close(descriptor);
}

TEST_F(MappedFileTest, D10_NoticesThatTheFileGrew) {
  const auto file = MappedFile::Open(Write("a", "abc"));
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE((*file)->CheckUnchanged().ok());
  std::ofstream(Path("a"), std::ios::app) << "d";
  const absl::Status status = (*file)->CheckUnchanged();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("3 bytes then, 4 bytes now"));
}

TEST_F(MappedFileTest, D10_NoticesANewModificationTime) {
  const auto file = MappedFile::Open(Write("a", "abc"));
  ASSERT_TRUE(file.ok());
  const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, Path("a").c_str(), times, 0), 0);
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MappedFileTest, D10_NoticesThatAnotherFileTookTheName) {
  const auto file = MappedFile::Open(Write("a", "abc"));
  ASSERT_TRUE(file.ok());
  std::filesystem::rename(Write("b", "xyz"), Path("a"));
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Text(**file), "abc");  // the map still shows the file that was opened
  std::filesystem::remove(Path("a"));
  EXPECT_EQ((*file)->CheckUnchanged().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace trireme
