// The wire form of proto/step.proto, written and read field by field with protobuf's own primitives
// but without its message objects: they would copy every array once more and allocate in each step.
#include <bit>
#include <cstring>

#include "absl/strings/str_format.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "runtime/engine/step.h"

namespace trireme::engine {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are copied as they lie");

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;

// ---- writing. A Writer without a target counts bytes. As in proto3, zero fields are left out.

class Writer {
 public:
  explicit Writer(uint8_t* target) : target_(target) {}
  size_t bytes() const { return bytes_; }

  void Fixed32(int field, uint32_t value) {
    if (value != 0) {
      Tag(field, WireFormatLite::WIRETYPE_FIXED32);
      Raw(&value, sizeof(value));
    }
  }
  void Fixed32(int field, int32_t value) { Fixed32(field, std::bit_cast<uint32_t>(value)); }
  void Fixed32(int field, float value) { Fixed32(field, std::bit_cast<uint32_t>(value)); }
  void Fixed64(int field, uint64_t value) {
    if (value != 0) {
      Tag(field, WireFormatLite::WIRETYPE_FIXED64);
      Raw(&value, sizeof(value));
    }
  }
  void Small(int field, uint32_t value) {
    if (value != 0) {
      Tag(field, WireFormatLite::WIRETYPE_VARINT);
      Varint(value);
    }
  }
  void Bytes(int field, const void* data, size_t bytes) {
    if (bytes != 0) {
      Length(field, bytes);
      Raw(data, bytes);
    }
  }
  template <typename Value>
  void Packed(int field, const std::vector<Value>& values) {
    static_assert(sizeof(Value) == 4);
    Bytes(field, values.data(), values.size() * sizeof(Value));
  }
  template <typename Message>
  void Messages(int field, const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      Writer counter(nullptr);
      Write(message, &counter);
      Length(field, counter.bytes());
      Write(message, this);
    }
  }

 private:
  static void Write(const PlanSequence& sequence, Writer* writer);
  static void Write(const PlanSample& sample, Writer* writer);
  static void Write(const StepFault& fault, Writer* writer);

  void Tag(int field, WireFormatLite::WireType type) {
    Varint(WireFormatLite::MakeTag(field, type));
  }
  void Length(int field, size_t bytes) {
    Tag(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
    Varint(static_cast<uint32_t>(bytes));
  }
  void Varint(uint32_t value) {
    if (target_ != nullptr) {
      CodedOutputStream::WriteVarint32ToArray(value, target_ + bytes_);
    }
    bytes_ += CodedOutputStream::VarintSize32(value);
  }
  void Raw(const void* data, size_t bytes) {
    if (target_ != nullptr) {
      std::memcpy(target_ + bytes_, data, bytes);
    }
    bytes_ += bytes;
  }

  uint8_t* target_;
  size_t bytes_ = 0;
};

void Writer::Write(const PlanSequence& sequence, Writer* writer) {
  writer->Fixed32(1, sequence.first_row);
  writer->Fixed32(2, sequence.rows);
  writer->Fixed32(3, sequence.first_position);
  writer->Fixed32(4, sequence.first_block);
  writer->Fixed32(5, sequence.block_count);
}

void Writer::Write(const PlanSample& sample, Writer* writer) {
  writer->Fixed32(1, sample.logit_index);
  writer->Fixed32(2, sample.choice);
  writer->Fixed64(3, std::bit_cast<uint64_t>(sample.position));
  writer->Fixed32(4, sample.sampling.temperature);
  writer->Fixed32(5, sample.sampling.top_k);
  writer->Fixed32(6, sample.sampling.top_p);
  writer->Fixed32(7, sample.sampling.min_p);
  writer->Fixed64(8, sample.sampling.seed);
  writer->Small(9, sample.want_logprob ? 1 : 0);
}

void Writer::Write(const StepFault& fault, Writer* writer) {
  writer->Fixed32(1, fault.sequence);
  writer->Fixed32(2, fault.place);
}

constexpr uint32_t kKindCompute = 1;
constexpr uint32_t kKindShutdown = 2;

void WritePlan(const StepPlan& plan, Writer* writer) {
  writer->Small(1, plan.kind == PlanKind::kShutdown ? kKindShutdown : kKindCompute);
  writer->Fixed64(2, plan.step);
  writer->Packed(3, plan.token_ids);
  writer->Packed(4, plan.positions);
  writer->Packed(5, plan.slots);
  writer->Messages(6, plan.sequences);
  writer->Packed(7, plan.block_tables);
  writer->Packed(8, plan.logit_rows);
  writer->Messages(9, plan.samples);
  writer->Small(10, plan.want_logits ? 1 : 0);
}

void WriteResult(const StepResult& result, Writer* writer) {
  writer->Fixed64(1, result.step);
  writer->Fixed32(2, static_cast<int32_t>(result.status.code()));
  writer->Bytes(3, result.status.message().data(), result.status.message().size());
  writer->Packed(4, result.token_ids);
  writer->Packed(5, result.logprobs);
  writer->Packed(6, result.logits);
  writer->Messages(7, result.faults);
}

template <typename Value>
void Encode(const Value& value, void (*write)(const Value&, Writer*), std::string* bytes) {
  Writer counter(nullptr);
  write(value, &counter);
  bytes->resize(counter.bytes());
  Writer writer(reinterpret_cast<uint8_t*>(bytes->data()));
  write(value, &writer);
}

// ---- reading. Each returns false when the bytes are not a message.

bool Read(CodedInputStream* input, uint32_t* value) { return input->ReadLittleEndian32(value); }
bool Read(CodedInputStream* input, uint64_t* value) { return input->ReadLittleEndian64(value); }
bool Read(CodedInputStream* input, int32_t* value) {
  uint32_t bits = 0;
  const bool good = Read(input, &bits);
  *value = std::bit_cast<int32_t>(bits);
  return good;
}
bool Read(CodedInputStream* input, int64_t* value) {
  uint64_t bits = 0;
  const bool good = Read(input, &bits);
  *value = std::bit_cast<int64_t>(bits);
  return good;
}
bool Read(CodedInputStream* input, float* value) {
  uint32_t bits = 0;
  const bool good = Read(input, &bits);
  *value = std::bit_cast<float>(bits);
  return good;
}
bool Read(CodedInputStream* input, bool* value) {
  uint64_t bits = 0;
  const bool good = input->ReadVarint64(&bits);
  *value = bits != 0;
  return good;
}

// A length that the rest of the message has room for, so that nothing is allocated beyond it.
bool ReadLength(CodedInputStream* input, int* bytes) {
  return input->ReadVarintSizeAsInt(bytes) && *bytes <= input->BytesUntilLimit();
}

template <typename Value>
bool ReadPacked(CodedInputStream* input, std::vector<Value>* values) {
  static_assert(sizeof(Value) == 4);
  int bytes = 0;
  if (!ReadLength(input, &bytes) || bytes % 4 != 0) {
    return false;
  }
  const size_t before = values->size();
  values->resize(before + static_cast<size_t>(bytes) / 4);
  return input->ReadRaw(values->data() + before, bytes);
}

// Calls `read_field(tag)` for each field up to the end of the message; it reads the field's value.
template <typename ReadField>
bool ReadFields(CodedInputStream* input, ReadField read_field) {
  while (true) {
    const uint32_t tag = input->ReadTag();
    if (tag == 0) {
      return input->ConsumedEntireMessage();
    }
    if (!read_field(tag)) {
      return false;
    }
  }
}

constexpr uint32_t Fixed32Tag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_FIXED32;
}
constexpr uint32_t Fixed64Tag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_FIXED64;
}
constexpr uint32_t VarintTag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_VARINT;
}
constexpr uint32_t BytesTag(int field) {
  return static_cast<uint32_t>(field) << 3 | WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

bool ReadMessage(CodedInputStream* input, PlanSequence* sequence) {
  return ReadFields(input, [&](uint32_t tag) {
    switch (tag) {
      case Fixed32Tag(1):
        return Read(input, &sequence->first_row);
      case Fixed32Tag(2):
        return Read(input, &sequence->rows);
      case Fixed32Tag(3):
        return Read(input, &sequence->first_position);
      case Fixed32Tag(4):
        return Read(input, &sequence->first_block);
      case Fixed32Tag(5):
        return Read(input, &sequence->block_count);
      default:
        return WireFormatLite::SkipField(input, tag);
    }
  });
}

bool ReadMessage(CodedInputStream* input, PlanSample* sample) {
  // What is left out of the message is zero, not our default.
  sample->sampling.top_p = 0;
  return ReadFields(input, [&](uint32_t tag) {
    switch (tag) {
      case Fixed32Tag(1):
        return Read(input, &sample->logit_index);
      case Fixed32Tag(2):
        return Read(input, &sample->choice);
      case Fixed64Tag(3):
        return Read(input, &sample->position);
      case Fixed32Tag(4):
        return Read(input, &sample->sampling.temperature);
      case Fixed32Tag(5):
        return Read(input, &sample->sampling.top_k);
      case Fixed32Tag(6):
        return Read(input, &sample->sampling.top_p);
      case Fixed32Tag(7):
        return Read(input, &sample->sampling.min_p);
      case Fixed64Tag(8):
        return Read(input, &sample->sampling.seed);
      case VarintTag(9):
        return Read(input, &sample->want_logprob);
      default:
        return WireFormatLite::SkipField(input, tag);
    }
  });
}

bool ReadMessage(CodedInputStream* input, StepFault* fault) {
  return ReadFields(input, [&](uint32_t tag) {
    switch (tag) {
      case Fixed32Tag(1):
        return Read(input, &fault->sequence);
      case Fixed32Tag(2):
        return Read(input, &fault->place);
      default:
        return WireFormatLite::SkipField(input, tag);
    }
  });
}

template <typename Message>
bool AppendMessage(CodedInputStream* input, std::vector<Message>* messages) {
  int bytes = 0;
  if (!ReadLength(input, &bytes)) {
    return false;
  }
  const CodedInputStream::Limit limit = input->PushLimit(bytes);
  messages->emplace_back();
  const bool good = ReadMessage(input, &messages->back());
  input->PopLimit(limit);
  return good;
}

bool ReadPlan(CodedInputStream* input, StepPlan* plan, uint64_t* kind) {
  return ReadFields(input, [&](uint32_t tag) {
    switch (tag) {
      case VarintTag(1):
        return input->ReadVarint64(kind);
      case Fixed64Tag(2):
        return Read(input, &plan->step);
      case BytesTag(3):
        return ReadPacked(input, &plan->token_ids);
      case BytesTag(4):
        return ReadPacked(input, &plan->positions);
      case BytesTag(5):
        return ReadPacked(input, &plan->slots);
      case BytesTag(6):
        return AppendMessage(input, &plan->sequences);
      case BytesTag(7):
        return ReadPacked(input, &plan->block_tables);
      case BytesTag(8):
        return ReadPacked(input, &plan->logit_rows);
      case BytesTag(9):
        return AppendMessage(input, &plan->samples);
      case VarintTag(10):
        return Read(input, &plan->want_logits);
      default:
        return WireFormatLite::SkipField(input, tag);
    }
  });
}

bool ReadResult(CodedInputStream* input, StepResult* result, int32_t* code, std::string* message) {
  return ReadFields(input, [&](uint32_t tag) {
    switch (tag) {
      case Fixed64Tag(1):
        return Read(input, &result->step);
      case Fixed32Tag(2):
        return Read(input, code);
      case BytesTag(3): {
        int bytes = 0;
        return ReadLength(input, &bytes) && input->ReadString(message, bytes);
      }
      case BytesTag(4):
        return ReadPacked(input, &result->token_ids);
      case BytesTag(5):
        return ReadPacked(input, &result->logprobs);
      case BytesTag(6):
        return ReadPacked(input, &result->logits);
      case BytesTag(7):
        return AppendMessage(input, &result->faults);
      default:
        return WireFormatLite::SkipField(input, tag);
    }
  });
}

absl::Status NotAMessage(absl::string_view what, size_t bytes) {
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s of %d bytes cannot be read: truncated or not of proto/step.proto", what, bytes));
}

// The longest message that protobuf can express.
constexpr size_t kMessageBytesMax = 0x7FFFFFFF;

}  // namespace

void EncodeStepPlan(const StepPlan& plan, std::string* bytes) { Encode(plan, WritePlan, bytes); }

void EncodeStepResult(const StepResult& result, std::string* bytes) {
  Encode(result, WriteResult, bytes);
}

absl::Status DecodeStepPlan(absl::string_view bytes, StepPlan* plan) {
  plan->Clear();
  if (bytes.size() > kMessageBytesMax) {
    return NotAMessage("a plan", bytes.size());
  }
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                         static_cast<int>(bytes.size()));
  uint64_t kind = 0;
  // The limit makes BytesUntilLimit count from the start.
  const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(bytes.size()));
  const bool good = ReadPlan(&input, plan, &kind);
  input.PopLimit(limit);
  if (!good) {
    return NotAMessage("a plan", bytes.size());
  }
  if (kind != kKindCompute && kind != kKindShutdown) {
    return absl::InvalidArgumentError(
        absl::StrFormat("a plan of unknown kind %d; the sender is of another version", kind));
  }
  plan->kind = kind == kKindShutdown ? PlanKind::kShutdown : PlanKind::kCompute;
  return absl::OkStatus();
}

absl::Status DecodeStepResult(absl::string_view bytes, StepResult* result) {
  result->Clear();
  if (bytes.size() > kMessageBytesMax) {
    return NotAMessage("a result", bytes.size());
  }
  CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                         static_cast<int>(bytes.size()));
  int32_t code = 0;
  std::string message;
  const CodedInputStream::Limit limit = input.PushLimit(static_cast<int>(bytes.size()));
  const bool good = ReadResult(&input, result, &code, &message);
  input.PopLimit(limit);
  if (!good) {
    return NotAMessage("a result", bytes.size());
  }
  if (code != 0) {
    const bool known = code > 0 && code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
    result->status = absl::Status(
        known ? static_cast<absl::StatusCode>(code) : absl::StatusCode::kUnknown, message);
  }
  return absl::OkStatus();
}

}  // namespace trireme::engine
