#include "runtime/serve/inference_service.h"

#include <string>
#include <utility>

#include "inference.grpc.pb.h"
#include "runtime/base/error_reason.h"
#include "runtime/base/status_macros.h"
#include "runtime/serve/byte_buffers.h"
#include "runtime/serve/generate_kind.h"
#include "runtime/serve/prompt_text.h"
#include "runtime/serve/stream_call.h"
#include "runtime/serve/unary_call.h"
#include "runtime/serve/validate_request.h"
#include "runtime/serve/wire_values.h"
#include "runtime/text/detokenizer.h"

namespace trireme::serve {
namespace {

template <typename Base>
using RawCancel = v1::Inference::WithRawCallbackMethod_Cancel<Base>;
template <typename Base>
using RawTokenize = v1::Inference::WithRawCallbackMethod_Tokenize<Base>;
template <typename Base>
using RawDetokenize = v1::Inference::WithRawCallbackMethod_Detokenize<Base>;
template <typename Base>
using RawRenderChat = v1::Inference::WithRawCallbackMethod_RenderChat<Base>;
template <typename Base>
using RawListModels = v1::Inference::WithRawCallbackMethod_ListModels<Base>;
template <typename Base>
using RawGetModel = v1::Inference::WithRawCallbackMethod_GetModel<Base>;
template <typename Base>
using RawResume = v1::Inference::WithRawCallbackMethod_Resume<Base>;
template <typename Base>
using RawGenerate = v1::Inference::WithRawCallbackMethod_Generate<Base>;

using RawInference = RawGenerate<RawResume<RawCancel<RawTokenize<
    RawDetokenize<RawRenderChat<RawListModels<RawGetModel<v1::Inference::Service>>>>>>>>;

using Context = grpc::CallbackServerContext;
using Buffer = grpc::ByteBuffer;

absl::StatusOr<std::string> Cancel(Door* door, absl::string_view bytes) {
  v1::CancelRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, door->options().request_bytes_max, &request));
  v1::CancelResponse response;
  response.set_was_running(door->live_calls().EndOne(
      request.request_id(),
      WithReason(absl::CancelledError("the request was cancelled by Cancel"), kReasonByClient)));
  return response.SerializeAsString();
}

absl::StatusOr<std::string> Tokenize(Door* door, absl::string_view bytes) {
  v1::TokenizeRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, door->options().request_bytes_max, &request));
  ASSIGN_OR_RETURN(const ReplicaFacade* replica, door->Ready());
  RETURN_IF_ERROR(CheckModelName(request.model(), replica->model));
  Violations violations;
  if (request.has_want_offsets()) violations.Unsupported("want_offsets");
  if (request.has_chat()) CheckChat("chat", request.chat(), replica->model, &violations);
  if (!request.has_chat() && !request.has_text()) {
    violations.Invalid("input", "is missing: set text or chat");
  }
  RETURN_IF_ERROR(violations.ToStatus());
  v1::TokenizeResponse response;
  std::vector<int32_t> ids;
  if (request.has_chat()) {
    ASSIGN_OR_RETURN(RenderedChat rendered, EncodeChat(*replica, request.chat()));
    ids = std::move(rendered.token_ids);
  } else {
    ASSIGN_OR_RETURN(ids, EncodeText(*replica, request.text(), request.text_options()));
  }
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  return response.SerializeAsString();
}

absl::StatusOr<std::string> Detokenize(Door* door, absl::string_view bytes) {
  v1::DetokenizeRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, door->options().request_bytes_max, &request));
  ASSIGN_OR_RETURN(const ReplicaFacade* replica, door->Ready());
  RETURN_IF_ERROR(CheckModelName(request.model(), replica->model));
  const auto ids = absl::MakeConstSpan(request.token_ids().data(),
                                       static_cast<size_t>(request.token_ids_size()));
  Violations violations;
  CheckTokenIds("token_ids", ids, replica->model, &violations);
  RETURN_IF_ERROR(violations.ToStatus());
  if (replica->tokenizer == nullptr) {
    return absl::UnimplementedError("this model has no tokenizer");
  }
  const text::SpecialTokenDisplay display = request.show_special_tokens()
                                                ? text::SpecialTokenDisplay::kShow
                                                : text::SpecialTokenDisplay::kHide;
  v1::DetokenizeResponse response;
  ASSIGN_OR_RETURN(*response.mutable_text(), text::Decode(*replica->tokenizer, ids, display));
  for (const int32_t id : ids) {
    const absl::string_view token_bytes = replica->tokenizer->TokenBytes(id);
    response.mutable_bytes()->append(token_bytes.data(), token_bytes.size());
  }
  return response.SerializeAsString();
}

absl::StatusOr<std::string> RenderChat(Door* door, absl::string_view bytes) {
  v1::RenderChatRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, door->options().request_bytes_max, &request));
  ASSIGN_OR_RETURN(const ReplicaFacade* replica, door->Ready());
  RETURN_IF_ERROR(CheckModelName(request.model(), replica->model));
  Violations violations;
  CheckChat("chat", request.chat(), replica->model, &violations);
  RETURN_IF_ERROR(violations.ToStatus());
  ASSIGN_OR_RETURN(RenderedChat rendered, EncodeChat(*replica, request.chat()));
  v1::RenderChatResponse response;
  response.set_text(std::move(rendered.text));
  response.mutable_token_ids()->Add(rendered.token_ids.begin(), rendered.token_ids.end());
  return response.SerializeAsString();
}

absl::StatusOr<std::string> ListModels(Door* door) {
  ASSIGN_OR_RETURN(const ReplicaFacade* replica, door->Ready());
  v1::ListModelsResponse response;
  SetModelInfo(*replica, response.add_models());
  return response.SerializeAsString();
}

absl::StatusOr<std::string> GetModel(Door* door, absl::string_view bytes) {
  v1::GetModelRequest request;
  RETURN_IF_ERROR(ParseMessage(bytes, door->options().request_bytes_max, &request));
  ASSIGN_OR_RETURN(const ReplicaFacade* replica, door->Ready());
  RETURN_IF_ERROR(CheckModelName(request.model(), replica->model));
  v1::ModelInfo response;
  SetModelInfo(*replica, &response);
  return response.SerializeAsString();
}

class InferenceService final : public RawInference {
 public:
  explicit InferenceService(Door* door) : door_(door) {}

  grpc::ServerWriteReactor<Buffer>* Generate(Context* context, const Buffer* request) override {
    return StartStreamCall(door_, context, request, MakeGenerateKind(door_));
  }
  grpc::ServerWriteReactor<Buffer>* Resume(Context* context, const Buffer* request) override {
    return StartResumeCall(door_, context, request);
  }
  grpc::ServerUnaryReactor* Cancel(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(
        door_, request, response, RunOn::kCaller,
        [door = door_](absl::string_view bytes) { return serve::Cancel(door, bytes); });
  }
  grpc::ServerUnaryReactor* Tokenize(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(
        door_, request, response, RunOn::kTaskPool,
        [door = door_](absl::string_view bytes) { return serve::Tokenize(door, bytes); });
  }
  grpc::ServerUnaryReactor* Detokenize(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(
        door_, request, response, RunOn::kTaskPool,
        [door = door_](absl::string_view bytes) { return serve::Detokenize(door, bytes); });
  }
  grpc::ServerUnaryReactor* RenderChat(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(
        door_, request, response, RunOn::kTaskPool,
        [door = door_](absl::string_view bytes) { return serve::RenderChat(door, bytes); });
  }
  grpc::ServerUnaryReactor* ListModels(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(door_, request, response, RunOn::kCaller,
                          [door = door_](absl::string_view) { return serve::ListModels(door); });
  }
  grpc::ServerUnaryReactor* GetModel(Context*, const Buffer* request, Buffer* response) override {
    return StartUnaryCall(
        door_, request, response, RunOn::kCaller,
        [door = door_](absl::string_view bytes) { return serve::GetModel(door, bytes); });
  }

 private:
  Door* const door_;
};

}  // namespace

std::shared_ptr<grpc::Service> MakeInferenceService(Door* door) {
  return std::make_shared<InferenceService>(door);
}

}  // namespace trireme::serve
