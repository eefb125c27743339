// What a door shows of a model, from its file and the options that its arithmetic depends on. A
// replica and the balancer before it say the same, since they call this.
#ifndef TRIREME_LAUNCHER_MODEL_FACADE_H_
#define TRIREME_LAUNCHER_MODEL_FACADE_H_

#include <cstdint>
#include <string>

#include "runtime/engine/model_text.h"
#include "runtime/engine/rank.h"
#include "runtime/serve/replica_facade.h"
#include "runtime/spec/model_spec.h"

namespace trireme::launcher {

struct ServedModel {
  std::string id;  // the name that clients use
  const spec::ModelSpec* spec = nullptr;
  const engine::ModelText* text = nullptr;
  int64_t context = 0;       // positions of one sequence
  uint64_t fingerprint = 0;  // of the checkpoint
};

// Tokenizer, template and ModelInfo; controller and epoch are left to the caller. `text` must
// outlive the result.
serve::ReplicaFacade FacadeOfModel(const ServedModel& model, const engine::RankOptions& options);

// --model-id, or the name of the file without its ending.
std::string ModelId(const std::string& path);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_MODEL_FACADE_H_
