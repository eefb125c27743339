// Where the tiny checkpoints of model families lie: tests/data/families, or the families folder of
// the shared fixtures (TRIREME_FIXTURES, else ../shared/fixtures).
#ifndef TRIREME_TESTS_SUPPORT_FAMILY_FIXTURES_H_
#define TRIREME_TESTS_SUPPORT_FAMILY_FIXTURES_H_

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::testing {

inline std::vector<std::string> FamilyFolders(const std::string& family) {
  const char* const named = std::getenv("TRIREME_FIXTURES");
  const std::string shared = named != nullptr ? named : "../shared/fixtures";
  return {"tests/data/families/" + family, shared + "/families/" + family};
}

// Where the expected values lie. Empty, and one line, when the fixture is not there.
inline std::string FamilyFolder(const std::string& family) {
  for (const std::string& folder : FamilyFolders(family)) {
    if (std::filesystem::exists(folder + "/expected.json")) {
      return folder;
    }
  }
  std::printf("%s is not there (TRIREME_FIXTURES names another place); skipped\n", family.c_str());
  return "";
}

// What a family's checkpoint may be opened by: the GGUF file, the directory; the first place that
// has it.
inline std::vector<std::string> ModelsOf(const std::string& family) {
  std::vector<std::string> models;
  for (const char* const file : {"/model.gguf", "/config.json"}) {
    for (const std::string& folder : FamilyFolders(family)) {
      if (std::filesystem::exists(folder + file)) {
        models.push_back(std::string(file) == "/config.json" ? folder : folder + file);
        break;
      }
    }
  }
  return models;
}

}  // namespace trireme::testing

#endif  // TRIREME_TESTS_SUPPORT_FAMILY_FIXTURES_H_
