#include "launcher/processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sched.h>
#include <sys/types.h>

#include <csignal>
#include <fstream>
#include <iterator>
#include <string>

#include "launcher/sweeper.h"
#include "runtime/base/clock.h"

namespace trireme::launcher {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string LogPath() { return ::testing::TempDir() + "processes_test.log"; }

std::string Tag(const std::string& name) {
  return "processes_test." + std::to_string(::getpid()) + ":" + name + ":";
}

int CodeOf(pid_t process) {
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(ProcessesTest, OutputGoesToTheLogAndTheCodeToTheParent) {
  std::remove(LogPath().c_str());
  const auto process = StartProcess(
      {.words = {"sh", "-c", "echo out; echo err >&2; exit 7"}, .log_path = LogPath()});
  ASSERT_TRUE(process.ok()) << process.status();
  EXPECT_EQ(CodeOf(*process), 7);
  std::ifstream file(LogPath());
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "out\nerr\n");
}

TEST(ProcessesTest, AProgramThatDoesNotExistIsAnError) {
  const auto process = StartProcess({.words = {"/no/such/program"}, .log_path = LogPath()});
  EXPECT_EQ(process.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(process.status().message(), HasSubstr("/no/such/program"));
}

TEST(ProcessesTest, TaggedProcessesAreFoundWhoeverTheirParentIs) {
  const std::string tag = Tag("found");
  // The shell is killed, so that its sleeper has another parent.
  const auto process =
      StartProcess({.words = {"env", "TRIREME_RUN=" + tag + "1", "sh", "-c", "sleep 60 & wait"},
                    .log_path = LogPath()});
  ASSERT_TRUE(process.ok());
  while (FindTaggedProcesses(tag).size() < 2) {
    ::sched_yield();
  }
  ::kill(*process, SIGKILL);
  EXPECT_EQ(CodeOf(*process), 128 + SIGKILL);
  // A process in the middle of an exec shows no environment for a moment.
  std::vector<pid_t> left = FindTaggedProcesses(tag);
  while (left.empty()) {
    ::sched_yield();
    left = FindTaggedProcesses(tag);
  }
  ASSERT_EQ(left.size(), 1u);
  EXPECT_THAT(FindTaggedProcesses(Tag("other")), IsEmpty());
  ::kill(left[0], SIGKILL);
}

TEST(ProcessesTest, AStoppedProcessShowsItsState) {
  const auto process = StartProcess({.words = {"sleep", "60"}, .log_path = LogPath()});
  ASSERT_TRUE(process.ok());
  ::kill(*process, SIGSTOP);
  int status = 0;
  ::waitpid(*process, &status, WUNTRACED);
  EXPECT_EQ(ProcessState(*process), 'T');
  ::kill(*process, SIGKILL);
  CodeOf(*process);
  EXPECT_EQ(ProcessState(*process), '\0');
}

// Polls until the sweep has its result; the caller's children are reaped meanwhile.
std::vector<SweepResult> Finish(Sweeper* sweeper) {
  for (;;) {
    int status = 0;
    for (pid_t ended = ::waitpid(-1, &status, WNOHANG); ended > 0;
         ended = ::waitpid(-1, &status, WNOHANG)) {
      sweeper->OnExited(ended, WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    std::vector<SweepResult> results = sweeper->Poll(SteadyClock()->Now());
    if (!results.empty()) {
      return results;
    }
    ::sched_yield();
  }
}

TEST(SweeperTest, ASweepKillsWhatIsStoppedToo) {
  const std::string tag = Tag("swept");
  const auto process = StartProcess(
      {.words = {"env", "TRIREME_RUN=" + tag + "3", "sleep", "60"}, .log_path = LogPath()});
  ASSERT_TRUE(process.ok());
  while (FindTaggedProcesses(tag).empty()) {
    ::sched_yield();
  }
  ::kill(*process, SIGSTOP);
  Sweeper sweeper(LogPath());
  sweeper.Begin(4, tag, {}, SteadyClock()->Now());
  EXPECT_TRUE(sweeper.is_busy());
  const std::vector<SweepResult> results = Finish(&sweeper);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].child, 4);
  EXPECT_TRUE(results[0].outcome.ok()) << results[0].outcome;
  EXPECT_THAT(FindTaggedProcesses(tag), IsEmpty());
  EXPECT_FALSE(sweeper.is_busy());
}

TEST(SweeperTest, AnAgentRunsTheSameSweepElsewhere) {
  const std::string tag = Tag("remote");
  Sweeper sweeper(LogPath());
  // `sh -c SCRIPT` is an agent whose other host is this one.
  sweeper.Begin(0, tag, {{.host = "n2", .agent_words = {"sh", "-c"}}}, SteadyClock()->Now());
  EXPECT_TRUE(Finish(&sweeper)[0].outcome.ok());
}

TEST(SweeperTest, AHostThatCannotBeAskedMakesTheSweepFail) {
  Sweeper sweeper(LogPath());
  sweeper.Begin(0, Tag("absent"), {{.host = "n2", .agent_words = {"false"}}}, SteadyClock()->Now());
  const absl::Status outcome = Finish(&sweeper)[0].outcome;
  EXPECT_EQ(outcome.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(outcome.message(), HasSubstr("host=n2"));
}

}  // namespace
}  // namespace trireme::launcher
