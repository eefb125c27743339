#!/usr/bin/python3
"""A whole fleet under load: two replicas behind two balancers, all started by `trireme up`.

Greedy and sampled streams run without a pause while ranks, mpiruns and balancers are killed, which
the supervisor starts again, and while everything is restarted one after the other. Every stream must
end well with the tokens and the text of the undisturbed run.

`--kills N` kills N times; `--seed S` repeats a run.
"""

import argparse
import os
import random
import signal
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402
from failover_test import PROGRESS_TOKENS, Load, requests  # noqa: E402
from fleet import Fleet, tagged  # noqa: E402

KILLS = 8
PATIENT = "restart: {backoff: [200ms, 1s], give_up: {failures: 1000, within: 10min}}"


class FleetLoadTest(unittest.TestCase):
    messages = None
    kills, seed = KILLS, 0

    def undisturbed(self, fleet):
        client = fleet.client(fleet.doors[0])
        wanted = requests(self.messages)
        streams = [shared.Stream(client, request) for request in wanted]
        return [(request, stream.result()) for request, stream in zip(wanted, streams)]

    def check(self, load, fleet):
        self.assertEqual(load.faults, [], "\n".join(load.faults[:5]) + fleet.logs()[-8000:])
        self.assertEqual(load.differing_tokens, 0)
        self.assertGreater(load.requests, 0)

    def process_of(self, fleet, name):
        pids = [pid for pid, tag in tagged(fleet.folder).items() if tag.startswith(name + ":")]
        self.assertEqual(len(pids), 1)
        return pids[0]

    def kill_something(self, fleet, draw):
        """What was killed, after it is back by itself."""
        kind = draw.choice(["rank", "rank", "mpirun", "balancer"])
        name = ("balancer%d" if kind == "balancer" else "r%d") % draw.randint(1, 2)
        epoch = fleet.child(name)["epoch"]
        if kind == "balancer":
            victim, pid = name, self.process_of(fleet, name)
        elif kind == "mpirun":
            victim, pid = "mpirun of " + name, fleet.launcher(name)
        else:
            rank = draw.randint(0, 1)
            victim, pid = "rank %d of %s" % (rank, name), fleet.ranks(name)[rank]
        os.kill(pid, signal.SIGKILL)
        fleet.wait_for_state(name, "serving", epoch + 1)
        return victim

    def test_E1_E2_E5_F8_F10_streams_survive_kills_and_all_is_back_by_itself(self):
        draw = random.Random(self.seed)
        with Fleet(self.messages, replicas=2, balancers=2, defaults=PATIENT) as fleet:
            load = Load(fleet, self.undisturbed(fleet))
            for count in range(1, self.kills + 1):
                load.wait_for_progress(PROGRESS_TOKENS)
                time.sleep(draw.uniform(0, 1))
                began = time.monotonic()
                victim = self.kill_something(fleet, draw)
                print("kill %d: %s, back after %.1f s; %d requests so far, %d faults" %
                      (count, victim, time.monotonic() - began, load.requests, len(load.faults)),
                      flush=True)
                if load.faults:
                    break
            load.stop()
            self.check(load, fleet)
            print("%d kills, %d requests, %d differing tokens (seed %d)" %
                  (self.kills, load.requests, load.differing_tokens, self.seed), flush=True)
            self.assertEqual(fleet.stop(), 0, fleet.log())
            self.assertFalse(fleet.orphans())

    def test_F14_a_rolling_restart_of_everything_fails_no_request(self):
        with Fleet(self.messages, replicas=2, balancers=2, defaults=PATIENT) as fleet:
            load = Load(fleet, self.undisturbed(fleet))
            epochs = {name: child["epoch"] for name, child in fleet.status().items()}
            began = time.monotonic()
            fleet.drain("all", restart=True)
            for name in epochs:
                fleet.wait_for_state(name, "serving", max(epochs.values()) + 1)
            took = time.monotonic() - began
            load.stop()
            self.check(load, fleet)
            print("rolling restart of 2 replicas and 2 balancers in %.1f s: %d requests, 0 failed" %
                  (took, load.requests), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments, rest = parser.parse_known_args()
    shared.require()
    FleetLoadTest.messages = shared.Messages()
    FleetLoadTest.kills, FleetLoadTest.seed = arguments.kills, arguments.seed
    unittest.main(argv=[sys.argv[0]] + rest, verbosity=2)
