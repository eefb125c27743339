#include "runtime/serve/request_journal.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/log.h"

namespace trireme::serve {
namespace {

double Milliseconds(absl::Duration duration) { return absl::ToDoubleMilliseconds(duration); }

bool IsAttemptOf(absl::string_view record_id, absl::string_view id) {
  return record_id.size() > id.size() && absl::StartsWith(record_id, id) &&
         record_id[id.size()] == '@';
}

// Of each token after the first, over the stream; unset when there was only one.
std::optional<absl::Duration> TokenTime(const RequestRecord& record) {
  if (!record.first_token.has_value()) {
    return std::nullopt;
  }
  const int64_t tokens_after = record.usage.generated_tokens / record.choices - 1;
  if (tokens_after <= 0) {
    return std::nullopt;
  }
  return (record.total - *record.first_token) / tokens_after;
}

void LogRecord(const RequestRecord& record) {
  std::string line = absl::StrFormat(
      "request id=%s outcome=%s choices=%d prompt_tokens=%d cached_tokens=%d generated_tokens=%d "
      "queue_ms=%.1f total_ms=%.1f",
      record.id, OutcomeOf(record.status), record.choices, record.usage.prompt_tokens,
      record.usage.cached_tokens, record.usage.generated_tokens, Milliseconds(record.queue),
      Milliseconds(record.total));
  if (record.first_token.has_value()) {
    absl::StrAppendFormat(&line, " first_token_ms=%.1f", Milliseconds(*record.first_token));
  }
  if (!record.finish.empty()) {
    absl::StrAppend(&line, " finish=", record.finish);
  }
  for (const engine::Route& route : record.routes) {
    if (route.attempts > 0) {
      absl::StrAppend(&line, " attempts=", route.attempts, " replica=", route.replica);
      break;  // the other choices have theirs in GetRequest
    }
  }
  Log(LogLevel::kInfo, line);
}

}  // namespace

std::string OutcomeOf(const absl::Status& status) {
  if (status.ok()) {
    return "ok";
  }
  const absl::string_view reason = ReasonOf(status);
  return reason.empty() ? absl::StatusCodeToString(status.code()) : std::string(reason);
}

RequestJournal::RequestJournal(Metrics* metrics, size_t records_max)
    : metrics_(metrics), records_max_(records_max) {}

void RequestJournal::Add(RequestRecord record) {
  const bool was_taken = !record.id.empty();  // what was refused at the door is only counted
  if (was_taken) {
    LogRecord(record);
  }
  if (metrics_ != nullptr) {
    Count(record);
  }
  if (!was_taken) {
    return;
  }
  MutexLock lock(&mutex_);
  AddLatency(record);
  records_.push_back(std::move(record));
  if (records_.size() > records_max_) {
    records_.pop_front();
  }
}

void RequestJournal::Count(const RequestRecord& record) {
  metrics_->Counter("trireme_requests_total", {{"outcome", OutcomeOf(record.status)}}).Increment();
  const auto count = [this](const char* name, int64_t tokens) {
    metrics_->Counter(name).Increment(static_cast<double>(tokens));
  };
  count("trireme_prompt_tokens_total", record.usage.prompt_tokens);
  count("trireme_cached_tokens_total", record.usage.cached_tokens);
  count("trireme_generated_tokens_total", record.usage.generated_tokens);
  count("trireme_recomputed_tokens_total", record.usage.recomputed_tokens);
  for (const engine::Route& route : record.routes) {
    for (const engine::Disruption& move : route.disruptions) {
      metrics_->Counter("trireme_resumes_total", {{"reason", move.reason}}).Increment();
    }
  }
  const auto observe = [this](const char* name, absl::Duration time) {
    metrics_->Histogram(name).Observe(absl::ToDoubleSeconds(time));
  };
  observe("trireme_queue_seconds", record.queue);
  observe("trireme_e2e_seconds", record.total);
  if (!record.first_token.has_value()) {
    return;
  }
  observe("trireme_ttft_seconds", *record.first_token);
  observe("trireme_prefill_seconds", *record.first_token - record.queue);
  observe("trireme_decode_seconds", record.total - *record.first_token);
  if (const std::optional<absl::Duration> token = TokenTime(record); token.has_value()) {
    observe("trireme_tpot_seconds", *token);
  }
}

void RequestJournal::AddLatency(const RequestRecord& record) {
  if (record.first_token.has_value()) {
    latencies_.AddFirstToken(*record.first_token);
  }
  if (const std::optional<absl::Duration> token = TokenTime(record); token.has_value()) {
    latencies_.AddToken(*token);
  }
}

RequestLatency RequestJournal::latency() const {
  MutexLock lock(&mutex_);
  return latencies_.Read();
}

std::vector<RequestRecord> RequestJournal::Find(absl::string_view id) const {
  std::vector<RequestRecord> found;
  MutexLock lock(&mutex_);
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (record->id == id || IsAttemptOf(record->id, id)) {
      found.push_back(*record);
    }
  }
  return found;
}

}  // namespace trireme::serve
