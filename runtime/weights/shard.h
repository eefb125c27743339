// A shard: all the weights that one rank holds, in the kernel table's layout, ready to multiply.
#ifndef TRIREME_RUNTIME_WEIGHTS_SHARD_H_
#define TRIREME_RUNTIME_WEIGHTS_SHARD_H_

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/kernel_table.h"
#include "runtime/device/buffer.h"
#include "runtime/spec/tensor_source.h"
#include "topology/partition.h"

namespace trireme::weights {

// A matrix as the forward pass multiplies it: y[rows] = sum over the slices' columns.
struct PackedMatrix {
  std::vector<kernels::PackedSlice> slices;  // by rising leaf; none when this rank holds no column
  int64_t rows = 0;
  int64_t columns = 0;  // the sum of the slices'
  // What it multiplies, unless float32 is asked for. The same on every rank that has a slice.
  kernels::ActivationKind activations = kernels::ActivationKind::kFloat32;
};

// The weights of one layer by role, this rank's part of each: a matrix, one matrix for each expert
// or own head, or vectors of float32. What the layer's spec does not have is empty.
class LayerWeights {
 public:
  const PackedMatrix& matrix(spec::Role role, int64_t index = 0) const {
    return matrices_[static_cast<size_t>(role)][static_cast<size_t>(index)];
  }
  // Null where the layer has none, and for a rank's empty part.
  const float* vector(spec::Role role, int64_t index = 0) const {
    const std::vector<const float*>& vectors = vectors_[static_cast<size_t>(role)];
    return vectors.empty() ? nullptr : vectors[static_cast<size_t>(index)];
  }

  // For the loader: in rising order of indices.
  void Add(spec::Role role, PackedMatrix matrix) {
    matrices_[static_cast<size_t>(role)].push_back(std::move(matrix));
  }
  void Add(spec::Role role, const float* vector) {
    vectors_[static_cast<size_t>(role)].push_back(vector);
  }

 private:
  std::array<std::vector<PackedMatrix>, spec::kRoleCount> matrices_;
  std::array<std::vector<const float*>, spec::kRoleCount> vectors_;
};

struct Shard {
  topology::RankPart part;
  device::DeviceBuffer arena;
  LayerWeights ends;  // what stands outside the layers: embedding, output norm, output matrix
  std::vector<LayerWeights> layers;  // [part.layers.size()]
};

}  // namespace trireme::weights

#endif  // TRIREME_RUNTIME_WEIGHTS_SHARD_H_
