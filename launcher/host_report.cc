#include "launcher/host_report.h"

#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "launcher/exit_codes.h"
#include "launcher/process_limits.h"
#include "launcher/version.h"
#include "nlohmann/json.hpp"
#include "runtime/comm/socket.h"
#include "runtime/device/buffer.h"
#include "runtime/weights/checkpoint.h"
#include "topology/value_text.h"

namespace trireme::launcher {
namespace {

// Empty when somebody could listen there now.
std::string WhyNotListen(const std::string& text) {
  const absl::StatusOr<topology::Address> address = topology::ParseAddress(text);
  if (!address.ok()) {
    return std::string(address.status().message());
  }
  std::string host = address->host;
  if (host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error =
      ::getaddrinfo(host.c_str(), absl::StrCat(address->port).c_str(), &hints, &found);
  if (error != 0) {
    return absl::StrCat("the name ", host, " leads nowhere: ", ::gai_strerror(error));
  }
  const comm::Socket socket(::socket(found->ai_family, found->ai_socktype, found->ai_protocol));
  const int reuse = 1;  // as the servers do: connections that just ended do not matter
  ::setsockopt(socket.descriptor(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const bool is_good = ::bind(socket.descriptor(), found->ai_addr, found->ai_addrlen) == 0 &&
                       ::listen(socket.descriptor(), 1) == 0;
  const std::string reason = is_good ? "" : std::strerror(errno);
  ::freeaddrinfo(found);
  return reason;
}

std::vector<int> UsableCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) {
        cores.push_back(core);
      }
    }
  }
  return cores;
}

int64_t FreeSharedMemory() {
  struct statvfs info = {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return 0;
  }
  return static_cast<int64_t>(info.f_bavail) * static_cast<int64_t>(info.f_frsize);
}

void LookAtModel(const std::string& path, HostReport* report) {
  const auto checkpoint = weights::Checkpoint::Open(path);
  if (!checkpoint.ok()) {
    report->model_error = std::string(checkpoint.status().message());
    report->model_error_code = static_cast<int>(ExitCodeOfFile(checkpoint.status()));
    return;
  }
  report->model_fingerprint = (*checkpoint)->FingerprintValue();
}

}  // namespace

HostReport LookAtThisHost(const std::string& model_path,
                          const std::vector<std::string>& addresses) {
  HostReport report;
  char name[256] = {};
  ::gethostname(name, sizeof(name) - 1);
  report.host = name;
  const std::string version = VersionText();
  report.version = version.substr(0, version.find('\n'));
  LookAtModel(model_path, &report);
  report.memory_available_bytes = device::AvailableMemoryBytes();
  report.cores = UsableCores();
  report.shared_memory_free_bytes = FreeSharedMemory();
  report.open_files_max = OpenFilesMax();
  report.threads_max = ThreadsMax();
  for (const std::string& address : addresses) {
    report.ports[address] = WhyNotListen(address);
  }
  report.clock_unix_ns = absl::GetCurrentTimeNanos();
  return report;
}

std::string EncodeHostReport(const HostReport& report) {
  const nlohmann::ordered_json json = {
      {"host", report.host},
      {"version", report.version},
      {"model_error", report.model_error},
      {"model_error_code", report.model_error_code},
      {"model_fingerprint", report.model_fingerprint},
      {"memory_available_bytes", report.memory_available_bytes},
      {"cores", report.cores},
      {"shared_memory_free_bytes", report.shared_memory_free_bytes},
      {"open_files_max", report.open_files_max},
      {"threads_max", report.threads_max},
      {"ports", report.ports},
      {"clock_unix_ns", report.clock_unix_ns}};
  // Names and messages of other programs may be no UTF-8.
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<HostReport> DecodeHostReport(absl::string_view text) {
  HostReport report;
  try {
    const auto json = nlohmann::json::parse(text.begin(), text.end());
    json.at("host").get_to(report.host);
    json.at("version").get_to(report.version);
    json.at("model_error").get_to(report.model_error);
    json.at("model_error_code").get_to(report.model_error_code);
    json.at("model_fingerprint").get_to(report.model_fingerprint);
    json.at("memory_available_bytes").get_to(report.memory_available_bytes);
    json.at("cores").get_to(report.cores);
    json.at("shared_memory_free_bytes").get_to(report.shared_memory_free_bytes);
    json.at("open_files_max").get_to(report.open_files_max);
    json.at("threads_max").get_to(report.threads_max);
    json.at("ports").get_to(report.ports);
    json.at("clock_unix_ns").get_to(report.clock_unix_ns);
  } catch (const nlohmann::json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("no host report: ", error.what()));
  }
  return report;
}

}  // namespace trireme::launcher
