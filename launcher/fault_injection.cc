#include "launcher/fault_injection.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "runtime/base/log.h"

namespace trireme::launcher {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(5);

// The second one: whether a code follows.
constexpr std::array<std::pair<absl::string_view, bool>, 6> kActions = {{{"exit", true},
                                                                         {"abort", true},
                                                                         {"crash", false},
                                                                         {"stop", false},
                                                                         {"block", false},
                                                                         {"fail", false}}};
constexpr std::array<absl::string_view, 6> kPoints = {"launch", "connect", "load",
                                                      "warmup", "prefill", "decode"};

std::string ReadFault(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

absl::StatusOr<Fault> ParseFault(absl::string_view text) {
  const std::vector<std::string> words =
      absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  Fault fault;
  size_t next = 0;
  const auto action = std::find_if(kActions.begin(), kActions.end(), [&words](const auto& known) {
    return !words.empty() && known.first == words[0];
  });
  if (action == kActions.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" begins with no action: wanted exit CODE, abort CODE, crash, ",
                     "stop, block or fail"));
  }
  fault.action = words[next++];
  if (action->second && (next == words.size() || !absl::SimpleAtoi(words[next++], &fault.code) ||
                         fault.code < 0 || fault.code > 255)) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\": a code from 0 to 255 must follow ", fault.action));
  }
  if (next == words.size()) {
    return fault;
  }
  if (words.size() != next + 2 || words[next] != "at" ||
      std::find(kPoints.begin(), kPoints.end(), words[next + 1]) == kPoints.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", text, "\": wanted \"at\" and launch, connect, load, warmup, prefill or decode"));
  }
  fault.point = words[next + 1];
  return fault;
}

FaultInjection::FaultInjection(const std::string& folder, int rank)
    : path_(folder.empty() ? std::string() : absl::StrCat(folder, "/rank-", rank)) {
  if (!enabled()) {
    return;
  }
  Log(LogLevel::kWarning, absl::StrCat("fault injection is on file=", path_));
  watcher_ = std::thread([this] {
    while (!ends_.WaitForNotificationWithTimeout(kLook)) {
      (void)Reach("");
    }
  });
}

FaultInjection::~FaultInjection() {
  ends_.Notify();
  if (watcher_.joinable()) {
    watcher_.join();
  }
}

void FaultInjection::SetAbort(std::function<void(int code)> abort) {
  MutexLock lock(&mutex_);
  abort_ = std::move(abort);
}

absl::Status FaultInjection::Reach(absl::string_view point) {
  if (!enabled()) {
    return absl::OkStatus();
  }
  const std::string text = ReadFault(path_);
  if (text.empty()) {
    return absl::OkStatus();
  }
  const absl::StatusOr<Fault> fault = ParseFault(text);
  if (fault.ok() && fault->point != point) {
    return absl::OkStatus();
  }
  // Whoever renames it acts: another thread may have found it too.
  if (std::rename(path_.c_str(), absl::StrCat(path_, ".done").c_str()) != 0) {
    return absl::OkStatus();
  }
  if (!fault.ok()) {
    Log(LogLevel::kError, fault.status().message());
    return absl::OkStatus();
  }
  Log(LogLevel::kWarning, absl::StrCat("fault injected: ", text));
  return Act(*fault);
}

absl::Status FaultInjection::Act(const Fault& fault) {
  if (fault.action == "exit") {
    ::_exit(fault.code);
  }
  if (fault.action == "crash") {
    std::raise(SIGSEGV);
  }
  if (fault.action == "stop") {
    ::kill(::getpid(), SIGSTOP);
  }
  if (fault.action == "block") {
    ends_.WaitForNotification();
  }
  std::function<void(int)> abort;
  {
    MutexLock lock(&mutex_);
    abort = abort_;
  }
  if (fault.action == "abort" && abort) {
    abort(fault.code);
  }
  return fault.action == "fail" || fault.action == "abort"
             ? absl::InternalError("a fault was injected")
             : absl::OkStatus();
}

}  // namespace trireme::launcher
