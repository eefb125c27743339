#include "launcher/sweeper.h"

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/processes.h"

namespace trireme::launcher {
namespace {

constexpr absl::Duration kSweepLimit = absl::Seconds(10);

}  // namespace

Sweeper::Sweeper(std::string log_path) : log_path_(std::move(log_path)) {}

Sweeper::~Sweeper() {
  for (const auto& [child, job] : jobs_) {
    for (const Remote& remote : job.remotes) {
      if (remote.process > 0) {
        ::kill(-remote.process, SIGKILL);
      }
    }
  }
}

void Sweeper::Begin(int child, const std::string& tag_prefix, const std::vector<RemoteHost>& hosts,
                    absl::Time now) {
  for (const pid_t process : FindTaggedProcesses(tag_prefix)) {
    ::kill(process, SIGKILL);
  }
  Job& job = jobs_[child];
  job.tag_prefix = tag_prefix;
  job.deadline = now + kSweepLimit;
  if (!job.remotes.empty()) {
    return;  // they are under way
  }
  for (const RemoteHost& host : hosts) {
    std::vector<std::string> words = host.agent_words;
    words.push_back(SweepScript(tag_prefix));
    const absl::StatusOr<pid_t> process =
        StartProcess({.words = std::move(words), .log_path = log_path_, .death_signal = SIGKILL});
    job.remotes.push_back({.host = host.host, .process = process.ok() ? *process : -1});
  }
}

bool Sweeper::OnExited(pid_t process, int code) {
  for (auto& [child, job] : jobs_) {
    for (Remote& remote : job.remotes) {
      if (remote.process == process) {
        remote.process = -1;
        remote.is_clean = code == 0;
        return true;
      }
    }
  }
  return false;
}

std::vector<SweepResult> Sweeper::Poll(absl::Time now) {
  std::vector<SweepResult> results;
  for (auto entry = jobs_.begin(); entry != jobs_.end();) {
    Job& job = entry->second;
    const std::vector<pid_t> left = FindTaggedProcesses(job.tag_prefix);
    for (const pid_t process : left) {
      ::kill(process, SIGKILL);
    }
    bool is_waiting = !left.empty();
    std::string unclean;
    for (const Remote& remote : job.remotes) {
      is_waiting = is_waiting || remote.process > 0;
      if (!remote.is_clean) {
        absl::StrAppend(&unclean, unclean.empty() ? "" : ", ", "host=", remote.host,
                        " cannot be asked what lives there");
      }
    }
    if (is_waiting && now < job.deadline) {
      ++entry;
      continue;
    }
    for (const pid_t process : left) {
      absl::StrAppend(&unclean, unclean.empty() ? "" : ", ", "process=", process, " does not die");
    }
    for (const Remote& remote : job.remotes) {
      if (remote.process > 0) {
        ::kill(-remote.process, SIGKILL);
      }
    }
    results.push_back(
        {.child = entry->first,
         .outcome = unclean.empty() ? absl::OkStatus() : absl::UnavailableError(unclean)});
    entry = jobs_.erase(entry);
  }
  return results;
}

}  // namespace trireme::launcher
