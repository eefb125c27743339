#!/usr/bin/python3
"""Trireme against llama.cpp on the same files, threads and token counts, in turn on one machine.

    python3 -m venv peer && CMAKE_ARGS="-DGGML_NATIVE=on -DGGML_AMX_TILE=off" \\
        peer/bin/pip install --no-binary llama-cpp-python llama-cpp-python
    TRIREME_PROGRAM=build/release/trireme tests/benchmarks/compare_llama_cpp.py \\
        --peer-python peer/bin/python --threads 1,2 --pairs 15 [--depth 4096] [--streams 16] \\
        [--peer-flash-attention] [--foreign-threads 1] [--json OUT] [--plot OUT.svg] MODEL.gguf...

A pair is one sample of each, in the order AB, then BA, then AB, so that slow drifts of a shared machine
fall on both. The ratio is the median over pairs of Trireme's speed by the peer's of the same pair; its
interval holds the true median with at least 90 % confidence whatever the distribution (order statistics
of the binomial). The share is of the stream speed (decode) or of the peak of the products' own kind, 8-bit or
bfloat16 (prefill), that `trireme bench` measured around its samples. llama.cpp's AMX path built with gcc 12 crashes at its first product,
hence the flag; where another compiler builds it, use that and take the better of the two.
"""

import argparse
import atexit
import json
import math
import os
import statistics
import subprocess
import sys
import time

PROGRAM = os.environ.get("TRIREME_PROGRAM", "build/release/trireme")
CONFIDENCE = 0.9


class PeerContext:
    """A context of llama.cpp for `streams` sequences, driven by batches of its C interface."""

    def __init__(self, model, threads, positions, streams, flash):
        import llama_cpp
        self.api = llama_cpp
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(model.encode(),
                                                          llama_cpp.llama_model_default_params())
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = positions * streams
        parameters.n_batch = parameters.n_ubatch = 512
        parameters.n_seq_max = streams
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.flash_attn_type = 1 if flash else 0
        self.context = llama_cpp.llama_init_from_model(self.model, parameters)
        self.batch = llama_cpp.llama_batch_init(512, 0, 1)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def clear(self):
        self.api.llama_memory_clear(self.api.llama_get_memory(self.context), True)

    def decode(self, rows):
        """One batch of (token, position, stream, wants logits)."""
        for index, (token, position, stream, logits) in enumerate(rows):
            self.batch.token[index] = token % self.vocabulary
            self.batch.pos[index] = position
            self.batch.n_seq_id[index] = 1
            self.batch.seq_id[index][0] = stream
            self.batch.logits[index] = logits
        self.batch.n_tokens = len(rows)
        if self.api.llama_decode(self.context, self.batch) != 0:
            raise RuntimeError("llama_decode failed")
        self.api.llama_synchronize(self.context)

    def prompt(self, begin, end, streams, run):
        rows = [(i * 7919 + run * 104729 + stream * 1299709 + 13, i, stream, i == end - 1)
                for stream in range(streams) for i in range(begin, end)]
        for first in range(0, len(rows), 512):
            self.decode(rows[first:first + 512])


def serve_peer(model, threads, shape, flash):
    """The peer's side, under its own Python: a line in, the two speeds of a sample out."""
    import llama_cpp
    depth, prompt_tokens, generate_tokens, streams = shape
    peer = PeerContext(model, threads, sum(shape[:3]) + 8, streams, flash)
    print(json.dumps({"version": llama_cpp.__version__}), flush=True)
    for run, _ in enumerate(sys.stdin):
        peer.clear()
        peer.prompt(0, depth, streams, run)
        began = time.perf_counter()
        peer.prompt(depth, depth + prompt_tokens, streams, run)
        prefilled = time.perf_counter()
        for step in range(generate_tokens):
            peer.decode([(step * 104729 + run + stream, depth + prompt_tokens + step, stream, True)
                         for stream in range(streams)])
        ended = time.perf_counter()
        print(json.dumps({"prefill": streams * prompt_tokens / (prefilled - began),
                          "decode": streams * generate_tokens / (ended - prefilled)}), flush=True)


class Peer:
    def __init__(self, python, model, threads, shape, flash):
        self.process = subprocess.Popen(
            [python, os.path.abspath(__file__), "--serve-peer", model, str(threads),
             json.dumps(shape), "1" if flash else "0"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.version = self._answer()["version"]

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("the peer has ended; does %s import llama_cpp?" %
                             self.process.args[0])
        return json.loads(line)

    def sample(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def sample_trireme(model, threads, shape):
    depth, prompt_tokens, generate_tokens, streams = map(str, (*shape[:2], shape[2] + 1, shape[3]))
    done = subprocess.run(
        [PROGRAM, "bench", "--model", model, "--threads", str(threads), "--depth", depth,
         "--prompt-tokens", prompt_tokens, "--generate-tokens", generate_tokens, "--streams",
         streams, "--repeat", "1", "--json", "--quiet"], stdout=subprocess.PIPE, check=True)
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
    shape = (arguments.depth, arguments.prompt_tokens, arguments.generate_tokens,
             arguments.streams)
    peer = Peer(arguments.peer_python, model, threads, shape, arguments.peer_flash_attention)
    if arguments.depth == 0:
        peer.sample()  # warm up; Trireme's bench does so itself
    pairs = []
    for index in range(arguments.pairs):
        halves = [lambda: ("trireme", sample_trireme(model, threads, shape)),
                  lambda: ("peer", peer.sample())]
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
    parser.add_argument("--depth", type=int, default=0)
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--peer-flash-attention", action="store_true")
    parser.add_argument("--foreign-threads", type=int, default=0,
                        help="threads of other processes that compute all the while")
    parser.add_argument("--json")
    parser.add_argument("--plot")
    arguments = parser.parse_args()
    rows = []
    for _ in range(arguments.foreign_threads):
        atexit.register(subprocess.Popen([sys.executable, "-c", "while True: pass"]).kill)
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
    if len(sys.argv) == 6 and sys.argv[1] == "--serve-peer":
        serve_peer(sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4]), sys.argv[5] == "1")
    else:
        main()
