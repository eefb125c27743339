// Shorthand for tests of the template interpreter: render a template with variables given as JSON
// text.
#ifndef TRIREME_TESTS_RUNTIME_TEXT_JINJA_TEST_SUPPORT_H_
#define TRIREME_TESTS_RUNTIME_TEXT_JINJA_TEST_SUPPORT_H_

#include <string>

#include "absl/time/civil_time.h"

namespace trireme::text::jinja {

// Friday, 31 January 2025, 12:34:56: the clock of the fixtures.
inline absl::CivilSecond FixtureTime() { return absl::CivilSecond(2025, 1, 31, 12, 34, 56); }

// The text, or "ERROR: " and the message, so that a test is one line.
std::string Rendered(const std::string& template_text, const std::string& variables = "{}");

// The text with every untrusted stretch between "<<" and ">>".
std::string RenderedWithOrigins(const std::string& template_text,
                                const std::string& variables = "{}");

// What Rendered gives for "{{ expression }}".
inline std::string Printed(const std::string& expression, const std::string& variables = "{}") {
  return Rendered("{{ " + expression + " }}", variables);
}

}  // namespace trireme::text::jinja

#endif  // TRIREME_TESTS_RUNTIME_TEXT_JINJA_TEST_SUPPORT_H_
