// What this build is, for --version, logs and reports.
#ifndef TRIREME_LAUNCHER_VERSION_H_
#define TRIREME_LAUNCHER_VERSION_H_

#include <string>

namespace trireme::launcher {

// "0.1.0".
std::string VersionNumber();

// What tells this build from any other: the GNU build id in hexadecimal, or version and compiler
// where the linker made none.
std::string BuildId();

// "trireme 0.1.0", then compiler, build type, seams and the kernel tables that this machine runs, a
// line each.
std::string VersionText();

}  // namespace trireme::launcher

#endif  // TRIREME_LAUNCHER_VERSION_H_
