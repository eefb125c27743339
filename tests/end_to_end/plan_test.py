#!/usr/bin/python3
"""Topology files as operators meet them: `trireme plan` and `trireme check`.

What is planned is compared with what ranks of the same cut say that they take.
"""

import os
import re
import shutil
import socket
import stat
import subprocess
import tempfile
import unittest

import command_line
from command_line import DATA, DOES_NOT_FIT, MISSING, OK, PROGRAM, ROOT, USAGE, default_model, run

CONFIGURATION, OS_ERROR, PORT, DISAGREEMENT, PEER_LOST = 78, 71, 73, 76, 69
MODEL = os.path.join(DATA, "gguf-files", "good", "base-bpe.gguf")

CLUSTER = """\
version: 1
model: {path: "%(model)s"%(more_model)s}
%(defaults)s
nodes:
  n1: {%(node)s}
replicas:
  r1:
    stages:
%(stages)s
    engine: {listen: "%(listen)s"}
"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class PlanTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = temporary.name

    def write(self, text, name="cluster.yaml"):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def cluster(self, stages=("{node: n1}",), model=MODEL, more_model="", defaults="", node="",
                listen=None):
        return self.write(CLUSTER % {
            "stages": "\n".join("      - " + stage for stage in stages), "model": model,
            "more_model": more_model, "defaults": defaults, "node": node,
            "listen": listen or "127.0.0.1:%d" % free_port()})

    def agent(self, before_output=""):
        """A remote agent that "reaches" this host, and changes what comes back from there."""
        path = self.write("#!/bin/sh\nshift\nsh -c \"$*\" %s\n" % before_output, "agent.sh")
        os.chmod(path, stat.S_IRWXU)
        return path


class PlanCommandTest(PlanTest):
    def test_D13_all_errors_come_at_once_with_exit_code_78(self):
        path = self.write("version: 1\nmodel: {pth: a}\nnodes: {n1: {memory: 8}}\n")
        outcome = run("plan", path)
        self.assertEqual(outcome.code, CONFIGURATION, str(outcome))
        self.assertEqual(outcome.output, "")
        lines = outcome.errors.splitlines()
        self.assertEqual(lines[-1], "4 errors; nothing was started.")
        self.assertIn(path + ":2:9: model.pth: unknown key; did you mean \"path\"?", lines)
        self.assertIn(path + ":3:22: nodes.n1.memory: \"8\" has no unit; write 8MiB or 8GiB", lines)
        self.assertTrue(any(": replicas: missing" in line for line in lines), lines)

    def test_D13_what_only_the_model_shows_has_its_place_too(self):
        path = self.cluster(["{node: n1, ranks: 8, layers: 0-40}"], more_model=", context: 2000000")
        outcome = run("plan", "--nomeasure", path)
        self.assertEqual(outcome.code, CONFIGURATION, str(outcome))
        self.assertIn(":2:", outcome.errors)
        self.assertRegex(outcome.errors, r":9:\d+: replicas.r1.stages\[0\].ranks: 8 tensor ranks; "
                                         r"the model has \d query heads")
        self.assertRegex(outcome.errors, r":9:\d+: replicas.r1.stages\[0\].layers: ends with "
                                         r"layer 40; the model has layers 0-\d")
        self.assertIn("3 errors; nothing was started.", outcome.errors)

    def test_files_that_are_not_there(self):
        self.assertEqual(run("plan", os.path.join(self.folder, "none.yaml")).code, MISSING)
        outcome = run("plan", self.cluster(model="/no/model.gguf"))
        self.assertEqual(outcome.code, MISSING, str(outcome))
        self.assertIn("/no/model.gguf", outcome.errors)
        self.assertEqual(run("plan").code, USAGE)

    def test_ranks_take_exactly_what_was_planned(self):
        for tensor, stages, layers in ((1, 1, None), (2, 1, None), (1, 2, (1, 1)), (2, 2, (1, 1))):
            with self.subTest(tensor=tensor, stages=stages):
                rows = ["{node: n1, ranks: %d}" % tensor] * stages
                plan = self.plan(rows)
                cut = ["--tensor", tensor, "--stages", stages]
                if layers:
                    cut += ["--stage-layers", ",".join(map(str, plan["stage_layers"]))]
                outcome = run("generate", "--model", MODEL, "--prompt", "a", "--max-tokens", 1,
                              "--threads", 1, *cut)
                self.assertEqual(outcome.code, OK, str(outcome))
                told = re.findall(r"rank \d+: weights (\d+) bytes .*?, KV (\d+) bytes .*?, "
                                  r"workspace (\d+) bytes", outcome.errors)
                planned = [(str(rank["weight_bytes"]), str(rank["kv_bytes"]),
                            str(rank["workspace_bytes"])) for rank in plan["ranks"]]
                self.assertEqual(len(told), tensor * stages)
                self.assertEqual(told, planned)

    def plan(self, stages, *arguments, **options):
        outcome = run("plan", "--json", "--nomeasure", self.cluster(stages, **options), *arguments)
        self.assertEqual(outcome.code, OK, str(outcome))
        return outcome.json()["replicas"][0]

    def test_capacity_is_exact(self):
        # Without memory.kv: 32768 positions or the context, in blocks of 16.
        plan = self.plan(["{node: n1}"], "--sequence-tokens", 1000)
        self.assertEqual(plan["kv_tokens"], 32768)
        self.assertEqual(plan["sequences"], 32768 // 16 // 63)  # 1000 tokens are 63 blocks
        bytes_per_token = plan["ranks"][0]["kv_bytes"] // 32768
        # A MiB: whole blocks of 16 tokens that fit into it.
        plan = self.plan(["{node: n1}"], defaults="defaults: {memory: {kv: 1MiB}}",
                         more_model=", context: 64")
        blocks = (1 << 20) // (16 * bytes_per_token)
        self.assertEqual(plan["kv_tokens"], 16 * blocks)
        self.assertEqual(plan["ranks"][0]["kv_bytes"], 16 * blocks * bytes_per_token)

    def test_a_cut_for_unequal_nodes_gives_the_faster_one_more(self):
        text = ("version: 1\nmodel: {path: default}\nnodes:\n"
                "  fast: {host: a, bandwidth: 20GB/s, operations: 200Gop/s, memory: 4GiB}\n"
                "  slow: {host: b, bandwidth: 10GB/s, operations: 100Gop/s, memory: 4GiB}\n"
                "replicas:\n  r1:\n    stages: [{node: fast}, {node: slow}]\n"
                "    engine: {listen: \"a:7001\"}\n")
        outcome = run("plan", "--json", self.write(text),
                      environment={"TRIREME_MODEL": default_model()})
        self.assertEqual(outcome.code, OK, str(outcome))
        plan = outcome.json()["replicas"][0]
        # 30 layers; the output matrix weighs about as much as several of them and stands on the
        # slow node: more than two thirds of the layers go to the fast one.
        self.assertEqual(sum(plan["stage_layers"]), 30)
        self.assertGreater(plan["stage_layers"][0], 20)
        self.assertIn("stated", plan["speed_source"])
        self.assertGreater(plan["decode_tokens_per_second"], 0)

    def test_what_does_not_fit_is_refused_with_what_would(self):
        path = self.cluster(node="memory: 3MiB")
        outcome = run("plan", "--nomeasure", path)
        self.assertEqual(outcome.code, DOES_NOT_FIT, str(outcome))
        self.assertIn("does not fit: host localhost has 3.0 MiB", outcome.errors)
        self.assertIn("KV for at most", outcome.errors)
        self.assertIn("r1", outcome.output)  # the table is there nevertheless

    def test_speed_is_predicted_from_a_measurement(self):
        outcome = run("plan", self.cluster(["{node: n1, ranks: 2}"]))
        self.assertEqual(outcome.code, OK, str(outcome))
        self.assertRegex(outcome.output, r"predicted: decode [\d.]+ tokens/s for one sequence")
        self.assertIn("limited by", outcome.output)
        self.assertIn("n1: measured", outcome.output)

    def test_the_shipped_topologies_can_be_planned(self):
        for name in ("laptop", "two_replicas", "two_nodes"):
            outcome = run("plan", "--nomeasure", "--json",
                          os.path.join(ROOT, "deploy", "topologies", name + ".yaml"),
                          environment={"TRIREME_MODEL": MODEL})
            self.assertEqual(outcome.code, OK, str(outcome))


class CheckCommandTest(PlanTest):
    def test_a_good_host_is_good(self):
        outcome = run("check", self.cluster(["{node: n1, ranks: 2}"]))
        self.assertEqual(outcome.code, OK, str(outcome))
        self.assertRegex(outcome.output, r"localhost +(good|warning)")

    def test_a_taken_port_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            outcome = run("check", self.cluster(listen=address))
        self.assertEqual(outcome.code, PORT, str(outcome))
        self.assertIn("cannot listen at " + address, outcome.output)
        self.assertIn("fix: ", outcome.output)

    def test_E15_too_few_files_are_named_with_the_number_needed(self):
        outcome = run("check", self.cluster(), before=["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"])
        self.assertEqual(outcome.code, OS_ERROR, str(outcome))
        self.assertRegex(outcome.output, r"a process may open 64 files, \d+ are needed")
        self.assertIn("ulimit -n", outcome.output)

    @unittest.skipUnless(os.geteuid() == 0, "needs root to become a user whose threads are limited")
    def test_E15_too_few_threads_are_named_with_the_number_needed(self):
        # Another user's copies, since it may not enter the folders of this one.
        folder = tempfile.mkdtemp(prefix="trireme_threads_")
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o755)
        program, model = os.path.join(folder, "trireme"), os.path.join(folder, "model.gguf")
        shutil.copy(PROGRAM, program)
        shutil.copy(MODEL, model)
        os.chmod(model, 0o644)
        done = subprocess.run(
            ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "prlimit", "--nproc=12",
             program, "serve", "--model", model, "--threads", "4", "--listen", "127.0.0.1:0"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=30)
        self.assertEqual(done.returncode, OS_ERROR, done.stderr)
        self.assertIn(b"is 12 and 36 are needed", done.stderr)
        self.assertIn(b"ulimit -u", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "needs root for a /dev/shm of its own")
    def test_E15_a_full_shared_memory_is_named_with_the_bytes_needed(self):
        outcome = run("check", self.cluster(["{node: n1, ranks: 2}"]), before=[
            "unshare", "--mount", "sh", "-c",
            "mount -t tmpfs -o size=1m tmpfs /dev/shm && exec \"$@\"", "sh"])
        self.assertEqual(outcome.code, OS_ERROR, str(outcome))
        self.assertRegex(outcome.output, r"/dev/shm has 1.0 MiB free, its ranks need [\d.]+ MiB")
        self.assertIn("--shm-size", outcome.output)

    def test_cores_that_are_not_there_are_named(self):
        outcome = run("check", self.cluster(["{node: n1, cores: 1000}"]))
        self.assertEqual(outcome.code, CONFIGURATION, str(outcome))
        self.assertIn("core 1000 cannot be used there", outcome.output)

    def remote(self, agent):
        """A file whose one node is reached through the agent."""
        return self.cluster(node="host: elsewhere", listen="127.1.2.3:1".replace("127.", "10."),
                            defaults="defaults: {remote: {agent: %s}}" % agent)

    def test_other_hosts_are_looked_at_through_the_agent(self):
        outcome = run("check", self.remote(self.agent()))
        # Nobody has 10.1.2.3 here: the report came from "there", and says so.
        self.assertEqual(outcome.code, PORT, str(outcome))
        self.assertRegex(outcome.output, r"elsewhere +ERROR +cannot listen at 10.1.2.3:1")

    def test_another_version_and_another_model_are_named(self):
        agent = self.agent("| sed -e 's/trireme [0-9.]*/trireme 0.0.1/'")
        outcome = run("check", self.remote(agent))
        self.assertEqual(outcome.code, DISAGREEMENT, str(outcome))
        self.assertRegex(outcome.output, r'has "trireme 0.0.1", this host "trireme [\d.]+"')
        agent = self.agent("| sed -e 's/\"model_fingerprint\":[0-9]*/\"model_fingerprint\":7/'")
        outcome = run("check", self.remote(agent))
        self.assertEqual(outcome.code, DISAGREEMENT, str(outcome))
        self.assertIn("is another model there than on", outcome.output)

    def test_E17_a_host_that_cannot_be_reached_is_named_soon(self):
        agent = self.write("#!/bin/sh\necho no route to \"$1\" >&2\nexit 255\n", "agent.sh")
        os.chmod(agent, stat.S_IRWXU)
        outcome = run("check", self.remote(agent))
        self.assertEqual(outcome.code, PEER_LOST, str(outcome))
        self.assertIn("exit code 255: no route to elsewhere", outcome.output)
        self.assertLess(outcome.seconds, 10)


if __name__ == "__main__":
    command_line.main()
