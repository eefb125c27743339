// What a decoded token of a mixture reads, counted where it is read: the slices that the products
// are called with.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/kernel_table.h"
#include "runtime/weights/shard_plan.h"
#include "runtime/weights/token_work.h"
#include "tests/support/lone_stage.h"
#include "topology/partition_model.h"

namespace trireme::model {
namespace {

// The reference table, which notes the packed slices that it multiplies.
const kernels::KernelTable& Reference() { return *kernels::FindKernelTable("reference"); }

std::map<const std::byte*, int64_t>& SlicesRead() {
  static auto* const slices = new std::map<const std::byte*, int64_t>();
  return *slices;
}

void CountedMatmul(const kernels::Execution& execution, const kernels::MatmulArgs& args) {
  for (int output = 0; output < args.output_count; ++output) {
    for (int i = 0; i < args.outputs[output].slice_count; ++i) {
      const kernels::PackedSlice& slice = args.outputs[output].slices[i];
      SlicesRead()[slice.data] = Reference().packed_bytes(slice.shape);
    }
  }
  Reference().matmul(execution, args);
}

int64_t BytesRead() {
  int64_t bytes = 0;
  for (const auto& [data, slice_bytes] : SlicesRead()) {
    bytes += slice_bytes;
  }
  return bytes;
}

// Bytes of all matrices of the layers and the output, with `experts` experts of each layer.
int64_t MatrixBytes(const weights::ShardPlan& plan, int64_t experts) {
  int64_t bytes = 0;
  for (const weights::PlannedTensor& tensor : plan.tensors) {
    const bool is_counted =
        !tensor.is_vector && tensor.role != spec::Role::kEmbedding &&
        (spec::RoleOf(tensor.role).place != spec::Place::kEveryExpert || tensor.index < experts);
    for (const weights::PlannedSlice& slice : tensor.slices) {
      bytes += is_counted ? slice.arena_bytes : 0;
    }
  }
  return bytes;
}

// gpt-oss in small: 3 of 8 experts.
TEST(ExpertBytesTest, ADecodedTokenReadsTheChosenExpertsOnly) {
  kernels::KernelTable counted = Reference();
  counted.matmul = CountedMatmul;
  testing::LoneStage stage("tests/data/families/gpt_oss", {.table = &counted, .chunk = 1});
  const auto partition = topology::PartitionModel(stage.checkpoint().model_spec().Extents(), {});
  ASSERT_TRUE(partition.ok());
  const auto plan = weights::PlanShard(stage.checkpoint(), partition->parts[0], Reference());
  ASSERT_TRUE(plan.ok());
  for (const int32_t token : {1, 77, 319}) {
    SlicesRead().clear();
    (void)stage.Logits({token});
    EXPECT_EQ(BytesRead(), MatrixBytes(*plan, 3)) << "token " << token;
  }
  EXPECT_LT(MatrixBytes(*plan, 3), MatrixBytes(*plan, 8));
}

}  // namespace
}  // namespace trireme::model
