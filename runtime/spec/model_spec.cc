#include "runtime/spec/model_spec.h"

#include <algorithm>

#include "runtime/base/check.h"

namespace trireme::spec {

topology::ModelExtents ModelSpec::Extents() const {
  CHECK(!layers.empty());
  int64_t hidden_dim = 0;
  for (const LayerSpec& layer : layers) {
    hidden_dim = std::max(hidden_dim, layer.feed_forward.hidden_dim);
    if (layer.feed_forward.experts.has_value()) {
      hidden_dim = std::max({hidden_dim, layer.feed_forward.experts->hidden_dim,
                             layer.feed_forward.experts->shared_dim});
    }
  }
  return {.layers = static_cast<int64_t>(layers.size()),
          .query_heads = layers[0].attention.query_heads,
          .key_value_heads = layers[0].attention.key_value_heads,
          .hidden_dim = hidden_dim,
          .vocabulary = vocabulary};
}

ModelSpec ModelSpec::ForContext(int64_t positions) const {
  ModelSpec model = *this;
  for (RopeSpec& rope : model.ropes) {
    if (!rope.short_frequencies.empty() && positions <= rope.short_context) {
      rope.frequencies = rope.short_frequencies;
    }
  }
  return model;
}

}  // namespace trireme::spec
