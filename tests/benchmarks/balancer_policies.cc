// How long clients wait for their first token under different ways to choose a replica: the
// balancer's own core against round robin and least connections, on the same simulated replicas of
// unequal speed, with the same requests at the same times, while load reports get lost.
//   balancer_policies [--plot FILE.svg]
// prints a table and, when asked, draws the share of requests over the time to the first token.
// Exits with 1 when the core's 99th percentile is above 0.7 of the others'.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/simulated_balancer.h"
#include "tests/simulation/simulated_replica.h"
#include "tests/simulation/world.h"

namespace trireme::simulation {
namespace {

enum class Policy { kCore, kRoundRobin, kLeastConnections };
constexpr const char* kPolicyNames[] = {"Trireme", "round robin", "least connections"};
constexpr const char* kColours[] = {"#1b6ca8", "#c0392b", "#7d8c2f"};

struct Workload {
  const char* name;
  double requests_per_second;
  int groups;  // of prompts that begin alike; 0: none do
};

constexpr double kStepScales[] = {1, 1, 1.6, 2.5};  // of the replicas
constexpr double kReportLoss = 0.1;
constexpr absl::Duration kWarmUp = absl::Seconds(40);  // past slow start
constexpr absl::Duration kTime = absl::Seconds(240);

class MeasuredRequest final : public Submission {
 public:
  MeasuredRequest(World* world, SimulatedRequest request)
      : world_(world), request_(std::move(request)), asked_(world->now()) {}

  const SimulatedRequest& request() const override { return request_; }
  void OnStarted(size_t) override {}
  void OnTokens(int64_t, const std::vector<int32_t>&) override {
    first_token_ = std::min(first_token_, world_->now());
  }
  void OnFinished(const balance::RequestStory&) override {}
  void OnFailed(const absl::Status& status) override { world_->Violate(status.ToString()); }
  void OnBroken() override { world_->Violate("the balancer broke"); }

  absl::Time asked() const { return asked_; }
  double first_token_ms() const { return absl::ToDoubleMilliseconds(first_token_ - asked_); }

 private:
  World* const world_;
  const SimulatedRequest request_;
  const absl::Time asked_;
  absl::Time first_token_ = absl::InfiniteFuture();
};

// Sends each request at once, by count alone.
class PlainBalancer {
 public:
  PlainBalancer(Policy policy, size_t replica_count) : policy_(policy), in_flight_(replica_count) {}

  std::vector<Link*> links;
  std::vector<SimulatedReplica*> replicas;

  void Submit(MeasuredRequest* request) {
    const size_t index =
        policy_ == Policy::kRoundRobin
            ? next_++ % in_flight_.size()
            : static_cast<size_t>(std::min_element(in_flight_.begin(), in_flight_.end()) -
                                  in_flight_.begin());
    ++in_flight_[index];
    requests_.push_back(request);
    ExecuteCall call;
    call.request = &request->request();
    call.key = requests_.size() - 1;
    call.attempt = 1;
    call.epoch = 1;
    links[index]->Send(1, [replica = replicas[index], call] { replica->OnExecute(call); });
  }

  void OnAnswer(size_t replica, const Answer& answer) {
    if (answer.kind == Answer::Kind::kTokens) {
      requests_[answer.key]->OnTokens(0, answer.token_ids);
    } else if (answer.kind != Answer::Kind::kAccepted) {
      --in_flight_[replica];
    }
  }

 private:
  const Policy policy_;
  std::vector<int> in_flight_;
  std::vector<MeasuredRequest*> requests_;
  size_t next_ = 0;
};

SimulatedRequest RandomRequest(balance::SeededRandom* random, const Workload& workload) {
  SimulatedRequest request;
  request.tenant = "t";
  const size_t shared = workload.groups > 0 ? 128 : 0;
  const uint64_t group =
      workload.groups > 0 ? random->Below(static_cast<uint64_t>(workload.groups)) : 0;
  const size_t own = 16 + random->Below(128);
  for (size_t index = 0; index < shared + own; ++index) {
    request.prompt.push_back(
        static_cast<int32_t>(index < shared ? group * 1000 + index : random->Below(50000)));
  }
  request.max_tokens = 1 + static_cast<int64_t>(random->Below(96));
  return request;
}

// Times to the first token in milliseconds, in order.
std::vector<double> Measure(Policy policy, const Workload& workload) {
  World world(1);
  Process balancer_process(&world);
  SimulatedBalancer core(&world, 0, {}, Plant::kNone);
  PlainBalancer plain(policy, std::size(kStepScales));
  std::vector<std::unique_ptr<SimulatedReplica>> replicas;
  std::vector<std::unique_ptr<Link>> links;
  Process* process = policy == Policy::kCore ? &core.process : &balancer_process;
  balancer_process.Start();
  for (size_t index = 0; index < std::size(kStepScales); ++index) {
    ReplicaSettings settings;
    settings.name = absl::StrCat("r", index);
    settings.slots = 16;
    settings.blocks = 512;
    settings.queue_max = 1 << 20;
    settings.step_scale = kStepScales[index];
    settings.step_base = absl::Milliseconds(10);
    settings.step_token = absl::Microseconds(400);
    settings.report_loss = kReportLoss;
    replicas.push_back(std::make_unique<SimulatedReplica>(&world, settings, 1, Plant::kNone));
    links.push_back(std::make_unique<Link>(&world, process, &replicas.back()->process));
    Link* link = links.back().get();
    SimulatedReplica* replica = replicas.back().get();
    core.links.push_back(link);
    core.replicas.push_back(replica);
    plain.links.push_back(link);
    plain.replicas.push_back(replica);
    replica->on_death = [] {};
    replica->send_answer = [&, link, index](int, uint64_t, const Answer& answer) {
      link->Send(0, [&, index, answer] {
        policy == Policy::kCore ? core.OnAnswer(index, answer) : plain.OnAnswer(index, answer);
      });
    };
    replica->send_report = [&, link, index](int, const balance::LoadReport& report) {
      if (policy == Policy::kCore) {
        link->Send(0, [&, index, report] { core.OnReport(index, report); });
      }
    };
    replica->Start();
  }
  if (policy == Policy::kCore) {
    core.Start();
  } else {
    for (const auto& link : links) {
      link->Connect();
    }
  }
  // A lease of a plain balancer, so that replicas keep its streams.
  const std::function<void()> lease = [&] {
    for (const auto& replica : replicas) {
      replica->OnLease(0);
    }
    world.At(world.now() + absl::Seconds(1), lease);
  };
  lease();
  balance::SeededRandom random(7);  // the same requests for every policy
  std::vector<std::unique_ptr<MeasuredRequest>> requests;
  const absl::Time start = world.now();
  absl::Time at = start + absl::Seconds(2);
  while (at < start + kTime) {
    const SimulatedRequest request = RandomRequest(&random, workload);
    world.At(at, [&, request] {
      requests.push_back(std::make_unique<MeasuredRequest>(&world, request));
      if (policy == Policy::kCore) {
        core.Submit(requests.back().get(), {}, "");
      } else {
        plain.Submit(requests.back().get());
      }
    });
    at += absl::Seconds(-std::log(1 - random.Uniform()) / workload.requests_per_second);
  }
  world.RunUntil(start + kTime + absl::Seconds(200));
  if (!world.violation().empty()) {
    absl::FPrintF(stderr, "%s\n", world.violation());
  }
  std::vector<double> times;
  for (const auto& request : requests) {
    if (request->asked() > start + kWarmUp) {
      times.push_back(request->first_token_ms());
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

double Percentile(const std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<size_t>(share * static_cast<double>(sorted.size())))];
}

// Share of requests over the time to the first token on a logarithmic axis from 10 ms to 100 s.
std::string Plot(const std::vector<std::vector<double>>& times) {
  constexpr double kWidth = 560;
  constexpr double kHeight = 300;
  const auto x = [](double ms) {
    return 50 + kWidth * std::clamp((std::log10(ms) - 1) / 4, 0.0, 1.0);
  };
  const auto y = [](double share) { return 20 + kHeight * (1 - share); };
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"680\" height=\"370\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"680\" height=\"370\" "
      "fill=\"white\"/>\n";
  for (int decade = 1; decade <= 5; ++decade) {
    const double ms = std::pow(10, decade);
    absl::StrAppendFormat(&text,
                          "<line x1=\"%.1f\" y1=\"20\" x2=\"%.1f\" y2=\"320\" stroke=\"#ddd\"/>"
                          "<text x=\"%.1f\" y=\"338\" text-anchor=\"middle\">%g ms</text>\n",
                          x(ms), x(ms), x(ms), ms);
  }
  for (const double share : {0.0, 0.25, 0.5, 0.75, 0.99}) {
    absl::StrAppendFormat(&text,
                          "<line x1=\"50\" y1=\"%.1f\" x2=\"610\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                          "<text x=\"44\" y=\"%.1f\" text-anchor=\"end\">%g %%</text>\n",
                          y(share), y(share), y(share) + 4, share * 100);
  }
  for (size_t policy = 0; policy < times.size(); ++policy) {
    std::string points;
    for (int step = 0; step <= 400; ++step) {
      const double share = step / 400.0;
      absl::StrAppendFormat(&points, "%.1f,%.1f ", x(Percentile(times[policy], share)), y(share));
    }
    absl::StrAppendFormat(&text,
                          "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>"
                          "<text x=\"470\" y=\"%d\" fill=\"%s\">%s</text>\n",
                          points, kColours[policy], 240 + 18 * static_cast<int>(policy),
                          kColours[policy], kPolicyNames[policy]);
  }
  return text +
         "<text x=\"330\" y=\"358\" text-anchor=\"middle\">time to the first token</text>\n"
         "</svg>\n";
}

int Run(int argument_count, char** arguments) {
  const bool plot = argument_count == 3 && std::string_view(arguments[1]) == "--plot";
  if (argument_count != 1 && !plot) {
    std::fprintf(stderr, "usage: balancer_policies [--plot FILE.svg]\n");
    return 64;
  }
  constexpr Workload kWorkloads[] = {
      {"unique prompts", 20, 0},
      {"64 shared prefixes", 24, 64},
  };
  bool good = true;
  std::printf("| requests | policy | p50 | p90 | p99 | p99 of Trireme against it |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const Workload& workload : kWorkloads) {
    std::vector<std::vector<double>> times;
    for (const Policy policy : {Policy::kCore, Policy::kRoundRobin, Policy::kLeastConnections}) {
      times.push_back(Measure(policy, workload));
      const double p99 = Percentile(times.back(), 0.99);
      const double ratio = Percentile(times.front(), 0.99) / p99;
      good = good && (policy == Policy::kCore || ratio <= 0.7);
      absl::PrintF("| %s, %g/s | %s | %.0f ms | %.0f ms | %.0f ms | %.2f |\n", workload.name,
                   workload.requests_per_second, kPolicyNames[static_cast<size_t>(policy)],
                   Percentile(times.back(), 0.5), Percentile(times.back(), 0.9), p99, ratio);
      std::fflush(stdout);
    }
    if (plot && workload.groups == 0) {
      std::FILE* file = std::fopen(arguments[2], "w");
      if (file == nullptr) {
        std::fprintf(stderr, "cannot write %s\n", arguments[2]);
        return 74;
      }
      std::fputs(Plot(times).c_str(), file);
      std::fclose(file);
    }
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace trireme::simulation

int main(int argument_count, char** arguments) {
  return trireme::simulation::Run(argument_count, arguments);
}
