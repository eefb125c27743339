#!/usr/bin/python3
"""Debian's python3-grpcio, with message classes made from proto/, against a real `trireme serve`.

    grpc_python_test.py [serve flags...]

TRIREME_PROGRAM names the program, TRIREME_MODEL the model (else the one in the user's cache).
Checks: health turns SERVING only when an answer is possible, an answer streams by the rules of
docs/wire_protocol.md and is the same twice, cancellation and deadlines free the sequence, errors
carry details, the status shows the rank, reflection lists the services, a taken port is refused, a drain is announced.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

try:
    import grpc
except ImportError:
    print("python3-grpcio is not installed; skipped")
    sys.exit(77)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
START_SECONDS = 120
PORT_TAKEN = 73


def make_messages(folder):
    protos = ["inference.proto", "engine.proto", "admin.proto", "grpc/health/v1/health.proto",
              "google/rpc/status.proto", "google/rpc/error_details.proto"]
    source = os.path.join(ROOT, "proto")
    subprocess.run(["protoc", "-I", source, "--python_out=" + folder] + protos, check=True,
                   cwd=source)
    # grpc and google are packages of the system; ours are loaded beside them by path.
    sys.path.insert(0, folder)
    import importlib.util

    def load(path, name):
        spec = importlib.util.spec_from_file_location(name, os.path.join(folder, path))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    import inference_pb2
    import admin_pb2
    return (inference_pb2, admin_pb2, load("grpc/health/v1/health_pb2.py", "health_pb2"),
            load("google/rpc/status_pb2.py", "status_pb2"),
            load("google/rpc/error_details_pb2.py", "error_details_pb2"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    """The calls that the checks need, with serializers by hand."""

    def __init__(self, address, messages):
        self.inference, self.admin, self.health, self.status, self.details = messages
        self.channel = grpc.insecure_channel(address)

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
                           self.inference.GenerateEvent, timeout)

    def check_health(self, name=""):
        return self.unary("/grpc.health.v1.Health/Check",
                          self.health.HealthCheckRequest(service=name),
                          self.health.HealthCheckResponse, timeout=2).status

    def replica_status(self):
        return self.unary("/trireme.v1.Admin/GetStatus", self.admin.GetStatusRequest(),
                          self.admin.ReplicaStatus)

    def reason(self, error):
        for key, value in error.trailing_metadata():
            if key == "grpc-status-details-bin":
                status = self.status.Status.FromString(value)
                for detail in status.details:
                    if detail.type_url.endswith("google.rpc.ErrorInfo"):
                        info = self.details.ErrorInfo.FromString(detail.value)
                        assert info.domain == "trireme"
                        return info.reason
        return ""


def wait_until_serving(service, process):
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        assert process.poll() is None, "the server ended with %s" % process.returncode
        try:
            if service.check_health() == service.health.HealthCheckResponse.SERVING:
                return
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE, error
        time.sleep(0.05)
    raise AssertionError("not SERVING after %d s" % START_SECONDS)


def paris_request(inference, **stopping):
    request = inference.GenerateRequest()
    request.chat.messages.add(role="system", content="You answer in one short sentence.")
    request.chat.messages.add(role="user", content="What is the capital of France?")
    request.sampling.temperature = 0
    request.stopping.max_tokens = stopping.get("max_tokens", 40)
    request.stopping.ignore_eos = stopping.get("ignore_eos", False)
    return request


def read_stream(events):
    """Token ids and text, after checking the rules that every stream keeps."""
    ids, text, seq, finished = [], "", 0, 0
    for event in events:
        seq += 1
        assert event.seq == seq, "seq %d is followed by %d" % (seq - 1, event.seq)
        assert finished == 0, "an event after Finished"
        kind = event.WhichOneof("event")
        if kind == "chunk":
            assert event.chunk.first_position == len(ids)
            ids.extend(event.chunk.token_ids)
            text += event.chunk.text
        finished += kind == "finished"
    assert finished == 1, "no Finished"
    return ids, text


def check_answers(service, expect):
    ids, text = read_stream(service.generate(paris_request(service.inference)))
    print("answer: %r" % text)
    assert ids and text
    assert expect in text, "%r is not in %r" % (expect, text)
    assert read_stream(service.generate(paris_request(service.inference))) == (ids, text)


def wait_until_blocks_free(admin, free_blocks):
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if admin.replica_status().load.kv_blocks_free == free_blocks:
            return
        time.sleep(0.01)
    raise AssertionError("blocks are still held 10 s after the last stream ended")


def check_cancel_and_deadline(public, admin):
    free_blocks = admin.replica_status().load.kv_blocks_free
    request = paris_request(public.inference, max_tokens=400, ignore_eos=True)
    calls = [public.generate(request) for _ in range(8)]
    next(iter(calls[0]))
    for call in calls:
        call.cancel()
    wait_until_blocks_free(admin, free_blocks)
    try:
        read_stream(public.generate(request, timeout=0.2))
        raise AssertionError("the deadline did not end the stream")
    except grpc.RpcError as error:
        assert error.code() == grpc.StatusCode.DEADLINE_EXCEEDED, error
    wait_until_blocks_free(admin, free_blocks)


def check_errors(service):
    request = paris_request(service.inference)
    request.sampling.temperature = float("nan")
    expect_error(service, request, grpc.StatusCode.INVALID_ARGUMENT, "BAD_PARAMETER")
    request = paris_request(service.inference)
    request.sampling.presence_penalty = 1
    expect_error(service, request, grpc.StatusCode.UNIMPLEMENTED, "FIELD_NOT_SUPPORTED")
    request = service.inference.GenerateRequest()
    request.tokens.token_ids.append(2**31 - 1)
    expect_error(service, request, grpc.StatusCode.INVALID_ARGUMENT, "BAD_TOKEN_ID")


def expect_error(service, request, code, reason):
    try:
        read_stream(service.generate(request))
        raise AssertionError("%s was expected" % reason)
    except grpc.RpcError as error:
        assert error.code() == code, error
        assert service.reason(error) == reason, service.reason(error)


def check_status(admin, process):
    end = time.monotonic() + 10
    status = admin.replica_status()
    while status.ranks[0].phase != "idle" and time.monotonic() < end:  # a last step may still run
        time.sleep(0.01)
        status = admin.replica_status()
    assert status.version and status.fingerprint and status.phase_detail == "serving", status
    rank, = status.ranks  # flags of one rank
    assert (rank.rank, rank.stage, rank.tensor_rank) == (0, 0, 0), rank
    assert rank.process_id == process.pid and rank.host == socket.gethostname(), rank
    assert rank.phase == "idle" and rank.step == status.load.step > 0, status


def check_reflection(admin):
    # ServerReflectionRequest{list_services: "*"} is field 7 with one byte.
    call = admin.channel.stream_stream(
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
    answer = next(call(iter([b"\x3a\x01*"])))
    for name in (b"trireme.v1.Inference", b"trireme.v1.Engine", b"trireme.v1.Admin",
                 b"grpc.health.v1.Health"):
        assert name in answer, name


def check_taken_port(program, model, flags, address):
    second = subprocess.run([program, "serve", "--model", model, "--listen", address] + flags,
                            stderr=subprocess.PIPE, timeout=START_SECONDS, check=False)
    assert second.returncode == PORT_TAKEN, second.returncode
    assert address.encode() in second.stderr, second.stderr


def check_drain(public, admin, process):
    watch = public.stream("/grpc.health.v1.Health/Watch", public.health.HealthCheckRequest(),
                          public.health.HealthCheckResponse)
    serving = public.health.HealthCheckResponse
    assert next(watch).status == serving.SERVING
    running = public.generate(paris_request(public.inference))
    first = next(running)
    assert first.seq == 1
    admin.unary("/trireme.v1.Admin/Drain", admin.admin.DrainRequest(), admin.admin.DrainResponse)
    assert next(watch).status == serving.NOT_SERVING
    last = first
    for last in running:
        pass
    assert last.WhichOneof("event") == "finished"
    assert process.wait(timeout=60) == 0


def main():
    program = os.environ.get("TRIREME_PROGRAM", os.path.join(ROOT, "build/release/trireme"))
    model = os.environ.get("TRIREME_MODEL", os.path.expanduser(
        "~/.cache/trireme/SmolLM2-135M-Instruct.Q4_1.gguf"))
    flags = sys.argv[1:] or ["--threads", "2", "--quiet"]
    if shutil.which("protoc") is None:
        print("protoc is not installed; skipped")
        sys.exit(77)
    if not os.path.exists(model):
        print("the model %s is not there; skipped" % model)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        messages = make_messages(folder)
        address = "127.0.0.1:%d" % free_port()
        admin_address = "unix:" + os.path.join(folder, "admin.sock")
        process = subprocess.Popen([program, "serve", "--model", model, "--listen", address,
                                    "--admin-listen", admin_address] + flags)
        try:
            public = Service(address, messages)
            admin = Service(admin_address, messages)
            wait_until_serving(public, process)
            check_answers(public, os.environ.get("TRIREME_EXPECTED_ANSWER", "Paris"))
            check_errors(public)
            check_cancel_and_deadline(public, admin)
            check_status(admin, process)
            check_reflection(admin)
            check_taken_port(program, model, flags, address)
            check_drain(public, admin, process)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
    print("grpc_python_test: all checks passed")


if __name__ == "__main__":
    main()
