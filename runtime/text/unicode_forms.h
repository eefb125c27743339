// Unicode normalization forms and lower case, as tokenizer files ask for them. They follow the
// library that published tokenizers were made with, whose tables for the forms are of Unicode 11
// and those for lower case of Unicode 17: characters that are newer than the former stay as they
// are.
#ifndef TRIREME_RUNTIME_TEXT_UNICODE_FORMS_H_
#define TRIREME_RUNTIME_TEXT_UNICODE_FORMS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "runtime/text/normal_form_table.h"

namespace trireme::text {

// `text` (valid UTF-8) in the form. Time and memory are linear; what is in the form already is
// copied.
std::string ToUnicodeForm(absl::string_view text, UnicodeForm form);

// Each character on its own: no rule looks at its neighbours, such as that of the final sigma.
std::string ToLowerCase(absl::string_view text);

// Without the characters of category M.
std::string WithoutMarks(absl::string_view text);

// Without white space (White_Space) at the ends asked for.
absl::string_view StripWhiteSpace(absl::string_view text, bool left, bool right);

}  // namespace trireme::text

#endif  // TRIREME_RUNTIME_TEXT_UNICODE_FORMS_H_
