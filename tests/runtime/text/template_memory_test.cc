// What a hostile chat template may take: 64 MiB at most, parsed and rendered, and a bounded number
// of steps. Bytes are those that malloc gave, counted by the program itself.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/text/chat_template.h"
#include "runtime/text/jinja_json.h"
#include "runtime/text/jinja_parser.h"
#include "tests/runtime/text/jinja_test_support.h"
#include "tests/support/allocation_count.h"

namespace trireme::text {
namespace {

using nlohmann::ordered_json;

constexpr int64_t kBytesMax = int64_t{64} << 20;

std::string Repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) {
    result += text;
  }
  return result;
}

// Parses and renders; what it held at most besides the input.
void ExpectBounded(const std::string& name, const std::string& template_text,
                   const ChatInput& input) {
  const int64_t before = testing::LiveBytesOfThisThread();
  testing::RestartPeakOfThisThread();
  std::string outcome;
  {
    const auto chat_template = ChatTemplate::Create(template_text);
    outcome = chat_template.ok()
                  ? std::to_string(testing::PeakBytesOfThisThread() - before) + " bytes to parse, "
                  : std::string(chat_template.status().message().substr(0, 120));
    if (chat_template.ok()) {
      const auto prompt = (*chat_template)->Render(input);
      outcome += prompt.ok() ? "rendered" : std::string(prompt.status().message().substr(0, 120));
    }
  }
  const int64_t peak = testing::PeakBytesOfThisThread() - before;
  std::printf("%-44s %6.1f MiB: %s\n", name.c_str(), static_cast<double>(peak) / (1 << 20),
              outcome.c_str());
  EXPECT_LE(peak, kBytesMax) << name;
}

ChatInput SmallInput() {
  ChatInput input;
  input.now = jinja::FixtureTime();
  input.variables["text"] = "user";
  return input;
}

// Each makes one kind of thing as often as it may.
const std::vector<std::pair<std::string, std::string>>& Greedy() {
  static const auto* const greedy = new std::vector<std::pair<std::string, std::string>>{
      {"macros in a loop", "{% for i in range(99999) %}{% macro f() %}{% endmacro %}{% endfor %}"},
      {"variables in kept scopes",
       "{% for i in range(99999) %}{% macro f() %}{% endmacro %}{% set a = 1 %}{% set b = 1 %}"
       "{% set c = 1 %}{% endfor %}"},
      {"ranges in ranges",
       "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}"
       "{% endfor %}{% endfor %}{% endfor %}"},
      {"loops in a loop", "{% for i in range(99999) %}{% for j in [1] %}{% endfor %}{% endfor %}"},
      {"recursive loops",
       "{% for i in range(99999) %}{% for j in [] recursive %}{% endfor %}"
       "{% for j in [1] recursive %}{% endfor %}{% endfor %}"},
      {"filtered loops",
       "{% for i in range(9) %}{% for j in range(99999) if j %}{% endfor %}{% endfor %}"},
      {"mappings in mappings",
       "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
       "{% set ns.l = {'a': ns.l} %}{% endfor %}"},
      {"mappings by dict()",
       "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
       "{% set ns.l = dict(a=ns.l, b=1, c=2) %}{% endfor %}"},
      {"lists in lists",
       "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
       "{% set ns.l = [ns.l] %}{% endfor %}"},
      {"empty lists", "{% for i in range(99999) %}{% set l = [] %}{% endfor %}"},
      {"ranges", "{% for i in range(99999) %}{% set l = range(2) %}{% endfor %}"},
      {"methods", "{% for i in range(99999) %}{% set l = 'a'.upper %}{% endfor %}"},
      {"namespaces", "{% for i in range(99999) %}{% set l = namespace(a=1) %}{% endfor %}"},
      {"cyclers", "{% for i in range(99999) %}{% set l = cycler(1, 2) %}{% endfor %}"},
      {"joiners", "{% for i in range(99999) %}{% set l = joiner('a') %}{% endfor %}"},
      {"undefined values",
       "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
       "{% set ns.l = [ns.l, missing, text.missing] %}{% endfor %}"},
      {"output", "{% set s = 'x' * 4000000 %}{% for i in range(99) %}{{ s }}{% endfor %}"},
      {"output of single characters",
       "{% for i in range(99999) %}{% for j in range(99) %}x{% endfor %}{% endfor %}"},
      {"output just below its limit", "{{ 'x' * 8388000 }}"},
      {"set blocks",
       "{% set s = 'x' * 4000000 %}{% for i in range(99) %}"
       "{% set b %}{{ s }}{{ s }}{% endset %}{% endfor %}"},
      {"nested set blocks", "{% set s = 'x' * 3000000 %}" + Repeated("{% set b %}{{ s }}", 8) +
                                Repeated("{% endset %}", 8)},
      {"filter blocks",
       "{% set s = 'x' * 4000000 %}{% filter upper %}{{ s }}{{ s }}{% endfilter %}"},
      {"origins that alternate",
       "{% for i in range(99999) %}t{{ text[0] }}t{{ text[0] }}{% endfor %}"},
      {"split", "{{ ('a,' * 1000000).split(',') | length }}"},
      {"split as far as it goes", "{{ ('a,' * 130000).split(',') | length }}"},
      {"lines", "{{ ('a\n' * 130000).splitlines() | length }}"},
      {"characters", "{{ ('x' * 300000) | list | length }}"},
      {"joined with itself", "{{ ('ab' * 2000) | join('ab' * 2000) | length }}"},
      {"words joined", "{{ ('ab' * 100000) | join(', ') | length }}"},
      {"numbers joined", "{% for i in range(9) %}{{ range(99999) | join(', ') }}{% endfor %}"},
      {"sorted", "{{ range(99999) | list | sort | length }}{{ range(99999) | list | sort }}"},
      {"unique", "{{ range(99999) | map('string') | unique | list | length }}"},
      {"grouped", "{{ range(9999) | map('string') | groupby('x') | list | length }}"},
      {"in batches", "{{ range(99999) | batch(1) | list | length }}"},
      {"in slices", "{{ range(99999) | slice(50000) | list | length }}"},
      {"sums of lists",
       "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}"
       "{% set ns.l = ns.l + ns.l %}{% endfor %}"},
      {"products of lists", "{{ ([1] * 1000000) | length }}{{ ([1] * 400000) | length }}"},
      {"replaced", "{{ ('x' * 4000000) | replace('x', 'yy') | length }}"},
      {"upper", "{{ ('x' * 8000000) | upper | upper | upper | length }}"},
      {"escaped", "{{ ('<' * 2000000) | e | length }}"},
      {"indented", "{{ ('x\n' * 500000) | indent(4) | length }}"},
      {"as JSON", "{{ (['x' * 1000] * 9000) | tojson | length }}"},
      {"as indented JSON", "{{ ([[[[1]]]] * 9000) | tojson(indent=20) | length }}"},
      {"printed", "{{ (['x' * 1000] * 9000) | string | length }}"},
      {"formatted",
       "{{ '%s%s%s' | format('x' * 4000000, 'x' * 4000000, 'y' * 4000000) | length }}"},
      {"summed strings", "{{ ('x' * 4000000) ~ ('y' * 4000000) ~ ('z' * 4000000) }}"},
      {"centered", "{{ 'x' | center(9000000) | length }}"},
      {"sliced", "{{ ('x' * 4000000)[::-1] | length }}"},
      {"arguments", "{% macro f() %}{{ varargs | length }}{% endmacro %}{{ f(*range(99999)) }}"},
      {"titles", "{{ ('x ' * 2000000) | title | length }}"},
      {"strings kept",
       "{% set ns = namespace(l=[]) %}{% for i in range(99999) %}"
       "{% set ns.l = [ns.l, 'a' ~ i] %}{% endfor %}"},
  };
  return *greedy;
}

TEST(TemplateMemory, OfLongTemplates) {
  constexpr int kMebibyte = 1 << 20;
  std::string names;
  for (int i = 0; names.size() < kMebibyte - 16; ++i) {
    names += "{{a" + std::to_string(i) + "}}";
  }
  const std::vector<std::pair<std::string, std::string>> long_ones = {
      {"prints", Repeated("{{a}}", kMebibyte / 5)},
      {"statements", Repeated("{%set a=1%}", kMebibyte / 11)},
      {"conditions", Repeated("{%if a%}{%endif%}", kMebibyte / 17)},
      {"names", names},
      {"one list", "{{[" + Repeated("1,", kMebibyte / 2 - 8) + "]}}"},
      {"one mapping", "{{{" + Repeated("1:1,", kMebibyte / 4 - 8) + "}}}"},
      {"one sum", "{{" + Repeated("1~", kMebibyte / 2 - 8) + "1}}"},
      {"calls", Repeated("{{a()}}", kMebibyte / 7)},
      {"comments", Repeated("{##}", kMebibyte / 4)},
      {"texts", Repeated("{##}x", kMebibyte / 5)},
      {"one text", std::string(kMebibyte, 'x')},
  };
  for (const auto& [name, text] : long_ones) {
    ExpectBounded("1 MiB of " + name, text, SmallInput());
  }
  // As many nodes as are allowed.
  ExpectBounded("prints that are parsed", Repeated("{{a}}", jinja::kTreeNodesMax / 3),
                SmallInput());
  ExpectBounded("statements that are parsed", Repeated("{%set a=1%}", jinja::kTreeNodesMax / 3),
                SmallInput());
  ExpectBounded("conditions that are parsed",
                Repeated("{%if a%}{%endif%}", jinja::kTreeNodesMax / 3), SmallInput());
}

// The longest conversation that fits: what an honest template needs for it.
// With a tree of nearly as many nodes as it may have, which stays while the template renders.
TEST(TemplateMemory, C6_OfWhatATemplateMakes) {
  const std::string tree = Repeated("{%set a=1%}", jinja::kTreeNodesMax / 3);
  for (const auto& [name, text] : Greedy()) {
    ExpectBounded(name, tree + text, SmallInput());
  }
}

TEST(TemplateMemory, OfLongConversations) {
  ChatInput input = SmallInput();
  input.messages.push_back({{"role", "user"}, {"content", std::string(7 << 20, 'x')}});
  ExpectBounded("a message of 7 MiB",
                "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{% endfor %}", input);
  input.messages = ordered_json::array();
  for (int i = 0; i < 100'000; ++i) {
    input.messages.push_back({{"role", "user"}, {"content", "x"}});
  }
  ExpectBounded("100000 messages",
                "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}", input);
}

std::string FollowRecipe(const ordered_json& recipe) {
  std::string text;
  for (const ordered_json& part : recipe) {
    text += part.is_string() ? part.get<std::string>()
                             : Repeated(part.at(0).get<std::string>(), part.at(1).get<int>());
  }
  return text;
}

TEST(TemplateMemory, OfEveryHostileFixture) {
  const char* fixtures = std::getenv("TRIREME_FIXTURES");
  const std::string path = std::string(fixtures != nullptr ? fixtures : "../shared/fixtures") +
                           "/templates/hostile.json";
  std::ifstream file(path, std::ios::binary);
  if (!file.good()) {
    GTEST_SKIP() << path << " is not there";
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto document = jinja::ParseJson(bytes);
  ASSERT_TRUE(document.ok()) << document.status();
  for (const ordered_json& row : document->at("cases")) {
    if (row.contains("vars_recipe")) {
      continue;  // its input is what is large
    }
    ChatInput input = SmallInput();
    if (row.contains("vars")) {
      input.variables = row.at("vars");
    }
    ExpectBounded(row.at("name").get<std::string>(),
                  row.contains("template") ? row.at("template").get<std::string>()
                                           : FollowRecipe(row.at("template_recipe")),
                  input);
  }
}

}  // namespace
}  // namespace trireme::text
