#include "runtime/serve/grpc_status.h"

#include <grpcpp/support/status.h>

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/utf8.h"

namespace trireme::serve {
namespace {

// Message and details travel in the trailers: 1 KiB thrice (the message is sent twice, and percent
// encoding may make it longer) and 16 violations of up to 192 bytes stay under 8 KiB.
constexpr size_t kMessageBytesMax = 1024;
constexpr size_t kViolationsMax = 16;
constexpr size_t kDescriptionBytesMax = 128;
constexpr size_t kFieldBytesMax = 64;
constexpr size_t kQuotedBytesMax = 40;

constexpr absl::string_view kDomain = "trireme";

std::string CutText(absl::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) {
    return ReplaceInvalidUtf8(text);
  }
  size_t end = bytes_max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return absl::StrCat(ReplaceInvalidUtf8(text.substr(0, end)), "...");
}

absl::StatusCode TableCode(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kInternal:
      return absl::StatusCode::kInternal;
    default:
      return code;
  }
}

absl::string_view CommonReason(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
      return kReasonBadParameter;
    case absl::StatusCode::kUnimplemented:
      return kReasonMethodNotSupported;
    case absl::StatusCode::kUnauthenticated:
      return kReasonNoCredentials;
    case absl::StatusCode::kPermissionDenied:
      return kReasonScope;
    case absl::StatusCode::kNotFound:
      return kReasonRequest;
    case absl::StatusCode::kAlreadyExists:
      return kReasonRequestId;
    case absl::StatusCode::kFailedPrecondition:
      return kReasonResumeMismatch;
    case absl::StatusCode::kResourceExhausted:
      return kReasonOverloaded;
    case absl::StatusCode::kUnavailable:
      return kReasonReplicaLost;
    case absl::StatusCode::kAborted:
      return kReasonPreempted;
    case absl::StatusCode::kDeadlineExceeded:
      return kReasonRunning;
    case absl::StatusCode::kCancelled:
      return kReasonByClient;
    case absl::StatusCode::kDataLoss:
      return kReasonCheckpointCorrupt;
    default:
      return kReasonBug;
  }
}

// Zero: no advice to retry.
absl::Duration RetryDelay(absl::StatusCode code, absl::string_view reason) {
  if (code == absl::StatusCode::kUnavailable) {
    return reason == kReasonDraining ? absl::Milliseconds(100) : absl::Seconds(1);
  }
  if (reason == kReasonOverloaded || reason == kReasonBudgetUnreachable) {
    return absl::Seconds(1);
  }
  return absl::ZeroDuration();
}

absl::string_view ResourceType(absl::string_view reason) {
  if (reason == kReasonModel) return "model";
  if (reason == kReasonRequest || reason == kReasonRequestId) return "request";
  if (reason == kReasonCheckpointCorrupt) return "checkpoint";
  return "";
}

void AddViolations(const absl::Status& status, google::rpc::Status* out) {
  const std::vector<FieldViolation> violations = FieldViolationsOf(status);
  if (violations.empty()) {
    return;
  }
  google::rpc::BadRequest bad_request;
  const size_t count = std::min(violations.size(), kViolationsMax);
  for (size_t index = 0; index < count; ++index) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(CutText(violations[index].field, kFieldBytesMax));
    violation->set_description(CutText(violations[index].description, kDescriptionBytesMax));
  }
  out->add_details()->PackFrom(bad_request);
}

}  // namespace

ErrorForm FormOfError(const absl::Status& status, absl::string_view incident) {
  ErrorForm form;
  form.code = TableCode(status.code());
  absl::string_view reason = ReasonOf(status);
  if (reason.empty()) {
    reason = CommonReason(form.code);
  }
  const bool hidden = form.code == absl::StatusCode::kInternal;
  form.message = hidden ? absl::StrCat("internal error; the server's log has it as incident ",
                                       incident.empty() ? "(none)" : incident)
                        : CutText(std::string(status.message()), kMessageBytesMax);

  google::rpc::Status details;
  details.set_code(static_cast<int>(form.code));
  details.set_message(form.message);
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(reason));
  info.set_domain(std::string(kDomain));
  if (hidden && !incident.empty()) {
    (*info.mutable_metadata())["incident"] = std::string(incident);
  }
  details.add_details()->PackFrom(info);
  AddViolations(status, &details);
  const absl::Duration advised = RetryDelayOf(status);
  const absl::Duration delay =
      advised > absl::ZeroDuration() ? advised : RetryDelay(form.code, reason);
  if (delay > absl::ZeroDuration()) {
    google::rpc::RetryInfo retry;
    const int64_t nanoseconds = absl::ToInt64Nanoseconds(delay);
    retry.mutable_retry_delay()->set_seconds(nanoseconds / 1'000'000'000);
    retry.mutable_retry_delay()->set_nanos(static_cast<int32_t>(nanoseconds % 1'000'000'000));
    details.add_details()->PackFrom(retry);
  }
  if (const absl::string_view type = ResourceType(reason); !type.empty()) {
    google::rpc::ResourceInfo resource;
    resource.set_resource_type(std::string(type));
    resource.set_description(CutText(form.message, kDescriptionBytesMax));
    details.add_details()->PackFrom(resource);
  }
  form.details = details.SerializeAsString();
  return form;
}

grpc::Status ToGrpcStatus(const absl::Status& status, absl::string_view incident) {
  const ErrorForm form = FormOfError(status, incident);
  return grpc::Status(static_cast<grpc::StatusCode>(form.code), form.message, form.details);
}

RemoteError ReadGrpcStatus(const grpc::Status& status) {
  RemoteError error;
  if (status.ok()) {
    return error;
  }
  error.status =
      absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) {
    return error;
  }
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::ErrorInfo info;
    google::rpc::BadRequest bad_request;
    google::rpc::RetryInfo retry;
    if (any.UnpackTo(&info)) {
      const absl::Span<const absl::string_view> known = AllErrorReasons();
      const auto reason = std::find(known.begin(), known.end(), info.reason());
      if (info.domain() == kDomain && reason != known.end()) {
        error.has_details = true;
        error.status = WithReason(std::move(error.status), *reason);
      }
    } else if (any.UnpackTo(&bad_request)) {
      for (const auto& violation : bad_request.field_violations()) {
        error.status =
            WithField(std::move(error.status), violation.field(), violation.description());
      }
    } else if (any.UnpackTo(&retry)) {
      error.retry_delay = absl::Seconds(retry.retry_delay().seconds()) +
                          absl::Nanoseconds(retry.retry_delay().nanos());
    }
  }
  return error;
}

std::string Quoted(absl::string_view text) {
  const bool cut = text.size() > kQuotedBytesMax;
  return absl::StrCat("\"", absl::CHexEscape(text.substr(0, kQuotedBytesMax)), cut ? "..." : "",
                      "\"");
}

}  // namespace trireme::serve
