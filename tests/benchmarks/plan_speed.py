#!/usr/bin/python3
"""Predicted against measured decode speed: `trireme plan` and then `trireme bench` of the same cut,
in turn, for tensor ranks 1 and 2 and stages 1 and 2 on this host.

    TRIREME_PROGRAM=build/release/trireme tests/benchmarks/plan_speed.py [rounds]

Prints the medians with their ratio, and the best of each, which say more on a machine that others use too.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile

PROGRAM = os.environ.get("TRIREME_PROGRAM", "build/release/trireme")
MODEL = os.environ.get("TRIREME_MODEL") or os.path.expanduser(
    "~/.cache/trireme/SmolLM2-135M-Instruct.Q4_1.gguf")


def output(*arguments):
    return json.loads(subprocess.run([PROGRAM] + [str(word) for word in arguments], check=True,
                                     stdout=subprocess.PIPE,
                                     stderr=subprocess.DEVNULL).stdout)


def plan(folder, tensor, stages):
    path = os.path.join(folder, "cluster.yaml")
    with open(path, "w") as file:
        file.write("version: 1\nmodel: {path: \"%s\"}\nnodes: {n1: {}}\nreplicas:\n  r1:\n"
                   "    stages: [%s]\n    engine: {listen: \"127.0.0.1:7001\"}\n" % (
                       MODEL, ", ".join(["{node: n1, ranks: %d, threads: 1}" % tensor] * stages)))
    return output("plan", path, "--json")["replicas"][0]


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print("decode, tokens/s               median                     best\n"
          "tensor stages  layers     predicted  measured  ratio  predicted  measured  ratio")
    with tempfile.TemporaryDirectory() as folder:
        for tensor, stages in ((1, 1), (2, 1), (1, 2), (2, 2)):
            predicted, measured, best = [], [], 0
            for _ in range(rounds):
                planned = plan(folder, tensor, stages)
                layers = ",".join(map(str, planned["stage_layers"]))
                predicted.append(planned["decode_tokens_per_second"])
                bench = output("bench", "--model", MODEL, "--tensor", tensor, "--stages", stages,
                               "--stage-layers", layers, "--threads", 1, "--prompt-tokens", 32,
                               "--generate-tokens", 24, "--repeat", 5, "--json", "--quiet")
                measured.append(bench["decode_tokens_per_second"]["median"])
                best = max(best, bench["decode_tokens_per_second"]["maximum"])
            middle = statistics.median(predicted), statistics.median(measured)
            print("%6d %6d  %-9s %10.1f %9.1f %6.2f %10.1f %9.1f %6.2f" % (
                tensor, stages, layers, *middle, middle[0] / middle[1], max(predicted), best,
                max(predicted) / best), flush=True)


if __name__ == "__main__":
    main()
