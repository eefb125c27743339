// Log lines of events (never of steps): "2026-11-30T12:00:00.123Z INFO text key=value ...", one
// write a line to stderr; or, as JSON, {"ts", "level", "event", and a field for each key}. No
// prompts and no secrets go in here. Threads may log at any time; lines never mix.
// Logging never waits: a reader of stderr that does not read costs lines.
#ifndef TRIREME_RUNTIME_BASE_LOG_H_
#define TRIREME_RUNTIME_BASE_LOG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace trireme {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError };

// Lines below `level` are dropped. The default is kInfo.
void SetLogLevel(LogLevel level);

// How lines are written. kText is the default.
enum class LogForm : uint8_t { kText, kJson };
void SetLogForm(LogForm form);

// Text put before each line's message, such as "rank=2 host=n1"; set once at start, before other
// threads log.
void SetLogContext(std::string context);

// Writes one line: words that say what happened, then key=value or key="some text" pairs; control
// characters in `text` are escaped, so input cannot forge a line.
void Log(LogLevel level, absl::string_view text);

}  // namespace trireme

#endif  // TRIREME_RUNTIME_BASE_LOG_H_
