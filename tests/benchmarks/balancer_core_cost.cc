// What one event costs the balancer's core while many streams are live: prints nanoseconds of
// processor time by kind of event. Actions are thrown away, so this is the decisions alone.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/balance/balancer_core.h"

namespace trireme::balance {
namespace {

constexpr int kStreams = 1000;
constexpr int kReplicas = 4;
constexpr int kRounds = 1000;

double ProcessorNanoseconds() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void Print(const char* event, double nanoseconds, int64_t events) {
  absl::PrintF("| %s | %.0f ns |\n", event, nanoseconds / static_cast<double>(events));
}

struct Site {
  BalancerCore core{[] {
    BalancerOptions options;
    options.pick.waiting_at_replica_max = 2 * kStreams;
    return options;
  }()};
  absl::Time now = absl::UnixEpoch();
  Actions actions;
  std::vector<ReplicaKey> replicas;
  uint64_t report_seq = 0;

  Site() {
    for (int replica = 0; replica < kReplicas; ++replica) {
      replicas.push_back(core.OnReplicaAdded(absl::StrCat("r", replica), now, &actions));
    }
    Report();
  }
  void Report() {
    ++report_seq;
    for (const ReplicaKey replica : replicas) {
      LoadReport report;
      report.epoch = 1;
      report.report_seq = report_seq;
      report.phase = ReplicaPhase::kServing;
      report.prefill_tokens_per_second = 1000;
      report.fingerprint = "f";
      core.OnLoadReport(replica, report, now, &actions).IgnoreError();
    }
    actions.clear();
  }
  std::vector<RequestKey> Open() {
    std::vector<RequestKey> keys;
    std::vector<int32_t> prompt(256);
    for (int stream = 0; stream < kStreams; ++stream) {
      prompt[0] = stream;
      keys.push_back(
          core.OnRequest({.prompt = prompt, .max_tokens = kRounds + 1}, now, &actions).value());
      actions.clear();
    }
    return keys;
  }
};

int Run() {
  Site site;
  std::printf("| event, with %d streams on %d replicas | processor time |\n|---|---|\n", kStreams,
              kReplicas);
  double start = ProcessorNanoseconds();
  const std::vector<RequestKey> keys = site.Open();
  Print("request of 256 tokens, started", ProcessorNanoseconds() - start, kStreams);

  start = ProcessorNanoseconds();
  for (const RequestKey key : keys) {
    site.core.OnAccepted(key, 1, "f", 0, site.now, &site.actions);
    site.actions.clear();
  }
  Print("accepted", ProcessorNanoseconds() - start, kStreams);

  start = ProcessorNanoseconds();
  absl::Time next = absl::InfinitePast();
  for (int round = 0; round < kRounds; ++round) {
    site.now += absl::Milliseconds(1);
    for (const RequestKey key : keys) {
      const int32_t token = round;
      site.core.OnTokens(key, 1, round, {&token, 1}, site.now, &site.actions);
      site.actions.clear();
      next = std::max(next, site.core.NextTick());
    }
  }
  Print("one token, with the next tick asked for", ProcessorNanoseconds() - start,
        int64_t{kStreams} * kRounds);

  start = ProcessorNanoseconds();
  for (int round = 0; round < kRounds; ++round) {
    site.Report();
  }
  Print("load report", ProcessorNanoseconds() - start, int64_t{kReplicas} * kRounds);

  start = ProcessorNanoseconds();
  for (const RequestKey key : keys) {
    site.core.OnFinished(key, 1, kRounds, site.now, &site.actions);
    site.actions.clear();
  }
  Print("finished", ProcessorNanoseconds() - start, kStreams);
  return site.core.counts().finished == kStreams && next != absl::InfinitePast() ? 0 : 1;
}

}  // namespace
}  // namespace trireme::balance

int main() { return trireme::balance::Run(); }
