#include "launcher/child_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace trireme::launcher {
namespace {

constexpr size_t kReadBytesMax = size_t{1} << 20;

// The word after "key=", up to a space; empty when there is none.
absl::string_view ValueOf(absl::string_view line, absl::string_view key) {
  for (size_t at = line.find(key); at != absl::string_view::npos; at = line.find(key, at + 1)) {
    const bool is_word = at == 0 || line[at - 1] == ' ';
    const absl::string_view rest = line.substr(at + key.size());
    if (is_word && absl::StartsWith(rest, "=")) {
      return rest.substr(1, rest.find(' ') - 1);
    }
  }
  return "";
}

template <typename Number>
Number NumberOf(absl::string_view line, absl::string_view key) {
  Number value = 0;
  return absl::SimpleAtoi(ValueOf(line, key), &value) ? value : 0;
}

// What stands between the quotes of reason="...", or the whole text.
std::string ReasonOf(absl::string_view text) {
  const size_t begin = text.find("reason=\"");
  if (begin == absl::string_view::npos) {
    return std::string(text);
  }
  absl::string_view reason = text.substr(begin + 8);
  absl::ConsumeSuffix(&reason, "\"");
  return std::string(reason);
}

}  // namespace

std::optional<ChildLogEvent> ParseChildLogLine(absl::string_view line) {
  ChildLogEvent event;
  if (absl::ConsumePrefix(&line, "trireme: ")) {
    event.kind = ChildLogEvent::Kind::kError;
    event.text = std::string(line);
    return event;
  }
  event.rank = NumberOf<int>(line, "rank");
  if (absl::StrContains(line, " start phase=")) {
    event.kind = ChildLogEvent::Kind::kPhase;
    event.phase = std::string(ValueOf(line, "phase"));
    event.host = std::string(ValueOf(line, "host"));
    event.process = NumberOf<int64_t>(line, "process");
  } else if (absl::StrContains(line, " loading percent=")) {
    event.kind = ChildLogEvent::Kind::kLoading;
    event.percent = NumberOf<int>(line, "percent");
    event.bytes = NumberOf<int64_t>(line, "bytes");
  } else if (absl::StrContains(line, " serving port=")) {
    event.kind = ChildLogEvent::Kind::kServing;
    event.port = NumberOf<int>(line, "port");
  } else if (absl::StrContains(line, " replica lost reason=") ||
             absl::StrContains(line, " rank leaves reason=")) {
    // Whoever says it first: a stopped rank 0 says nothing, the others name it.
    event.kind = ChildLogEvent::Kind::kLost;
    event.text = ReasonOf(line);
  } else if (absl::StrContains(line, " ERROR ")) {
    event.kind = ChildLogEvent::Kind::kError;
    event.text = ReasonOf(line.substr(line.find(" ERROR ") + 7));
  } else {
    return std::nullopt;
  }
  return event;
}

LogFollower::LogFollower(std::string path) : path_(std::move(path)) {
  struct stat status = {};
  offset_ = ::stat(path_.c_str(), &status) == 0 ? status.st_size : 0;
}

std::vector<std::string> LogFollower::TakeLines() {
  std::vector<std::string> lines;
  struct stat status = {};
  if (::stat(path_.c_str(), &status) != 0 || status.st_size <= offset_) {
    return lines;
  }
  const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return lines;
  }
  std::string text(std::min(kReadBytesMax, static_cast<size_t>(status.st_size - offset_)), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), offset_);
  ::close(file);
  if (got <= 0) {
    return lines;
  }
  offset_ += got;
  partial_.append(text, 0, static_cast<size_t>(got));
  size_t begin = 0;
  for (size_t end = partial_.find('\n'); end != std::string::npos;
       end = partial_.find('\n', begin)) {
    lines.push_back(partial_.substr(begin, end - begin));
    begin = end + 1;
  }
  partial_.erase(0, begin);
  return lines;
}

}  // namespace trireme::launcher
