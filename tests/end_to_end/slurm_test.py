#!/usr/bin/python3
"""The files of deploy/slurm under a real Slurm: they serve an answer, and drain as Slurm asks."""

import os
import re
import signal
import socket
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fleet as fleets  # noqa: E402
import replica as shared  # noqa: E402
from slurm import Slurm, SlurmAbsent  # noqa: E402

SCRIPTS = os.path.join(shared.ROOT, "deploy", "slurm")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


class SlurmTest(unittest.TestCase):
    messages = None
    slurm = None

    @staticmethod
    def own_address():
        """One that another host could reach: a replica of two nodes must not listen on loopback."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing
            except OSError as reason:
                raise unittest.SkipTest("this machine has no network: %s" % reason)
            return probe.getsockname()[0]

    def start(self, script, *words, options=(), environment=None, ready=r" serving port=(\d+)",
              host="127.0.0.1"):
        """(job, output, client of what serves)"""
        job, output = self.slurm.submit(
            os.path.join(SCRIPTS, script), *words, options=options,
            environment=dict(environment or {}, TRIREME=shared.PROGRAM))
        try:
            shared.wait_until(lambda: re.search(ready, read(output)) or self.slurm.is_over(job),
                              shared.START_SECONDS, "the job serves")
            port = int(re.search(ready, read(output)).group(1))
        except (AssertionError, AttributeError) as error:
            raise AssertionError("%s\n%s" % (error, self.slurm.logs())) from error
        return job, output, shared.Client("%s:%d" % (host, port), self.messages)

    def start_replica(self, *flags):
        return self.start("replica.sbatch", "--model", shared.MODEL, "--context-tokens", "4096",
                          *flags, environment={"TRIREME_LISTEN": "127.0.0.1:0"})

    def ranks(self, output):
        """{rank: process id}"""
        found = {int(rank): int(process) for rank, process in re.findall(
            r"rank=(\d+) start phase=launch host=\S+ process=(\d+)", read(output))}
        self.assertEqual(sorted(found), [0, 1, 2, 3])
        return found

    def long_stream(self, client, tokens):
        stream = shared.Stream(client, shared.text_request(self.messages, "Once upon a time",
                                                           tokens))
        stream.wait_for_tokens(3)
        return stream

    def finish(self, job, seconds=30):
        shared.wait_until(lambda: self.slurm.is_over(job), seconds, "the job is over")

    def test_E20_scancel_drains_a_replica_of_two_nodes(self):
        job, output, client = self.start_replica()
        stream = self.long_stream(client, 60)
        self.slurm.run("scancel", str(job), check=True)
        self.assertEqual(len(stream.result()[0]), 60)
        self.finish(job)
        self.assertIn("signal=15", read(output))
        client.close()

    def test_E20_a_signal_before_the_time_limit_drains_a_replica(self):
        job, output, client = self.start_replica()
        stream = self.long_stream(client, 60)
        self.slurm.run("scancel", "--signal=USR1", "%d.0" % job, check=True)
        self.assertEqual(len(stream.result()[0]), 60)
        self.finish(job)
        self.assertIn("signal=10", read(output))
        client.close()

    def test_E20_a_killed_rank_under_srun_ends_streams_with_its_name(self):
        job, output, client = self.start_replica()
        ranks = self.ranks(output)
        stream = self.long_stream(client, 2000)
        since = time.monotonic()
        os.kill(ranks[2], signal.SIGKILL)
        stream.join(5)
        took = time.monotonic() - since
        self.assertEqual(client.reason_of(stream.error), "RANK_LOST")
        self.assertIn("rank=2", stream.error.details())
        self.finish(job)
        print("SIGKILL of a rank under srun: streams ended after %.3f s" % took, flush=True)
        self.assertLess(took, 1.0)
        client.close()

    def test_E1_E20_every_death_of_a_rank_under_srun_ends_streams_with_our_word(self):
        for death in ("exit 0", "exit 3", "crash", "abort 42"):
            with self.subTest(death=death), tempfile.TemporaryDirectory() as faults:
                job, output, client = self.start_replica("--fault-injection", faults)
                stream = self.long_stream(client, 2000)
                with open(faults + "/new", "w", encoding="utf-8") as file:
                    file.write(death)
                os.rename(faults + "/new", faults + "/rank-2")
                stream.join(20)
                self.assertEqual(stream.error.code().name, "UNAVAILABLE", stream.error)
                if death != "abort 42":  # of which srun gives no notice, but kills
                    self.assertEqual(client.reason_of(stream.error), "RANK_LOST", stream.error)
                    self.assertIn("rank=2", stream.error.details())
                self.finish(job, 60)
                self.assertTrue(os.path.exists(faults + "/rank-2.done"))
                print("rank 2 under srun (%s): %s" % (death, stream.error.details()), flush=True)
                client.close()

    def test_E20_a_killed_slurmd_costs_no_stream_and_hides_no_death(self):
        job, output, client = self.start_replica()
        ranks = self.ranks(output)
        stream = self.long_stream(client, 60)
        self.slurm.kill_daemon("node2")
        self.assertEqual(len(stream.result()[0]), 60)
        self.assertEqual(len(self.long_stream(client, 8).result()[0]), 8)
        # Without the daemon, the death of a rank of its node is known all the same.
        stream = self.long_stream(client, 2000)
        os.kill(ranks[2], signal.SIGKILL)
        stream.join(20)
        self.assertEqual(client.reason_of(stream.error), "RANK_LOST", stream.error)
        self.assertIn("rank=2", stream.error.details())
        shared.wait_until(lambda: not [pid for pid in ranks.values() if shared.is_alive(pid)], 20,
                          "no rank is left")
        self.slurm.start_daemon("node2")
        self.finish(job, 120)
        client.close()

    def test_E20_a_fleet_in_an_allocation_restarts_its_replica_and_drains_for_scancel(self):
        folder = os.path.join(self.slurm.folder, "fleet")
        os.makedirs(folder, exist_ok=True)
        address = self.own_address()
        text, _, _ = fleets.topology(
            folder, launcher="srun", listen_host=address, nodes={"n1": "node1", "n2": "node2"},
            stages=[("n1", 2), ("n2", 2)])
        path = os.path.join(folder, "fleet.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        job, output, client = self.start("fleet.sbatch", path,
                                         options=["--nodes=2", "--ntasks-per-node=2"],
                                         ready=r"fleet serving port=(\d+)", host=address)
        expected = shared.Stream(client, shared.text_request(
            self.messages, "Once upon a time", 8)).result()[0]
        # A rank dies: the step ends, and the supervisor starts the next one.
        ranks = re.findall(r"rank=1 start phase=launch host=\S+ process=(\d+)",
                           read(os.path.join(folder, "run", "r1.log")))
        os.kill(int(ranks[-1]), signal.SIGKILL)
        shared.wait_until(lambda: len(re.findall(r"replica=r1 serves", read(output))) == 2, 60,
                          "the replica serves again:\n" + self.slurm.logs())
        stream = self.long_stream(client, 60)
        self.assertEqual(stream.ids[:3], expected[:3])
        self.slurm.run("scancel", str(job), check=True)
        self.assertEqual(len(stream.result()[0]), 60)
        self.finish(job)
        self.assertFalse(fleets.tagged(folder))
        client.close()


if __name__ == "__main__":
    shared.require(mpi=False)
    SlurmTest.messages = shared.Messages()
    try:
        SlurmTest.slurm = Slurm()
    except SlurmAbsent as reason:
        shared.skip(str(reason))
    with SlurmTest.slurm:
        program = unittest.main(verbosity=2, exit=False)
    sys.exit(0 if program.result.wasSuccessful() else 1)
