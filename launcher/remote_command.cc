#include "launcher/remote_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "runtime/base/clock.h"
#include "runtime/comm/socket.h"

namespace trireme::launcher {
namespace {

constexpr size_t kOutputMax = 1 << 20;

// One shell word.
std::string Quoted(const std::string& word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

struct Pipe {
  comm::Socket read_end;  // owns a descriptor, whatever it is
  comm::Socket write_end;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("cannot make a pipe: ", std::strerror(errno)));
  }
  Pipe made;
  made.read_end = comm::Socket(ends[0]);
  made.write_end = comm::Socket(ends[1]);
  return made;
}

// A program of its own process group, so that all it starts ends with it.
absl::StatusOr<pid_t> Spawn(const std::vector<std::string>& words, const Pipe& output,
                            const Pipe& errors) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.write_end.descriptor(), STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors.write_end.descriptor(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int error =
      ::posix_spawnp(&process, words[0].c_str(), &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::NotFoundError(absl::StrCat("cannot run ", words[0], ": ", std::strerror(error)));
  }
  return process;
}

// Reads once; false at the end.
bool ReadSome(const comm::Socket& from, std::string* text) {
  char bytes[4096];
  const ssize_t count = ::read(from.descriptor(), bytes, sizeof(bytes));
  if (count <= 0) {
    return count < 0 && errno == EINTR;
  }
  text->append(bytes, std::min(static_cast<size_t>(count), kOutputMax - text->size()));
  return true;
}

}  // namespace

std::vector<std::string> WordsOnHost(const std::vector<std::string>& words, const std::string& host,
                                     const std::string& agent) {
  // Both join their words and give them to a shell.
  std::vector<std::string> all =
      agent.empty()
          ? std::vector<std::string>{"ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", host}
          : std::vector<std::string>{agent, host};
  for (const std::string& word : words) {
    all.push_back(Quoted(word));
  }
  return all;
}

absl::StatusOr<CommandOutput> RunToItsEnd(const std::vector<std::string>& words,
                                          absl::Duration limit) {
  absl::StatusOr<Pipe> output = MakePipe();
  absl::StatusOr<Pipe> errors = MakePipe();
  if (!output.ok() || !errors.ok()) {
    return output.ok() ? errors.status() : output.status();
  }
  const absl::StatusOr<pid_t> process = Spawn(words, *output, *errors);
  if (!process.ok()) {
    return process.status();
  }
  output->write_end.Close();
  errors->write_end.Close();
  CommandOutput result;
  Clock* const clock = SteadyClock();
  const absl::Time deadline = clock->Now() + limit;
  pollfd polled[2] = {{output->read_end.descriptor(), POLLIN, 0},
                      {errors->read_end.descriptor(), POLLIN, 0}};
  bool is_late = false;
  while ((polled[0].fd >= 0 || polled[1].fd >= 0) && !is_late) {
    const int64_t left_ms = absl::ToInt64Milliseconds(deadline - clock->Now());
    const int ready = ::poll(polled, 2, static_cast<int>(std::max<int64_t>(left_ms, 0)));
    is_late = ready == 0;
    if (ready > 0 && polled[0].revents != 0 && !ReadSome(output->read_end, &result.output)) {
      polled[0].fd = -1;
    }
    if (ready > 0 && polled[1].revents != 0 && !ReadSome(errors->read_end, &result.errors)) {
      polled[1].fd = -1;
    }
  }
  if (is_late) {
    ::kill(-*process, SIGKILL);
  }
  int status = 0;
  while (::waitpid(*process, &status, 0) < 0 && errno == EINTR) {
  }
  if (is_late) {
    return absl::DeadlineExceededError(
        absl::StrCat(words[0], " gave no answer within ", absl::FormatDuration(limit)));
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace trireme::launcher
