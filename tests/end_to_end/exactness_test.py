#!/usr/bin/python3
"""The same request gives the same bits however it is computed: layout, threads, prompt chunks,
batch, order of arrival, kernel table, ranks as threads, as processes, as processes on several nodes.

Files of logits are compared byte by byte, ids as lists. The first run (one rank, one thread, one
chunk) is the measure; whether its values are right is the work of the other tests.
"""

import os
import re
import shutil
import tempfile
import unittest

import command_line
import tiny_models
from command_line import (DATA, MPIRUN, USAGE, default_model, generate, must_run, run, score,
                          write_json)
from network_nodes import Nodes, NodesAbsent

LAYOUTS = [(tensor, stages) for tensor in (1, 2, 4, 8) for stages in (1, 2, 3)]
# Lengths around the KV block of 16 positions, the chunks of 7 and 64, and past several tiles.
LENGTHS = (1, 17, 45, 150)
# A small cache, so that starting 24 ranks costs little.
SMALL = ["--kv-tokens", "1024", "--quiet"]
SAMPLED = ["--temperature", "0.9", "--top-p", "0.95", "--seed", "7"]


def prompts_of(vocabulary, lengths):
    """Ids without pattern, the same in every run."""
    state, prompts = 12345, []
    for length in lengths:
        prompts.append([])
        for _ in range(length):
            state = (state * 1103515245 + 12345) % 2**31
            prompts[-1].append((state >> 8) % vocabulary)
    return prompts


def kernel_tables():
    return re.search("kernel tables: (.*)", must_run("--version").output).group(1).split(", ")


class Model:
    def __init__(self, path, vocabulary, ranks_max=8, stages_max=3, lengths=LENGTHS):
        self.path = path
        self.prompts = prompts_of(vocabulary, lengths)
        self.ranks_max = ranks_max
        self.stages_max = stages_max

    def layouts(self):
        return [(tensor, stages) for tensor, stages in LAYOUTS
                if tensor <= self.ranks_max and stages <= self.stages_max]


class Comparison(unittest.TestCase):
    """The verbs of the claims below."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def logits(self, model, *flags, sequences=None, **options):
        """The whole file that `score` writes."""
        _, path = score(model.path, sequences or model.prompts, self.folder, *SMALL, *flags,
                        **options)
        with open(path, "rb") as file:
            content = file.read()
        os.remove(path)
        return content

    def ids(self, model, *flags, prompts=None, tokens=24, **options):
        return generate(model.path, prompts or model.prompts, self.folder, "--ignore-eos",
                        "--max-tokens", tokens, *SMALL, *flags, **options)

    def assert_same_logits(self, model, variants, **options):
        wanted = self.logits(model, "--threads", "1")
        self.assertGreater(len(wanted), 1000)
        for flags in variants:
            with self.subTest(model=os.path.basename(model.path), flags=flags):
                self.assertTrue(self.logits(model, *flags, **options) == wanted, "bits differ")

    def need_mpi(self):
        if not shutil.which("mpirun") or "MPI: ON" not in must_run("--version").output:
            print("no mpirun, or a program without MPI; skipped")
            self.skipTest("no MPI")


class ExactnessTest(Comparison):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        uneven = os.path.join(temporary.name, "uneven.gguf")
        superblock = os.path.join(temporary.name, "superblock.gguf")
        tiny_models.write_uneven_model(uneven)
        tiny_models.write_superblock_model(superblock)
        cls.uneven = Model(uneven, 331)
        cls.superblock = Model(superblock, 333)
        families = os.path.join(DATA, "families")
        files = os.path.join(DATA, "gguf-files", "good")
        cls.models = {
            "uneven": cls.uneven,
            "superblock": cls.superblock,
            "llama": Model(os.path.join(families, "llama", "model.gguf"), 320, stages_max=2),
            "llama_rope_linear": Model(os.path.join(families, "llama_rope_linear", "model.gguf"),
                                       320, stages_max=2),
            "llama_rope_llama3": Model(os.path.join(families, "llama_rope_llama3", "model.gguf"),
                                       384, stages_max=2),
            "llama_rope_yarn": Model(os.path.join(families, "llama_rope_yarn", "model.gguf"), 331,
                                     stages_max=2),
            "base-bpe": Model(os.path.join(files, "base-bpe.gguf"), 288, 4, 2,
                              lengths=(1, 17, 100)),
            "spm-untied": Model(os.path.join(files, "spm-untied.gguf"), 288, 4, 2,
                                lengths=(1, 17, 100)),
        }

    def test_logits_have_the_same_bits_in_every_layout(self):
        for name, model in self.models.items():
            with self.subTest(model=name):
                self.assert_same_logits(model, [
                    ["--tensor", str(tensor), "--stages", str(stages), "--threads", "1"]
                    for tensor, stages in model.layouts() if (tensor, stages) != (1, 1)])

    def test_uneven_stages_change_no_bits(self):
        self.assert_same_logits(self.uneven, [
            ["--stages", "2", "--stage-layers", "1,3"], ["--stages", "2", "--stage-layers", "3,1"],
            ["--stages", "3", "--stage-layers", "1,2,1", "--tensor", "2"]])

    def test_float32_mode_keeps_its_bits_in_every_layout_too(self):
        flags = ["--activations", "float32", "--kv-cache", "f32"]
        wanted = self.logits(self.uneven, "--threads", "1", *flags)
        for tensor, stages in ((2, 1), (8, 1), (4, 3)):
            with self.subTest(tensor=tensor, stages=stages):
                self.assertTrue(wanted == self.logits(self.uneven, "--tensor", str(tensor),
                                                      "--stages", str(stages), *flags))

    def test_narrow_formats_of_keys_and_values_keep_their_bits_too(self):
        latent = Model(os.path.join(DATA, "families", "deepseek_v3", "model.gguf"), 320)
        for model, names in ((self.uneven, ("bf16", "int8", "fp8", "int4")), (latent, ("int4",))):
            wide = self.logits(model, "--threads", "1")
            for name in names:
                flags = ["--kv-cache", name]
                wanted = self.logits(model, "--threads", "1", *flags)
                self.assertFalse(wanted == wide)
                for layout in (["--tensor", "2"], ["--tensor", "4", "--stages", "3"],
                               ["--step-tokens", "7"], ["--kernels", "reference"]):
                    with self.subTest(model=model.path, format=name, layout=layout):
                        self.assertTrue(wanted == self.logits(model, *layout, *flags))

    def test_the_prompts_chunks_change_no_bits(self):
        for model in (self.uneven, self.superblock, self.models["llama"],
                      self.models["base-bpe"]):
            self.assert_same_logits(model, [["--step-tokens", str(tokens)]
                                            for tokens in (1, 7, 64, 512)])
        self.assert_same_logits(self.uneven, [["--step-tokens", "7", "--tensor", "2", "--stages",
                                               "2"]])

    def test_the_number_of_threads_changes_no_bits(self):
        for model in (self.uneven, self.superblock, self.models["llama"]):
            self.assert_same_logits(model, [["--threads", str(threads)] for threads in (2, 3)])

    def test_every_kernel_table_of_this_machine_gives_the_same_bits(self):
        for model in self.models.values():
            self.assert_same_logits(model, [["--kernels", table] for table in kernel_tables()])

    def test_generated_ids_are_the_same_in_every_layout(self):
        for flags in ([], SAMPLED):
            wanted = self.ids(self.uneven, "--threads", "1", *flags)
            self.assertEqual([len(ids) for ids in wanted], [24] * len(LENGTHS))
            for tensor, stages in ((2, 1), (1, 3), (4, 2), (8, 3)):
                with self.subTest(flags=flags, tensor=tensor, stages=stages):
                    self.assertEqual(wanted, self.ids(self.uneven, "--tensor", tensor, "--stages",
                                                      stages, *flags))

    def test_each_prompt_of_a_batch_gets_what_it_gets_alone(self):
        for model in (self.uneven, self.models["llama"]):
            for flags in ([], SAMPLED):
                alone = {tuple(prompt): self.ids(model, *flags, prompts=[prompt])[0]
                         for prompt in model.prompts}
                forward = model.prompts
                for prompts, further in (
                        (forward, []), (forward[::-1], []), (forward[1:3], []),
                        (forward[2:] + forward[:1] + forward[2:], []),
                        (forward * 3, ["--step-tokens", "7"]),
                        (forward * 3, ["--sequences", "2"]),
                        (forward * 3, ["--sequences", "3", "--tensor", "2", "--stages", "2"]),
                        (forward * 2, ["--step-tokens", "1"])):
                    with self.subTest(model=os.path.basename(model.path), flags=flags,
                                      prompts=len(prompts), further=further):
                        ids = self.ids(model, *flags, *further, prompts=prompts)
                        self.assertEqual(ids, [alone[tuple(prompt)] for prompt in prompts])

    def test_preemption_changes_no_ids(self):
        # 8 prompts of 45 and 24 tokens each need 8 x 69 positions; 192 hold fewer than three.
        prompts = prompts_of(331, [45] * 8)
        for flags in ([], SAMPLED):
            with self.subTest(flags=flags):
                wanted = self.ids(self.uneven, *flags, prompts=prompts)
                tight = generate(self.uneven.path, prompts, self.folder, "--ignore-eos",
                                 "--max-tokens", "24", "--kv-tokens", "192", "--context-tokens",
                                 "192", *flags)
                self.assertEqual(tight, wanted)

    def test_a_seed_is_a_promise_and_another_seed_another_text(self):
        wanted = self.ids(self.uneven, *SAMPLED)
        self.assertEqual(wanted, self.ids(self.uneven, *SAMPLED))
        self.assertNotEqual(wanted, self.ids(self.uneven, *SAMPLED, "--seed", "8"))

    def test_more_ranks_than_query_heads_are_refused_with_both_numbers(self):
        tokens = write_json(self.folder, "tokens.json", {"sequences": [[1, 2]]})
        outcome = run("score", "--model", self.models["base-bpe"].path, "--tokens", tokens,
                      "--tensor", "8", *SMALL)
        self.assertEqual(outcome.code, USAGE, str(outcome))
        self.assertRegex(outcome.errors, r"\b8\b.*\b4\b|\b4\b.*\b8\b")

    def test_ranks_as_processes_give_the_bits_of_ranks_as_threads(self):
        self.need_mpi()
        for model in (self.uneven, self.models["llama"]):
            wanted = self.logits(model, "--threads", "1")
            for ranks, tensor, stages in ((2, 2, 1), (2, 1, 2), (4, 2, 2), (4, 4, 1)):
                with self.subTest(model=os.path.basename(model.path), tensor=tensor,
                                  stages=stages):
                    flags = ["--tensor", str(tensor), "--stages", str(stages), "--threads", "1"]
                    before = MPIRUN + ["-n", str(ranks)]
                    self.assertTrue(wanted == self.logits(model, *flags, before=before),
                                    "bits differ")
        wanted = self.ids(self.uneven, *SAMPLED)
        self.assertEqual(wanted, self.ids(
            self.uneven, *SAMPLED, "--tensor", "2", "--stages", "2", "--threads", "1",
            before=MPIRUN + ["-n", "4"]))

    def test_ranks_on_several_nodes_give_the_same_bits(self):
        self.need_mpi()
        wanted, ids = self.logits(self.uneven), self.ids(self.uneven, *SAMPLED)
        for tensor, stages in ((1, 2), (2, 2), (4, 2), (1, 3), (2, 3)):
            with self.subTest(tensor=tensor, stages=stages):
                try:
                    cluster = Nodes(stages)
                except NodesAbsent as error:
                    print("no network namespaces on this machine: %s; skipped" % error)
                    self.skipTest("no namespaces")
                with cluster:
                    flags = ["--tensor", str(tensor), "--stages", str(stages), "--threads", "1"]
                    before = cluster.mpirun(tensor)
                    self.assertTrue(wanted == self.logits(self.uneven, *flags, before=before),
                                    "bits differ")
                    self.assertEqual(ids, self.ids(self.uneven, *SAMPLED, *flags, before=before))


class FormatExactnessTest(Comparison):
    """One small model in each quantised format."""

    def for_each_format(self, act):
        for name in tiny_models.FORMATS:
            if name != "F32":
                path = os.path.join(self.folder, name + ".gguf")
                tiny_models.write_model_in(path, name)
                with self.subTest(format=name):
                    act(Model(path, 111, lengths=(1, 17, 45)))
                os.remove(path)

    def test_layouts_chunks_threads_and_kernel_tables_change_no_bits(self):
        variants = [["--tensor", "8", "--threads", "1"],
                    ["--tensor", "4", "--stages", "2", "--step-tokens", "7"],
                    ["--tensor", "2", "--step-tokens", "1"]]
        variants += [["--kernels", table] for table in kernel_tables()[1:]]  # the first is the rule
        self.for_each_format(lambda model: self.assert_same_logits(model, variants))

    def test_float32_activations_give_the_same_bits_in_every_table_and_layout(self):
        flags = ["--activations", "float32"]

        def act(model):
            wanted = self.logits(model, "--threads", "1", *flags)
            for variant in [["--kernels", table] for table in kernel_tables()[1:]] + [
                    ["--tensor", "8", "--threads", "1", "--step-tokens", "7"]]:
                self.assertTrue(wanted == self.logits(model, *variant, *flags), str(variant))
        self.for_each_format(act)


class SmolLm2ExactnessTest(Comparison):
    """The default model, few tokens: its nine query heads and 48 groups divide unevenly."""

    @classmethod
    def setUpClass(cls):
        cls.smollm2 = Model(default_model(), 49152, lengths=(3, 21))

    def test_logits_have_the_same_bits_in_every_layout(self):
        self.assert_same_logits(self.smollm2, [
            ["--tensor", str(tensor), "--stages", str(stages), "--threads", "1"]
            for tensor, stages in LAYOUTS if (tensor, stages) != (1, 1)], seconds_max=120)

    def test_chunks_threads_and_kernel_tables_change_no_bits(self):
        tables = kernel_tables()
        self.assert_same_logits(
            self.smollm2,
            [["--step-tokens", "1"], ["--step-tokens", "7"], ["--step-tokens", "64"],
             ["--threads", "2"], ["--threads", "3"]] + [["--kernels", table] for table in tables],
            seconds_max=120)

    def test_generated_ids_are_the_same_in_every_mix_and_layout(self):
        alone = [self.ids(self.smollm2, tokens=8, prompts=[prompt])[0]
                 for prompt in self.smollm2.prompts]
        for flags in ([], ["--tensor", "2"], ["--tensor", "8", "--stages", "3"]):
            with self.subTest(flags=flags):
                ids = self.ids(self.smollm2, *flags, tokens=8,
                               prompts=self.smollm2.prompts[::-1], seconds_max=120)
                self.assertEqual(ids[::-1], alone)

    def test_ranks_as_processes_give_the_bits_of_ranks_as_threads(self):
        self.need_mpi()
        wanted = self.logits(self.smollm2)
        for ranks, tensor, stages in ((2, 2, 1), (4, 2, 2)):
            with self.subTest(tensor=tensor, stages=stages):
                self.assertTrue(wanted == self.logits(
                    self.smollm2, "--tensor", str(tensor), "--stages", str(stages), "--threads",
                    "1", before=MPIRUN + ["-n", str(ranks)], seconds_max=120), "bits differ")


if __name__ == "__main__":
    command_line.main()
