#!/usr/bin/python3
"""How far Trireme and llama.cpp are from exact arithmetic, on the same quantised files.

    TRIREME_PROGRAM=build/release/trireme peer/bin/python tests/benchmarks/compare_kl.py \\
        --text FILE [--tokens 4096] [--threads 2] [--formats Q4_0,Q6_K] MODEL.gguf

Runs under a Python that has llama_cpp (see compare_llama_cpp.py) and numpy. llama.cpp requantises the
model to each format; the text's tokens go through the file in windows of 512: in Trireme with float32
activations and keys and values, which is the reference (the fixtures' tests hold it to 1e-7 of
independent engines), in Trireme as it runs by default, and in llama.cpp. Prints the mean over positions of
KL(reference || engine), its ratio, and the mean difference of the two at the same position with its
standard error. In a model whose rows 256 does not divide llama.cpp stores most matrices of a k-quant in
another format; the tensors' formats are counted beside it.
"""

import argparse
import collections
import json
import os
import subprocess
import tempfile

import llama_cpp
import numpy

PROGRAM = os.environ.get("TRIREME_PROGRAM", "build/release/trireme")
WINDOW = 512
FORMATS = {"Q4_0": 2, "Q4_1": 3, "Q8_0": 7, "Q5_0": 8, "Q5_1": 9, "Q2_K": 10, "Q3_K_S": 11,
           "Q3_K_M": 12, "Q4_K_S": 14, "Q4_K_M": 15, "Q5_K_S": 16, "Q5_K_M": 17, "Q6_K": 18,
           "IQ4_NL": 25, "IQ3_S": 26, "IQ4_XS": 30, "BF16": 32, "F16": 1}


def windows_of(model, path, count):
    with open(path, encoding="utf-8") as file, tempfile.NamedTemporaryFile("w") as texts:
        json.dump([file.read()], texts)
        texts.flush()
        done = subprocess.run([PROGRAM, "tokenize", "--model", model, "--input", texts.name],
                              stdout=subprocess.PIPE, check=True)
    ids = json.loads(done.stdout)[0][:count]
    if len(ids) < count:
        raise SystemExit("%s has %d tokens; --tokens %d wanted" % (path, len(ids), count))
    return [ids[begin:begin + WINDOW] for begin in range(0, count, WINDOW)]


def requantise(model, path, file_type):
    parameters = llama_cpp.llama_model_quantize_default_params()
    parameters.ftype = file_type
    parameters.allow_requantize = True
    if llama_cpp.llama_model_quantize(model.encode(), path.encode(), parameters) != 0:
        raise SystemExit("llama.cpp does not make %s" % path)


def trireme_logits(model, windows, folder, threads, *flags):
    """A float32 array [tokens, vocabulary] for each window, mapped from a file."""
    tokens, path = os.path.join(folder, "tokens.json"), os.path.join(folder, "logits.safetensors")
    with open(tokens, "w", encoding="utf-8") as file:
        json.dump({"sequences": windows}, file)
    subprocess.run([PROGRAM, "score", "--model", model, "--tokens", tokens, "--logits", path,
                    "--threads", str(threads), "--quiet", "--json", *flags], check=True,
                   stdout=subprocess.DEVNULL)
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    arrays = []
    for index in range(len(windows)):
        entry = header["logits.%d" % index]
        arrays.append(numpy.memmap(path, "<f4", "r", 8 + size + entry["data_offsets"][0],
                                   tuple(entry["shape"])))
    os.unlink(path)  # the maps keep it
    return arrays


class Peer:
    def __init__(self, model, threads):
        self.model = llama_cpp.llama_model_load_from_file(model.encode(),
                                                          llama_cpp.llama_model_default_params())
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = WINDOW
        parameters.n_threads = parameters.n_threads_batch = threads
        self.context = llama_cpp.llama_init_from_model(self.model, parameters)
        self.batch = llama_cpp.llama_batch_init(WINDOW, 0, 1)
        self.vocabulary = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))

    def logits(self, window):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        for index, token in enumerate(window):
            self.batch.token[index], self.batch.pos[index] = token, index
            self.batch.n_seq_id[index], self.batch.seq_id[index][0] = 1, 0
            self.batch.logits[index] = True
        self.batch.n_tokens = len(window)
        if llama_cpp.llama_decode(self.context, self.batch) != 0:
            raise SystemExit("llama_decode failed")
        rows = llama_cpp.llama_get_logits(self.context)
        return numpy.ctypeslib.as_array(rows, (len(window), self.vocabulary)).copy()

    def close(self):
        llama_cpp.llama_batch_free(self.batch)
        llama_cpp.llama_free(self.context)
        llama_cpp.llama_model_free(self.model)


def divergences(reference, other):
    """KL of each position, in nats."""
    def log_softmax(rows):
        rows = rows.astype(numpy.float64)
        rows -= rows.max(axis=1, keepdims=True)
        return rows - numpy.log(numpy.exp(rows).sum(axis=1, keepdims=True))
    values = []
    for begin in range(0, len(reference), 64):
        p, q = log_softmax(reference[begin:begin + 64]), log_softmax(other[begin:begin + 64])
        values.append((numpy.exp(p) * (p - q)).sum(axis=1))
    return numpy.concatenate(values)


def tensor_formats(model):
    done = subprocess.run([PROGRAM, "inspect", model, "--json"], stdout=subprocess.PIPE,
                          check=True, text=True)
    counts = collections.Counter(tensor["type"] for tensor in json.loads(done.stdout)["tensors"]
                                 if len(tensor["dimensions"]) > 1)
    return " ".join("%s:%d" % item for item in counts.most_common())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", metavar="MODEL.gguf")
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--formats", default=",".join(FORMATS))
    arguments = parser.parse_args()
    windows = windows_of(arguments.model, arguments.text, arguments.tokens)
    quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(quiet, None)
    llama_cpp.llama_backend_init()
    print("%-8s %10s %10s %6s %22s  %s" % ("format", "Trireme", "llama.cpp", "ratio",
                                           "difference", "matrices"))
    for name in arguments.formats.split(","):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name + ".gguf")
            requantise(arguments.model, path, FORMATS[name])
            reference = trireme_logits(path, windows, folder, arguments.threads, "--activations",
                                       "float32", "--kv-cache", "f32")
            ours = trireme_logits(path, windows, folder, arguments.threads)
            peer = Peer(path, arguments.threads)
            pairs = [(divergences(exact, mine), divergences(exact, peer.logits(window)))
                     for exact, mine, window in zip(reference, ours, windows)]
            peer.close()
            mine, theirs = (numpy.concatenate(column) for column in zip(*pairs))
            difference = mine - theirs
            print("%-8s %10.6f %10.6f %6.3f %+.6f +- %.6f  %s" % (
                name, mine.mean(), theirs.mean(), mine.mean() / theirs.mean(), difference.mean(),
                difference.std(ddof=1) / len(difference) ** 0.5, tensor_formats(path)), flush=True)
    print("%d positions; llama-cpp-python %s" % (arguments.tokens, llama_cpp.__version__))


if __name__ == "__main__":
    main()
