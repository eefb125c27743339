// The model that a subcommand runs by itself: in this process, or, under mpirun or srun, over the
// processes of the job.
#ifndef TRIREME_LAUNCHER_LOCAL_MODEL_H_
#define TRIREME_LAUNCHER_LOCAL_MODEL_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "launcher/exit_codes.h"
#include "runtime/engine/rank.h"
#include "runtime/engine/replica.h"
#include "runtime/weights/checkpoint.h"

namespace trireme::launcher {

// What a subcommand does with the model. Called where the controller is; the other ranks of a job
// only run their part.
using ModelUser = std::function<ExitCode(engine::Replica& replica, absl::Duration load_time)>;

// Looks at the model before it is loaded, and may change the options. An error is one of usage.
using ModelPreparation = std::function<absl::Status(const weights::Checkpoint& checkpoint,
                                                    engine::RankOptions* options)>;

// Reads the replica flags, opens the model, calls `prepare` (may be null), loads, shows progress
// and bytes per rank on stderr, runs `use`, and ends the replica. Errors are printed, by one rank
// of a job for all; the code says what happened.
ExitCode WithLocalModel(const ModelPreparation& prepare, const ModelUser& use);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_LOCAL_MODEL_H_
