#include "runtime/base/log.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace trireme {
namespace {

std::atomic<LogLevel> minimum_level{LogLevel::kInfo};
std::atomic<LogForm> log_form{LogForm::kText};

std::string& Context() {
  static std::string* const context = new std::string;  // lives as long as threads may log
  return *context;
}

absl::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "DEBUG";
    case LogLevel::kInfo:
      return "INFO";
    case LogLevel::kWarning:
      return "WARN";
    case LogLevel::kError:
      return "ERROR";
  }
  return "?";
}

bool HasControlCharacter(absl::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      return true;
    }
  }
  return false;
}

// The length of "key=" at the start of `text`, without the '='; npos when there is no key.
size_t KeyLength(absl::string_view text) {
  size_t length = 0;
  while (length < text.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(text[length])) || text[length] == '_')) {
    ++length;
  }
  return length > 0 && length < text.size() && text[length] == '=' ? length
                                                                   : absl::string_view::npos;
}

// Takes the value at the start of `text`: up to the closing quote, or to the next blank.
absl::string_view TakeValue(absl::string_view* text) {
  const bool is_quoted = !text->empty() && text->front() == '"';
  const size_t begin = is_quoted ? 1 : 0;
  const size_t end = std::min(text->find(is_quoted ? '"' : ' ', begin), text->size());
  const absl::string_view value = text->substr(begin, end - begin);
  text->remove_prefix(std::min(end + begin, text->size()));
  return value;
}

// "started port=1 why=\"a b\"" becomes {"event": "started", "port": "1", "why": "a b"}.
void AddFields(absl::string_view text, nlohmann::ordered_json* line) {
  std::string event;
  while (!text.empty()) {
    if (text.front() == ' ') {
      text.remove_prefix(1);
      continue;
    }
    if (const size_t key = KeyLength(text); key != absl::string_view::npos) {
      const std::string name(text.substr(0, key));
      text.remove_prefix(key + 1);
      (*line)[name] = std::string(TakeValue(&text));
      continue;
    }
    const size_t end = std::min(text.find(' '), text.size());
    absl::StrAppend(&event, event.empty() ? "" : " ", text.substr(0, end));
    text.remove_prefix(end);
  }
  (*line)["event"] = event;
}

std::string JsonLine(absl::string_view time, LogLevel level, absl::string_view text) {
  nlohmann::ordered_json line;
  AddFields(absl::StrCat(Context(), " ", text), &line);
  line["ts"] = std::string(time);  // last: no key of a text can replace them
  line["level"] = std::string(LevelName(level));
  return absl::StrCat(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "\n");
}

std::string TextLine(absl::string_view time, LogLevel level, absl::string_view text) {
  std::string line = absl::StrCat(time, " ", LevelName(level), " ");
  if (!Context().empty()) {
    absl::StrAppend(&line, Context(), " ");
  }
  absl::StrAppend(
      &line, HasControlCharacter(text) ? absl::Utf8SafeCEscape(text) : std::string(text), "\n");
  return line;
}

}  // namespace

void SetLogForm(LogForm form) { log_form.store(form, std::memory_order_relaxed); }

void SetLogLevel(LogLevel level) { minimum_level.store(level, std::memory_order_relaxed); }

void SetLogContext(std::string context) { Context() = std::move(context); }

void Log(LogLevel level, absl::string_view text) {
  if (level < minimum_level.load(std::memory_order_relaxed)) {
    return;
  }
  const std::string time =
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone());
  const std::string line = log_form.load(std::memory_order_relaxed) == LogForm::kJson
                               ? JsonLine(time, level, text)
                               : TextLine(time, level, text);
  // A log that cannot be written (closed or full pipe, full disk, stopped terminal) must not stop
  // the service: the line is lost. Where poll says writable, a pipe takes any line shorter than
  // PIPE_BUF.
  pollfd output = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&output, 1, 0) <= 0 || (output.revents & POLLOUT) == 0) {
    return;
  }
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace trireme
