// `trireme generate` against a serving replica instead of a model of its own.
#ifndef TRIREME_LAUNCHER_ENDPOINT_H_
#define TRIREME_LAUNCHER_ENDPOINT_H_

#include <string>

#include "launcher/exit_codes.h"
#include "launcher/prompts.h"
#include "runtime/schedule/request.h"

namespace trireme::launcher {

// Streams the answer to stdout, or prints the JSON object of `generate --json`. A build without
// gRPC says so.
ExitCode GenerateAtEndpoint(const std::string& endpoint, const PromptChoice& choice,
                            const schedule::Request& options, bool as_json);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_ENDPOINT_H_
