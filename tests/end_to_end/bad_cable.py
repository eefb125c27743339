#!/usr/bin/python3
"""A cable between two network namespaces that delays, loses, repeats, reorders and narrows what goes
through it, for kernels without netem. Needs root and /dev/net/tun.

    bad_cable.py PID_A NAME_A PID_B NAME_B

makes the interface NAME_A in the network namespace of process PID_A and NAME_B in that of PID_B, says
"ready", and carries Ethernet frames between them until its standard input ends. Each line there is
what is wrong with the cable from now on, in both directions, such as

    delay=0.2 loss=0.1 repeat=0.2 reorder=0.25 rate=125000

delay in seconds; loss, repeat, reorder: shares of the frames (a reordered one waits 10 ms longer than
those after it); rate in bytes a second, with at most half a second of frames waiting.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import sys
import time

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454ca, 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_BYTES_MAX = 65536
WAIT_SECONDS_MAX = 0.5
REORDER_SECONDS = 0.01


def make_tap(pid, name):
    """A file to read and write the frames of a new interface in the namespace of `pid`."""
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/%s/ns/net" % pid, "rb") as namespace:
        if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns to process %s" % pid)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, TUNSETIFF, struct.pack("16sH14x", name.encode(), IFF_TAP | IFF_NO_PI))
    return tap


class Direction:
    """Frames on their way to `sink`."""

    def __init__(self, sink, draw):
        self.sink, self.draw = sink, draw
        self.waiting, self.count = [], 0
        self.free_at = 0.0  # when the narrow place has let through what came before

    def send(self, frame, wrong, now):
        for _ in range(1 + (self.draw.random() < wrong.get("repeat", 0))):
            if self.draw.random() < wrong.get("loss", 0):
                continue
            due = now
            if wrong.get("rate"):
                if self.free_at - now > WAIT_SECONDS_MAX:
                    continue
                self.free_at = max(self.free_at, now) + len(frame) / wrong["rate"]
                due = self.free_at
            due += wrong.get("delay", 0)
            if self.draw.random() < wrong.get("reorder", 0):
                due += REORDER_SECONDS
            self.count += 1
            heapq.heappush(self.waiting, (due, self.count, frame))

    def deliver(self, now):
        while self.waiting and self.waiting[0][0] <= now:
            try:
                os.write(self.sink, heapq.heappop(self.waiting)[2])
            except OSError:
                pass  # an interface that is down loses its frames


def main(words):
    a, b = make_tap(words[0], words[1]), make_tap(words[2], words[3])
    draw = random.Random(1)
    directions = {a: Direction(b, draw), b: Direction(a, draw)}
    wrong = {}
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        due = min((way.waiting[0][0] for way in directions.values() if way.waiting), default=now + 1)
        ready, _, _ = select.select([a, b, 0], [], [], max(0, due - now))
        now = time.monotonic()
        for file in ready:
            if file == 0:
                line = os.read(0, 4096)
                if not line:
                    return
                last = line.decode().strip().split("\n")[-1]
                wrong = {key: float(value) for key, value in
                         (pair.split("=") for pair in last.split())}
                continue
            try:
                directions[file].send(os.read(file, FRAME_BYTES_MAX), wrong, now)
            except OSError:
                continue
        for way in directions.values():
            way.deliver(now)


if __name__ == "__main__":
    main(sys.argv[1:])
