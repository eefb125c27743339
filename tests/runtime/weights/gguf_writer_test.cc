#include "runtime/weights/gguf_writer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/weights/gguf.h"

namespace trireme::weights {
namespace {

TEST(GgufWriter, WritesWhatTheReaderReads) {
  const std::string path = testing::TempDir() + "/gguf_writer_test.gguf";
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddUint32("llama.block_count", 7);
  writer.AddFloat32("llama.rope.freq_base", 10000.0f);
  const std::vector<int64_t> vector = {3}, matrix = {32, 2};
  writer.AddTensor("a", vector, 0);  // F32: 12 bytes, then a gap of 20
  writer.AddTensor("b", matrix, 8);  // Q8_0: 2 rows of 34 bytes
  EXPECT_EQ(writer.data_bytes(), 32 + 96);
  ASSERT_TRUE(writer.Open(path).ok());
  const std::vector<std::byte> a(12, std::byte{1}), b(34, std::byte{2}), c(34, std::byte{3});
  ASSERT_TRUE(writer.Append(a).ok());
  ASSERT_TRUE(writer.Append(b).ok());  // in two parts
  ASSERT_TRUE(writer.Append(c).ok());
  ASSERT_TRUE(writer.Finish().ok());

  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->metadata().GetString("general.architecture").value(), "llama");
  EXPECT_EQ((*file)->metadata().GetInteger("llama.block_count").value(), 7);
  const GgufTensor* const tensor = (*file)->FindTensor("b");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->dimensions[0], 32);
  EXPECT_EQ(tensor->dimensions[1], 2);
  const auto data = (*file)->Data(*tensor);
  ASSERT_EQ(data.size(), 68u);
  EXPECT_EQ(static_cast<int>(data[0]), 2);
  EXPECT_EQ(static_cast<int>(data[67]), 3);
}

TEST(GgufWriter, NamesTheFileThatItCannotWrite) {
  GgufWriter writer;
  const absl::Status status = writer.Open("/nowhere/model.gguf");
  EXPECT_NE(status.message().find("/nowhere/model.gguf: cannot create"), std::string::npos)
      << status;
}

}  // namespace
}  // namespace trireme::weights
