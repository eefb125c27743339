"""What the end-to-end tests of the service share: a replica, its clients and its processes.

Needs python3-grpcio, python3-protobuf and protoc; message classes are made from proto/ at run time.
The program is named by TRIREME_PROGRAM, the model by TRIREME_MODEL (else the user's cache).
Every wait has a deadline; processes are ended by id.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TRIREME_PROGRAM", os.path.join(ROOT, "build/release/trireme"))
MODEL = os.environ.get("TRIREME_MODEL", os.path.expanduser(
    "~/.cache/trireme/SmolLM2-135M-Instruct.Q4_1.gguf"))
START_SECONDS = 120
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
if os.geteuid() == 0:
    MPIRUN.append("--allow-run-as-root")


def skip(reason):
    print(reason + "; skipped", flush=True)
    sys.exit(SKIPPED)


try:
    import grpc
except ImportError:
    skip("python3-grpcio is not installed")


def require(mpi=True):
    """Ends the test as skipped where this machine lacks what it needs."""
    for program in ["protoc"] + (["mpirun"] if mpi else []):
        if shutil.which(program) is None:
            skip(program + " is not installed")
    if not os.path.exists(MODEL):
        skip("the model %s is not there" % MODEL)
    if not os.path.exists(PROGRAM):
        raise SystemExit("TRIREME_PROGRAM names no program: " + PROGRAM)


class Messages:
    """Modules made from proto/: inference, engine, admin, fleet, health, status, details."""

    def __init__(self):
        protos = ["inference.proto", "engine.proto", "admin.proto", "fleet.proto",
                  "grpc/health/v1/health.proto", "google/rpc/status.proto", "google/rpc/error_details.proto"]
        source = os.path.join(ROOT, "proto")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["protoc", "-I", source, "--python_out=" + folder] + protos,
                           check=True, cwd=source)
            sys.path.insert(0, folder)
            import inference_pb2
            import engine_pb2
            import admin_pb2
            import fleet_pb2
            self.inference, self.engine, self.admin = inference_pb2, engine_pb2, admin_pb2
            self.fleet = fleet_pb2
            # grpc and google are packages of the system; ours are loaded beside them by path.
            self.health = self._load(folder, "grpc/health/v1/health_pb2.py")
            self.status = self._load(folder, "google/rpc/status_pb2.py")
            self.details = self._load(folder, "google/rpc/error_details_pb2.py")
            sys.path.remove(folder)

    @staticmethod
    def _load(folder, path):
        import importlib.util
        name = os.path.basename(path)[:-3]
        spec = importlib.util.spec_from_file_location(name, os.path.join(folder, path))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module


class Client:
    """One channel to a service, with serializers by hand."""

    def __init__(self, address, messages):
        self.messages = messages
        # A pool of its own: otherwise equal channels of one process share a connection.
        self.channel = grpc.insecure_channel(
            address, [("grpc.use_local_subchannel_pool", 1),
                      ("grpc.initial_reconnect_backoff_ms", 50),
                      ("grpc.max_reconnect_backoff_ms", 200),
                      # Also the time that a connection may take.
                      ("grpc.min_reconnect_backoff_ms", 10000)])

    def connect(self):
        grpc.channel_ready_future(self.channel).result(timeout=20)

    def close(self):
        self.channel.close()

    def unary(self, method, request, response_class, timeout=30):
        call = self.channel.unary_unary(
            method, request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response_class.FromString)
        return call(request, timeout=timeout)

    def stream(self, method, request, response_class, timeout=120):
        call = self.channel.unary_stream(
            method, request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=response_class.FromString)
        return call(request, timeout=timeout)

    def generate(self, request, timeout=120):
        return self.stream("/trireme.v1.Inference/Generate", request,
                           self.messages.inference.GenerateEvent, timeout)

    def check_health(self):
        health = self.messages.health
        return self.unary("/grpc.health.v1.Health/Check", health.HealthCheckRequest(),
                          health.HealthCheckResponse, timeout=5).status

    def watch_health(self):
        health = self.messages.health
        return self.stream("/grpc.health.v1.Health/Watch", health.HealthCheckRequest(),
                           health.HealthCheckResponse)

    def replica_status(self):
        admin = self.messages.admin
        return self.unary("/trireme.v1.Admin/GetStatus", admin.GetStatusRequest(),
                          admin.ReplicaStatus)

    def drain(self):
        admin = self.messages.admin
        return self.unary("/trireme.v1.Admin/Drain", admin.DrainRequest(), admin.DrainResponse)

    def details_of(self, error):
        """{"ErrorInfo": message, "RetryInfo": message, ...} of a grpc.RpcError."""
        found = {}
        for key, value in error.trailing_metadata() or ():
            if key == "grpc-status-details-bin":
                for detail in self.messages.status.Status.FromString(value).details:
                    name = detail.type_url.rsplit(".", 1)[-1]
                    found[name] = getattr(self.messages.details, name).FromString(detail.value)
        return found

    def reason_of(self, error):
        info = self.details_of(error).get("ErrorInfo")
        assert info is None or info.domain == "trireme", info
        return "" if info is None else info.reason


class Stream(threading.Thread):
    """Reads one Generate call to its end and keeps the rules of docs/wire_protocol.md."""

    def __init__(self, client, request, timeout=120):
        super().__init__(daemon=True)
        self.client, self.ids, self.text = client, [], ""
        self.finished, self.broken_rule, self.error = False, "", None
        self.started_at, self.first_token_at, self.ended_at = time.monotonic(), None, None
        self.last_token_at = None
        self.disruptions = []
        self.call = client.generate(request, timeout)
        self.start()

    def run(self):
        try:
            for seq, event in enumerate(self.call, 1):
                self._take(seq, event)
            if not self.finished:
                self.broken_rule = "status OK without Finished"
        except grpc.RpcError as error:
            self.error = error
        self.ended_at = time.monotonic()

    def _take(self, seq, event):
        if event.seq != seq or self.finished:
            self.broken_rule = "event %d has seq %d" % (seq, event.seq)
        kind = event.WhichOneof("event")
        if kind == "chunk":
            if event.chunk.first_position != len(self.ids):
                self.broken_rule = "chunk at %d after %d tokens" % (event.chunk.first_position,
                                                                     len(self.ids))
            self.ids.extend(event.chunk.token_ids)
            self.text += event.chunk.text
            self.last_token_at = time.monotonic()
            self.first_token_at = self.first_token_at or self.last_token_at
        self.finished = kind == "finished"
        if self.finished:
            self.disruptions = list(event.finished.disruptions)

    def wait_for_tokens(self, count, seconds=60):
        wait_until(lambda: len(self.ids) >= count or self.ended_at, seconds,
                   "a stream has %d tokens" % count)
        assert self.error is None, self.error

    def result(self, seconds=120):
        """(ids, text) of a stream that must have ended well."""
        self.join(seconds)
        assert not self.is_alive(), "the stream has not ended after %d s" % seconds
        assert self.error is None, self.error
        assert not self.broken_rule, self.broken_rule
        return self.ids, self.text


def wait_until(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "not after %g s: %s" % (seconds, what)
        time.sleep(0.005)


def stat_fields(pid):
    """The fields of /proc/PID/stat from the state on, or None when there is no such process."""
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def is_alive(pid):
    """Zombies do not count: they hold nothing and wait only for their parent to look."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


def cpu_seconds(pid):
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descendants(pid):
    children = {}
    for name in os.listdir("/proc"):
        fields = stat_fields(int(name)) if name.isdigit() else None
        if fields is not None:
            children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def mpi_rank_of(pid):
    """The process's rank in its MPI job, or None for other processes."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as file:
            match = re.search(rb"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)\0", file.read())
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            words = file.read().split(b"\0")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return int(match.group(1)) if match and b"serve" in words else None


def end_processes(pids):
    for pid in pids:
        if is_alive(pid):
            for number in (signal.SIGKILL, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass


class Replica:
    """`trireme serve` alone (tensor * stages == 1) or under mpirun; a context manager.

    `launch` replaces the words before the program. `public` and `admin` are clients; the admin
    listener is a Unix socket, so that it is reachable from other network namespaces too.
    """

    def __init__(self, messages, tensor=2, stages=1, flags=(), launch=None, wait=True):
        self.messages, self.ranks = messages, {}
        self.folder = tempfile.TemporaryDirectory()
        self.log_path = os.path.join(self.folder.name, "log")
        self.admin_path = os.path.join(self.folder.name, "admin.sock")
        self.admin_address = "unix:" + self.admin_path
        self.size = tensor * stages
        words = launch if launch is not None else (
            MPIRUN + ["-n", str(self.size)] if self.size > 1 else [])
        words = words + [PROGRAM, "serve", "--model", MODEL, "--tensor", str(tensor), "--stages",
                         str(stages), "--threads", "1", "--listen", "127.0.0.1:0",
                         "--admin-listen", self.admin_address, "--quiet"] + list(flags)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        self.admin = Client(self.admin_address, messages)
        self.public = None
        if wait:
            try:
                self.wait_until_serving()
            except BaseException:
                self.__exit__()
                raise

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_until_serving(self):
        def port():
            code = self.process.poll()
            assert code is None, "the replica ended with %s:\n%s" % (code, self.log())
            return re.search(r"serving port=(\d+)", self.log())
        wait_until(port, START_SECONDS, "the replica serves")
        self.port = int(port().group(1))
        self.public = Client("127.0.0.1:%d" % self.port, self.messages)
        self.find_ranks()

    def find_ranks(self):
        if self.size > 1:
            ranks = [(mpi_rank_of(pid), pid) for pid in descendants(self.process.pid)]
            self.ranks = {rank: pid for rank, pid in ranks if rank is not None}
            assert sorted(self.ranks) == list(range(self.size)), self.ranks
        else:
            self.ranks = {0: self.process.pid}

    def living(self):
        return [pid for pid in self.ranks.values() if is_alive(pid)]

    def wait_for_exit(self, seconds):
        return self.process.wait(timeout=seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # A rank's parent may be gone already, so that its id must be remembered, not looked up.
        pids = set(descendants(self.process.pid)) | set(self.ranks.values())
        if self.process.poll() is None:
            end_processes([self.process.pid])
            self.process.wait(timeout=10)
        end_processes(pids)
        for client in (self.public, self.admin):
            if client is not None:
                client.close()
        self.folder.cleanup()


def text_request(messages, text, max_tokens, ignore_eos=True, seed=None):
    request = messages.inference.GenerateRequest(text=text)
    request.sampling.temperature = 0 if seed is None else 0.8
    if seed is not None:
        request.sampling.seed = seed
    request.stopping.max_tokens = max_tokens
    request.stopping.ignore_eos = ignore_eos
    return request


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
