// Small conversions between the house's values and the messages of the wire.
#ifndef TRIREME_RUNTIME_SERVE_WIRE_VALUES_H_
#define TRIREME_RUNTIME_SERVE_WIRE_VALUES_H_

#include <string>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "runtime/engine/controller.h"
#include "runtime/engine/response_stream.h"
#include "runtime/schedule/request.h"
#include "runtime/serve/door.h"
#include "runtime/serve/recent_latencies.h"
#include "runtime/serve/replica_facade.h"

namespace google::protobuf {
class Duration;
}
namespace trireme::v1 {
class ChoiceFinished;
class Finished;
class LoadReport;
class ModelInfo;
class Sampling;
class Stopping;
class Timings;
class Usage;
}  // namespace trireme::v1

namespace trireme::serve {

void SetDuration(absl::Duration value, google::protobuf::Duration* out);
absl::Duration DurationOf(const google::protobuf::Duration& value);

void SetChoiceFinished(const schedule::Request& request, const engine::Ending& ending,
                       v1::ChoiceFinished* out);

// Sums over the choices; the prompt is counted once.
void SetUsage(absl::Span<const engine::Ending> endings, v1::Usage* out);

// The longest of each over the choices.
void SetTimings(absl::Span<const engine::Ending> endings, v1::Timings* out);

// Of all choices, in their order.
void SetDisruptions(absl::Span<const engine::Ending> endings, v1::Finished* out);

void SetSampling(const sample::SamplingOptions& sampling, v1::Sampling* out);
void SetStopping(const schedule::StoppingOptions& stopping, v1::Stopping* out);
void SetModelInfo(const ReplicaFacade& replica, v1::ModelInfo* out);

// All but report_seq. `replica` may be null: still starting.
void SetLoadReport(const ReplicaFacade* replica, Phase phase, const RequestLatency& latency,
                   v1::LoadReport* out);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_WIRE_VALUES_H_
