// Runs simulated sites and tells what broke:
//   simulate --seed S [--count N] [--ticks N] [--plant BUG]
// runs the seeds S .. S + N - 1; --seed fresh takes seeds that nobody has seen. A failing seed
// prints one line that repeats it, and the exit code is 1.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "tests/simulation/site.h"

namespace trireme::simulation {
namespace {

struct PlantName {
  const char* name;
  Plant plant;
};
constexpr PlantName kPlants[] = {
    {"none", Plant::kNone},
    {"lost-token", Plant::kLostToken},
    {"double-send", Plant::kDoubleSend},
    {"slot-leak", Plant::kSlotLeak},
    {"missed-fencing", Plant::kMissedFencing},
    {"unfair-queue", Plant::kUnfairQueue},
};

int Usage() {
  std::fprintf(stderr,
               "usage: simulate --seed NUMBER|fresh [--count N] [--ticks N] [--plant BUG]\n"
               "BUG is none, lost-token, double-send, slot-leak, missed-fencing or unfair-queue\n");
  return 64;
}

uint64_t FreshSeed() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return balance::SeededRandom::Mix(static_cast<uint64_t>(now.count())) >> 20;
}

int Simulate(int argument_count, char** arguments) {
  SiteSettings settings;
  int64_t count = 1;
  const char* plant = "none";
  for (int index = 1; index < argument_count; index += 2) {
    const std::string_view flag = arguments[index];
    const char* value = index + 1 < argument_count ? arguments[index + 1] : "";
    bool known = false;
    if (flag == "--seed") {
      known = std::string_view(value) == "fresh" || absl::SimpleAtoi(value, &settings.seed);
      if (std::string_view(value) == "fresh") {
        settings.seed = FreshSeed();
      }
    } else if (flag == "--count") {
      known = absl::SimpleAtoi(value, &count);
    } else if (flag == "--ticks") {
      known = absl::SimpleAtoi(value, &settings.events_max);
    } else if (flag == "--plant") {
      for (const PlantName& one : kPlants) {
        if (std::string_view(value) == one.name) {
          settings.plant = one.plant;
          plant = one.name;
          known = true;
        }
      }
    }
    if (!known) {
      return Usage();
    }
  }
  int64_t broken = 0;
  int64_t requests = 0;
  int64_t finished = 0;
  int64_t events = 0;
  const uint64_t first_seed = settings.seed;
  for (int64_t run = 0; run < count; ++run) {
    settings.seed = first_seed + static_cast<uint64_t>(run);
    Site site(settings);
    const std::string violation = site.Run();
    requests += static_cast<int64_t>(site.clients.size());
    finished += site.finished();
    events += site.world.events();
    if (!violation.empty()) {
      ++broken;
      absl::PrintF("FAILED simulate --seed %d --plant %s: %s\n", settings.seed, plant, violation);
      std::fflush(stdout);
    }
  }
  absl::PrintF("%d seeds from %d, %d requests, %d finished, %d events, %d seeds failed\n", count,
               first_seed, requests, finished, events, broken);
  return broken == 0 ? 0 : 1;
}

}  // namespace
}  // namespace trireme::simulation

int main(int argument_count, char** arguments) {
  return trireme::simulation::Simulate(argument_count, arguments);
}
