// A client of the service for tests: bytes in, bytes and statuses out, with the error details taken
// apart. No gRPC header is needed to use it, which keeps the tests quick to compile.
#ifndef TRIREME_TESTS_SUPPORT_SERVICE_CLIENT_H_
#define TRIREME_TESTS_SUPPORT_SERVICE_CLIENT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "runtime/base/error_reason.h"

namespace trireme {

struct CallResult {
  absl::StatusCode code = absl::StatusCode::kUnknown;
  std::string message;
  std::string reason;  // of ErrorInfo; empty when there is none
  std::string domain;
  std::vector<FieldViolation> violations;
  bool has_retry_info = false;
  std::string resource_type;
  std::map<std::string, std::string> trailers;

  bool ok() const { return code == absl::StatusCode::kOk; }
  // For messages of failed assertions.
  std::string ToString() const;
};

// The error details in a serialized google.rpc.Status.
CallResult ReadDetails(absl::StatusCode code, const std::string& message,
                       const std::string& details);

class ServiceStream {
 public:
  virtual ~ServiceStream() = default;
  // The next message; false at the end of the stream.
  virtual bool Read(std::string* bytes) = 0;
  virtual void Cancel() = 0;
  // Once, after Read gave false or Cancel.
  virtual CallResult Finish() = 0;
};

class ServiceClient {
 public:
  // `address` is HOST:PORT or unix:PATH. Each client has a connection of its own.
  static std::unique_ptr<ServiceClient> Connect(const std::string& address);
  virtual ~ServiceClient() = default;

  // `method` is "/package.Service/Method".
  virtual std::unique_ptr<ServiceStream> Open(const std::string& method, const std::string& request,
                                              absl::Duration deadline = absl::Seconds(30)) = 0;

  // A call with one answer.
  virtual CallResult Call(const std::string& method, const std::string& request,
                          std::string* response, absl::Duration deadline = absl::Seconds(30)) = 0;
};

}  // namespace trireme

#endif  // TRIREME_TESTS_SUPPORT_SERVICE_CLIENT_H_
