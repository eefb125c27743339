#include "runtime/serve/inference_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/support/served_replica.h"

namespace trireme::serve {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kService[] = "/trireme.v1.Inference/";

template <typename Response, typename Request>
CallResult Call(ServedReplica& replica, const char* method, const Request& request,
                Response* response) {
  std::string bytes;
  const CallResult result =
      replica.client().Call(absl::StrCat(kService, method), request.SerializeAsString(), &bytes);
  EXPECT_TRUE(response->ParseFromString(bytes));
  return result;
}

TEST(InferenceService, TextAndChatBecomePromptsAndStream) {
  ServedReplica replica;
  v1::GenerateRequest request;
  request.set_text("ab");
  request.mutable_stopping()->set_max_tokens(3);
  EXPECT_TRUE(Generate(replica.client(), request).result.ok());
  EXPECT_THAT(replica.controller().submitted().back().prompt, ElementsAre('a', 'b'));
  request.mutable_chat()->add_messages()->set_role("user");
  const StreamRecord record = Generate(replica.client(), request);
  EXPECT_TRUE(record.result.ok()) << record.result.ToString();
  EXPECT_EQ(replica.controller().submitted().back().prompt.front(), kTurnStartId);
}

TEST(InferenceService, TokenizeAndDetokenizeAreInverse) {
  ServedReplica replica;
  v1::TokenizeRequest request;
  request.set_text("h\xC3\xA9<|im_end|>");
  v1::TokenizeResponse ids;
  ASSERT_TRUE(Call(replica, "Tokenize", request, &ids).ok());
  EXPECT_THAT(ids.token_ids(), ElementsAre('h', 0xC3, 0xA9, kTurnEndId));
  v1::DetokenizeRequest back;
  *back.mutable_token_ids() = ids.token_ids();
  v1::DetokenizeResponse text;
  ASSERT_TRUE(Call(replica, "Detokenize", back, &text).ok());
  EXPECT_EQ(text.text(), "h\xC3\xA9");
  EXPECT_EQ(text.bytes(), "h\xC3\xA9<|im_end|>");
  back.set_show_special_tokens(true);
  ASSERT_TRUE(Call(replica, "Detokenize", back, &text).ok());
  EXPECT_EQ(text.text(), "h\xC3\xA9<|im_end|>");
}

TEST(InferenceService, RenderChatGivesThePromptThatGenerateUses) {
  ServedReplica replica;
  v1::RenderChatRequest request;
  v1::ChatMessage* message = request.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("hi <|im_end|>");
  v1::RenderChatResponse rendered;
  ASSERT_TRUE(Call(replica, "RenderChat", request, &rendered).ok());
  v1::GenerateRequest generate;
  *generate.mutable_chat() = request.chat();
  generate.mutable_stopping()->set_max_tokens(1);
  ASSERT_TRUE(Generate(replica.client(), generate).result.ok());
  const auto submitted = replica.controller().submitted();
  EXPECT_EQ(submitted.back().prompt,
            std::vector<int32_t>(rendered.token_ids().begin(), rendered.token_ids().end()));
}

TEST(InferenceService, DescribesItsModel) {
  ServedReplica replica;
  v1::ListModelsResponse models;
  ASSERT_TRUE(Call(replica, "ListModels", v1::ListModelsRequest(), &models).ok());
  ASSERT_EQ(models.models_size(), 1);
  v1::GetModelRequest request;
  request.set_model("fake");
  v1::ModelInfo model;
  ASSERT_TRUE(Call(replica, "GetModel", request, &model).ok());
  EXPECT_EQ(model.SerializeAsString(), models.models(0).SerializeAsString());
  EXPECT_EQ(model.context_length(), 64);
  EXPECT_EQ(model.limits().prompt_tokens_max(), 63);
  EXPECT_EQ(model.limits().request_bytes_max(), 16 << 20);
  EXPECT_TRUE(model.capabilities().chat());
  request.set_model("other");
  const CallResult result = Call(replica, "GetModel", request, &model);
  EXPECT_EQ(result.code, absl::StatusCode::kNotFound);
  EXPECT_EQ(result.reason, "MODEL");
  EXPECT_EQ(result.resource_type, "model");
}

// B18 through Cancel: one outcome, and idempotent.
TEST(InferenceService, CancelEndsTheNamedStream) {
  ServedReplicaOptions options;
  options.controller.step_time = absl::Milliseconds(1);
  options.controller.context = 100000;
  ServedReplica replica(options);
  v1::GenerateRequest request = TokenRequest(50000);
  request.set_request_id("long");
  request.mutable_sampling()->set_n(2);
  auto stream = replica.client().Open(kGenerate, request.SerializeAsString());
  std::string bytes;
  ASSERT_TRUE(stream->Read(&bytes));
  v1::CancelRequest cancel;
  cancel.set_request_id("long");
  v1::CancelResponse cancelled;
  ASSERT_TRUE(Call(replica, "Cancel", cancel, &cancelled).ok());
  EXPECT_TRUE(cancelled.was_running());
  const StreamRecord record = ReadStream(*stream);
  EXPECT_EQ(record.result.code, absl::StatusCode::kCancelled);
  EXPECT_EQ(record.result.reason, "BY_CLIENT");
  EXPECT_TRUE(replica.controller().WaitUntilIdle(absl::Seconds(10)));
  EXPECT_TRUE(replica.server().WaitForStreams(absl::Seconds(10)));
  ASSERT_TRUE(Call(replica, "Cancel", cancel, &cancelled).ok());
  EXPECT_FALSE(cancelled.was_running());
}

// B13.
TEST(InferenceService, AnIdIsUsedOnceAtATime) {
  ServedReplica replica;
  replica.controller().Hold(true);
  v1::GenerateRequest request = TokenRequest(2);
  request.set_request_id("same");
  auto first = replica.client().Open(kGenerate, request.SerializeAsString());
  while (replica.controller().live_requests() == 0) {
    std::this_thread::yield();
  }
  const StreamRecord second = Generate(replica.client(), request);
  EXPECT_EQ(second.result.code, absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(second.result.reason, "REQUEST_ID");
  EXPECT_THAT(second.events, IsEmpty());
  replica.controller().Hold(false);
  EXPECT_TRUE(ReadStream(*first).result.ok());
  EXPECT_TRUE(replica.server().WaitForStreams(absl::Seconds(10)));
  EXPECT_TRUE(Generate(replica.client(), request).result.ok());
}

// B2 over the wire: context 64.
TEST(InferenceService, ThePromptFillsTheContextButForOneToken) {
  ServedReplica replica;
  v1::GenerateRequest request;
  request.set_text(std::string(63, 'a'));
  const StreamRecord fits = Generate(replica.client(), request);
  EXPECT_TRUE(fits.result.ok()) << fits.result.ToString();
  EXPECT_EQ(fits.token_ids[0].size(), 1u);
  request.set_text(std::string(64, 'a'));
  const StreamRecord too_long = Generate(replica.client(), request);
  EXPECT_EQ(too_long.result.reason, "PROMPT_TOO_LONG");
  EXPECT_THAT(too_long.result.message, HasSubstr("64"));
  EXPECT_THAT(too_long.result.message, HasSubstr("63"));
}

// A7: 16 MiB is the last size that is read.
TEST(InferenceService, ALargeMessageIsRefusedWithItsReason) {
  ServedReplica replica;
  v1::GenerateRequest request = TokenRequest(1);
  request.mutable_tokens()->set_text("");
  const size_t overhead = request.SerializeAsString().size() + 6;  // two lengths grow by 3 bytes
  request.mutable_tokens()->set_text(std::string((16 << 20) - overhead, 'x'));
  ASSERT_EQ(request.SerializeAsString().size(), size_t{16} << 20);
  EXPECT_TRUE(Generate(replica.client(), request).result.ok());
  request.mutable_tokens()->mutable_text()->push_back('x');
  const StreamRecord one_more = Generate(replica.client(), request);
  EXPECT_EQ(one_more.result.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(one_more.result.reason, "MESSAGE_TOO_LARGE");
}

// A8, A9 over the wire, and the process lives.
TEST(InferenceService, BytesThatAreNoMessageAreInvalidArguments) {
  ServedReplica replica;
  for (const std::string& bytes :
       {std::string("\x0A\x01\xFF"), std::string("\x0A\x7F"), std::string("\x0F")}) {
    const StreamRecord record = ReadStream(*replica.client().Open(kGenerate, bytes));
    EXPECT_EQ(record.result.code, absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(record.result.reason, "BAD_PARAMETER");
  }
  EXPECT_TRUE(Generate(replica.client(), TokenRequest(1)).result.ok());
}

// A15.
TEST(InferenceService, UnknownMethodsAreUnimplemented) {
  ServedReplica replica;
  std::string response;
  for (const char* method : {"/trireme.v1.Inference/Nothing", "/nothing.Here/X"}) {
    EXPECT_EQ(replica.client().Call(method, "", &response).code, absl::StatusCode::kUnimplemented);
  }
}

TEST(InferenceService, RefusesWorkUntilItIsOpen) {
  ServedReplicaOptions options;
  options.open = false;
  ServedReplica replica(options);
  const StreamRecord record = Generate(replica.client(), TokenRequest(1));
  EXPECT_EQ(record.result.code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(record.result.reason, "STARTING");
  EXPECT_TRUE(record.result.has_retry_info);
  v1::ListModelsResponse models;
  EXPECT_EQ(Call(replica, "ListModels", v1::ListModelsRequest(), &models).reason, "STARTING");
}

TEST(InferenceService, RefusesWhatIsTooMuchWithOverloaded) {
  ServedReplicaOptions options;
  options.controller.queued_requests_max = 1;
  ServedReplica replica(options);
  replica.controller().Hold(true);
  auto first = replica.client().Open(kGenerate, TokenRequest(1).SerializeAsString());
  while (replica.controller().live_requests() == 0) {
    std::this_thread::yield();
  }
  const StreamRecord second = Generate(replica.client(), TokenRequest(1));
  EXPECT_EQ(second.result.code, absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(second.result.reason, "OVERLOADED");
  EXPECT_TRUE(second.result.has_retry_info);
  replica.controller().Hold(false);
  EXPECT_TRUE(ReadStream(*first).result.ok());
}

}  // namespace
}  // namespace trireme::serve
