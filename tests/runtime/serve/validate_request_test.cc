#include "runtime/serve/validate_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "engine.pb.h"
#include "inference.pb.h"
#include "runtime/base/error_reason.h"

namespace trireme::serve {
namespace {

using testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

ModelInfo TestModel() {
  ModelInfo model;
  model.id = "m";
  model.context_length = 100;
  model.vocabulary_size = 1000;
  model.limits.prompt_bytes_max = 500;
  return model;
}

v1::GenerateRequest Base() {
  v1::GenerateRequest request;
  request.mutable_tokens()->add_token_ids(5);
  return request;
}

struct Row {
  const char* name;
  std::function<void(v1::GenerateRequest*)> change;
  const char* reason;  // "" when it is valid
  const char* field;
};

void CheckRow(const Row& row) {
  v1::GenerateRequest request = Base();
  row.change(&request);
  const absl::StatusOr<ValidatedGenerate> validated = ValidateGenerate(request, TestModel());
  const std::string context = std::string(row.name) + ": " + validated.status().ToString();
  if (row.reason[0] == '\0') {
    EXPECT_TRUE(validated.ok()) << context;
    return;
  }
  EXPECT_EQ(ReasonOf(validated.status()), row.reason) << context;
  const std::vector<FieldViolation> fields = FieldViolationsOf(validated.status());
  ASSERT_EQ(fields.size(), 1u) << context;
  EXPECT_EQ(fields[0].field, row.field) << context;
}

// The rows B1, B4 to B8, B10, B12 and B13 of the bad inputs that need no tokenizer.
TEST(ValidateRequest, HoldsEveryFieldAgainstItsBounds) {
  const Row rows[] = {
      {"empty text", [](auto* r) { r->set_text(""); }, "BAD_PARAMETER", "text"},
      {"no input", [](auto* r) { r->clear_tokens(); }, "BAD_PARAMETER", "input"},
      {"longest text", [](auto* r) { r->set_text(std::string(500, 'a')); }, "", ""},
      {"text too long", [](auto* r) { r->set_text(std::string(501, 'a')); }, "PROMPT_TOO_LONG",
       "text"},
      {"token -1", [](auto* r) { r->mutable_tokens()->add_token_ids(-1); }, "BAD_TOKEN_ID",
       "tokens.token_ids[1]"},
      {"last token", [](auto* r) { r->mutable_tokens()->add_token_ids(999); }, "", ""},
      {"token = vocabulary", [](auto* r) { r->mutable_tokens()->add_token_ids(1000); },
       "BAD_TOKEN_ID", "tokens.token_ids[1]"},
      {"token 2^31 - 1", [](auto* r) { r->mutable_tokens()->add_token_ids(2147483647); },
       "BAD_TOKEN_ID", "tokens.token_ids[1]"},
      {"max_tokens 0", [](auto* r) { r->mutable_stopping()->set_max_tokens(0); }, "BAD_PARAMETER",
       "stopping.max_tokens"},
      {"max_tokens -1", [](auto* r) { r->mutable_stopping()->set_max_tokens(-1); }, "BAD_PARAMETER",
       "stopping.max_tokens"},
      {"max_tokens 2^31 - 1", [](auto* r) { r->mutable_stopping()->set_max_tokens(2147483647); },
       "", ""},
      {"max_tokens 2^63 - 1",
       [](auto* r) { r->mutable_stopping()->set_max_tokens(std::numeric_limits<int64_t>::max()); },
       "", ""},
      {"n 0", [](auto* r) { r->mutable_sampling()->set_n(0); }, "BAD_PARAMETER", "sampling.n"},
      {"n 1", [](auto* r) { r->mutable_sampling()->set_n(1); }, "", ""},
      {"n at the limit", [](auto* r) { r->mutable_sampling()->set_n(8); }, "", ""},
      {"n above", [](auto* r) { r->mutable_sampling()->set_n(9); }, "BAD_PARAMETER", "sampling.n"},
      {"n 2^31 - 1", [](auto* r) { r->mutable_sampling()->set_n(2147483647); }, "BAD_PARAMETER",
       "sampling.n"},
      {"temperature NaN", [](auto* r) { r->mutable_sampling()->set_temperature(kNan); },
       "BAD_PARAMETER", "sampling.temperature"},
      {"temperature infinite", [](auto* r) { r->mutable_sampling()->set_temperature(kInfinity); },
       "BAD_PARAMETER", "sampling.temperature"},
      {"temperature -0", [](auto* r) { r->mutable_sampling()->set_temperature(-0.0f); }, "", ""},
      {"temperature 1e-30", [](auto* r) { r->mutable_sampling()->set_temperature(1e-30f); }, "",
       ""},
      {"temperature 2", [](auto* r) { r->mutable_sampling()->set_temperature(2); }, "", ""},
      {"temperature 2.0001", [](auto* r) { r->mutable_sampling()->set_temperature(2.0001f); },
       "BAD_PARAMETER", "sampling.temperature"},
      {"temperature -1", [](auto* r) { r->mutable_sampling()->set_temperature(-1); },
       "BAD_PARAMETER", "sampling.temperature"},
      {"top_p 0", [](auto* r) { r->mutable_sampling()->set_top_p(0); }, "BAD_PARAMETER",
       "sampling.top_p"},
      {"top_p 1e-9", [](auto* r) { r->mutable_sampling()->set_top_p(1e-9f); }, "", ""},
      {"top_p 1", [](auto* r) { r->mutable_sampling()->set_top_p(1); }, "", ""},
      {"top_p NaN", [](auto* r) { r->mutable_sampling()->set_top_p(kNan); }, "BAD_PARAMETER",
       "sampling.top_p"},
      {"top_k 0", [](auto* r) { r->mutable_sampling()->set_top_k(0); }, "BAD_PARAMETER",
       "sampling.top_k"},
      {"top_k -1", [](auto* r) { r->mutable_sampling()->set_top_k(-1); }, "BAD_PARAMETER",
       "sampling.top_k"},
      {"top_k 2^31", [](auto* r) { r->mutable_sampling()->set_top_k(int64_t{1} << 31); }, "", ""},
      {"min_p 1", [](auto* r) { r->mutable_sampling()->set_min_p(1); }, "", ""},
      {"min_p 1.1", [](auto* r) { r->mutable_sampling()->set_min_p(1.1f); }, "BAD_PARAMETER",
       "sampling.min_p"},
      {"frequency_penalty 2.0001",
       [](auto* r) { r->mutable_sampling()->set_frequency_penalty(2.0001f); }, "BAD_PARAMETER",
       "sampling.frequency_penalty"},
      {"presence_penalty -2.0001",
       [](auto* r) { r->mutable_sampling()->set_presence_penalty(-2.0001f); }, "BAD_PARAMETER",
       "sampling.presence_penalty"},
      {"repetition_penalty 0", [](auto* r) { r->mutable_sampling()->set_repetition_penalty(0); },
       "BAD_PARAMETER", "sampling.repetition_penalty"},
      {"seed 0", [](auto* r) { r->mutable_sampling()->set_seed(0); }, "", ""},
      {"seed 2^64 - 1", [](auto* r) { r->mutable_sampling()->set_seed(UINT64_MAX); }, "", ""},
      {"empty stop string", [](auto* r) { r->mutable_stopping()->add_stop_strings(""); },
       "BAD_PARAMETER", "stopping.stop_strings[0]"},
      {"longest stop string",
       [](auto* r) { r->mutable_stopping()->add_stop_strings(std::string(256, 's')); }, "", ""},
      {"stop string of 1 MiB",
       [](auto* r) { r->mutable_stopping()->add_stop_strings(std::string(1 << 20, 's')); },
       "BAD_PARAMETER", "stopping.stop_strings[0]"},
      {"17 stop strings",
       [](auto* r) {
         for (int index = 0; index < 17; ++index) r->mutable_stopping()->add_stop_strings("s");
       },
       "BAD_PARAMETER", "stopping.stop_strings"},
      {"stop token outside", [](auto* r) { r->mutable_stopping()->add_stop_token_ids(1000); },
       "BAD_TOKEN_ID", "stopping.stop_token_ids[0]"},
      {"id of 64", [](auto* r) { r->set_request_id(std::string(64, 'i')); }, "", ""},
      {"id of 65", [](auto* r) { r->set_request_id(std::string(65, 'i')); }, "BAD_PARAMETER",
       "request_id"},
      {"id with a newline", [](auto* r) { r->set_request_id("a\nb"); }, "BAD_PARAMETER",
       "request_id"},
      {"id with NUL", [](auto* r) { r->set_request_id(std::string("a\0b", 3)); }, "BAD_PARAMETER",
       "request_id"},
      {"logprobs 0", [](auto* r) { r->mutable_output()->set_logprobs(0); }, "", ""},
      {"logprobs 21", [](auto* r) { r->mutable_output()->set_logprobs(21); }, "BAD_PARAMETER",
       "output.logprobs"},
      {"unknown priority",
       [](auto* r) { r->mutable_delivery()->set_priority(static_cast<v1::Priority>(77)); },
       "BAD_PARAMETER", "delivery.priority"},
      {"unknown scope",
       [](auto* r) { r->mutable_cache()->set_scope(static_cast<v1::CacheScope>(-1)); },
       "BAD_PARAMETER", "cache.scope"},
      {"9 trace tags",
       [](auto* r) {
         for (int index = 0; index < 9; ++index) {
           (*r->mutable_trace_tags())[std::to_string(index)] = "x";
         }
       },
       "BAD_PARAMETER", "trace_tags"},
      {"no messages", [](auto* r) { r->mutable_chat(); }, "BAD_PARAMETER", "chat.messages"},
      {"empty role", [](auto* r) { r->mutable_chat()->add_messages(); }, "BAD_PARAMETER",
       "chat.messages[0].role"},
  };
  for (const Row& row : rows) {
    CheckRow(row);
  }
}

// B15: set and known, but not supported: refused by name, even with a neutral value.
TEST(ValidateRequest, RefusesEveryUnsupportedFieldByName) {
  const char* const reason = "FIELD_NOT_SUPPORTED";
  const Row rows[] = {
      {"", [](auto* r) { r->mutable_sampling()->set_frequency_penalty(0); }, reason,
       "sampling.frequency_penalty"},
      {"", [](auto* r) { r->mutable_sampling()->set_presence_penalty(1); }, reason,
       "sampling.presence_penalty"},
      {"", [](auto* r) { r->mutable_sampling()->set_repetition_penalty(1); }, reason,
       "sampling.repetition_penalty"},
      {"", [](auto* r) { (*r->mutable_sampling()->mutable_logit_bias())[1] = 2; }, reason,
       "sampling.logit_bias"},
      {"", [](auto* r) { r->mutable_stopping()->set_min_tokens(0); }, reason,
       "stopping.min_tokens"},
      {"", [](auto* r) { r->mutable_stopping()->set_include_stop(false); }, reason,
       "stopping.include_stop"},
      {"", [](auto* r) { r->mutable_constraint()->set_json_object(true); }, reason,
       "constraint.json_object"},
      {"", [](auto* r) { r->mutable_constraint()->mutable_json_schema(); }, reason,
       "constraint.json_schema"},
      {"", [](auto* r) { r->mutable_constraint()->set_regex("a+"); }, reason, "constraint.regex"},
      {"", [](auto* r) { r->mutable_constraint()->mutable_grammar(); }, reason,
       "constraint.grammar"},
      {"", [](auto* r) { r->mutable_constraint()->mutable_choice(); }, reason, "constraint.choice"},
      {"", [](auto* r) { r->mutable_constraint()->set_structural_tag(""); }, reason,
       "constraint.structural_tag"},
      {"", [](auto* r) { r->mutable_constraint()->set_start_after("x"); }, reason,
       "constraint.start_after"},
      {"", [](auto* r) { r->mutable_output()->set_logprobs(1); }, reason, "output.logprobs"},
      {"", [](auto* r) { r->mutable_output()->set_prompt_logprobs(0); }, reason,
       "output.prompt_logprobs"},
      {"", [](auto* r) { r->mutable_output()->set_echo(false); }, reason, "output.echo"},
      {"", [](auto* r) { r->mutable_output()->set_skip_special_tokens(true); }, reason,
       "output.skip_special_tokens"},
      {"", [](auto* r) { r->mutable_output()->set_spaces_between_special_tokens(true); }, reason,
       "output.spaces_between_special_tokens"},
      {"", [](auto* r) { r->mutable_delivery()->set_priority(v1::PRIORITY_BATCH); }, reason,
       "delivery.priority"},
      {"", [](auto* r) { r->mutable_delivery()->mutable_ttft_budget(); }, reason,
       "delivery.ttft_budget"},
      {"", [](auto* r) { r->mutable_delivery()->mutable_itl_budget(); }, reason,
       "delivery.itl_budget"},
      {"", [](auto* r) { r->mutable_delivery()->mutable_chunking(); }, reason, "delivery.chunking"},
      {"",
       [](auto* r) { r->mutable_delivery()->set_disruption_policy(v1::DISRUPTION_POLICY_RESUME); },
       reason, "delivery.disruption_policy"},
      {"", [](auto* r) { r->mutable_cache()->set_scope(v1::CACHE_SCOPE_SHARED); }, reason,
       "cache.scope"},
      {"", [](auto* r) { r->mutable_cache()->set_salt("x"); }, reason, "cache.salt"},
      {"", [](auto* r) { r->mutable_cache()->set_session("x"); }, reason, "cache.session"},
  };
  for (const Row& row : rows) {
    CheckRow(row);
  }
}

TEST(ValidateRequest, TakesWhatItAlwaysDoes) {
  v1::GenerateRequest request = Base();
  request.mutable_delivery()->set_determinism(v1::DETERMINISM_BATCH_INVARIANT);
  request.mutable_delivery()->set_disruption_policy(v1::DISRUPTION_POLICY_FAIL);
  request.mutable_cache()->set_scope(v1::CACHE_SCOPE_NONE);
  EXPECT_TRUE(ValidateGenerate(request, TestModel()).ok());
}

TEST(ValidateRequest, ABalancerTakesPrioritiesAndDisruptionPolicies) {
  v1::GenerateRequest request = Base();
  request.mutable_delivery()->set_priority(v1::PRIORITY_INTERACTIVE);
  request.mutable_delivery()->set_disruption_policy(v1::DISRUPTION_POLICY_EXACT_OR_FAIL);
  ModelInfo balanced = TestModel();
  balanced.is_balanced = true;
  const absl::StatusOr<ValidatedGenerate> validated = ValidateGenerate(request, balanced);
  ASSERT_TRUE(validated.ok()) << validated.status();
  const schedule::Delivery& delivery = validated->request.delivery;
  EXPECT_EQ(delivery.priority, schedule::Priority::kInteractive);
  EXPECT_EQ(delivery.disruption_policy, schedule::DisruptionPolicy::kExactOrFail);
  request.mutable_delivery()->set_priority(static_cast<v1::Priority>(77));
  EXPECT_FALSE(ValidateGenerate(request, balanced).ok());
}

TEST(ValidateRequest, TellsAllFaultsAtOnce) {
  v1::GenerateRequest request;
  request.mutable_sampling()->set_temperature(3);
  request.mutable_sampling()->set_top_p(0);
  request.mutable_stopping()->set_max_tokens(0);
  request.mutable_output()->set_echo(true);
  const absl::Status status = ValidateGenerate(request, TestModel()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : FieldViolationsOf(status)) {
    fields.push_back(violation.field);
  }
  EXPECT_THAT(fields, testing::UnorderedElementsAre("input", "sampling.temperature",
                                                    "sampling.top_p", "stopping.max_tokens"));
}

// G-5: unset and 0 differ.
TEST(ValidateRequest, UnsetSamplingIsTheModelsDefaultAndZeroIsGreedy) {
  ModelInfo model = TestModel();
  model.default_sampling = {.temperature = 0.75f, .top_k = 40, .top_p = 0.5f, .min_p = 0.25f};
  const ValidatedGenerate unset = ValidateGenerate(Base(), model).value();
  EXPECT_EQ(unset.request.sampling.temperature, 0.75f);
  EXPECT_EQ(unset.request.sampling.top_k, 40);
  EXPECT_EQ(unset.request.sampling.top_p, 0.5f);
  EXPECT_EQ(unset.request.sampling.min_p, 0.25f);
  EXPECT_FALSE(unset.seed_given);
  v1::GenerateRequest request = Base();
  request.mutable_sampling()->set_temperature(-0.0f);
  request.mutable_sampling()->set_seed(0);
  const ValidatedGenerate zero = ValidateGenerate(request, model).value();
  EXPECT_EQ(zero.request.sampling.temperature, 0.0f);
  EXPECT_FALSE(std::signbit(zero.request.sampling.temperature));
  EXPECT_TRUE(zero.seed_given);
}

TEST(ValidateRequest, LargeNumbersNeverWrap) {
  v1::GenerateRequest request = Base();
  request.mutable_sampling()->set_top_k(std::numeric_limits<int64_t>::max());
  request.mutable_stopping()->set_max_tokens(std::numeric_limits<int64_t>::max());
  const ValidatedGenerate validated = ValidateGenerate(request, TestModel()).value();
  EXPECT_EQ(validated.request.sampling.top_k, 1000);      // the whole vocabulary
  EXPECT_EQ(validated.request.stopping.max_tokens, 100);  // the whole context
}

TEST(ValidateRequest, AnUnknownModelIsNotFound) {
  v1::GenerateRequest request = Base();
  request.set_model(std::string("../../etc\0x", 11));
  const absl::Status status = ValidateGenerate(request, TestModel()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(status), kReasonModel);
  EXPECT_THAT(std::string(status.message()), HasSubstr("\\x00"));
  request.set_model("m");
  EXPECT_TRUE(ValidateGenerate(request, TestModel()).ok());
}

// B2: context 100: 99 tokens leave room for one more.
TEST(ValidateRequest, ThePromptLeavesRoomForAnAnswer) {
  const ModelInfo model = TestModel();
  EXPECT_TRUE(CheckPrompt("text", std::vector<int32_t>(99), model).ok());
  const absl::Status status = CheckPrompt("text", std::vector<int32_t>(100), model);
  EXPECT_EQ(ReasonOf(status), kReasonPromptTooLong);
  EXPECT_THAT(std::string(status.message()), HasSubstr("100 tokens"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("at most 99"));
  EXPECT_EQ(ReasonOf(CheckPrompt("text", {}, model)), kReasonBadParameter);
}

TEST(ValidateRequest, TemplateVariablesMustBeAllowed) {
  ModelInfo model = TestModel();
  v1::GenerateRequest request;
  request.mutable_chat()->add_messages()->set_role("user");
  (*request.mutable_chat()->mutable_template_variables())["enable_thinking"].set_flag(true);
  EXPECT_EQ(ReasonOf(ValidateGenerate(request, model).status()), kReasonBadTemplateInput);
  model.template_variables = {"enable_thinking"};
  EXPECT_TRUE(ValidateGenerate(request, model).ok());
}

v1::ExecuteRequest BaseExecute() {
  v1::ExecuteRequest request;
  request.set_request_id("r");
  request.set_attempt(1);
  request.add_token_ids(3);
  request.set_seed(9);
  return request;
}

TEST(ValidateRequest, AnExecuteWithoutChoicesHasTheOneThatBegins) {
  const ValidatedExecute validated = ValidateExecute(BaseExecute(), TestModel()).value();
  ASSERT_EQ(validated.choices.size(), 1u);
  EXPECT_EQ(validated.choices[0].choice, 0u);
  EXPECT_TRUE(validated.choices[0].emitted.empty());
  EXPECT_EQ(validated.request.sampling.seed, 9u);
}

TEST(ValidateRequest, HoldsAnExecuteAgainstItsBounds) {
  struct ExecuteRow {
    std::function<void(v1::ExecuteRequest*)> change;
    const char* reason;
    const char* field;
  };
  const ExecuteRow rows[] = {
      {[](auto* r) { r->clear_request_id(); }, "BAD_PARAMETER", "request_id"},
      {[](auto* r) { r->set_attempt(0); }, "BAD_PARAMETER", "attempt"},
      {[](auto* r) { r->add_token_ids(1000); }, "BAD_TOKEN_ID", "token_ids[1]"},
      {[](auto* r) { r->clear_token_ids(); }, "BAD_PARAMETER", "token_ids"},
      {[](auto* r) { r->add_choices()->add_emitted(-1); }, "BAD_TOKEN_ID", "choices[0].emitted[0]"},
      {[](auto* r) {
         r->add_choices();
         r->add_choices();
       },
       "BAD_PARAMETER", "choices[1].choice"},
      {[](auto* r) {
         r->mutable_stopping()->set_max_tokens(1);
         auto* choice = r->add_choices();
         choice->add_emitted(1);
         choice->add_emitted(2);
       },
       "BAD_PARAMETER", "choices[0].emitted"},
      {[](auto* r) { r->set_lease("a b"); }, "BAD_PARAMETER", "lease"},
      {[](auto* r) { r->set_cache_salt("x"); }, "FIELD_NOT_SUPPORTED", "cache_salt"},
  };
  for (const ExecuteRow& row : rows) {
    v1::ExecuteRequest request = BaseExecute();
    row.change(&request);
    const absl::Status status = ValidateExecute(request, TestModel()).status();
    EXPECT_EQ(ReasonOf(status), row.reason) << status;
    ASSERT_EQ(FieldViolationsOf(status).size(), 1u) << status;
    EXPECT_EQ(FieldViolationsOf(status)[0].field, row.field);
  }
}

// B14: what passes is inside its bounds, whatever the bytes were.
TEST(ValidateRequest, MutatedRequestsAreRefusedOrInsideTheBounds) {
  v1::GenerateRequest seed_request = Base();
  seed_request.set_request_id("abc");
  seed_request.mutable_sampling()->set_temperature(0.5f);
  seed_request.mutable_sampling()->set_top_p(0.5f);
  seed_request.mutable_sampling()->set_top_k(5);
  seed_request.mutable_sampling()->set_n(2);
  seed_request.mutable_stopping()->set_max_tokens(7);
  seed_request.mutable_stopping()->add_stop_strings("stop");
  seed_request.mutable_delivery()->set_determinism(v1::DETERMINISM_BATCH_INVARIANT);
  const std::string seed_bytes = seed_request.SerializeAsString();
  const ModelInfo model = TestModel();
  std::mt19937 random(1);
  int valid = 0;
  for (int round = 0; round < 50'000; ++round) {
    std::string bytes = seed_bytes;
    for (auto changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    v1::GenerateRequest request;
    if (!request.ParseFromString(bytes)) {
      continue;
    }
    const absl::StatusOr<ValidatedGenerate> validated = ValidateGenerate(request, model);
    if (!validated.ok()) {
      EXPECT_FALSE(ReasonOf(validated.status()).empty());
      continue;
    }
    ++valid;
    const schedule::Request& checked = validated->request;
    EXPECT_TRUE(checked.sampling.temperature >= 0 && checked.sampling.temperature <= 2);
    EXPECT_TRUE(checked.sampling.top_p > 0 && checked.sampling.top_p <= 1);
    EXPECT_TRUE(checked.sampling.min_p >= 0 && checked.sampling.min_p <= 1);
    EXPECT_TRUE(checked.sampling.top_k >= 0 && checked.sampling.top_k <= 1000);
    EXPECT_TRUE(checked.stopping.max_tokens >= 1 && checked.stopping.max_tokens <= 100);
    EXPECT_TRUE(validated->choices >= 1 && validated->choices <= 8);
    for (const int32_t id : checked.prompt) {
      EXPECT_TRUE(id >= 0 && id < 1000);
    }
  }
  EXPECT_GT(valid, 100) << "the mutations are too wild to test anything";
}

}  // namespace
}  // namespace trireme::serve
