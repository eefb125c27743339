// What must be equal on all ranks of a job before any of them loads: the program, the model, its
// tokenizer and the settings (comm/agreement.h compares them).
#ifndef TRIREME_LAUNCHER_RANK_FACTS_H_
#define TRIREME_LAUNCHER_RANK_FACTS_H_

#include <vector>

#include "runtime/comm/agreement.h"
#include "runtime/engine/rank.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::launcher {

// Kernel tables and threads are not among them: all of them give the same bits.
std::vector<comm::Fact> RankFacts(const weights::Checkpoint& checkpoint,
                                  const engine::RankOptions& options);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_RANK_FACTS_H_
