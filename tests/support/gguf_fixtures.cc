#include "tests/support/gguf_fixtures.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/check.h"

namespace trireme {

std::vector<BadGguf> BadGgufs() {
  const nlohmann::json index =
      nlohmann::json::parse(ReadFile(absl::StrCat(kGgufFixtures, "/index.json")));
  std::vector<BadGguf> result;
  for (const nlohmann::json& entry : index.at("bad")) {
    result.push_back(BadGguf{.file = entry.at("file"),
                             .stage = entry.at("stage"),
                             .wrong = entry.at("wrong"),
                             .words = entry.at("words")});
  }
  return result;
}

std::string JudgeError(const absl::Status& status, const std::string& path,
                       const std::vector<std::vector<std::string>>& words) {
  if (status.ok()) {
    return "wanted an error, found none";
  }
  const std::string message(status.message());
  // A part of a split model may be the culprit, so the folder is asked for, and the file below.
  if (!absl::StrContains(message, path)) {
    return absl::StrCat("the message does not name ", path, ": ", message);
  }
  const std::string text =
      absl::AsciiStrToLower(absl::StrReplaceAll(message, {{path, "THE-FILE"}}));
  for (const std::vector<std::string>& group : words) {
    const bool found = std::any_of(group.begin(), group.end(), [&text](const std::string& word) {
      return absl::StrContains(text, absl::AsciiStrToLower(word));
    });
    if (!found) {
      return absl::StrCat("the message has none of [", absl::StrJoin(group, " | "), "]: ", message);
    }
  }
  return "";
}

std::string ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  CHECK(stream.good());
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

ExactBytes::ExactBytes(const std::string& bytes)
    : data_(new uint8_t[bytes.size()]), size_(bytes.size()) {
  std::copy(bytes.begin(), bytes.end(), data_.get());
}

uint32_t Crc32(absl::Span<const uint8_t> bytes) {
  uint32_t crc = 0xffffffff;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

}  // namespace trireme
