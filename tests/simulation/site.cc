#include "tests/simulation/site.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/error_reason.h"

namespace trireme::simulation {
namespace {

constexpr int kToBalancer = 0;
constexpr int kToReplica = 1;
constexpr int64_t kTokensMax = 24;

balance::BalancerOptions OptionsOf() {
  balance::BalancerOptions options;
  options.health.slow_start = absl::Seconds(3);
  options.health.open_for = absl::Seconds(1);
  options.health.open_for_max = absl::Seconds(4);
  options.health.first_token_timeout = absl::Seconds(6);
  options.health.next_token_timeout = absl::Seconds(3);
  options.retry.patience = absl::Seconds(15);
  options.admission.queued_requests_max = 96;
  return options;
}

}  // namespace

Site::Site(const SiteSettings& settings)
    : world(settings.seed), settings_(settings), start_(world.now()) {
  if (settings.faults.has_value()) {
    armed_ = *settings.faults;
  } else {
    for (int fault = 0; fault < kFaults; ++fault) {
      if (world.random.Chance(0.25)) {
        armed_.push_back(static_cast<Fault>(fault));
      }
    }
  }
  const bool unfair = settings.plant == Plant::kUnfairQueue;
  flood_ = settings.requests_per_second == 0 && (unfair || world.random.Chance(0.15));
  rate_ = settings.requests_per_second > 0 ? settings.requests_per_second
                                           : 4 + 16 * world.random.Uniform();
  faults_end_ = start_ + settings.load_time;
  Build();
}

bool Site::armed(Fault fault) const {
  return std::find(armed_.begin(), armed_.end(), fault) != armed_.end();
}

void Site::Build() {
  const int replica_count =
      settings_.replicas > 0 ? settings_.replicas : 2 + static_cast<int>(world.random.Below(3));
  for (int index = 0; index < replica_count; ++index) {
    ReplicaSettings replica;
    replica.name = absl::StrCat("r", index + 1);
    replica.ranks = 1 + static_cast<int>(world.random.Below(4));
    replica.step_base = absl::Milliseconds(20);
    replica.step_scale = settings_.equal_replicas ? 1 : 0.7 + world.random.Uniform();
    replica.slots = settings_.slots;
    replica.blocks = (world.random.Chance(0.3) ? 6 : 16) * settings_.slots;
    if (armed(Fault::kLoseReports)) {
      replica.report_loss = world.random.Chance(0.3) ? 0.8 : 0.1;
    }
    replicas.push_back(
        std::make_unique<SimulatedReplica>(&world, replica, settings_.balancers, settings_.plant));
  }
  BalancerSettings balancer;
  balancer.options = OptionsOf();
  if (flood_) {
    // Twice what may be under way at once on every replica, in the counter's tokens, and more
    // for what a move computes again.
    balancer.fairness_bound = 2.0 * replica_count * (4 + 4) * (2 * kTokensMax + 112);
  }
  for (int index = 0; index < settings_.balancers; ++index) {
    balancers.push_back(
        std::make_unique<SimulatedBalancer>(&world, index, balancer, settings_.plant));
  }
  for (size_t b = 0; b < balancers.size(); ++b) {
    for (size_t r = 0; r < replicas.size(); ++r) {
      ConnectLink(b, r);
    }
  }
  for (size_t r = 0; r < replicas.size(); ++r) {
    SimulatedReplica* replica = replicas[r].get();
    replica->send_answer = [this, r](int b, uint64_t incarnation, const Answer& answer) {
      SimulatedBalancer* to = balancers[static_cast<size_t>(b)].get();
      Link* link = to->links[r];
      link->Send(kToBalancer, [to, r, incarnation, answer] {
        if (incarnation == to->process.incarnation()) {
          to->OnAnswer(r, answer);
        }
      });
    };
    replica->send_report = [this, r](int b, const balance::LoadReport& report) {
      SimulatedBalancer* to = balancers[static_cast<size_t>(b)].get();
      to->links[r]->Send(kToBalancer, [to, r, report] { to->OnReport(r, report); });
    };
    replica->on_death = [this, r] {
      for (const auto& to : balancers) {
        to->links[r]->Reset();
      }
    };
  }
}

void Site::ConnectLink(size_t b, size_t r) {
  SimulatedBalancer* balancer = balancers[b].get();
  SimulatedReplica* replica = replicas[r].get();
  links.push_back(std::make_unique<Link>(&world, &balancer->process, &replica->process));
  Link* link = links.back().get();
  if (armed(Fault::kSlowNetwork)) {
    link->delay_max = absl::Milliseconds(60);
  }
  link->on_reset[0] = [balancer, r] { balancer->OnLinkReset(r); };
  link->on_reset[1] = [replica, b] { replica->OnBalancerGone(static_cast<int>(b)); };
  balancer->links.push_back(link);
  balancer->replicas.push_back(replica);
}

void Site::At(absl::Duration time, std::function<void()> happening) {
  world.At(start_ + time, std::move(happening));
}

ClientRequest* Site::Ask(SimulatedRequest request) {
  request.id = next_id_++;
  clients.push_back(std::make_unique<ClientRequest>(&world, &balancers, std::move(request)));
  ClientRequest* client = clients.back().get();
  client->judge = [this](const ClientRequest& asker, const absl::Status& status) {
    return Judge(asker, status);
  };
  if (client->request().cancel_after != absl::InfiniteDuration()) {
    world.At(world.now() + client->request().cancel_after, [client] { client->Cancel(); });
  }
  client->Submit(world.random.Below(balancers.size()));
  return client;
}

SimulatedRequest Site::RandomRequest() {
  SimulatedRequest request;
  request.tenant = absl::StrCat("tenant", world.random.Below(3));
  const uint64_t group =
      world.random.Chance(settings_.hot_share) ? 0 : world.random.Below(settings_.groups);
  const size_t shared = 64;
  const size_t own = 4 + world.random.Below(44);
  for (size_t index = 0; index < shared + own; ++index) {
    request.prompt.push_back(
        static_cast<int32_t>(index < shared ? group * 1000 + index : world.random.Below(50000)));
  }
  request.max_tokens = 1 + static_cast<int64_t>(world.random.Below(kTokensMax));
  request.sampling_seed = world.random.Chance(0.5) ? 0 : 1 + world.random.Below(1000);
  request.priority =
      flood_ ? balance::Priority::kStandard : static_cast<balance::Priority>(world.random.Below(3));
  const uint64_t policy = world.random.Below(8);
  request.policy = policy < 6 || settings_.no_failures || !settings_.odd_requests
                       ? balance::DisruptionPolicy::kResume
                   : policy == 6 ? balance::DisruptionPolicy::kExactOrFail
                                 : balance::DisruptionPolicy::kFail;
  if (settings_.odd_requests) {
    request.bad = world.random.Chance(0.03);
    if (world.random.Chance(0.05)) {
      request.time_limit = world.RandomBetween(absl::Milliseconds(50), absl::Seconds(2));
    }
    if (world.random.Chance(0.05)) {
      request.cancel_after = world.RandomBetween(absl::Milliseconds(1), absl::Seconds(1));
    }
  }
  request.poison = armed(Fault::kPoison) && world.random.Chance(0.01);
  return request;
}

void Site::PlanLoad() {
  const double tenfold = flood_ ? 8 : 1;
  const absl::Duration time = flood_ ? settings_.load_time / 2 : settings_.load_time;
  for (absl::Duration at = absl::Seconds(1.5); at < time;
       at += absl::Seconds(-std::log(1 - world.random.Uniform()) / (rate_ * tenfold))) {
    At(at, [this] {
      SimulatedRequest request = RandomRequest();
      if (flood_) {  // one tenant asks a little more than its share, the other far more
        request.tenant = world.random.Chance(0.3) ? "steady" : "flood";
      }
      Ask(std::move(request));
    });
  }
}

void Site::PlanFaults() {
  for (const Fault fault : armed_) {
    const uint64_t times = 1 + world.random.Below(4);
    for (uint64_t time = 0; time < times; ++time) {
      world.At(
          start_ + world.RandomBetween(absl::Seconds(1), settings_.load_time - absl::Seconds(4)),
          [this, fault] { Befall(fault); });
    }
  }
}

void Site::CutLink(bool both) {
  Link* link = links[world.random.Below(links.size())].get();
  const int way = static_cast<int>(world.random.Below(2));
  link->Cut(way, true);
  if (both) {
    link->Cut(1 - way, true);
  }
  const absl::Duration length = world.RandomBetween(absl::Milliseconds(100), absl::Seconds(6));
  // Keepalive breaks the connection after 3 s, if it is that quick.
  if (length > absl::Seconds(3) && world.random.Chance(0.7)) {
    world.At(world.now() + absl::Seconds(3), [link] { link->Reset(); });
  }
  world.At(std::min(world.now() + length, faults_end_), [link] {
    link->Cut(kToBalancer, false);
    link->Cut(kToReplica, false);
  });
}

void Site::Befall(Fault fault) {
  SimulatedReplica* replica = replicas[world.random.Below(replicas.size())].get();
  SimulatedBalancer* balancer = balancers[world.random.Below(balancers.size())].get();
  const absl::Duration length = world.RandomBetween(absl::Milliseconds(100), absl::Seconds(5));
  const absl::Time end = std::min(world.now() + length, faults_end_);
  switch (fault) {
    case Fault::kKillRank:
      replica->KillRank(
          static_cast<int>(world.random.Below(static_cast<uint64_t>(replica->settings.ranks))));
      break;
    case Fault::kKillReplica:
      replica->KillNow();
      break;
    case Fault::kPauseReplica:
    case Fault::kPauseBalancer: {
      Process* process = fault == Fault::kPauseReplica ? &replica->process : &balancer->process;
      if (process->alive() && !process->paused()) {
        process->Pause();
        world.At(end, [process] { process->Resume(); });
      }
      break;
    }
    case Fault::kKillBalancer:
      balancer->Kill(length);
      break;
    case Fault::kCutLink:
    case Fault::kCutOneWay:
      CutLink(/*both=*/fault == Fault::kCutLink);
      break;
    case Fault::kResetLink:
      links[world.random.Below(links.size())]->Reset();
      break;
    case Fault::kQuirk:
      replica->quirk = static_cast<Quirk>(1 + world.random.Below(kQuirks - 1));
      world.At(end, [replica] { replica->quirk = Quirk::kNone; });
      break;
    case Fault::kDrain:
      if (replica->serving()) {
        replica->Drain();
      }
      break;
    case Fault::kChangeModel:
      replica->fingerprint_changes_at_restart = world.random.Chance(0.5);
      replica->KillNow();
      break;
    case Fault::kLoseReports:
    case Fault::kPoison:
    case Fault::kSlowNetwork:
      break;  // all the time
  }
}

std::string Site::Judge(const ClientRequest& client, const absl::Status& status) const {
  const SimulatedRequest& request = client.request();
  const absl::string_view reason = ReasonOf(status);
  if (reason.empty()) {
    return "an error without a reason";
  }
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return request.bad ? "" : "a good request was called bad";
    case absl::StatusCode::kCancelled:
      return client.cancelled ? "" : "nobody cancelled";
    case absl::StatusCode::kDeadlineExceeded:
      return request.time_limit != absl::InfiniteDuration() ? "" : "it has no deadline";
    case absl::StatusCode::kResourceExhausted:
      return RetryDelayOf(status) > absl::ZeroDuration() && !settings_.no_failures
                 ? ""
                 : "refused for want of room";
    case absl::StatusCode::kUnavailable:
      return RetryDelayOf(status) > absl::ZeroDuration() && !armed_.empty() &&
                     !settings_.no_failures
                 ? ""
                 : "unavailable, and nothing is wrong";
    case absl::StatusCode::kInternal:
      if (request.poison) {
        return "";
      }
      if (reason == kReasonPoisonSuspect) {
        int64_t deaths = 0;
        for (const auto& replica : replicas) {
          deaths += replica->deaths;
        }
        const bool resets =
            armed(Fault::kResetLink) || armed(Fault::kCutLink) || armed(Fault::kCutOneWay);
        return !settings_.no_failures && (deaths >= 2 || resets) ? "" : "an innocent is suspected";
      }
      return armed(Fault::kQuirk) ? "" : "no replica misbehaves";
    default:
      return "an error of an unexpected kind";
  }
}

int64_t Site::finished() const {
  return std::count_if(clients.begin(), clients.end(),
                       [](const auto& client) { return client->ended() && client->status().ok(); });
}

int64_t Site::failed() const { return static_cast<int64_t>(clients.size()) - finished(); }

void Site::CheckBooks() {
  for (const auto& replica : replicas) {
    if (std::string wrong = replica->CheckBooks(); !wrong.empty()) {
      world.Violate(wrong);
    }
  }
  for (const auto& balancer : balancers) {
    if (std::string wrong = balancer->CheckBooks(); !wrong.empty()) {
      world.Violate(wrong);
    }
  }
}

void Site::RunUntilAllEnded(absl::Time end) {
  constexpr int64_t kEventsBetweenChecks = 64;
  size_t first_open = 0;
  while (world.RunOne(end)) {
    if (world.events() % kEventsBetweenChecks == 0) {
      CheckBooks();
    }
    if (world.events() > settings_.events_max) {
      world.Violate("too many events: something does not come to rest");
    }
    while (first_open < clients.size() && clients[first_open]->ended()) {
      ++first_open;
    }
    if (first_open == clients.size() && world.now() > faults_end_ + absl::Seconds(8)) {
      return;
    }
  }
}

void Site::CheckAtTheEnd() {
  for (const auto& client : clients) {
    if (!client->ended()) {
      world.Violate(absl::StrFormat("request %d never ends", client->request().id));
      return;
    }
  }
  world.RunUntil(world.now() + absl::Seconds(7));  // leases run out
  for (const auto& replica : replicas) {
    if (replica->streams() != 0) {
      world.Violate(absl::StrFormat("replica %s still runs %d streams", replica->settings.name,
                                    replica->streams()));
    }
  }
  for (const auto& balancer : balancers) {
    if (balancer->core().live_requests() != 0 ||
        balancer->core().NextTick() != absl::InfiniteFuture()) {
      world.Violate("an idle balancer has work");
    }
  }
  CheckBooks();
}

std::string Site::Run() {
  for (const auto& replica : replicas) {
    replica->Start();
  }
  for (const auto& balancer : balancers) {
    balancer->Start();
  }
  PlanLoad();
  PlanFaults();
  world.At(faults_end_, [this] {
    for (const auto& replica : replicas) {
      replica->settings.report_loss = 0;
    }
  });
  // When all is well again, every good request is served.
  const absl::Time well = faults_end_ + absl::Seconds(7);
  world.At(well, [this] {
    armed_.erase(std::remove(armed_.begin(), armed_.end(), Fault::kPoison), armed_.end());
    for (int index = 0; index < 6; ++index) {
      SimulatedRequest request = RandomRequest();
      request.bad = false;
      request.cancel_after = absl::InfiniteDuration();
      request.time_limit = absl::InfiniteDuration();
      ClientRequest* client = Ask(std::move(request));
      client->judge = [](const ClientRequest&, const absl::Status&) {
        return std::string("a good request failed after the last fault");
      };
    }
  });
  RunUntilAllEnded(well + absl::Seconds(60));
  if (world.violation().empty()) {
    CheckAtTheEnd();
  }
  return world.violation();
}

}  // namespace trireme::simulation
