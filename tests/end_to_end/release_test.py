#!/usr/bin/python3
"""A balancer and a replica of different releases of protocol v1 work together.

tests/data/releases/NAME has, of each kept release, its protocol (protocol.binpb, a descriptor set) and
what its balancer and replica said to each other (exchange.json). Here an old balancer is who repeats
the recorded requests and reads answers with the old messages; an old replica is who repeats the
recorded answers. `--record NAME` keeps what this build says as one more release.
"""

import base64
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import balancer as fleets  # noqa: E402
import replica as shared  # noqa: E402

grpc = shared.grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

FOLDER = os.path.join(shared.ROOT, "tests", "data", "releases")
OURS = ["inference.proto", "engine.proto", "admin.proto", "fleet.proto"]
ENGINE = "trireme.v1.Engine"
EPOCH = 7


def requests(messages):
    """A greedy one, and a sampled one that ends at a text of its own."""
    greedy = shared.text_request(messages, "The capital of France is", 12)
    sampled = shared.text_request(messages, "Once upon a time", 16, seed=5)
    sampled.stopping.stop_strings.append("\n\n\n")
    sampled.output.logprobs = 0  # of the chosen tokens
    return [greedy, sampled]


def protocol_of_this_build():
    with tempfile.NamedTemporaryFile(suffix=".binpb") as file:
        subprocess.run(["protoc", "-I", ".", "--include_imports", "--descriptor_set_out=" + file.name]
                       + OURS, check=True, cwd=os.path.join(shared.ROOT, "proto"))
        return file.read()


class Release:
    """A kept one: its messages as classes, and its exchange."""

    def __init__(self, folder):
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "protocol.binpb"), "rb") as file:
            self.files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
        with open(os.path.join(folder, "exchange.json"), encoding="utf-8") as file:
            self.exchange = json.load(file)
        self.pool = descriptor_pool.DescriptorPool()
        for file in self.files.file:
            self.pool.Add(file)
        self.factory = message_factory.MessageFactory(self.pool)

    def parse(self, name, content):
        """The message, which must hold nothing of a kind that this release cannot understand."""
        kind = self.factory.GetPrototype(self.pool.FindMessageTypeByName("trireme.v1." + name))
        return kind.FromString(content)

    def recorded(self, kind):
        return [base64.b64decode(text) for text in self.exchange[kind]]

    def executions(self):
        return [(base64.b64decode(one["request"]), [base64.b64decode(text)
                                                    for text in one["events"]])
                for one in self.exchange["executions"]]


def releases():
    return [Release(folder) for folder in sorted(glob.glob(os.path.join(FOLDER, "*")))]


class Engine:
    """A server of trireme.v1.Engine made of three functions over raw bytes."""

    def __init__(self, execute, watch_load, lease):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        self.server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(ENGINE, {
            "Execute": grpc.unary_stream_rpc_method_handler(execute),
            "WatchLoad": grpc.unary_stream_rpc_method_handler(watch_load),
            "Lease": grpc.stream_stream_rpc_method_handler(lease)})])
        self.address = "127.0.0.1:%d" % self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stop(0)


def call(channel, shape, method):
    return getattr(channel, shape)("/%s/%s" % (ENGINE, method))


def record(messages):
    """What a balancer and a replica of this build say."""
    kept = {"load_reports": [], "lease_pings": [], "lease_pongs": [], "executions": []}

    def text(content):
        return base64.b64encode(content).decode()

    with shared.Replica(messages, 1, 1, flags=["--epoch", str(EPOCH)]) as replica:
        channel = grpc.insecure_channel("127.0.0.1:%d" % replica.port)

        def execute(request, context):
            one = {"request": text(request), "events": []}
            kept["executions"].append(one)
            for event in call(channel, "unary_stream", "Execute")(request):
                one["events"].append(text(event))
                yield event

        def watch_load(request, context):
            for report in call(channel, "unary_stream", "WatchLoad")(request):
                kept["load_reports"].append(text(report))
                yield report

        def lease(pings, context):
            def noted():
                for ping in pings:
                    kept["lease_pings"].append(text(ping))
                    yield ping
            for pong in call(channel, "stream_stream", "Lease")(noted()):
                kept["lease_pongs"].append(text(pong))
                yield pong

        with Engine(execute, watch_load, lease) as relay, fleets.Balancer(
                messages, {"r1": relay.address}) as balancer:
            client = balancer.client()
            for request in requests(messages):
                shared.Stream(client, request).result()
            client.close()
            shared.wait_until(lambda: kept["lease_pongs"] and kept["load_reports"], 10, "all kinds")
        channel.close()
    for kind in ("load_reports", "lease_pings", "lease_pongs"):
        del kept[kind][2:]
    return kept


class ReleaseTest(unittest.TestCase):
    messages = None

    def named(self, files):
        """{path: description} of all that v1 promises: {"trireme.v1.Sampling.seed": (4, ...)}"""
        found = {}

        def add_message(prefix, message):
            name = prefix + "." + message.name
            for field in message.field:
                oneof = message.oneof_decl[field.oneof_index].name if field.HasField(
                    "oneof_index") else ""
                found[name + "." + field.name] = (field.number, field.type, field.label,
                                                  field.type_name, oneof)
            for nested in message.nested_type:
                add_message(name, nested)
            for enum in message.enum_type:
                add_enum(name, enum)

        def add_enum(prefix, enum):
            for value in enum.value:
                found["%s.%s.%s" % (prefix, enum.name, value.name)] = value.number

        for file in files.file:
            if file.name not in OURS:
                continue
            for message in file.message_type:
                add_message(file.package, message)
            for enum in file.enum_type:
                add_enum(file.package, enum)
            for service in file.service:
                for method in service.method:
                    found["%s.%s/%s" % (file.package, service.name, method.name)] = (
                        method.input_type, method.output_type, method.client_streaming,
                        method.server_streaming)
        return found

    def test_there_is_a_kept_release(self):
        self.assertGreater(len(releases()), 0)

    def test_G5_the_protocol_only_grows(self):
        now = self.named(descriptor_pb2.FileDescriptorSet.FromString(protocol_of_this_build()))
        numbers = {}
        for path, description in now.items():
            if isinstance(description, tuple) and isinstance(description[0], int):
                numbers[path.rpartition(".")[0], description[0]] = path
        for release in releases():
            for path, description in self.named(release.files).items():
                with self.subTest(release=release.name, path=path):
                    self.assertEqual(now.get(path), description)
                    if isinstance(description, tuple) and isinstance(description[0], int):
                        self.assertEqual(numbers[path.rpartition(".")[0], description[0]], path)

    def test_a_changed_protocol_is_noticed(self):
        files = releases()[0].files
        before = self.named(files)
        changed = descriptor_pb2.FileDescriptorSet()
        changed.CopyFrom(files)
        engine = next(file for file in changed.file if file.name == "engine.proto")
        engine.message_type[0].field[0].number = 99
        self.assertNotEqual(self.named(changed), before)

    def test_G5_an_old_balancer_and_a_replica_of_this_build(self):
        for release in releases():
            with self.subTest(release=release.name), shared.Replica(
                    self.messages, 1, 1, flags=["--epoch", str(EPOCH)]) as replica:
                channel = grpc.insecure_channel("127.0.0.1:%d" % replica.port)
                over = threading.Event()

                def pings():
                    while not over.is_set():
                        yield release.recorded("lease_pings")[0]
                        over.wait(1)
                pong = next(call(channel, "stream_stream", "Lease")(pings()))
                self.assertEqual(release.parse("LeasePong", pong).epoch, EPOCH)
                reports = call(channel, "unary_stream", "WatchLoad")(b"")
                for seq in (1, 2):
                    report = release.parse("LoadReport", next(reports))
                    self.assertEqual(report.epoch, EPOCH)
                    self.assertEqual(report.phase, 2)  # SERVING
                    self.assertGreater(report.kv_blocks_total, 0)
                    self.assertGreaterEqual(report.report_seq, seq)
                reports.cancel()
                for request, events in release.executions():
                    answered = [release.parse("ExecuteEvent", event) for event in
                                call(channel, "unary_stream", "Execute")(request)]
                    self.check_answer(release, request, answered)
                    # As many tokens as the old replica gave for it.
                    self.assertEqual(
                        self.positions(answered),
                        self.positions([release.parse("ExecuteEvent", event) for event in events]))
                over.set()
                channel.close()

    @staticmethod
    def positions(events):
        """Of all tokens, whatever the events they came in."""
        return [event.tokens.first_position + index for event in events
                for index in range(len(event.tokens.token_ids))]

    def check_answer(self, release, request, events):
        asked = release.parse("ExecuteRequest", request)
        kinds = [event.WhichOneof("event") for event in events]
        self.assertEqual([event.seq for event in events], list(range(1, len(events) + 1)))
        self.assertEqual([kind for kind in kinds if kind not in ("tokens", "queued")],
                         ["accepted", "choice_finished", "finished"])
        self.assertEqual(events[kinds.index("accepted")].accepted.prompt_tokens,
                         len(asked.token_ids))
        positions = self.positions(events)
        self.assertEqual(positions, list(range(len(positions))))
        for event in events:
            if event.WhichOneof("event") == "tokens":
                self.assertEqual(len(event.tokens.logprobs),
                                 len(event.tokens.token_ids) if asked.want_logprobs else 0)

    def test_G5_a_balancer_of_this_build_and_an_old_replica(self):
        for release in releases():
            with self.subTest(release=release.name):
                asked = []

                def execute(content, context):
                    request = release.parse("ExecuteRequest", content)
                    asked.append(request)
                    for recorded, events in release.executions():
                        if release.parse("ExecuteRequest", recorded).token_ids == request.token_ids:
                            yield from events
                            return
                    context.abort(grpc.StatusCode.INTERNAL, "not recorded")

                def watch_load(_, context):
                    report = release.parse("LoadReport", release.recorded("load_reports")[0])
                    while context.is_active():
                        yield report.SerializeToString()
                        report.report_seq += 1
                        time.sleep(0.3)

                def lease(pings, context):
                    for ping in pings:
                        self.assertNotEqual(release.parse("LeasePing", ping).lease, "")
                        yield release.recorded("lease_pongs")[0]

                with Engine(execute, watch_load, lease) as old, fleets.Balancer(
                        self.messages, {"old": old.address}) as balancer:
                    client = balancer.client()
                    for request, (recorded, events) in zip(requests(self.messages),
                                                           release.executions()):
                        ids, text = shared.Stream(client, request).result()
                        said = [release.parse("ExecuteEvent", event) for event in events]
                        self.assertEqual(ids, [token for event in said
                                               for token in event.tokens.token_ids])
                        self.assertEqual(text, "".join(
                            event.tokens.text + event.choice_finished.text_tail for event in said))
                        wanted = release.parse("ExecuteRequest", recorded)
                        # What an old replica reads of it is what its own balancer would have said.
                        for field in ("epoch", "attempt", "sampling", "stopping", "want_text",
                                      "want_logprobs"):
                            self.assertEqual(getattr(asked[-1], field), getattr(wanted, field))
                    client.close()


def keep(name):
    folder = os.path.join(FOLDER, name)
    os.makedirs(folder)
    with open(os.path.join(folder, "protocol.binpb"), "wb") as file:
        file.write(protocol_of_this_build())
    with open(os.path.join(folder, "exchange.json"), "w", encoding="utf-8") as file:
        json.dump(record(ReleaseTest.messages), file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    shared.require(mpi=False)
    ReleaseTest.messages = shared.Messages()
    if sys.argv[1:2] == ["--record"]:
        keep(sys.argv[2])
    else:
        unittest.main(verbosity=2)
