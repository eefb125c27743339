// Published templates, snippets of their language and hostile templates, with what the reference
// implementation made of them. The files are third parties' and lie in fixtures/templates outside
// the repository; without them these tests skip.
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/jinja_json.h"
#include "tests/runtime/text/jinja_test_support.h"

namespace trireme::text {
namespace {

using nlohmann::ordered_json;

std::optional<std::filesystem::path> TemplatesFolder() {
  const char* fixtures = std::getenv("TRIREME_FIXTURES");
  const std::filesystem::path root = fixtures != nullptr ? fixtures : "../shared/fixtures";
  if (std::filesystem::exists(root / "templates" / "language.json")) {
    return root / "templates";
  }
  return std::nullopt;
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

ordered_json ReadDocument(const std::filesystem::path& path) {
  absl::StatusOr<ordered_json> document = jinja::ParseJson(ReadFile(path));
  EXPECT_TRUE(document.ok()) << path << ": " << document.status();
  return document.ok() ? *std::move(document) : ordered_json();
}

ordered_json Member(const ordered_json& object, const char* name) {
  return object.contains(name) ? object.at(name) : ordered_json();
}

std::optional<std::string> TextMember(const ordered_json& object, const char* name) {
  const ordered_json member = Member(object, name);
  return member.is_string() ? std::optional<std::string>(member.get<std::string>()) : std::nullopt;
}

ChatInput InputOf(const ordered_json& file, const ordered_json& test_case) {
  ChatInput input;
  input.messages = test_case.at("messages");
  input.tools = Member(test_case, "tools");
  input.add_generation_prompt = test_case.value("add_generation_prompt", false);
  input.continue_final_message = test_case.value("continue_final_message", false);
  input.bos_token = TextMember(file, "bos_token");
  input.eos_token = TextMember(file, "eos_token");
  if (test_case.contains("vars")) {
    input.variables = test_case.at("vars");
  }
  input.now = jinja::FixtureTime();
  return input;
}

// An error must say where it happened.
void ExpectPlace(const absl::Status& status) {
  EXPECT_NE(status.message().find("line "), absl::string_view::npos) << status;
}

void ExpectOutcome(const absl::StatusOr<RenderedPrompt>& prompt, const ordered_json& test_case,
                   const char* text_member) {
  if (!test_case.contains("error")) {
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_EQ(prompt->text, test_case.at(text_member).get<std::string>());
    return;
  }
  ASSERT_FALSE(prompt.ok()) << "expected " << test_case.at("error") << ", got: " << prompt->text;
  ExpectPlace(prompt.status());
  if (test_case.at("error") == "raised by the template") {
    EXPECT_EQ(RefusalMessage(prompt.status()), test_case.at("message").get<std::string>());
  } else {
    EXPECT_EQ(RefusalMessage(prompt.status()), std::nullopt);
  }
}

TEST(ChatTemplateFixturesTest, PublishedTemplatesRenderAsTheReferenceDoes) {
  const std::optional<std::filesystem::path> folder = TemplatesFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "fixtures/templates is not there";
  }
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (!entry.is_directory()) {
      continue;
    }
    const ordered_json file = ReadDocument(entry.path() / "cases.json");
    const auto chat_template = ChatTemplate::Create(ReadFile(entry.path() / "template.jinja"));
    ASSERT_TRUE(chat_template.ok()) << entry.path() << ": " << chat_template.status();
    for (const ordered_json& test_case : file.at("cases")) {
      SCOPED_TRACE(entry.path().filename().string() + ": " + test_case.at("name").dump());
      ExpectOutcome((*chat_template)->Render(InputOf(file, test_case)), test_case, "expected");
      ++cases;
    }
  }
  EXPECT_GE(cases, 1016);
}

TEST(ChatTemplateFixturesTest, SegmentsCoverThePromptAndSetMessagesApart) {
  const std::optional<std::filesystem::path> folder = TemplatesFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "fixtures/templates is not there";
  }
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (!entry.is_directory()) {
      continue;
    }
    const ordered_json file = ReadDocument(entry.path() / "cases.json");
    const auto chat_template = ChatTemplate::Create(ReadFile(entry.path() / "template.jinja"));
    ASSERT_TRUE(chat_template.ok());
    for (const ordered_json& test_case : file.at("cases")) {
      if (test_case.at("name") != "special strings in the content") {
        continue;
      }
      SCOPED_TRACE(entry.path().filename().string());
      const auto prompt = (*chat_template)->Render(InputOf(file, test_case));
      if (!prompt.ok()) {
        continue;
      }
      size_t end = 0;
      std::string trusted;
      for (const PromptSegment& segment : prompt->segments) {
        EXPECT_EQ(segment.begin, end);
        EXPECT_LT(segment.begin, segment.end);
        end = segment.end;
        if (segment.is_trusted) {
          trusted += prompt->text.substr(segment.begin, segment.end - segment.begin) + "|";
        }
      }
      EXPECT_EQ(end, prompt->text.size());
      // Each content of this case has these words; none of them is in any template.
      EXPECT_EQ(trusted.find("tab \\n"), std::string::npos) << trusted;
      EXPECT_NE(prompt->text.find("tab \\n"), std::string::npos);
    }
  }
}

TEST(ChatTemplateFixturesTest, SnippetsOfTheLanguageMeanWhatTheReferenceSays) {
  const std::optional<std::filesystem::path> folder = TemplatesFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "fixtures/templates is not there";
  }
  const ordered_json file = ReadDocument(*folder / "language.json");
  for (const ordered_json& test_case : file.at("cases")) {
    const std::string text = test_case.at("template").get<std::string>();
    SCOPED_TRACE(text);
    ChatInput input;
    input.now = jinja::FixtureTime();
    if (test_case.contains("vars")) {
      input.variables = test_case.at("vars");
    }
    const auto chat_template = ChatTemplate::Create(text);
    if (!chat_template.ok()) {
      EXPECT_TRUE(test_case.contains("error")) << chat_template.status();
      ExpectPlace(chat_template.status());
      continue;
    }
    ExpectOutcome((*chat_template)->Render(input), test_case, "out");
  }
  EXPECT_GE(file.at("cases").size(), 263U);
}

// Parts put together: a string, or a pair of a string and how often it comes.
std::string FollowRecipe(const ordered_json& recipe) {
  std::string text;
  for (const ordered_json& part : recipe) {
    if (part.is_string()) {
      text += part.get<std::string>();
      continue;
    }
    for (int i = 0; i < part.at(1).get<int>(); ++i) {
      text += part.at(0).get<std::string>();
    }
  }
  return text;
}

TEST(ChatTemplateFixturesTest, HostileTemplatesEndQuicklyWithAnErrorThatNamesTheLimit) {
  const std::optional<std::filesystem::path> folder = TemplatesFolder();
  if (!folder.has_value()) {
    GTEST_SKIP() << "fixtures/templates is not there";
  }
  const ordered_json file = ReadDocument(*folder / "hostile.json");
  for (const ordered_json& test_case : file.at("cases")) {
    const std::string name = test_case.at("name").get<std::string>();
    SCOPED_TRACE(name);
    const std::string text = test_case.contains("template")
                                 ? test_case.at("template").get<std::string>()
                                 : FollowRecipe(test_case.at("template_recipe"));
    ChatInput input;
    input.now = jinja::FixtureTime();
    if (test_case.contains("vars")) {
      input.variables = test_case.at("vars");
    }
    if (test_case.contains("vars_recipe")) {
      ordered_json deep = ordered_json::array();
      for (int i = 0; i < 100000; ++i) {
        ordered_json outer = ordered_json::array();
        outer.push_back(std::move(deep));
        deep = std::move(outer);
      }
      input.variables["x"] = std::move(deep);
    }
    const std::clock_t start = std::clock();
    const auto chat_template = ChatTemplate::Create(text);
    const absl::StatusOr<RenderedPrompt> prompt =
        chat_template.ok() ? (*chat_template)->Render(input) : chat_template.status();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::cout << name << ": " << seconds << " s, "
              << (prompt.ok() ? "output " + prompt->text.substr(0, 40)
                              : std::string(prompt.status().message()).substr(0, 160))
              << "\n";
    const ordered_json library = test_case.at("library");
    if (prompt.ok()) {
      // Only an output that is right may take the place of the error.
      if (name == "many variables") {
        EXPECT_EQ(prompt->text, "1");
      } else {
        ASSERT_TRUE(library.contains("out"));
        EXPECT_EQ(prompt->text, library.at("out").get<std::string>());
      }
    }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    EXPECT_LT(seconds, 1.0);
#endif
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 256 * 1024) << "KiB at most";
#endif
}

}  // namespace
}  // namespace trireme::text
