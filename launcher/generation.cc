#include "launcher/generation.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/sample/stop_condition.h"

namespace trireme::launcher {
namespace {

// Streams that wait for one reader: any of them may wake it.
class Arrivals {
 public:
  void Notify() {
    MutexLock lock(&mutex_);
    has_news_ = true;
    arrived_.SignalAll();
  }
  void Wait() {
    MutexLock lock(&mutex_);
    while (!has_news_) {
      arrived_.Wait(&mutex_);
    }
    has_news_ = false;
  }

 private:
  Mutex mutex_;
  ConditionVariable arrived_;
  bool has_news_ ABSL_GUARDED_BY(mutex_) = false;
};

struct Running {
  std::shared_ptr<engine::ResponseStream> stream;
  Generation generation;
  bool is_done = false;
};

void TakeNews(size_t index, absl::Time begin, const TextReader& on_text, Running* running) {
  engine::Delta delta;
  while (!running->is_done && running->stream->Take(&delta)) {
    Generation& generation = running->generation;
    if (generation.token_ids.empty() && !delta.token_ids.empty()) {
      generation.first_token = absl::Now() - begin;
    }
    generation.token_ids.insert(generation.token_ids.end(), delta.token_ids.begin(),
                                delta.token_ids.end());
    absl::StrAppend(&generation.text, delta.text);
    if (on_text && !delta.text.empty()) {
      on_text(index, delta.text);
    }
    if (delta.ending.has_value()) {
      generation.ending = *std::move(delta.ending);
      generation.total = absl::Now() - begin;
      running->is_done = true;
    }
  }
}

double PerSecond(double count, absl::Duration time) {
  const double seconds = absl::ToDoubleSeconds(time);
  return seconds > 0 ? count / seconds : 0;
}

}  // namespace

std::vector<Generation> Generate(engine::Controller& controller,
                                 std::vector<schedule::Request> requests,
                                 const TextReader& on_text) {
  Arrivals arrivals;
  std::vector<Running> all(requests.size());
  const absl::Time begin = absl::Now();
  for (size_t i = 0; i < requests.size(); ++i) {
    all[i].generation.prompt = requests[i].prompt;
    all[i].stream = std::make_shared<engine::ResponseStream>(requests[i].stopping.max_tokens);
    all[i].stream->SetListener([&arrivals] { arrivals.Notify(); });
    requests[i].id = absl::StrCat("local-", i);
    if (absl::Status status = controller.Submit(std::move(requests[i]), all[i].stream);
        !status.ok()) {
      all[i].generation.ending.status = std::move(status);
      all[i].is_done = true;
    }
  }
  for (;;) {
    bool all_done = true;
    for (size_t i = 0; i < all.size(); ++i) {
      TakeNews(i, begin, on_text, &all[i]);
      all_done = all_done && all[i].is_done;
    }
    if (all_done) {
      break;
    }
    arrivals.Wait();
  }
  std::vector<Generation> generations;
  for (Running& running : all) {
    running.stream->SetListener(nullptr);
    generations.push_back(std::move(running.generation));
  }
  return generations;
}

std::string FinishName(const engine::Ending& ending) {
  return ending.status.ok() ? std::string(sample::FinishReasonName(ending.reason))
                            : std::string("error");
}

nlohmann::ordered_json GenerationJson(const Generation& generation, absl::Duration load_time) {
  const double prompt = static_cast<double>(generation.prompt.size());
  const double later_tokens = static_cast<double>(generation.token_ids.size()) - 1;
  nlohmann::ordered_json timings = {
      {"load_ms", absl::ToDoubleMilliseconds(load_time)},
      {"first_token_ms", absl::ToDoubleMilliseconds(generation.first_token)},
      {"prefill_tokens_per_second", PerSecond(prompt, generation.first_token)},
      {"decode_tokens_per_second",
       later_tokens > 0 ? PerSecond(later_tokens, generation.total - generation.first_token) : 0},
  };
  nlohmann::ordered_json json = {
      {"token_ids", generation.token_ids},
      {"text", generation.text},
      {"finish_reason", FinishName(generation.ending)},
      {"prompt_token_ids", generation.prompt},
      {"timings", std::move(timings)},
  };
  if (!generation.ending.status.ok()) {
    json["error"] = std::string(generation.ending.status.message());
  }
  return json;
}

}  // namespace trireme::launcher
