// What a balancer costs: `balancer_overhead PROGRAM MODEL [STREAMS] [SECONDS]` runs two replicas
// without a model (clock_replica) in processes of their own, `PROGRAM balance` in another, and here
// the clients. Each token is the time of its making, so a chunk's way is known; it is measured
// straight from a replica and through the balancer, in turn, and the difference of the medians is
// printed.

#include <fcntl.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/client_callback.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "inference.grpc.pb.h"
#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/serve/server.h"
#include "tests/benchmarks/clock_replica.h"

namespace trireme {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(500);  // between a stream's tokens
constexpr int kConnections = 4;
constexpr int kRounds = 3;  // of both ways in turn: a machine's speed changes within a minute

// The way of a time stamp, wrapped like it.
int32_t Since(int32_t begin) { return (MicrosecondNow() - begin) & 0x7FFFFFFF; }

struct Figures {
  std::vector<int32_t> request_us;  // from the call to the making of the first token
  std::vector<int32_t> chunk_us;    // from a token's making to the client

  void Append(const Figures& other) {
    request_us.insert(request_us.end(), other.request_us.begin(), other.request_us.end());
    chunk_us.insert(chunk_us.end(), other.chunk_us.begin(), other.chunk_us.end());
  }
};

int32_t Percentile(std::vector<int32_t> values, double share) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

class Crowd;

class Reader final : public grpc::ClientReadReactor<v1::GenerateEvent> {
 public:
  Reader(Crowd* crowd, v1::Inference::Stub* stub, int64_t tokens) : crowd_(*crowd) {
    request_.mutable_tokens()->add_token_ids(1);
    request_.mutable_stopping()->set_max_tokens(tokens);
    request_.mutable_stopping()->set_ignore_eos(true);
    begin_ = MicrosecondNow();
    stub->async()->Generate(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  Crowd& crowd_;
  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateEvent event_;
  int32_t begin_ = 0;
  bool is_first_ = true;
};

// STREAMS readers, each with a request of its own.
class Crowd {
 public:
  explicit Crowd(const std::string& address) {
    for (int index = 0; index < kConnections; ++index) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(v1::Inference::NewStub(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  // The readers start one after the other over one period, so that their tokens do not come at
  // once.
  void Start(int streams, int64_t tokens) {
    for (int index = 0; index < streams; ++index) {
      {
        MutexLock lock(&mutex_);
        ++open_;
      }
      readers_.push_back(std::make_unique<Reader>(
          this, stubs_[static_cast<size_t>(index % kConnections)].get(), tokens));
      absl::SleepFor(kPeriod / streams);
    }
  }

  Figures Wait() {
    MutexLock lock(&mutex_);
    while (open_ > 0) {
      done_.Wait(&mutex_);
    }
    return figures_;
  }

  void Add(int32_t first_us, int32_t chunk_us) {
    MutexLock lock(&mutex_);
    if (first_us >= 0) {
      figures_.request_us.push_back(first_us);
    }
    figures_.chunk_us.push_back(chunk_us);
  }
  void Done(const grpc::Status& status) {
    if (!status.ok()) {
      std::fprintf(stderr, "a stream failed: %s\n", status.error_message().c_str());
    }
    MutexLock lock(&mutex_);
    --open_;
    done_.SignalAll();
  }

 private:
  std::vector<std::unique_ptr<v1::Inference::Stub>> stubs_;
  std::vector<std::unique_ptr<Reader>> readers_;
  Mutex mutex_;
  ConditionVariable done_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  Figures figures_ ABSL_GUARDED_BY(mutex_);
};

void Reader::OnReadDone(bool ok) {
  if (!ok) {
    return;
  }
  if (event_.has_chunk()) {
    const int32_t made = event_.chunk().token_ids(0);
    crowd_.Add(is_first_ ? (made - begin_) & 0x7FFFFFFF : -1, Since(made));
    is_first_ = false;
  }
  StartRead(&event_);
}

void Reader::OnDone(const grpc::Status& status) { crowd_.Done(status); }

struct Child {
  pid_t pid = 0;
  int output = -1;  // what it prints
};

template <typename Body>
Child Fork(const Body& body) {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t pid = fork();
  CHECK_GE(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    body();
    std::_Exit(1);
  }
  close(ends[1]);
  return {.pid = pid, .output = ends[0]};
}

// The number after `key` in what the child prints; waits for it.
int ReadPort(const Child& child, const std::string& key) {
  std::string text;
  char byte = 0;
  while (read(child.output, &byte, 1) == 1) {
    text += byte;
    const size_t found = text.find(key);
    if (found != std::string::npos && byte == '\n') {
      return std::atoi(text.c_str() + found + key.size());
    }
  }
  std::fprintf(stderr, "%s\n", text.c_str());
  std::exit(1);
}

void ServeReplica() {
  const auto controller = MakeClockController(kPeriod);
  auto server = serve::Server::Create({});
  CHECK(server.ok());
  serve::ReplicaFacade facade;
  facade.controller = controller.get();
  facade.model.id = "clock";
  facade.model.context_length = 1'000'000;
  facade.model.vocabulary_size = INT32_MAX;
  facade.model.fingerprint = "clock";
  (*server)->Open(facade);
  std::fprintf(stderr, "port=%d\n", (*server)->port());
  pause();
}

int64_t ResidentKibibytes(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("VmRSS:", 0) == 0) {
      return std::atoll(line.c_str() + 6);
    }
  }
  return 0;
}

void Print(const char* name, const Figures& figures) {
  std::printf("%-10s request p50 %6d us  p99 %7d us   chunk p50 %6d us  p99 %7d us  (%zu chunks)\n",
              name, Percentile(figures.request_us, 0.5), Percentile(figures.request_us, 0.99),
              Percentile(figures.chunk_us, 0.5), Percentile(figures.chunk_us, 0.99),
              figures.chunk_us.size());
}

int Run(const std::string& program, const std::string& model, int streams, int seconds) {
  std::vector<Child> children;
  std::vector<int> ports;
  for (int index = 0; index < 2; ++index) {
    children.push_back(Fork(ServeReplica));
    ports.push_back(ReadPort(children.back(), "port="));
  }
  const std::string replicas = absl::StrCat("a=127.0.0.1:", ports[0], ",b=127.0.0.1:", ports[1]);
  children.push_back(Fork([&] {
    execl(program.c_str(), program.c_str(), "balance", "--model", model.c_str(), "--model-id",
          "clock", "--listen", "127.0.0.1:0", "--replicas", replicas.c_str(), nullptr);
  }));
  const Child balancer = children.back();
  const int port = ReadPort(balancer, "serving port=");
  absl::SleepFor(absl::Seconds(1));  // the first load reports arrive
  const int64_t tokens = absl::Seconds(seconds) / kPeriod;

  Crowd warm(absl::StrCat("127.0.0.1:", port));
  warm.Start(streams / 10 + 1, 2);
  warm.Wait();
  Figures straight;
  Figures balanced;
  int64_t growth = 0;  // of the balancer's memory, with all streams open for the first time
  for (int round = 0; round < kRounds; ++round) {
    Crowd direct(absl::StrCat("127.0.0.1:", ports[0]));
    direct.Start(streams, tokens);
    straight.Append(direct.Wait());
    const int64_t before = ResidentKibibytes(balancer.pid);
    Crowd through(absl::StrCat("127.0.0.1:", port));
    through.Start(streams, tokens);
    growth = std::max(growth, ResidentKibibytes(balancer.pid) - before);
    balanced.Append(through.Wait());
  }
  Print("direct", straight);
  Print("balanced", balanced);

  std::printf("added: %d us a request, %d us a chunk (p50); memory %.1f KiB a stream\n",
              Percentile(balanced.request_us, 0.5) - Percentile(straight.request_us, 0.5),
              Percentile(balanced.chunk_us, 0.5) - Percentile(straight.chunk_us, 0.5),
              static_cast<double>(growth) / streams);
  for (const Child& child : children) {
    kill(child.pid, SIGKILL);
    waitpid(child.pid, nullptr, 0);
  }
  return 0;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "balancer_overhead PROGRAM MODEL [STREAMS] [SECONDS]\n");
    return 64;
  }
  return trireme::Run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 1000,
                      argc > 4 ? std::atoi(argv[4]) : 10);
}
