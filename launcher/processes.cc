#include "launcher/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "launcher/replica_command.h"

namespace trireme::launcher {
namespace {

constexpr int kSignalsEnd = 65;

// In the child, where only calls that are safe after a fork in a program of many threads are
// allowed. Tells `failure` the error and ends if the program cannot be run.
[[noreturn]] void RunProgram(char* const* words, int log, int failure, int death_signal,
                             pid_t parent) {
  ::setsid();
  if (death_signal != 0) {
    ::prctl(PR_SET_PDEATHSIG, death_signal);
    if (::getppid() != parent) {  // it died before the line above
      ::_exit(1);
    }
  }
  for (int signal = 1; signal < kSignalsEnd; ++signal) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int input = ::open("/dev/null", O_RDONLY);
  if (input >= 0 && ::dup2(input, STDIN_FILENO) >= 0 && ::dup2(log, STDOUT_FILENO) >= 0 &&
      ::dup2(log, STDERR_FILENO) >= 0) {
    ::execvp(words[0], words);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(failure, &error, sizeof(error));
  ::_exit(127);
}

bool HasTag(const std::string& process_folder, absl::string_view tag_prefix) {
  std::ifstream file(process_folder + "/environ", std::ios::binary);
  const std::string environment((std::istreambuf_iterator<char>(file)),
                                std::istreambuf_iterator<char>());
  const std::string wanted = absl::StrCat(kRunVariable, "=", tag_prefix);
  return absl::StartsWith(environment, wanted) ||
         environment.find(std::string(1, '\0') + wanted) != std::string::npos;
}

}  // namespace

absl::StatusOr<pid_t> StartProcess(const ProcessStart& start) {
  std::vector<char*> words;
  for (const std::string& word : start.words) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  const int log = ::open(start.log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  std::array<int, 2> failure = {-1, -1};
  if (log < 0 || ::pipe2(failure.data(), O_CLOEXEC) != 0) {
    const int error = errno;
    if (log >= 0) {
      ::close(log);
    }
    return absl::UnknownError(absl::StrCat("cannot start ", start.words[0], ": ", start.log_path,
                                           ": ", std::strerror(error)));
  }
  const pid_t parent = ::getpid();
  const pid_t process = ::fork();
  if (process == 0) {
    RunProgram(words.data(), log, failure[1], start.death_signal, parent);
  }
  int error = process < 0 ? errno : 0;
  ::close(log);
  ::close(failure[1]);
  // Closed by a successful exec, so that this read ends either way.
  if (process > 0 && ::read(failure[0], &error, sizeof(error)) != sizeof(error)) {
    error = 0;
  }
  ::close(failure[0]);
  if (error == 0) {
    return process;
  }
  const std::string text =
      absl::StrCat("cannot start ", start.words[0], ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::UnknownError(text);
}

std::vector<pid_t> FindTaggedProcesses(absl::string_view tag_prefix) {
  std::vector<pid_t> found;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) {
    return found;
  }
  while (const dirent* const entry = ::readdir(folder)) {
    pid_t process = 0;
    if (absl::SimpleAtoi(entry->d_name, &process) && process != ::getpid() &&
        HasTag(absl::StrCat("/proc/", process), tag_prefix)) {
      const char state = ProcessState(process);
      if (state != 0 && state != 'Z' && state != 'X') {
        found.push_back(process);
      }
    }
  }
  ::closedir(folder);
  return found;
}

std::string SweepScript(absl::string_view tag_prefix) {
  return absl::StrFormat(
      "n=0; while [ $n -lt 50 ]; do found=; for d in /proc/[0-9]*; do "
      "if { tr \"\\0\" \"\\n\" <$d/environ | grep -q \"^%s=%s\"; } 2>/dev/null; "
      "then found=1; kill -9 ${d#/proc/}; fi; done; "
      "[ -z \"$found\" ] && exit 0; n=$((n+1)); sleep 0.1; done; exit 1",
      kRunVariable, tag_prefix);
}

char ProcessState(pid_t process) {
  std::string line;
  std::ifstream file(absl::StrFormat("/proc/%d/stat", process));
  std::getline(file, line);
  const size_t end_of_name = line.rfind(')');
  return end_of_name == std::string::npos || end_of_name + 2 >= line.size() ? '\0'
                                                                            : line[end_of_name + 2];
}

}  // namespace trireme::launcher
