#!/usr/bin/python3
"""A replica of two tensor ranks under load, and at rest.

Sixteen clients at once get the answers each gets alone; cancel and deadline free the sequence;
a full queue refuses; health, drain, reflection and a taken port behave as docs/wire_protocol.md
says; an idle replica sleeps.
"""

import json
import os
import statistics
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402

grpc = shared.grpc
CLIENTS = 16
TOKENS = 48
FREE_SECONDS = 0.1
CONSTRAINT_BYTES_MAX = 8 << 20  # 10,000 of some KiB each would take 30 MiB
IDLE_SECONDS = 30
IDLE_SHARE_MAX = 0.04
PORT_UNAVAILABLE = 73
SERVING, NOT_SERVING = 1, 2  # grpc.health.v1.HealthCheckResponse.ServingStatus


class ServiceCase(unittest.TestCase):
    messages = None

    def request(self, text="Once upon a time", max_tokens=1500, seed=None):
        return shared.text_request(self.messages, text, max_tokens, seed=seed)

    def expect_error(self, stream, code, reason):
        stream.join(30)
        self.assertIsNotNone(stream.error, "the stream ended well")
        self.assertEqual(stream.error.code(), code, stream.error)
        self.assertEqual(stream.client.reason_of(stream.error), reason)


class LoadTest(ServiceCase):
    @classmethod
    def setUpClass(cls):
        cls.replica = shared.Replica(cls.messages, 2, 1)

    @classmethod
    def tearDownClass(cls):
        cls.replica.__exit__()

    def requests(self):
        """Of different lengths, greedy and sampled."""
        texts = ["Number %d. The story of the sea begins" % index + " again" * index
                 for index in range(CLIENTS)]
        return [self.request(text, TOKENS, seed=None if index % 2 == 0 else index)
                for index, text in enumerate(texts)]

    def test_sixteen_clients_get_what_each_gets_alone(self):
        clients = [shared.Client("127.0.0.1:%d" % self.replica.port, self.messages)
                   for _ in range(CLIENTS)]
        for client in clients:
            client.connect()
        requests = self.requests()
        start = time.monotonic()
        alone = [shared.Stream(client, request).result()
                 for client, request in zip(clients, requests)]
        alone_seconds = time.monotonic() - start
        start = time.monotonic()
        streams = [shared.Stream(client, request) for client, request in zip(clients, requests)]
        together = [stream.result() for stream in streams]
        together_seconds = time.monotonic() - start
        for client in clients:
            client.close()
        self.assertEqual([len(ids) for ids, _ in alone], [TOKENS] * CLIENTS)
        self.assertEqual(together, alone)
        tokens = CLIENTS * TOKENS
        print("one client %.1f tokens/s, %d clients %.1f tokens/s: %.2f x" %
              (tokens / alone_seconds, CLIENTS, tokens / together_seconds,
               alone_seconds / together_seconds), flush=True)

    def constrained(self, index):
        """A request with the index-th of many different constraints, and the field it is in."""
        request = self.request("Once upon a time", 8)
        constraint, name = request.constraint, "rule_%d" % index
        kind = ("grammar", "json_schema", "regex", "choice")[index % 4]
        if kind == "grammar":
            constraint.grammar.dialect = "gbnf"
            constraint.grammar.grammar = "root ::= %s+\n%s ::= %s\n" % (
                name, name, " | ".join('"%s%d"' % (name, word) for word in range(100)))
        elif kind == "json_schema":
            constraint.json_schema.schema_json = json.dumps(
                {"type": "object", "required": [name],
                 "properties": {"%s_%d" % (name, key): {"type": "string"} for key in range(50)}})
        elif kind == "regex":
            constraint.regex = "(%s[a-z]*){1,%d}" % (name, index + 1)
        else:
            constraint.choice.choices.extend("%s_%d" % (name, word) for word in range(100))
        return request, "constraint." + kind

    def refuse_constraints(self, indices):
        for index in indices:
            request, field = self.constrained(index)
            with self.assertRaises(grpc.RpcError) as refused:
                list(self.replica.public.generate(request))
            self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)
            details = self.replica.public.details_of(refused.exception)
            self.assertEqual(details["ErrorInfo"].reason, "FIELD_NOT_SUPPORTED")
            self.assertEqual([violation.field for violation in
                              details["BadRequest"].field_violations], [field])

    def test_C5_ten_thousand_grammars_are_refused_by_name_while_plain_requests_go_on(self):
        plain = self.request("Once upon a time", TOKENS)
        alone = shared.Stream(self.replica.public, plain).result()
        self.refuse_constraints(range(5000))  # the journal of 4096 ended streams is full
        pids = list(self.replica.ranks.values())
        before = sum(shared.resident_bytes(pid) for pid in pids)
        answers, flood_ended = [], threading.Event()

        def ask_plainly():
            client = shared.Client("127.0.0.1:%d" % self.replica.port, self.messages)
            while not flood_ended.is_set() or not answers:
                answers.append(shared.Stream(client, plain).result())
            client.close()
        asking = threading.Thread(target=ask_plainly)
        asking.start()
        start = time.monotonic()
        try:
            self.refuse_constraints(range(5000, 15000))
        finally:
            seconds = time.monotonic() - start
            flood_ended.set()
            asking.join(120)
        grown = sum(shared.resident_bytes(pid) for pid in pids) - before
        print("10000 constraints refused in %.1f s beside %d plain requests; memory %+.2f MiB" %
              (seconds, len(answers), grown / 2**20), flush=True)
        self.assertEqual(answers, [alone] * len(answers))
        self.assertGreater(len(answers), 1)
        self.assertLess(grown, CONSTRAINT_BYTES_MAX)

    def free_blocks(self):
        return self.replica.admin.replica_status().load.kv_blocks_free

    def seconds_until_free(self, blocks):
        start = time.monotonic()
        shared.wait_until(lambda: self.free_blocks() == blocks, 10, "all KV blocks are free")
        return time.monotonic() - start

    def test_cancel_frees_the_sequence(self):
        blocks, seconds = self.free_blocks(), []
        for _ in range(5):
            streams = [shared.Stream(self.replica.public, self.request()) for _ in range(4)]
            for stream in streams:
                stream.wait_for_tokens(2)
            self.assertLess(self.free_blocks(), blocks)
            for stream in streams:
                stream.call.cancel()
            seconds.append(self.seconds_until_free(blocks))
        print("cancel: blocks free after %s ms" % [round(1e3 * value) for value in seconds],
              flush=True)
        self.assertLessEqual(statistics.median(seconds), FREE_SECONDS)

    def test_the_cancel_call_ends_a_stream_by_its_id(self):
        request = self.request()
        request.request_id = "to-be-cancelled"
        stream = shared.Stream(self.replica.public, request)
        stream.wait_for_tokens(1)
        inference = self.messages.inference
        cancel = lambda: self.replica.public.unary(  # noqa: E731
            "/trireme.v1.Inference/Cancel",
            inference.CancelRequest(request_id="to-be-cancelled"), inference.CancelResponse)
        self.assertTrue(cancel().was_running)
        self.expect_error(stream, grpc.StatusCode.CANCELLED, "BY_CLIENT")
        self.assertFalse(cancel().was_running)

    def test_a_deadline_frees_the_sequence(self):
        blocks, seconds = self.free_blocks(), []
        for _ in range(5):
            stream = shared.Stream(self.replica.public, self.request(), timeout=0.4)
            stream.join(10)
            seconds.append(self.seconds_until_free(blocks))
            self.assertEqual(stream.error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
        print("deadline: blocks free after %s ms" % [round(1e3 * value) for value in seconds],
              flush=True)
        self.assertLessEqual(statistics.median(seconds), FREE_SECONDS)

    def test_watch_load_shows_a_sequence_come_and_go(self):
        engine = self.messages.engine
        reports = self.replica.public.stream("/trireme.v1.Engine/WatchLoad",
                                             engine.WatchLoadRequest(), engine.LoadReport, 30)
        first = next(reports)
        self.assertEqual(first.running_sequences, 0)
        stream = shared.Stream(self.replica.public, self.request())
        self.assertTrue(any(report.running_sequences == 1 and
                            report.kv_blocks_free < first.kv_blocks_free for report in reports))
        stream.call.cancel()
        self.assertTrue(any(report.running_sequences == 0 and
                            report.kv_blocks_free == first.kv_blocks_free for report in reports))
        reports.cancel()

    def test_reflection_lists_the_services_on_the_admin_listener_only(self):
        # ServerReflectionRequest{list_services: "*"} is field 7 with one byte.
        method = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
        answer = next(self.replica.admin.channel.stream_stream(method)(iter([b"\x3a\x01*"])))
        for name in (b"trireme.v1.Inference", b"trireme.v1.Engine", b"trireme.v1.Admin",
                     b"grpc.health.v1.Health"):
            self.assertIn(name, answer)
        with self.assertRaises(grpc.RpcError) as refused:
            next(self.replica.public.channel.stream_stream(method)(iter([b"\x3a\x01*"]),
                                                                   timeout=10))
        self.assertEqual(refused.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_a_taken_port_ends_the_job_with_its_code(self):
        taken = "127.0.0.1:%d" % self.replica.port
        flags = ["serve", "--model", shared.MODEL, "--listen", taken, "--quiet", "--threads", "1"]
        for words in ([shared.PROGRAM] + flags,
                      shared.MPIRUN + ["-n", "2", shared.PROGRAM] + flags + ["--tensor", "2"]):
            done = subprocess.run(words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, PORT_UNAVAILABLE, done.stderr)
            self.assertIn(taken.encode(), done.stderr)

    def idle_share(self):
        pids = self.replica.living()
        before = [shared.cpu_seconds(pid) for pid in pids]
        start = time.monotonic()
        time.sleep(IDLE_SECONDS)
        used = [shared.cpu_seconds(pid) - value for pid, value in zip(pids, before)]
        share = sum(used) / (time.monotonic() - start)
        print("idle: CPU seconds of each rank over %d s: %s: %.2f %% of a core" %
              (IDLE_SECONDS, ["%.2f" % value for value in used], 100 * share), flush=True)
        return share

    def test_idle_ranks_sleep(self):
        if self.idle_share() >= IDLE_SHARE_MAX:  # a busy machine may have disturbed it
            self.assertLess(self.idle_share(), IDLE_SHARE_MAX)


class QueueTest(ServiceCase):
    def test_a_full_queue_refuses_at_once(self):
        flags = ["--sequences", "1", "--queued-requests", "2"]
        with shared.Replica(self.messages, 1, 1, flags) as replica:
            self.assertEqual(self.places_left(replica), 2)
            running = shared.Stream(replica.public, self.request())
            running.wait_for_tokens(1)
            more = [shared.Stream(replica.public, self.request()) for _ in range(8)]
            shared.wait_until(lambda: any(stream.ended_at for stream in more), 10, "one is refused")
            time.sleep(0.5)
            refused = [stream for stream in more if stream.ended_at]
            self.assertGreaterEqual(len(refused), 5)
            self.assertLess(len(refused), len(more))
            for stream in refused:
                self.expect_error(stream, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
                self.assertIn("RetryInfo", stream.client.details_of(stream.error))
            self.assertIsNone(running.ended_at)
            for stream in [running] + more:
                stream.call.cancel()
            # Whoever comes after the cancels have been heard is served again.
            shared.wait_until(lambda: self.is_served(replica), 10, "a request is served again")

    def places_left(self, replica):
        engine = self.messages.engine
        reports = replica.public.stream("/trireme.v1.Engine/WatchLoad", engine.WatchLoadRequest(),
                                        engine.LoadReport, 30)
        places = next(reports).new_requests_max
        reports.cancel()
        return places

    def is_served(self, replica):
        stream = shared.Stream(replica.public, self.request(max_tokens=2))
        stream.join(30)
        if stream.error is not None:
            self.expect_error(stream, grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
        return stream.error is None


class HealthTest(ServiceCase):
    def test_health_turns_serving_after_the_warm_up_and_ends_with_a_drain(self):
        with shared.Replica(self.messages, 2, 1, wait=False) as replica:
            self.check_start(replica)
            self.check_drain(replica)

    def check_start(self, replica):
        seen, refused = set(), 0
        end = time.monotonic() + shared.START_SECONDS
        shared.wait_until(lambda: os.path.exists(replica.admin_path), shared.START_SECONDS,
                          "the admin socket is there")
        while SERVING not in seen:
            self.assertLess(time.monotonic(), end)
            self.assertIsNone(replica.process.poll(), replica.log())
            try:
                seen.add(replica.admin.check_health())
            except grpc.RpcError as error:  # it does not listen yet
                self.assertEqual(error.code(), grpc.StatusCode.UNAVAILABLE, error)
            if seen == {NOT_SERVING} and not refused:
                stream = shared.Stream(replica.admin, self.request(max_tokens=1))
                stream.join(30)
                if stream.error is not None:
                    self.expect_error(stream, grpc.StatusCode.UNAVAILABLE, "STARTING")
                    refused += 1
            time.sleep(0.02)
        self.assertEqual(seen, {NOT_SERVING, SERVING})
        self.assertEqual(refused, 1)
        self.assertEqual(len(shared.Stream(replica.admin, self.request(max_tokens=3)).result()[0]),
                         3)
        replica.wait_until_serving()

    def check_drain(self, replica):
        changes = []
        watch = replica.public.watch_health()
        threading.Thread(target=lambda: self.follow(watch, changes), daemon=True).start()
        shared.wait_until(lambda: changes == [SERVING], 10, "the watch says SERVING")
        running = shared.Stream(replica.public, self.request(max_tokens=500))
        running.wait_for_tokens(2)
        replica.process.send_signal(shared.signal.SIGUSR1)
        shared.wait_until(lambda: changes == [SERVING, NOT_SERVING], 1,
                          "the watch says NOT_SERVING")
        time.sleep(2.2)  # for 2 s requests are still taken
        if not running.ended_at:
            late = shared.Stream(replica.public, self.request(max_tokens=1))
            self.expect_error(late, grpc.StatusCode.UNAVAILABLE, "DRAINING")
        self.assertEqual(len(running.result()[0]), 500)
        self.assertEqual(replica.wait_for_exit(20), 0, replica.log())
        self.assertEqual(replica.living(), [])

    @staticmethod
    def follow(watch, changes):
        try:
            for response in watch:
                changes.append(response.status)
        except grpc.RpcError:
            pass


if __name__ == "__main__":
    shared.require()
    ServiceCase.messages = shared.Messages()
    unittest.main(verbosity=2)
