// `trireme why REQUEST_ID`: what became of a request, from the journals of the processes it went
// through.

#include <grpcpp/create_channel.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "admin.grpc.pb.h"
#include "launcher/command_line.h"
#include "launcher/commands.h"
#include "launcher/fleet_file.h"
#include "launcher/run_folder.h"

ABSL_FLAG(std::string, why_admin, "",
          "admin listeners to ask, HOST:PORT or unix:PATH, comma-separated, as in --admin "
          "unix:/run/trireme/balancer1.sock,unix:/run/trireme/r1.sock; empty: those of the file");

namespace trireme::launcher {
namespace {

constexpr std::chrono::seconds kAnswerWithin{5};

double Milliseconds(const google::protobuf::Duration& time) {
  return 1e3 * static_cast<double>(time.seconds()) + 1e-6 * time.nanos();
}

void PrintTrace(const std::string& admin, const v1::RequestTrace& trace) {
  std::printf("%s at %s: %s%s%s\n", trace.id().c_str(), admin.c_str(), trace.outcome().c_str(),
              trace.finish().empty() ? "" : ", ", trace.finish().c_str());
  if (!trace.detail().empty()) {
    std::printf("  error     %s\n", trace.detail().c_str());
  }
  std::printf("  ended     %s\n", trace.ended().c_str());
  std::printf("  tokens    prompt %d (cached %d), generated %d in %d choices, recomputed %d\n",
              static_cast<int>(trace.usage().prompt_tokens()),
              static_cast<int>(trace.usage().cached_tokens()),
              static_cast<int>(trace.usage().generated_tokens()), static_cast<int>(trace.choices()),
              static_cast<int>(trace.usage().recomputed_tokens()));
  std::printf("  time      queue %.1f ms + prefill %.1f ms + decode %.1f ms = %.1f ms\n",
              Milliseconds(trace.queue()), Milliseconds(trace.prefill()),
              Milliseconds(trace.decode()), Milliseconds(trace.total()));
  if (trace.attempts() > 0) {
    std::printf("  attempts  %d, the last one on %s\n", static_cast<int>(trace.attempts()),
                trace.replica().c_str());
  }
  for (const v1::Disruption& move : trace.disruptions()) {
    std::printf("  moved     %s to %s, %s, gap %.1f ms\n", move.from_replica().c_str(),
                move.to_replica().c_str(), move.reason().c_str(), Milliseconds(move.gap()));
  }
}

// The number of traces printed, or why there are none.
absl::StatusOr<int> Ask(const std::string& admin, const std::string& id) {
  const auto channel = grpc::CreateChannel(admin, grpc::InsecureChannelCredentials());
  const auto stub = v1::Admin::NewStub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerWithin);
  v1::GetRequestRequest request;
  request.set_request_id(id);
  v1::GetRequestResponse response;
  const grpc::Status status = stub->GetRequest(&context, request, &response);
  if (!status.ok()) {
    return absl::Status(static_cast<absl::StatusCode>(status.error_code()),
                        absl::StrCat(admin, ": ", status.error_message()));
  }
  for (const v1::RequestTrace& trace : response.traces()) {
    PrintTrace(admin, trace);
  }
  return response.traces_size();
}

// The admin sockets of a fleet's children: they stand beside its supervisor's.
std::vector<std::string> SocketsIn(const std::string& folder) {
  std::vector<std::string> addresses;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".sock" && entry.path().stem() != "admin") {
      addresses.push_back(absl::StrCat("unix:", entry.path().string()));
    }
  }
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

ExitCode RunWhy(const std::vector<std::string>& words) {
  std::vector<std::string> addresses =
      absl::StrSplit(absl::GetFlag(FLAGS_why_admin), ',', absl::SkipEmpty());
  if (words.empty() || (words.size() == 1 && addresses.empty())) {
    return Fail(ExitCode::kUsage,
                absl::InvalidArgumentError("name the request id and the topology file, or give "
                                           "the addresses to ask with --admin; see trireme why "
                                           "--help"));
  }
  if (words.size() == 2) {
    const auto file = ReadFleetFile(words[1]);
    if (!file.ok()) {
      return FailFleetFile(file.status());
    }
    const std::string folder = RunFolderOf(*file);
    addresses = SocketsIn(folder);
    if (addresses.empty()) {
      return Fail(ExitCode::kMissingFile,
                  absl::NotFoundError(absl::StrCat("no fleet runs here from ", words[1],
                                                   ": there are no admin sockets in ", folder)));
    }
  }
  int found = 0;
  std::vector<absl::Status> misses;
  for (const std::string& admin : addresses) {
    const absl::StatusOr<int> traces = Ask(admin, words.front());
    if (traces.ok()) {
      found += *traces;
    } else {
      misses.push_back(traces.status());
    }
  }
  for (const absl::Status& miss : misses) {
    if (found == 0 || !absl::IsNotFound(miss)) {
      PrintError(miss.message());
    }
  }
  if (found > 0) {
    return ExitCode::kOk;
  }
  return absl::IsNotFound(misses.front()) ? ExitCode::kMissingFile : ExitCode::kPeerLost;
}

}  // namespace

Subcommand WhySubcommand() {
  return {.name = "why",
          .summary = "Tell what became of a request: times, tokens, attempts, errors",
          .synopsis = "REQUEST_ID FILE | REQUEST_ID --admin ADDRESS[,ADDRESS...]",
          .example = "trireme why req-42 deploy/topologies/laptop.yaml",
          .flags = {"admin=why_admin"},
          .words_max = 2,
          .run = RunWhy};
}

}  // namespace trireme::launcher
