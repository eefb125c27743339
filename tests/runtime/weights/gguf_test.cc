#include "runtime/weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/gguf_fixtures.h"

namespace {

// Live and highest bytes from operator new, to hold hostile files to their limit.
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> peak_bytes{0};

void* Allocate(size_t size) {
  void* const data = std::malloc(size);
  const int64_t live = live_bytes += static_cast<int64_t>(malloc_usable_size(data));
  int64_t peak = peak_bytes;
  while (live > peak && !peak_bytes.compare_exchange_weak(peak, live)) {
  }
  return data;
}

}  // namespace

void* operator new(size_t size) {
  void* const data = Allocate(size);
  if (data == nullptr) {
    std::abort();
  }
  return data;
}
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Allocate(size); }
void operator delete(void* data) noexcept {
  live_bytes -= static_cast<int64_t>(malloc_usable_size(data));
  std::free(data);
}
void operator delete(void* data, size_t) noexcept { operator delete(data); }

namespace trireme::weights {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::string Fixture(absl::string_view name) { return absl::StrCat(kGgufFixtures, "/", name); }

std::string MessageOf(const absl::StatusOr<std::unique_ptr<GgufFile>>& file) {
  return std::string(file.status().message());
}

std::unique_ptr<GgufFile> MustOpen(const std::string& path) {
  absl::StatusOr<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : nullptr;
}

// Compares with a value of expected.json: floats by their bits, 64-bit integers as decimal text.
void ExpectValue(const GgufValue& value, const Json& expected) {
  if (value.type() == GgufType::kArray) {
    ASSERT_TRUE(expected.is_array());
    ASSERT_EQ(value.element_count(), static_cast<int64_t>(expected.size()));
    GgufElements elements(value);
    for (const Json& expected_element : expected) {
      const std::optional<GgufValue> element = elements.Next();
      ASSERT_TRUE(element.has_value());
      ExpectValue(*element, expected_element);
    }
    return;
  }
  switch (value.type()) {
    case GgufType::kString:
      EXPECT_EQ(std::string(*value.AsString()), expected.get<std::string>());
      return;
    case GgufType::kBool:
      EXPECT_EQ(*value.AsBool(), expected.get<bool>());
      return;
    case GgufType::kFloat32: {
      const float number = static_cast<float>(*value.AsFloat());
      EXPECT_EQ(absl::StrCat(absl::Hex(std::bit_cast<uint32_t>(number), absl::kZeroPad8)),
                expected.at("bits").get<std::string>());
      return;
    }
    case GgufType::kFloat64:
      EXPECT_EQ(
          absl::StrCat(absl::Hex(std::bit_cast<uint64_t>(*value.AsFloat()), absl::kZeroPad16)),
          expected.at("bits").get<std::string>());
      return;
    default:
      break;
  }
  const std::string number = value.AsInteger().has_value() ? absl::StrCat(*value.AsInteger())
                                                           : absl::StrCat(*value.AsUnsigned());
  EXPECT_EQ(number, expected.is_string() ? expected.get<std::string>() : expected.dump());
}

std::string ExpectedTypeName(const Json& expected) {
  const std::string name = expected.at("type");
  return name == "str" ? "string" : name == "arr" ? "array" : name;
}

void ExpectMetadata(const GgufFile& file, const Json& expected) {
  const std::vector<GgufEntry>& entries = file.metadata().entries();
  ASSERT_EQ(entries.size(), expected.size());
  // An ordered_json would keep the order of the file's pairs; the order is tested in
  // gguf_metadata_test, and here each key is looked up.
  for (const auto& [key, value] : expected.items()) {
    SCOPED_TRACE(key);
    const GgufEntry* const entry = file.metadata().Find(key);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(NameOf(entry->value.type()), ExpectedTypeName(value));
    ExpectValue(entry->value, value.at("value"));
  }
}

void ExpectTensors(const GgufFile& file, const Json& expected) {
  ASSERT_EQ(file.tensors().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const GgufTensor& tensor = file.tensors()[i];
    const Json& wanted = expected[i];
    SCOPED_TRACE(wanted.at("name").get<std::string>());
    EXPECT_EQ(std::string(tensor.name), wanted.at("name").get<std::string>());
    const std::vector<int64_t> dimensions(tensor.dimensions.begin(),
                                          tensor.dimensions.begin() + tensor.dimension_count);
    EXPECT_EQ(dimensions, wanted.at("dims").get<std::vector<int64_t>>());
    EXPECT_EQ(tensor.type->id, wanted.at("type").get<uint32_t>());
    EXPECT_EQ(tensor.data_offset - file.part_data_start(tensor.part_index),
              wanted.at("offset").get<int64_t>());
    EXPECT_EQ(tensor.size_bytes, wanted.at("bytes").get<int64_t>());
    EXPECT_EQ(absl::StrCat(absl::Hex(Crc32(file.Data(tensor)), absl::kZeroPad8)),
              wanted.at("crc32").get<std::string>());
    EXPECT_EQ(file.FindTensor(tensor.name), &tensor);
  }
}

TEST(GgufFileTest, ReadsEveryGoodFileAsOthersDo) {
  const Json all = Json::parse(ReadFile(Fixture("good/expected.json")));
  int files = 0;
  for (const auto& [name, expected] : all.items()) {
    if (expected.at("kind") == "part") {
      continue;
    }
    SCOPED_TRACE(name);
    const std::unique_ptr<GgufFile> file = MustOpen(Fixture(absl::StrCat("good/", name)));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->version(), expected.at("version").get<uint32_t>());
    EXPECT_EQ(file->alignment(), expected.at("alignment").get<int64_t>());
    EXPECT_EQ(file->file_bytes(), expected.at("bytes").get<int64_t>());
    if (!expected.at("data_start").is_null()) {
      EXPECT_EQ(file->part_data_start(0), expected.at("data_start").get<int64_t>());
    }
    ExpectMetadata(*file, expected.at("metadata"));
    ExpectTensors(*file, expected.at("tensors"));
    EXPECT_TRUE(file->CheckUnchanged().ok());
    ++files;
  }
  EXPECT_GE(files, 15);
}

// Split models hold the tensors of one that is whole.
TEST(GgufFileTest, MergesThePartsOfASplitModel) {
  const Json all = Json::parse(ReadFile(Fixture("good/expected.json")));
  for (const std::string first :
       {"split3/tiny-00001-of-00003.gguf", "split2/sub.name-v1-00001-of-00002.gguf"}) {
    SCOPED_TRACE(first);
    const std::unique_ptr<GgufFile> file = MustOpen(Fixture(absl::StrCat("good/", first)));
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(file->part_count(), absl::StartsWith(first, "split3") ? 3 : 2);
    ExpectMetadata(*file, all.at(first).at("metadata"));
    const std::string whole_name = all.at(first).at("same_model_as");
    const Json& whole = all.at(whole_name).at("tensors");
    ASSERT_EQ(file->tensors().size(), whole.size());
    for (const Json& wanted : whole) {
      const GgufTensor* const tensor = file->FindTensor(wanted.at("name").get<std::string>());
      ASSERT_NE(tensor, nullptr) << wanted.at("name");
      EXPECT_EQ(absl::StrCat(absl::Hex(Crc32(file->Data(*tensor)), absl::kZeroPad8)),
                wanted.at("crc32").get<std::string>());
    }
    EXPECT_TRUE(file->CheckUnchanged().ok());
  }
}

TEST(GgufFileTest, ALaterPartOfASplitModelNamesTheFirst) {
  EXPECT_THAT(MessageOf(GgufFile::Open(Fixture("good/split3/tiny-00002-of-00003.gguf"))),
              HasSubstr("this is part 2 of a split model; open its first part, whose name ends in "
                        "-00001-of-00003.gguf"));
}

// Each file is wrong by one edit; index.json says which words an error must have.
TEST(GgufFileTest, D2_D3_D4_D5_RefusesEveryBadContainer) {
  int files = 0;
  for (const BadGguf& bad : BadGgufs()) {
    if (bad.stage != "container") {
      continue;
    }
    SCOPED_TRACE(absl::StrCat(bad.file, ": ", bad.wrong));
    const std::string path = Fixture(absl::StrCat("bad/", bad.file));
    const absl::Status status = GgufFile::Open(path).status();
    EXPECT_EQ(JudgeError(status, path, bad.words), "");
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("at byte "));
    ++files;
  }
  EXPECT_GE(files, 80);
}

TEST(GgufFileTest, RefusesEveryBadSplit) {
  int files = 0;
  for (const BadGguf& bad : BadGgufs()) {
    if (bad.stage != "split") {
      continue;
    }
    SCOPED_TRACE(absl::StrCat(bad.file, ": ", bad.wrong));
    // The culprit may be another part: the folder must be named, and the words say the file.
    const std::string folder =
        std::filesystem::path(Fixture(absl::StrCat("bad/", bad.file))).parent_path();
    const absl::Status status = GgufFile::Open(Fixture(absl::StrCat("bad/", bad.file))).status();
    EXPECT_EQ(JudgeError(status, folder, bad.words), "");
    ++files;
  }
  EXPECT_EQ(files, 11);
}

// Tensors without elements are legal in a container, and refused when a model needs them.
TEST(GgufFileTest, ANeededTensorMustExistAndHaveElements) {
  for (const BadGguf& bad : BadGgufs()) {
    if (bad.stage != "tensors") {
      continue;
    }
    SCOPED_TRACE(absl::StrCat(bad.file, ": ", bad.wrong));
    const std::string path = Fixture(absl::StrCat("bad/", bad.file));
    const std::unique_ptr<GgufFile> file = MustOpen(path);
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(JudgeError(file->GetTensor(bad.words[0][0]).status(), path, bad.words), "");
  }
  const std::unique_ptr<GgufFile> base = MustOpen(Fixture("good/base-bpe.gguf"));
  EXPECT_EQ((*base->GetTensor("token_embd.weight"))->elements, 32 * 288);
  const absl::Status missing = base->GetTensor("blk.7.attn_q.weight").status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("tensor blk.7.attn_q.weight is missing"));
}

// What is wrong in these is the meaning of keys or tensors, which is judged elsewhere.
TEST(GgufFileTest, OpensContainersThatAreWrongOnlyInMeaning) {
  int files = 0;
  for (const BadGguf& bad : BadGgufs()) {
    if (bad.stage == "model" || bad.stage == "tokenizer") {
      EXPECT_TRUE(GgufFile::Open(Fixture(absl::StrCat("bad/", bad.file))).ok()) << bad.file;
      ++files;
    }
  }
  EXPECT_GE(files, 40);
}

TEST(GgufFileTest, OpensDoubtfulContainersOrSaysWhyNot) {
  const Json index = Json::parse(ReadFile(Fixture("index.json")));
  const std::set<std::string> refused = {"name-with-nul.gguf", "key-with-nul.gguf",
                                         "key-70000-bytes.gguf", "nested-depth-5.gguf",
                                         "extra-tensor-unnamed.gguf"};
  for (const Json& odd : index.at("odd")) {
    const std::string name = odd.at("file");
    const std::string path = Fixture(absl::StrCat("odd/", name));
    const absl::StatusOr<std::unique_ptr<GgufFile>> file = GgufFile::Open(path);
    if (refused.count(name) != 0) {
      EXPECT_EQ(JudgeError(file.status(), path, {}), "") << name;
      continue;
    }
    ASSERT_TRUE(file.ok()) << file.status();
    for (const GgufTensor& tensor : (*file)->tensors()) {
      EXPECT_EQ(static_cast<int64_t>((*file)->Data(tensor).size()), tensor.size_bytes);
    }
  }
}

TEST(GgufFileTest, ReadsDoubtfulValuesAsTheReferenceDoes) {
  EXPECT_EQ(
      *MustOpen(Fixture("odd/bool-two.gguf"))->metadata().GetBool("tokenizer.ggml.add_bos_token"),
      true);
  EXPECT_EQ(MustOpen(Fixture("odd/align-u64.gguf"))->alignment(), 32);
  EXPECT_EQ(MustOpen(Fixture("odd/align-1.gguf"))->alignment(), 1);
  const std::unique_ptr<GgufFile> reordered = MustOpen(Fixture("odd/tensor-order.gguf"));
  const std::unique_ptr<GgufFile> base = MustOpen(Fixture("good/base-bpe.gguf"));
  for (const GgufTensor& tensor : base->tensors()) {
    EXPECT_EQ(reordered->Data(**reordered->GetTensor(tensor.name)), base->Data(tensor))
        << tensor.name;
  }
}

// Every length is tried; each prefix is an allocation of its own, so that the address sanitizer
// would see a single byte read past its end.
TEST(GgufFileTest, D1_RefusesEveryTruncation) {
  const Json index = Json::parse(ReadFile(Fixture("index.json")));
  for (const auto& [name, limits] : index.at("truncate").items()) {
    const std::string whole = ReadFile(Fixture(absl::StrCat("good/", name)));
    const size_t needed = limits.at("needed_bytes");
    ASSERT_EQ(whole.size(), limits.at("file_bytes").get<size_t>());
    for (size_t size = 0; size < needed; ++size) {
      const ExactBytes bytes(whole.substr(0, size));
      const absl::Status status = GgufFile::FromBytes("cut", bytes.span()).status();
      ASSERT_FALSE(status.ok()) << name << " cut to " << size;
      ASSERT_TRUE(absl::StartsWith(status.message(), "cut: at byte ")) << status;
    }
    const ExactBytes bytes(whole.substr(0, needed));
    EXPECT_TRUE(GgufFile::FromBytes("whole", bytes.span()).ok());
  }
}

// The promise is the file's size and a constant; the fixtures ask for 64 MB.
TEST(GgufFileTest, D2_NoFileMakesItTakeMuchMoreMemoryThanItsSize) {
  std::vector<std::string> paths;
  for (const BadGguf& bad : BadGgufs()) {
    paths.push_back(Fixture(absl::StrCat("bad/", bad.file)));
  }
  for (const std::string& path : paths) {
    const int64_t before = live_bytes;
    peak_bytes = before;
    { [[maybe_unused]] const auto file = GgufFile::Open(path); }
    EXPECT_LT(peak_bytes - before, int64_t{1} << 20) << path;
  }
  // The most records that are allowed, with the smallest of bytes each.
  GgufBuilder builder;
  for (int i = 0; i < 131072; ++i) {
    builder.Tensor(absl::StrCat(absl::Hex(i)), {}, 24, static_cast<uint64_t>(i) * 32);
  }
  for (int i = 0; i < 65536; ++i) {
    builder.Entry(absl::StrCat(absl::Hex(i)), 0, "v");
  }
  const ExactBytes bytes(builder.Build(std::string(131072 * 32, 'd')));
  const int64_t before = live_bytes;
  peak_bytes = before;
  ASSERT_TRUE(GgufFile::FromBytes("large", bytes.span()).ok());
  EXPECT_LT(peak_bytes - before, int64_t{64} << 20);
}

TEST(GgufFileTest, D1_RefusesWhatIsNoRegularFile) {
  EXPECT_THAT(MessageOf(GgufFile::Open("tests/data")),
              HasSubstr("tests/data: this is a directory"));
  EXPECT_THAT(MessageOf(GgufFile::Open("/dev/zero")), HasSubstr("a device"));
  EXPECT_EQ(GgufFile::Open("no/such.gguf").status().code(), absl::StatusCode::kNotFound);
}

TEST(GgufFileTest, D10_NoticesThatAPartChangedOnDisk) {
  const std::string folder = ::testing::TempDir() + "gguf_test_changed";
  std::filesystem::remove_all(folder);
  std::filesystem::copy(Fixture("good/split3"), folder);
  const std::unique_ptr<GgufFile> file = MustOpen(folder + "/tiny-00001-of-00003.gguf");
  EXPECT_TRUE(file->CheckUnchanged().ok());
  std::ofstream(folder + "/tiny-00003-of-00003.gguf", std::ios::app) << "more";
  EXPECT_THAT(std::string(file->CheckUnchanged().message()),
              HasSubstr("tiny-00003-of-00003.gguf: the file changed"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace trireme::weights
