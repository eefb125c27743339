// Runs requests on a controller of this process and collects what comes back.
#ifndef TRIREME_LAUNCHER_GENERATION_H_
#define TRIREME_LAUNCHER_GENERATION_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "runtime/engine/controller.h"
#include "runtime/engine/response_stream.h"
#include "runtime/schedule/request.h"

namespace trireme::launcher {

struct Generation {
  std::vector<int32_t> prompt;
  std::vector<int32_t> token_ids;
  std::string text;
  engine::Ending ending;
  absl::Duration first_token;  // from submission
  absl::Duration total;
};

// Called with each piece of text of request `index` as it comes.
using TextReader = std::function<void(size_t index, absl::string_view text)>;

// Submits all requests at once and waits for all of them; results in the order of the requests. A
// request that was refused or failed has the reason in its ending.
std::vector<Generation> Generate(engine::Controller& controller,
                                 std::vector<schedule::Request> requests,
                                 const TextReader& on_text);

// "eos", "stop_string", ...
std::string FinishName(const engine::Ending& ending);

// The object that `generate --json` prints.
nlohmann::ordered_json GenerationJson(const Generation& generation, absl::Duration load_time);

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_GENERATION_H_
