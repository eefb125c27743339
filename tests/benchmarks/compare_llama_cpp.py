#!/usr/bin/python3
"""Trireme against llama.cpp on the same files, threads and token counts, in turn on one machine.

    python3 -m venv peer && CMAKE_ARGS="-DGGML_NATIVE=on -DGGML_AMX_TILE=off" \\
        peer/bin/pip install --no-binary llama-cpp-python llama-cpp-python
    TRIREME_PROGRAM=build/release/trireme tests/benchmarks/compare_llama_cpp.py \\
        --peer-python peer/bin/python --threads 1,2 --pairs 15 [--json OUT] [--plot OUT.svg] MODEL.gguf...

A pair is one sample of each, in the order AB, then BA, then AB, so that slow drifts of a shared machine
fall on both. The ratio is the median over pairs of Trireme's speed by the peer's of the same pair; its
interval holds the true median with at least 90 % confidence whatever the distribution (order statistics
of the binomial). The share is of the stream speed (decode) or of the integer peak (prefill) that `trireme
bench` measured around its samples. llama.cpp's AMX path built with gcc 12 crashes at its first product,
hence the flag; where another compiler builds it, use that and take the better of the two.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

PROGRAM = os.environ.get("TRIREME_PROGRAM", "build/release/trireme")
CONFIDENCE = 0.9


def serve_peer(model, threads, context):
    """The peer's side, under its own Python: a line "PROMPT GENERATE" in, the two speeds out."""
    import llama_cpp
    llama = llama_cpp.Llama(model_path=model, n_ctx=context, n_batch=512, n_ubatch=512,
                            n_threads=threads, n_threads_batch=threads, verbose=False)
    print(json.dumps({"version": llama_cpp.__version__}), flush=True)
    vocabulary, run = llama.n_vocab(), 0
    for line in sys.stdin:
        prompt_tokens, generate_tokens = map(int, line.split())
        run += 1
        prompt = [(i * 7919 + run * 104729 + 13) % vocabulary for i in range(prompt_tokens)]
        llama.reset()
        began = time.perf_counter()
        llama.eval(prompt)
        prefilled = time.perf_counter()
        for step in range(generate_tokens):
            llama.eval([(step * 104729 + run) % vocabulary])
        ended = time.perf_counter()
        print(json.dumps({"prefill": prompt_tokens / (prefilled - began),
                          "decode": generate_tokens / (ended - prefilled)}), flush=True)


class Peer:
    def __init__(self, python, model, threads, context):
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--serve-peer", str(threads), str(context), model],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.version = self._answer()["version"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the peer has ended; does %s import llama_cpp?" %
                             self.process.args[0])
        return json.loads(line)

    def sample(self, prompt_tokens, generate_tokens):
        self.process.stdin.write("%d %d\n" % (prompt_tokens, generate_tokens))
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sample_trireme(model, threads, prompt_tokens, generate_tokens):
    done = subprocess.run(
        [PROGRAM, "bench", "--model", model, "--threads", str(threads), "--prompt-tokens",
         str(prompt_tokens), "--generate-tokens", str(generate_tokens + 1), "--repeat", "1",
         "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
    bench = json.loads(done.stdout)
    return {"prefill": bench["prefill_tokens_per_second"]["median"],
            "decode": bench["decode_tokens_per_second"]["median"],
            "prefill_share": bench["prefill_share_of_peak"]["median"],
            "decode_share": bench["decode_share_of_stream"]["median"],
            "table": bench["kernel_table"], "disturbed": bench["disturbed"]}


def interval(values):
    """The median, and the narrowest pair of order statistics that covers the true one with
    CONFIDENCE."""
    values, n = sorted(values), len(values)
    below, low = 0.0, 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2 ** n  # the true median lies under values[k]
        if 2 * below > 1 - CONFIDENCE:
            break
        low = k
    return statistics.median(values), values[low], values[n - 1 - low]


def compare(model, threads, arguments):
    peer = Peer(arguments.peer_python, model, threads,
                arguments.prompt_tokens + arguments.generate_tokens + 8)
    tokens = (arguments.prompt_tokens, arguments.generate_tokens)
    peer.sample(*tokens)  # warm up; Trireme's bench does so itself
    pairs = []
    for index in range(arguments.pairs):
        halves = [lambda: ("trireme", sample_trireme(model, threads, *tokens)),
                  lambda: ("peer", peer.sample(*tokens))]
        pairs.append(dict(half() for half in (halves if index % 2 == 0 else halves[::-1])))
    peer.close()
    rows = []
    for what in ("prefill", "decode"):
        ratio, low, high = interval([pair["trireme"][what] / pair["peer"][what]
                                     for pair in pairs])
        rows.append({
            "model": os.path.basename(model), "threads": threads, "what": what,
            "trireme": statistics.median(pair["trireme"][what] for pair in pairs),
            "peer": statistics.median(pair["peer"][what] for pair in pairs),
            "ratio": ratio, "ratio_low": low, "ratio_high": high,
            "share": statistics.median(pair["trireme"][what + "_share"] for pair in pairs),
            "table": pairs[0]["trireme"]["table"], "peer_version": peer.version,
            "disturbed": sum(pair["trireme"]["disturbed"] > 0 for pair in pairs),
            "pairs": len(pairs)})
    return rows


def plot(rows, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5))
    names = ["%s\n%s, %d thr." % (row["model"], row["what"], row["threads"]) for row in rows]
    places = range(len(rows))
    axes[0].bar([x - 0.2 for x in places], [row["trireme"] for row in rows], 0.4, label="Trireme")
    axes[0].bar([x + 0.2 for x in places], [row["peer"] for row in rows], 0.4, label="llama.cpp")
    axes[0].set_ylabel("tokens/s")
    axes[0].legend()
    axes[1].bar(places, [100 * row["share"] for row in rows])
    axes[1].set_ylabel("Trireme's share of the limit, %")
    for axis in axes:
        axis.set_xticks(list(places))
        axis.set_xticklabels(names, rotation=60, ha="right", fontsize=7)
    figure.tight_layout()
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--prompt-tokens", type=int, default=512)
    parser.add_argument("--generate-tokens", type=int, default=64)
    parser.add_argument("--json")
    parser.add_argument("--plot")
    arguments = parser.parse_args()
    rows = []
    print("%-36s %7s %-8s %9s %9s %6s %15s %6s %s" % (
        "model", "threads", "", "Trireme", "llama.cpp", "ratio", "90 % interval", "share",
        "disturbed"))
    for model in arguments.models:
        for threads in map(int, arguments.threads.split(",")):
            for row in compare(model, threads, arguments):
                rows.append(row)
                print("%-36s %7d %-8s %9.1f %9.1f %6.2f %7.2f..%6.2f %5.0f%% %d of %d" % (
                    row["model"][:36], row["threads"], row["what"], row["trireme"], row["peer"],
                    row["ratio"], row["ratio_low"], row["ratio_high"], 100 * row["share"],
                    row["disturbed"], row["pairs"]), flush=True)
    print("table %s; llama-cpp-python %s" % (rows[0]["table"], rows[0]["peer_version"]))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if arguments.plot:
        plot(rows, arguments.plot)


if __name__ == "__main__":
    if len(sys.argv) == 5 and sys.argv[1] == "--serve-peer":
        serve_peer(sys.argv[4], int(sys.argv[2]), int(sys.argv[3]))
    else:
        main()
