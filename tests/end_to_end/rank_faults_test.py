#!/usr/bin/python3
"""Ranks that fail on purpose (`--fault-injection`): every way to die, in every phase of a rank's
life; a compute thread that hangs; ranks that freeze in each phase of a start; ranks that were not
started alike. Rows of the fault list stand in the names (test_E1_...).
"""

import os
import re
import shutil
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402
from fleet import Fleet  # noqa: E402

grpc = shared.grpc
FAULT_NAME = "trireme.FaultInjection"
SERVING, NOT_SERVING = 1, 2
STALLED = 75
STALL_MS = 6000  # no step of a busy machine takes so long
# How a rank dies, and the code that its launcher reports.
DEATHS = {"exit 0": 1, "exit 3": 3, "abort 42": 42, "crash": 139, "kill": 137}
PATIENT = "restart: {backoff: [100ms, 200ms], give_up: {failures: 1000, within: 10min}}"

def inject(folder, rank, fault):
    """Without a point the rank acts at once, else when it gets there."""
    path = os.path.join(folder, "rank-%d" % rank)
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(fault)
    try:
        os.remove(path + ".done")
    except FileNotFoundError:
        pass
    os.rename(path + ".new", path)


def wait_until_injected(folder, rank, seconds=60):
    shared.wait_until(lambda: os.path.exists(os.path.join(folder, "rank-%d.done" % rank)), seconds,
                      "the fault of rank %d happens" % rank)


class FaultFleet(Fleet):
    """A fleet whose replicas look into self.faults."""

    def start(self, wait=True):
        self.faults = os.path.join(self.folder, "faults")
        os.makedirs(self.faults, exist_ok=True)
        self.flags = ["--fault-injection", self.faults]
        super().start(wait)

    def exit_code(self, name="r1"):
        messages = self.messages.fleet
        fleet = self.admin.unary("/trireme.v1.Fleet/GetFleet", messages.GetFleetRequest(),
                                 messages.FleetStatus, timeout=5)
        return next(child.exit_code for child in fleet.children if child.name == name)


class RankCase(unittest.TestCase):
    messages = None

    def text(self, tokens, text="Once upon a time"):
        return shared.text_request(self.messages, text, tokens)


class DeathTest(RankCase):
    def die(self, fleet, rank, death, fault_point=""):
        if death == "kill":
            os.kill(fleet.ranks()[rank], signal.SIGKILL)
        else:
            inject(fleet.faults, rank, death + fault_point)

    def check_streams(self, streams, since):
        """All ended with a status of ours, before the launcher could cut them."""
        for stream in streams:
            stream.join(10)
            self.assertIsNotNone(stream.error, "the stream ended well")
            self.assertEqual(stream.broken_rule, "")
            self.assertEqual(stream.error.code().name, "UNAVAILABLE", stream.error)
            # An MPI_Abort lets mpirun end all ranks at once: whichever notice comes first.
            self.assertIn(stream.client.reason_of(stream.error), ("RANK_LOST", "DRAINING"),
                          stream.error)
            self.assertIn("RetryInfo", stream.client.details_of(stream.error))
        return max(stream.ended_at for stream in streams) - since

    def check_restart(self, fleet, epoch, death):
        fleet.wait_for_state("r1", "serving", epoch)
        self.assertEqual(fleet.exit_code(), DEATHS[death], fleet.logs())

    def test_E1_every_death_of_a_rank_in_decode_ends_its_streams_and_restarts(self):
        with FaultFleet(self.messages, defaults=PATIENT) as fleet:
            epoch = fleet.child("r1")["epoch"]
            for death in DEATHS:
                with self.subTest(death=death):
                    client = fleet.replica_client()
                    # faults_test.py has a hundred, after a kill.
                    streams = [shared.Stream(client, self.text(1500)) for _ in range(12)]
                    for stream in streams:
                        stream.wait_for_tokens(2)
                    since = time.monotonic()
                    self.die(fleet, 1, death)
                    took = self.check_streams(streams, since)
                    epoch += 1
                    self.check_restart(fleet, epoch, death)
                    print("rank 1 dies in decode (%s): 12 streams ended after %.3f s, exit code "
                          "%d, serving again" % (death, took, DEATHS[death]), flush=True)

    def test_E1_every_death_of_a_rank_that_idles_prefills_or_loads_restarts(self):
        with FaultFleet(self.messages, defaults=PATIENT) as fleet:
            epoch = fleet.child("r1")["epoch"]
            for death in DEATHS:
                with self.subTest(death=death, phase="idle"):
                    self.die(fleet, 1, death)
                    epoch += 1
                    self.check_restart(fleet, epoch, death)
                if death == "kill":
                    continue
                with self.subTest(death=death, phase="prefill"):
                    since = time.monotonic()
                    inject(fleet.faults, 1, death + " at prefill")
                    stream = shared.Stream(fleet.replica_client(), self.text(5))
                    self.check_streams([stream], since)
                    self.assertEqual(stream.ids, [])
                    epoch += 1
                    self.check_restart(fleet, epoch, death)
                with self.subTest(death=death, phase="load"):
                    # One start dies of the first fault, the next one of the second.
                    inject(fleet.faults, 1, "exit 3")
                    wait_until_injected(fleet.faults, 1)
                    inject(fleet.faults, 1, death + " at load")
                    epoch += 2
                    self.check_restart(fleet, epoch, death)
            self.assertEqual(len(shared.Stream(fleet.replica_client(),
                                               self.text(8)).result()[0]), 8)

    def test_E2_every_death_of_rank_0_ends_its_streams_and_restarts(self):
        with FaultFleet(self.messages, defaults=PATIENT) as fleet:
            epoch = fleet.child("r1")["epoch"]
            for death in DEATHS:
                with self.subTest(death=death):
                    client = fleet.replica_client()
                    streams = [shared.Stream(client, self.text(1500)) for _ in range(20)]
                    streams[0].wait_for_tokens(2)
                    since = time.monotonic()
                    self.die(fleet, 0, death)
                    for stream in streams:  # nobody is left to give details
                        stream.join(10)
                        self.assertEqual(stream.error.code().name, "UNAVAILABLE")
                    print("rank 0 dies (%s): streams ended after %.3f s" %
                          (death, max(stream.ended_at for stream in streams) - since), flush=True)
                    epoch += 1
                    self.check_restart(fleet, epoch, death)


class StallTest(RankCase):
    """A compute thread hangs while heartbeats go on."""

    def stall(self, layout, victim, words):
        faults = os.path.join(self.folder, "faults")
        shutil.rmtree(faults, ignore_errors=True)
        os.makedirs(faults)
        with shared.Replica(self.messages, *layout, flags=[
                "--fault-injection", faults, "--stall-ms", str(STALL_MS)]) as replica:
            self.assertEqual(self.health(replica.public, FAULT_NAME), SERVING)
            self.assertTrue(replica.admin.replica_status().fault_injection)
            seen = []
            watch = replica.public.watch_health()
            threading.Thread(target=self.read_health, args=(watch, seen), daemon=True).start()
            stream = shared.Stream(replica.public, self.text(1500))
            stream.wait_for_tokens(3)
            self.assertEqual(seen, [SERVING])
            inject(faults, victim, "block at decode")
            stream.join(60)
            self.assertEqual(stream.error.code().name, "UNAVAILABLE")
            self.assertEqual(replica.public.reason_of(stream.error), "RANK_LOST")
            for word in words:
                self.assertIn(word, stream.error.details())
            self.assertEqual(replica.wait_for_exit(20), STALLED, replica.log())
            shared.wait_until(lambda: len(seen) > 1, 5, "health has changed")
            self.assertEqual(seen[:2], [SERVING, NOT_SERVING])
            for rank in range(replica.size):
                self.assertRegex(replica.log(), r"dump rank=%d host=\S+ process=\d+ step=\d+ "
                                 r"phase=" % rank)
            shared.wait_until(lambda: not replica.living(), 5, "no rank is left")
            print("compute thread of rank %d of %d x %d hangs: %s" %
                  ((victim,) + layout + (stream.error.details(),)), flush=True)

    @staticmethod
    def read_health(watch, seen):
        try:
            for response in watch:
                seen.append(response.status)
        except grpc.RpcError:
            pass

    def health(self, client, name):
        health = self.messages.health
        try:
            return client.unary("/grpc.health.v1.Health/Check",
                                health.HealthCheckRequest(service=name),
                                health.HealthCheckResponse, timeout=5).status
        except grpc.RpcError as error:
            return error.code().name

    def setUp(self):
        import tempfile
        self.keeper = tempfile.TemporaryDirectory()
        self.addCleanup(self.keeper.cleanup)
        self.folder = self.keeper.name

    def test_E10_a_blocked_compute_thread_ends_the_replica_with_its_name(self):
        self.stall((2, 1), 1, ["rank=1 ", "was issued and does not finish"])

    def test_E10_a_blocked_compute_thread_of_rank_0_ends_the_replica(self):
        self.stall((2, 1), 0, ["rank=0 ", "was issued and does not finish"])

    def test_E10_a_blocked_replica_of_one_process_ends_too(self):
        self.stall((1, 1), 0, ["rank=0 ", "was issued and does not finish"])

    def test_faults_cannot_be_injected_without_the_flag(self):
        with shared.Replica(self.messages, 1, 1) as replica:
            self.assertEqual(self.health(replica.public, FAULT_NAME), "NOT_FOUND")
            self.assertFalse(replica.admin.replica_status().fault_injection)


class FrozenStartTest(RankCase):
    SHORT = ("timeouts: {launch: 6s, connect: 4s, load: 20s, warmup: 4s, stall: 30s}\n"
             "restart: {give_up: {failures: 1, within: 1min}}\n")

    def freeze(self, phase, rank, action, words):
        with FaultFleet(self.messages, wait=False, defaults=self.SHORT) as fleet:
            inject(fleet.faults, rank, "%s at %s" % (action, phase))
            self.assertIn(fleet.process.wait(timeout=90), (STALLED, 69), fleet.logs())
            log = fleet.log()
            self.assertRegex(log, words)
            self.assertFalse(fleet.orphans())
            print("rank %d: %s at %s: %s" % (rank, action, phase, re.search(words, log).group(0)),
                  flush=True)

    def test_E19_a_rank_that_freezes_in_the_connect_phase_is_named(self):
        for rank in (0, 1):
            self.freeze("connect", rank, "stop",
                        r"phase=connect is late: rank=%d .*is stopped" % rank)

    def test_E19_a_rank_that_freezes_in_the_warm_up_is_named(self):
        for rank in (0, 1):
            self.freeze("warmup", rank, "stop", r"rank=%d .*" % rank)

    def test_E19_a_rank_that_hangs_in_the_warm_up_is_named(self):
        self.freeze("warmup", 1, "block", r"phase=warmup is late: .*rank=1 .*")


if __name__ == "__main__":
    shared.require()
    RankCase.messages = shared.Messages()
    unittest.main(verbosity=2)
