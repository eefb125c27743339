#include "launcher/observe_options.h"

#include <string>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "launcher/version.h"
#include "runtime/base/log.h"
#include "runtime/base/status_macros.h"

ABSL_FLAG(std::string, log_level, "info",
          "the least level that is logged: debug, info, warning or error");
ABSL_FLAG(std::string, log_format, "text",
          "form of log lines, as in --log-format json: text (key=value) or json");
ABSL_FLAG(std::string, metrics_listen, "",
          "address where Prometheus reads /metrics, as in --metrics-listen 127.0.0.1:9400; port 0: "
          "a free one; empty: none");

namespace trireme::launcher {
namespace {

absl::Status WrongValue(absl::string_view flag, absl::string_view value, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " is \"", value, "\"; wanted one of: ", wanted));
}

}  // namespace

std::vector<const char*> ObserveFlags(std::vector<const char*> flags) {
  flags.insert(flags.end(), {"log_level", "log_format", "metrics_listen"});
  return flags;
}

absl::Status ApplyLogFlags() {
  const std::string level = absl::GetFlag(FLAGS_log_level);
  if (level == "debug") {
    SetLogLevel(LogLevel::kDebug);
  } else if (level == "info") {
    SetLogLevel(LogLevel::kInfo);
  } else if (level == "warning") {
    SetLogLevel(LogLevel::kWarning);
  } else if (level == "error") {
    SetLogLevel(LogLevel::kError);
  } else {
    return WrongValue("log-level", level, "debug, info, warning, error");
  }
  const std::string format = absl::GetFlag(FLAGS_log_format);
  if (format != "text" && format != "json") {
    return WrongValue("log-format", format, "text, json");
  }
  SetLogForm(format == "json" ? LogForm::kJson : LogForm::kText);
  return absl::OkStatus();
}

absl::Status ListenForScrapes(Metrics* metrics) {
  metrics->Gauge("trireme_build_info", {{"version", VersionNumber()}}).Set(1);
  const std::string address = absl::GetFlag(FLAGS_metrics_listen);
  if (address.empty()) {
    return absl::OkStatus();
  }
  const auto port = metrics->Listen(address);
  RETURN_IF_ERROR(port.status());
  Log(LogLevel::kInfo, absl::StrCat("metrics port=", *port));
  return absl::OkStatus();
}

}  // namespace trireme::launcher
