#include "launcher/remote_generate.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "inference.grpc.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"

namespace trireme {
namespace {

using Stub = v1::Inference::Stub;

absl::Status StatusOfCall(const grpc::Status& status, const std::string& endpoint) {
  if (status.ok()) {
    return absl::OkStatus();
  }
  absl::Status result(static_cast<absl::StatusCode>(status.error_code()),
                      absl::StrCat(endpoint, ": ", status.error_message()));
  google::rpc::Status details;
  if (!details.ParseFromString(status.error_details())) {
    return result;
  }
  for (const google::protobuf::Any& any : details.details()) {
    google::rpc::ErrorInfo info;
    if (!any.UnpackTo(&info)) {
      continue;
    }
    for (const absl::string_view reason : AllErrorReasons()) {
      if (reason == info.reason()) {
        result = WithReason(std::move(result), reason);
      }
    }
  }
  return result;
}

void SetDeadline(absl::Duration timeout, grpc::ClientContext* context) {
  if (timeout != absl::InfiniteDuration()) {
    context->set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  }
}

absl::StatusOr<std::unique_ptr<Stub>> Connect(const RemoteGenerateOptions& options) {
  if (options.endpoint.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", options.endpoint, "\" is no endpoint; write HOST:PORT, such as 127.0.0.1:7000"));
  }
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  const auto channel =
      grpc::CreateCustomChannel(options.endpoint, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() +
                                 absl::ToChronoMilliseconds(options.connect_timeout))) {
    return absl::UnavailableError(absl::StrCat("nothing answers at ", options.endpoint, " within ",
                                               absl::FormatDuration(options.connect_timeout),
                                               "; is `trireme serve --listen ", options.endpoint,
                                               "` running?"));
  }
  return v1::Inference::NewStub(channel);
}

void SetChat(const RemoteGenerateOptions& options, v1::ChatInput* chat) {
  for (const RemoteMessage& message : options.messages) {
    v1::ChatMessage* out = chat->add_messages();
    out->set_role(message.role);
    out->set_content(message.content);
  }
}

v1::GenerateRequest MakeRequest(const RemoteGenerateOptions& options) {
  v1::GenerateRequest request;
  request.set_model(options.model);
  if (!options.messages.empty()) {
    SetChat(options, request.mutable_chat());
  } else if (!options.token_ids.empty()) {
    request.mutable_tokens()->mutable_token_ids()->Add(options.token_ids.begin(),
                                                       options.token_ids.end());
  } else {
    request.set_text(options.text);
  }
  v1::Sampling* sampling = request.mutable_sampling();
  if (options.temperature) sampling->set_temperature(*options.temperature);
  if (options.top_k) sampling->set_top_k(*options.top_k);
  if (options.top_p) sampling->set_top_p(*options.top_p);
  if (options.min_p) sampling->set_min_p(*options.min_p);
  if (options.seed) sampling->set_seed(*options.seed);
  v1::Stopping* stopping = request.mutable_stopping();
  if (options.max_tokens) stopping->set_max_tokens(*options.max_tokens);
  if (options.ignore_eos) stopping->set_ignore_eos(true);
  for (const std::string& text : options.stop_strings) {
    stopping->add_stop_strings(text);
  }
  return request;
}

absl::StatusOr<std::vector<int32_t>> PromptTokenIds(const RemoteGenerateOptions& options,
                                                    Stub* stub) {
  if (!options.token_ids.empty()) {
    return options.token_ids;
  }
  v1::TokenizeRequest request;
  request.set_model(options.model);
  if (!options.messages.empty()) {
    SetChat(options, request.mutable_chat());
  } else {
    request.set_text(options.text);
  }
  grpc::ClientContext context;
  SetDeadline(options.timeout, &context);
  v1::TokenizeResponse response;
  RETURN_IF_ERROR(StatusOfCall(stub->Tokenize(&context, request, &response), options.endpoint));
  return std::vector<int32_t>(response.token_ids().begin(), response.token_ids().end());
}

absl::Duration DurationOf(const google::protobuf::Duration& value) {
  return absl::Seconds(value.seconds()) + absl::Nanoseconds(value.nanos());
}

absl::StatusOr<schedule::FinishReason> ReasonOfWire(v1::FinishReason reason) {
  switch (reason) {
    case v1::FINISH_REASON_EOS:
      return schedule::FinishReason::kEos;
    case v1::FINISH_REASON_STOP_STRING:
      return schedule::FinishReason::kStopString;
    case v1::FINISH_REASON_STOP_TOKEN:
      return schedule::FinishReason::kStopToken;
    case v1::FINISH_REASON_MAX_TOKENS:
      return schedule::FinishReason::kMaxTokens;
    case v1::FINISH_REASON_CONTEXT_FULL:
      return schedule::FinishReason::kContextFull;
    default:
      return absl::DataLossError(absl::StrCat("the server sent finish reason ", reason,
                                              ", which this client does not know"));
  }
}

absl::Status Apply(const v1::GenerateEvent& event,
                   const std::function<void(absl::string_view)>& on_text,
                   RemoteGenerateResult* result) {
  if (event.has_accepted()) {
    result->request_id = event.accepted().request_id();
    result->prompt_tokens = event.accepted().prompt_tokens();
  } else if (event.has_chunk()) {
    const v1::Chunk& chunk = event.chunk();
    result->token_ids.insert(result->token_ids.end(), chunk.token_ids().begin(),
                             chunk.token_ids().end());
    result->text += chunk.text();
    if (on_text != nullptr && !chunk.text().empty()) {
      on_text(chunk.text());
    }
  } else if (event.has_choice_finished()) {
    ASSIGN_OR_RETURN(result->finish_reason, ReasonOfWire(event.choice_finished().reason()));
  } else if (event.has_finished()) {
    const v1::Timings& timings = event.finished().timings();
    result->queue = DurationOf(timings.queue());
    result->first_token = DurationOf(timings.first_token());
    result->total = DurationOf(timings.total());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RemoteGenerateResult> GenerateRemotely(
    const RemoteGenerateOptions& options, const std::function<void(absl::string_view)>& on_text) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Stub> stub, Connect(options));
  RemoteGenerateResult result;
  if (options.want_prompt_token_ids) {
    ASSIGN_OR_RETURN(result.prompt_token_ids, PromptTokenIds(options, stub.get()));
  }
  grpc::ClientContext context;
  SetDeadline(options.timeout, &context);
  const auto reader = stub->Generate(&context, MakeRequest(options));
  v1::GenerateEvent event;
  uint64_t last_seq = 0;
  bool finished = false;
  absl::Status fault;
  while (fault.ok() && reader->Read(&event)) {
    if (event.seq() != last_seq + 1) {
      fault = absl::DataLossError(absl::StrCat(options.endpoint, ": event ", event.seq(),
                                               " follows ", last_seq, "; some are missing"));
    } else {
      fault = Apply(event, on_text, &result);
    }
    last_seq = event.seq();
    finished = finished || event.has_finished();
  }
  if (!fault.ok()) {
    context.TryCancel();
    reader->Finish();
    return fault;
  }
  RETURN_IF_ERROR(StatusOfCall(reader->Finish(), options.endpoint));
  if (!finished) {
    return absl::DataLossError(
        absl::StrCat(options.endpoint, ": the answer stopped before its end; ask again"));
  }
  return result;
}

}  // namespace trireme
