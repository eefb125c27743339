// How the program ends, for scripts and supervisors: the sysexits range, apart from mpirun's own
// codes. docs/errors.md lists them for operators.
#ifndef TRIREME_LAUNCHER_EXIT_CODES_H_
#define TRIREME_LAUNCHER_EXIT_CODES_H_

#include "absl/status/status.h"

namespace trireme::launcher {

enum class ExitCode : int {
  kOk = 0,
  kUsage = 64,          // the command line
  kBadCheckpoint = 65,  // a model, tokenizer or input file that cannot be used
  kMissingFile = 66,
  kPeerLost = 69,  // another rank died or went silent
  kInternal = 70,  // an invariant of ours broke
  kOsError = 71,
  kDoesNotFit = 72,       // memory
  kPortUnavailable = 73,  // taken, or no such address
  kInputOutput = 74,
  kStalled = 75,           // no forward progress; worth a retry
  kRankDisagreement = 76,  // build, config or model differ between ranks
  kPermission = 77,
  kBadConfiguration = 78,
};

// For an error about the command line or its values.
ExitCode ExitCodeOfUsage(const absl::Status& status);

// For an error about a file that was named: missing 66, not readable 77, not usable 65, too large
// for memory 72.
ExitCode ExitCodeOfFile(const absl::Status& status);

// For an error of a replica that was starting or running.
ExitCode ExitCodeOfReplica(const absl::Status& status);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_EXIT_CODES_H_
