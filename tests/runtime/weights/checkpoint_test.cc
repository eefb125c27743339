#include "runtime/weights/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kernels/formats/weight_format.h"

namespace trireme::weights {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kModel[] = "tests/data/gguf-files/good/base-bpe.gguf";  // 32 wide, 288 tokens

TEST(CheckpointTest, TensorsHaveFormatExtentsAndRows) {
  const auto checkpoint = Checkpoint::Open(kModel);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const auto tensor = (*checkpoint)->Tensor("token_embd.weight", 288, 32);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->row_bytes, kernels::InfoOf(tensor->format).storage_bytes);
  EXPECT_THAT((*checkpoint)->TensorExtents("token_embd.weight").value(), ElementsAre(288, 32));
}

TEST(CheckpointTest, WrongExtentsNameTensorAndBothShapes) {
  const auto checkpoint = Checkpoint::Open(kModel);
  ASSERT_TRUE(checkpoint.ok());
  const std::string text((*checkpoint)->Tensor("token_embd.weight", 289, 32).status().message());
  EXPECT_THAT(text, HasSubstr("token_embd.weight"));
  EXPECT_THAT(text, HasSubstr("[32, 288]"));
  EXPECT_THAT(text, HasSubstr("[32, 289]"));
}

TEST(CheckpointTest, AMissingFileIsNotFound) {
  EXPECT_TRUE(absl::IsNotFound(Checkpoint::Open("tests/data/no-such-file.gguf").status()));
}

TEST(CheckpointTest, UnusedTensorsAreThoseNobodyNamed) {
  const auto checkpoint = Checkpoint::Open("tests/data/gguf-files/odd/extra-tensor.gguf");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  const std::vector<std::string> everything = (*checkpoint)->UnusedTensors({});
  EXPECT_EQ(everything.size(), (*checkpoint)->gguf()->tensors().size());
  EXPECT_EQ((*checkpoint)->UnusedTensors(everything).size(), 0u);
}

TEST(CheckpointTest, FingerprintsTellModelsApartAndFilesOfOneModelDoNotChangeIt) {
  const auto first = Checkpoint::Open(kModel);
  const auto again = Checkpoint::Open(kModel);
  const auto other = Checkpoint::Open("tests/data/gguf-files/good/base-spm.gguf");
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ((*first)->FingerprintValue(), (*again)->FingerprintValue());
  EXPECT_NE((*first)->FingerprintValue(), (*other)->FingerprintValue());
}

}  // namespace
}  // namespace trireme::weights
