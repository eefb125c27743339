#!/usr/bin/python3
"""Three minutes of small requests against a whole fleet: memory and descriptors stay flat.

Two replicas (one of two tensor ranks) behind two balancers serve streams that end well, streams
that are cancelled in the middle, refused ones, and clients that come and go, some hundred thousand
tokens in all. A leak per request, stream or connection shows as a slope.
"""

import os
import random
import statistics
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import balancer as fleets  # noqa: E402
import replica as shared  # noqa: E402
import tiny_models  # noqa: E402

grpc = shared.grpc
SECONDS = float(os.environ.get("TRIREME_SOAK_SECONDS", "180"))
WARM_SHARE = 1 / 3  # of the time, in which caches, pools and histories fill
CLIENTS = 8
VOCABULARY = 331
PROMPT_MAX, TOKENS_MAX = 24, 16
PERIOD_SECONDS = 1.0
# Between the medians of the thirds after the warm one. Arenas of the allocator fill in steps of up
# to a MiB, some minutes long; 30,000 requests at a rate of 500/s between the medians show a leak of
# 100 bytes a request, and the least rate that passes one of 400.
GROWTH_BYTES_MAX = 3 << 20
REQUESTS_MIN = 8000


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


class Client(threading.Thread):
    """Requests of all fates, one after another, at either balancer."""

    def __init__(self, fleet, seed):
        super().__init__(daemon=True)
        self.fleet, self.draw = fleet, random.Random(seed)
        self.messages = fleet.messages
        self.requests, self.tokens, self.faults = 0, 0, []
        self.stopping = threading.Event()
        self.start()

    def run(self):
        while not self.stopping.is_set():
            client = fleets_client(self.fleet, self.draw)
            for _ in range(self.draw.randint(1, 200)):
                if self.stopping.is_set():
                    break
                self.one_request(client)
            client.close()

    def one_request(self, client):
        request = self.messages.inference.GenerateRequest()
        request.tokens.token_ids.extend(
            self.draw.randrange(VOCABULARY) for _ in range(self.draw.randint(1, PROMPT_MAX)))
        request.sampling.temperature = self.draw.choice([0, 0.8])
        request.stopping.max_tokens = self.draw.randint(1, TOKENS_MAX)
        request.stopping.ignore_eos = True
        fate = self.draw.choice(["ends", "ends", "ends", "cancelled", "refused", "named"])
        if fate == "refused":
            request.tokens.token_ids.append(VOCABULARY)
        elif fate == "named":  # its events are kept for a Resume
            request.request_id = "soak-%016x" % self.draw.getrandbits(64)
        call = client.generate(request)
        tokens, self.requests = 0, self.requests + 1
        try:
            for event in call:
                if event.WhichOneof("event") == "chunk":
                    tokens += len(event.chunk.token_ids)
                    if fate == "cancelled":
                        call.cancel()
        except grpc.RpcError as error:
            wanted = {"cancelled": grpc.StatusCode.CANCELLED,
                      "refused": grpc.StatusCode.INVALID_ARGUMENT}.get(fate)
            if error.code() != wanted:
                self.faults.append("%s: %s" % (fate, error))
        else:
            if fate == "refused" or (fate != "cancelled" and
                                     tokens != request.stopping.max_tokens):
                self.faults.append("%s: %d tokens of %d" % (fate, tokens,
                                                            request.stopping.max_tokens))
        self.tokens += tokens


def fleets_client(fleet, draw):
    return shared.Client(draw.choice(fleet.balancer_addresses()), fleet.messages)


class SoakTest(unittest.TestCase):
    messages = None

    def watch(self, processes):
        """{name: ([resident bytes], [descriptors])}, a sample each second."""
        samples = {name: ([], []) for name in processes}
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            for name, pid in processes.items():
                samples[name][0].append(shared.resident_bytes(pid))
                samples[name][1].append(descriptors(pid))
            time.sleep(PERIOD_SECONDS)
        return samples

    def test_memory_and_descriptors_stay_flat(self):
        with tempfile.TemporaryDirectory() as folder:
            shared.MODEL = os.path.join(folder, "tiny.gguf")
            tiny_models.write_uneven_model(shared.MODEL)
            # Ended streams are forgotten after a second, well inside the warm third.
            with fleets.Fleet(self.messages, balancer_flags=["--resume-grace", "1s"]) as fleet:
                processes = {"b%d" % (index + 1): balancer.process.pid
                             for index, balancer in enumerate(fleet.balancers)}
                for index, replica in enumerate(fleet.replicas):
                    for rank, pid in replica.ranks.items():
                        processes["r%d rank %d" % (index + 1, rank)] = pid
                clients = [Client(fleet, seed) for seed in range(CLIENTS)]
                samples = self.watch(processes)
                for client in clients:
                    client.stopping.set()
                for client in clients:
                    client.join(60)
                    self.assertFalse(client.is_alive(), "a stream does not end")
        faults = [fault for client in clients for fault in client.faults]
        requests = sum(client.requests for client in clients)
        print("%.0f s: %d requests, %d tokens, %d faults" %
              (SECONDS, requests, sum(client.tokens for client in clients), len(faults)))
        self.assertEqual(faults[:5], [])
        for name, (resident, open_files) in samples.items():
            warm = int(len(resident) * WARM_SHARE)
            half = warm + (len(resident) - warm) // 2
            before, after = resident[warm:half], resident[half:]
            grown = statistics.median(after) - statistics.median(before)
            print("%s: %.1f MiB resident, %+.0f KiB between the last two thirds; %d to %d "
                  "descriptors" % (name, after[-1] / 2**20, grown / 2**10,
                                   min(open_files[warm:]), max(open_files[warm:])))
        sys.stdout.flush()
        for name, (resident, open_files) in samples.items():
            warm = int(len(resident) * WARM_SHARE)
            half = warm + (len(resident) - warm) // 2
            self.assertLess(statistics.median(resident[half:]),
                            statistics.median(resident[warm:half]) + GROWTH_BYTES_MAX, name)
            # Connections come and go, so it is the usual number that may not rise.
            self.assertLessEqual(statistics.median(open_files[half:]),
                                 statistics.median(open_files[warm:half]) + 2, name)
        self.assertGreater(requests * (1 - WARM_SHARE) / 2, REQUESTS_MIN)


if __name__ == "__main__":
    shared.require()
    SoakTest.messages = shared.Messages()
    unittest.main(verbosity=2)
