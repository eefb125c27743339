// CHECK: an invariant that holds unless our own code is wrong. It prints both values and ends the
// process at once. Never for input: what a user, file or peer can cause is an absl::Status
// (status_macros.h).
#ifndef TRIREME_RUNTIME_BASE_CHECK_H_
#define TRIREME_RUNTIME_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

namespace trireme::internal {

[[noreturn]] inline void CheckFailed(const char* file, int line, const std::string& text) {
  std::fprintf(stderr, "%s:%d: check failed: %s\n", file, line, text.c_str());
  std::fflush(stderr);
  std::abort();
}

template <typename A, typename B>
std::string CheckText(const char* expression, const A& a, const B& b) {
  std::ostringstream text;
  text << expression << " (" << a << " against " << b << ")";
  return text.str();
}

}  // namespace trireme::internal

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      ::trireme::internal::CheckFailed(__FILE__, __LINE__, #condition); \
    }                                                                   \
  } while (false)

#define CHECK_OP(a, operation, b)                                                      \
  do {                                                                                 \
    const auto& check_a = (a);                                                         \
    const auto& check_b = (b);                                                         \
    if (!(check_a operation check_b)) {                                                \
      ::trireme::internal::CheckFailed(                                                \
          __FILE__, __LINE__,                                                          \
          ::trireme::internal::CheckText(#a " " #operation " " #b, check_a, check_b)); \
    }                                                                                  \
  } while (false)

#define CHECK_EQ(a, b) CHECK_OP(a, ==, b)
#define CHECK_NE(a, b) CHECK_OP(a, !=, b)
#define CHECK_LT(a, b) CHECK_OP(a, <, b)
#define CHECK_LE(a, b) CHECK_OP(a, <=, b)
#define CHECK_GT(a, b) CHECK_OP(a, >, b)
#define CHECK_GE(a, b) CHECK_OP(a, >=, b)

#endif  // TRIREME_RUNTIME_BASE_CHECK_H_
