#include "runtime/weights/manifest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace trireme::weights {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// FIPS 180-2's examples: "abc" and the empty text.
constexpr char kHashOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr char kHashOfNothing[] =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

class ManifestTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "manifest_XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << content;
  }
  ManifestReport Check(const std::vector<std::string>& names = {}) const {
    const auto report = CheckManifest(folder_, names, nullptr);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : ManifestReport();
  }

  std::string folder_;
};

TEST_F(ManifestTest, AcceptsFilesAsListed) {
  Write("a.safetensors", "abc");
  Write("config.json", "");
  Write(kManifestName, absl::StrCat(kHashOfAbc, "  a.safetensors\n",
                                    absl::AsciiStrToUpper(kHashOfNothing), " *config.json\r\n"));
  std::vector<int64_t> done;
  const auto report = CheckManifest(folder_, {}, [&done](int64_t bytes, int64_t total) {
    EXPECT_EQ(total, 3);
    done.push_back(bytes);
  });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->faults, IsEmpty());
  EXPECT_EQ(report->files, 2);
  EXPECT_EQ(report->bytes, 3);
  EXPECT_THAT(done, ElementsAre(3));
}

TEST_F(ManifestTest, D9_NamesEachFileThatDiffers) {
  Write("a.safetensors", "abb");  // one bit of the last byte
  Write("b.safetensors", "abc");
  std::filesystem::create_directory(folder_ + "/c.json");
  Write(kManifestName,
        absl::StrCat(kHashOfAbc, "  a.safetensors\n", kHashOfAbc, "  b.safetensors\n", kHashOfAbc,
                     "  c.json\n", kHashOfAbc, "  gone.json\n"));
  EXPECT_THAT(
      Check().faults,
      ElementsAre(testing::AllOf(HasSubstr("a.safetensors: its SHA-256 is"), HasSubstr(kHashOfAbc)),
                  HasSubstr("c.json: is no regular file"), HasSubstr("gone.json: No such file")));
  EXPECT_THAT(Check({"b.safetensors"}).faults, IsEmpty());
}

TEST_F(ManifestTest, D9_NamesWeightsThatAreNotListed) {
  Write("a.safetensors", "abc");
  Write("b.gguf", "abc");
  Write("notes.txt", "abc");
  Write(kManifestName, absl::StrCat(kHashOfAbc, "  a.safetensors\n"));
  EXPECT_THAT(Check().faults, ElementsAre(HasSubstr("b.gguf: is not listed")));
  EXPECT_THAT(Check({"notes.txt"}).faults, ElementsAre(HasSubstr("notes.txt: is not listed")));
}

TEST_F(ManifestTest, SaysWhenThereIsNone) {
  EXPECT_EQ(CheckManifest(folder_, {}, nullptr).status().code(), absl::StatusCode::kNotFound);
}

std::string ParseError(const std::string& text) {
  return std::string(ParseManifest(text).status().message());
}

TEST(ParseManifest, ReadsEscapedNames) {
  const auto entries = ParseManifest(absl::StrCat("\\", kHashOfAbc, "  a\\\\n\\nb\n"));
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_EQ(entries->at(0).name, "a\\n\nb");
}

TEST(ParseManifest, NamesTheLineThatIsWrong) {
  const std::string good = absl::StrCat(kHashOfAbc, "  a\n");
  EXPECT_EQ(ParseError(""), "lists no file");
  EXPECT_THAT(ParseError(good + "abc  b\n"), HasSubstr("line 2 is \"abc  b\""));
  EXPECT_THAT(ParseError(good + kHashOfAbc + "\n"), HasSubstr("line 2 is"));
  EXPECT_THAT(ParseError(good + kHashOfAbc + " x\n"), HasSubstr("line 2 is"));
  EXPECT_THAT(ParseError(good + good), HasSubstr("line 2 names \"a\" a second time"));
  EXPECT_THAT(ParseError(absl::StrCat(kHashOfAbc, "  /etc/passwd")), HasSubstr("outside"));
  EXPECT_THAT(ParseError(absl::StrCat(kHashOfAbc, "  b/../../c")), HasSubstr("outside"));
}

}  // namespace
}  // namespace trireme::weights
