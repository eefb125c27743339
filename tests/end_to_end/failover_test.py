#!/usr/bin/python3
"""Streams that survive: two replicas behind two balancers, and anything of it is killed.

Greedy and sampled streams run without a pause while ranks (rank 0 too), whole mpiruns and
balancers are killed at random moments. Every stream must end well, with the tokens and the text of
the undisturbed run. A stopped or cut-off replica's streams go on elsewhere within the detection
time, and a replica that comes back takes no request that was meant for its past.

`--kills N` kills N times (the last line says how many tokens differed); `--seed S` repeats a run.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import balancer as fleets  # noqa: E402
import replica as shared  # noqa: E402

grpc = shared.grpc
STREAMS = 40
TOKENS = 40
KILLS = 20
CUTS = 50
PROGRESS_TOKENS = 8  # of each stream between two kills: balance/quarantine.h
FILE = """version: 1
name: reloaded
model: {path: "%s"}
nodes: {here: {}}
replicas:
  r1: {stages: [{node: here, ranks: 1}], engine: {listen: "127.0.0.1:%d"}, launcher: none}
  r2: {stages: [{node: here, ranks: 1}], engine: {listen: "127.0.0.1:%d"}, launcher: none}
balancer: {listen: {grpc: "127.0.0.1:1"}, %s}
"""
GAP_SECONDS = 6.0  # 3 s until it is noticed, and a prefill elsewhere on a busy machine


def requests(messages, count=STREAMS, tokens=TOKENS):
    """Half greedy, half sampled."""
    made = []
    for index in range(count):
        text = "Number %d. The story of the sea begins" % index + " again" * (index % 7)
        made.append(shared.text_request(messages, text, tokens,
                                        seed=None if index % 2 == 0 else 100 + index))
    return made


def named(request, name):
    copy = type(request)()
    copy.CopyFrom(request)
    copy.request_id = name
    return copy


class Load:
    """Streams that follow each other on STREAMS threads until it is told to stop."""

    def __init__(self, fleet, wanted):
        self.fleet, self.wanted = fleet, wanted
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.requests, self.differing_tokens, self.faults = 0, 0, []
        self.moved = self.resumed = self.restarted = 0
        self.streams = [None] * len(wanted)  # what each thread reads now
        self.threads = [threading.Thread(target=self._run, args=(index,), daemon=True)
                        for index in range(len(wanted))]
        for thread in self.threads:
            thread.start()

    def _run(self, index):
        request, (ids, text) = self.wanted[index]
        round_index = 0
        while not self.stopping.is_set():
            round_index += 1
            stream = fleets.LastingStream(self.fleet.balancer_addresses(), self.fleet.messages,
                                          named(request, "load-%d-%d" % (index, round_index)),
                                          first=index)
            self.streams[index] = stream
            stream.join(240)
            with self.lock:
                self.requests += 1
                self.resumed += stream.resumes
                self.restarted += stream.restarts
                fault = stream.broken_rule or stream.error or (
                    None if stream.finished else "no end after 240 s")
                if fault:
                    self.faults.append("%s: %s" % (stream.request.request_id, fault))
                    continue
                self.moved += len(stream.finished.disruptions)
                self.differing_tokens += sum(a != b for a, b in zip(stream.ids, ids)) + abs(
                    len(stream.ids) - len(ids))
                if stream.text != text:
                    self.faults.append("%s: text %r, wanted %r" %
                                       (stream.request.request_id, stream.text, text))

    def wait_for_progress(self, tokens, seconds=120):
        """Until each stream of now has brought so many more tokens, or its end. A request under
        which two replicas die before it brings any is taken for what kills them."""
        marks = [(stream, len(stream.ids)) for stream in self.streams if stream is not None]
        shared.wait_until(lambda: self.faults or all(
            len(stream.ids) >= mark + tokens or not stream.is_alive() for stream, mark in marks),
            seconds, "every stream goes on")

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join(300)
            assert not thread.is_alive(), "a stream does not end"


class FailoverTest(unittest.TestCase):
    messages = None
    kills, seed = KILLS, 0

    def undisturbed(self, fleet, wanted):
        streams = [shared.Stream(fleet.balancers[0].client(), request) for request in wanted]
        return [(request, stream.result()) for request, stream in zip(wanted, streams)]

    def kill_something(self, fleet, draw):
        """What was killed, after it is back."""
        kind = draw.choice(["rank", "rank", "mpirun", "balancer"])
        index = draw.randrange(2)
        if kind == "balancer":
            fleet.balancers[index].kill()
            time.sleep(draw.uniform(0, 0.5))
            fleet.start_balancer(index)
            return "balancer b%d" % (index + 1)
        replica = fleet.replicas[index]
        if kind == "mpirun":
            fleets.kill(replica.process.pid)
            victim = "mpirun of r%d" % (index + 1)
        else:
            rank = draw.choice(sorted(replica.ranks))
            fleets.kill(replica.ranks[rank])
            victim = "rank %d of r%d" % (rank, index + 1)
        # All of it goes by itself; then it is started again, as a supervisor would.
        shared.wait_until(lambda: not replica.living(), 10, "the replica is gone")
        fleet.restart_replica(index)
        return victim

    def test_E1_F8_F10_every_stream_survives_kills_of_ranks_launchers_and_balancers(self):
        draw = random.Random(self.seed)
        # A kill every few seconds may hit one stream more often than life would.
        with fleets.Fleet(self.messages, balancer_flags=["--resumes", "50", "--attempts",
                                                         "50"]) as fleet:
            wanted = self.undisturbed(fleet, requests(self.messages))
            load = Load(fleet, wanted)
            for count in range(1, self.kills + 1):
                load.wait_for_progress(PROGRESS_TOKENS)
                time.sleep(draw.uniform(0, 1))
                if load.faults:
                    break
                began = time.monotonic()
                victim = self.kill_something(fleet, draw)
                print("kill %d: %s, back after %.1f s; %d requests so far, %d faults, %d differing "
                      "tokens" % (count, victim, time.monotonic() - began, load.requests,
                                  len(load.faults), load.differing_tokens), flush=True)
            load.stop()
            if load.faults:
                for balancer in fleet.balancers:
                    print("".join(line for line in balancer.log().splitlines(keepends=True)
                                  if "outcome=ok" not in line)[-3000:])
            self.assertEqual(load.faults, [])
            print("%d moves to another replica, %d resumes after a cut, %d requests asked again" %
                  (load.moved, load.resumed, load.restarted))
            print("%d kills, %d requests, %d differing tokens" %
                  (self.kills, load.requests, load.differing_tokens), flush=True)
            self.assertEqual(load.differing_tokens, 0)
            self.assertGreater(load.moved, 0)

    def test_F14_a_rolling_restart_of_replicas_and_balancers_fails_no_request(self):
        with fleets.Fleet(self.messages, layout=(1, 1)) as fleet:
            wanted = self.undisturbed(fleet, requests(self.messages, 12, 30))
            load = Load(fleet, wanted)
            for index in range(2):
                fleet.replicas[index].process.send_signal(signal.SIGTERM)
                self.assertEqual(fleet.replicas[index].wait_for_exit(60), 0)
                fleet.restart_replica(index)
            for index in range(2):
                fleet.balancers[index].process.send_signal(signal.SIGTERM)
                self.assertEqual(fleet.balancers[index].process.wait(60), 0)
                fleet.start_balancer(index)
            load.stop()
            print("rolling restart: %d requests, %d faults, %d differing tokens" %
                  (load.requests, len(load.faults), load.differing_tokens), flush=True)
            self.assertEqual(load.faults, [])
            self.assertEqual(load.differing_tokens, 0)

    def test_F15_settings_reloaded_again_and_again_lose_no_request(self):
        with tempfile.TemporaryDirectory() as folder, fleets.Fleet(
                self.messages, balancers=0, layout=(1, 1)) as fleet:
            path = os.path.join(folder, "fleet.yaml")

            def write(balancer):
                with open(path + ".new", "w", encoding="utf-8") as file:
                    file.write(FILE % (shared.MODEL, *fleet.replica_ports, balancer))
                os.rename(path + ".new", path)
            write("policy: {explore: 0.02}")
            fleet.balancer_ports, fleet.balancers = [shared.free_port()], [None]
            fleet.balancer_flags = ["--topology", path]
            fleet.start_balancer(0)
            admin = shared.Client(fleet.balancers[0].admin_address, self.messages)

            def reload(dry_run=False):
                messages = self.messages.admin
                return admin.unary("/trireme.v1.Admin/Reload",
                                   messages.ReloadRequest(dry_run=dry_run), messages.ReloadResponse)
            version = reload().version
            self.assertEqual(version, 1, "the file was put in force at the start")
            load = Load(fleet, self.undisturbed(fleet, requests(self.messages, 12, 30)))
            for turn in range(40):
                if turn % 2 == 0:
                    write("policy: {explore: 0.0%d}, limits: {queue: %d}" % (turn % 8 + 1,
                                                                             100 + turn))
                    self.assertEqual(reload(dry_run=True).version, version)
                    changed = reload()
                    version += 1
                    self.assertEqual(changed.version, version)
                    self.assertIn("-> %d" % (100 + turn), changed.changes[-1])
                else:
                    write("polcy: {explore: 1}")
                    with self.assertRaises(grpc.RpcError) as raised:
                        reload()
                    self.assertEqual(admin.reason_of(raised.exception), "BAD_PARAMETER")
                    self.assertIn("polcy", raised.exception.details())
                time.sleep(0.1)
            # SIGHUP does the same, and says so in the log.
            write("policy: {explore: 0.5}")
            os.kill(fleet.balancers[0].process.pid, signal.SIGHUP)
            shared.wait_until(lambda: "explore" in fleet.balancers[0].log() and
                              "-> 0.5" in fleet.balancers[0].log(), 10, "the file is in force")
            self.assertEqual(reload().version, version + 1)
            load.stop()
            admin.close()
            print("41 reloads, 20 of them refused: %d requests, %d faults" %
                  (load.requests, len(load.faults)), flush=True)
            self.assertEqual(load.faults, [])
            self.assertEqual(load.differing_tokens, 0)

    def test_E3_F5_streams_of_a_stopped_replica_go_on_elsewhere_within_the_detection_time(self):
        with fleets.Fleet(self.messages, balancers=1, layout=(1, 1)) as fleet:
            wanted = self.undisturbed(fleet, requests(self.messages, 8, 120))
            streams = [fleets.LastingStream(fleet.balancer_addresses(), self.messages,
                                            named(request, "stop-%d" % index))
                       for index, (request, _) in enumerate(wanted)]
            for stream in streams:
                shared.wait_until(lambda s=stream: len(s.ids) >= 3 or not s.is_alive(), 60,
                                  "tokens come")
            victim = fleet.replicas[0].process.pid
            os.kill(victim, signal.SIGSTOP)
            stopped = time.monotonic()
            for stream, (_, answer) in zip(streams, wanted):
                self.assertEqual(stream.result(), answer)
            moved = [d for stream in streams for d in stream.finished.disruptions]
            self.assertGreater(len(moved), 0, "no stream ran on the stopped replica")
            gaps = [d.gap.seconds + d.gap.nanos / 1e9 for d in moved]
            print("SIGSTOP: %d streams moved, longest gap %.2f s, all ended after %.1f s" %
                  (len(moved), max(gaps), time.monotonic() - stopped), flush=True)
            self.assertLess(max(gaps), GAP_SECONDS)
            for disruption in moved:
                self.assertEqual((disruption.from_replica, disruption.to_replica), ("r1", "r2"))
            # It wakes up: what it still has to say about its old attempts reaches nobody, and it
            # serves again.
            os.kill(victim, signal.SIGCONT)
            client = fleet.balancers[0].client()
            again = [shared.Stream(client, request) for request, _ in wanted]
            for stream, (_, answer) in zip(again, wanted):
                self.assertEqual(stream.result(), answer)

    def test_a_stream_whose_connection_is_cut_again_and_again_is_the_uncut_one(self):
        with fleets.Fleet(self.messages, replicas=1, balancers=1, layout=(1, 1)) as fleet:
            wanted = self.undisturbed(fleet, requests(self.messages, 4, 150))
            proxy = fleets.CuttingProxy(fleet.balancers[0].address, random.Random(self.seed))
            streams = resumes = 0
            while proxy.cuts < CUTS:
                request, answer = wanted[streams % len(wanted)]
                stream = fleets.LastingStream([proxy.address], self.messages,
                                              named(request, "cut-%d" % streams))
                self.assertEqual(stream.result(), answer)
                self.assertEqual(stream.restarts, 0, "a stream was asked for again")
                resumes += stream.resumes
                streams += 1
            proxy.close()
            print("%d cuts of %d streams, %d resumes, no token or text differs" %
                  (proxy.cuts, streams, resumes), flush=True)

    def test_E3_a_replica_refuses_attempts_that_are_meant_for_its_past(self):
        with shared.Replica(self.messages, 1, 1) as replica:
            engine = self.messages.engine
            reports = replica.public.stream("/trireme.v1.Engine/WatchLoad",
                                            engine.WatchLoadRequest(), engine.LoadReport)
            epoch = next(iter(reports)).epoch
            reports.cancel()
            self.assertGreater(epoch, 0)
            request = engine.ExecuteRequest(request_id="old", attempt=1, epoch=epoch - 1,
                                            token_ids=[1, 2, 3])
            with self.assertRaises(grpc.RpcError) as raised:
                list(replica.public.stream("/trireme.v1.Engine/Execute", request,
                                           engine.ExecuteEvent))
            self.assertEqual(raised.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertEqual(replica.public.reason_of(raised.exception), "RESUME_MISMATCH")


def main():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options, rest = parser.parse_known_args()
    shared.require()
    FailoverTest.kills, FailoverTest.seed = options.kills, options.seed
    FailoverTest.messages = shared.Messages()
    print("seed %d" % options.seed, flush=True)
    unittest.main(argv=[sys.argv[0]] + rest, verbosity=2)


if __name__ == "__main__":
    main()
