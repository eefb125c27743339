// From the statuses of the house to the statuses of gRPC: reason and violations (error_reason.h)
// become google.rpc details in the trailer grpc-status-details-bin. docs/errors.md is the table.
#ifndef TRIREME_RUNTIME_SERVE_GRPC_STATUS_H_
#define TRIREME_RUNTIME_SERVE_GRPC_STATUS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

// Named only, so that no gRPC header is needed here.
namespace grpc {
class Status;
}

namespace trireme::serve {

// What a caller learns about an error, before it is written for gRPC.
struct ErrorForm {
  absl::StatusCode code = absl::StatusCode::kInternal;
  std::string message;
  std::string details;  // a serialized google.rpc.Status
};

// Never OK. A status without a reason gets the commonest one of its code; codes that are not in the
// table become INTERNAL. Texts and violations are cut so that the trailers stay under the 8 KiB
// that clients accept by default.
// `incident` names the log line of an INTERNAL error, whose own text stays in the log.
ErrorForm FormOfError(const absl::Status& status, absl::string_view incident);

grpc::Status ToGrpcStatus(const absl::Status& status, absl::string_view incident);

// What another server of ours answered.
struct RemoteError {
  absl::Status status;         // with reason and violations; OK for an OK
  absl::Duration retry_delay;  // of RetryInfo; zero without one
  bool has_details = false;    // false: gRPC's own status, such as of a connection that broke
};

// Reasons that are not of the table are dropped.
RemoteError ReadGrpcStatus(const grpc::Status& status);

// A short, printable form of text from a request, for messages: escaped, cut, in quotes.
std::string Quoted(absl::string_view text);

}  // namespace trireme::serve

#endif  // TRIREME_RUNTIME_SERVE_GRPC_STATUS_H_
