#!/usr/bin/python3
"""What a replica says of itself: metrics that agree with its clients, logs, and `trireme why`.

Also holds what deploy/ ships for Prometheus and Grafana against the catalogue (docs/metrics.md).
"""

import json
import os
import re
import shutil
import subprocess
import sys
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402

DEPLOY = os.path.join(shared.ROOT, "deploy")
SUFFIXES = ("_bucket", "_sum", "_count")


def catalogue():
    """Name -> (kind, labels, processes), from the page; a unit test holds the page to the code."""
    with open(os.path.join(shared.ROOT, "docs/metrics.md"), encoding="utf-8") as page:
        rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page
                if line.startswith("| `trireme_")]
    return {row[0].strip("`"): (row[1], [label for label in row[2].split(", ") if label], row[3])
            for row in rows}


def plain_name(name, known):
    for suffix in SUFFIXES:
        if name not in known and name.endswith(suffix):
            return name[:-len(suffix)]
    return name


def scrape(port):
    with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % port, timeout=10) as answer:
        return answer.read().decode()


def value_of(text, series):
    match = re.search(r"^%s (\S+)$" % re.escape(series), text, re.MULTILINE)
    return float(match.group(1)) if match else None


class ShippedFilesTest(unittest.TestCase):
    def names_in(self, path):
        with open(os.path.join(DEPLOY, path), encoding="utf-8") as file:
            # Names of parts, such as alert groups, have no underscore after "trireme".
            return set(re.findall(r"\btrireme_[a-z0-9_]+", file.read()))

    def test_G2_alerts_and_board_use_metrics_that_exist(self):
        known = catalogue()
        for path in ("prometheus/alerts.yaml", "prometheus/alerts_test.yaml",
                     "grafana/trireme.json"):
            names = self.names_in(path)
            self.assertTrue(names)
            for name in names:
                self.assertIn(plain_name(name, known), known, path)

    def test_G2_every_alert_fires_on_a_series_made_for_it(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        folder = os.path.join(DEPLOY, "prometheus")
        for words in (["check", "rules", "alerts.yaml"], ["check", "config", "prometheus.yaml"],
                      ["test", "rules", "alerts_test.yaml"]):
            done = subprocess.run(["promtool"] + words, cwd=folder, capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(os.path.join(folder, "alerts.yaml"), encoding="utf-8") as file:
            alerts = set(re.findall(r"- alert: (\w+)", file.read()))
        with open(os.path.join(folder, "alerts_test.yaml"), encoding="utf-8") as file:
            tested = set(re.findall(r"alertname: (\w+)", file.read()))
        self.assertEqual(tested, alerts)

    def test_the_board_is_json_with_a_query_in_each_panel(self):
        with open(os.path.join(DEPLOY, "grafana/trireme.json"), encoding="utf-8") as file:
            panels = json.load(file)["panels"]
        self.assertTrue(panels)
        for panel in panels:
            self.assertTrue(panel["targets"] and all(t["expr"] for t in panel["targets"]))


# Which a model without experts does not have.
OF_MIXTURES = {"trireme_expert_busiest_ratio"}


class MixtureTest(unittest.TestCase):
    """gpt-oss in small: three layers, whose tokens use 3 of 8 experts each."""
    LAYERS, USED, EXPERTS = 3, 3, 8

    def show(self, stages):
        messages = shared.Messages()
        model = os.path.join(shared.ROOT, "tests/data/families/gpt_oss")
        flags = ["--model", model, "--metrics-listen", "127.0.0.1:0", "--context-tokens", "128"]
        with shared.Replica(messages, 1, stages, flags) as replica:
            request = messages.inference.GenerateRequest()
            request.tokens.token_ids.extend([5, 9, 77, 13, 2])
            request.stopping.max_tokens = 20
            request.stopping.ignore_eos = True
            request.sampling.temperature = 0  # else the tokens are drawn anew
            shared.Stream(replica.public, request).result()
            # The warm-up's prompt of one token, the prompt, all but the last of the generated ones.
            tokens = (1 + 5 + 19) * self.USED

            def are_counted():
                layers = replica.admin.replica_status().expert_layers
                return (len(layers) == self.LAYERS and
                        all(sum(layer.tokens) == tokens for layer in layers)) and layers
            # Another stage's come with its heartbeats.
            shared.wait_until(are_counted, 20, "all tokens are counted")
            layers = are_counted()
            port = int(re.search(r"metrics port=(\d+)", replica.log()).group(1))
            text = scrape(port)
            for index, layer in enumerate(layers):
                self.assertEqual(layer.layer, index)
                self.assertEqual(len(layer.tokens), self.EXPERTS)
                ratio = max(layer.tokens) * self.EXPERTS / tokens
                self.assertAlmostEqual(layer.busiest_ratio, ratio)
                self.assertAlmostEqual(value_of(
                    text, 'trireme_expert_busiest_ratio{layer="%d"}' % index), ratio)
            return [list(layer.tokens) for layer in layers]

    def test_the_load_of_each_expert_is_counted_alike_on_one_rank_and_on_two_stages(self):
        alone = self.show(1)
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun is not installed")
        self.assertEqual(self.show(2), alone)


class RunningReplicaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.messages = shared.Messages()
        flags = ["--metrics-listen", "127.0.0.1:0", "--log-format", "json"]
        cls.replica = shared.Replica(cls.messages, 1, 1, flags, wait=False)
        shared.wait_until(lambda: cls.event("serving"), shared.START_SECONDS, "the replica serves")
        cls.replica.public = shared.Client("127.0.0.1:%s" % cls.event("serving")["port"],
                                           cls.messages)
        cls.port = int(cls.event("metrics")["port"])

    @classmethod
    def tearDownClass(cls):
        cls.replica.__exit__()

    @classmethod
    def events(cls):
        return [json.loads(line) for line in cls.replica.log().splitlines()
                if line.startswith("{") and line.endswith("}")]

    @classmethod
    def event(cls, name, **fields):
        for event in cls.events():
            if event["event"] == name and all(event.get(k) == v for k, v in fields.items()):
                return event
        return None

    def run_request(self, request_id, tokens):
        request = shared.text_request(self.messages, "Once upon a time", tokens)
        request.request_id = request_id
        stream = shared.Stream(self.replica.public, request)
        ids = stream.result()[0]
        # The record is written once gRPC is done with the stream, a moment after the client is.
        shared.wait_until(lambda: self.event("request", id=request_id), 10, "the request is logged")
        return ids

    def test_metrics_agree_with_the_client(self):
        before = scrape(self.port)
        tokens = [len(self.run_request("counted-%d" % index, 3 + index)) for index in range(3)]
        after = scrape(self.port)

        def grown(series):
            return value_of(after, series) - (value_of(before, series) or 0)
        self.assertEqual(grown('trireme_requests_total{outcome="ok"}'), 3)
        self.assertEqual(grown("trireme_generated_tokens_total"), sum(tokens))
        self.assertEqual(grown("trireme_e2e_seconds_count"), 3)
        # A stream's parts add up to its whole.
        parts = sum(grown("trireme_%s_seconds_sum" % part)
                    for part in ("queue", "prefill", "decode"))
        self.assertAlmostEqual(parts, grown("trireme_e2e_seconds_sum"), delta=1e-3)
        self.assertGreaterEqual(grown("trireme_steps_total"), max(tokens))

    def test_G2_a_replica_shows_every_metric_that_the_page_gives_it(self):
        self.run_request("any", 3)
        text = scrape(self.port)
        known = catalogue()
        shown = {plain_name(name, known) for name in re.findall(r"^(trireme_\w+)[{ ]", text,
                                                                re.MULTILINE)}
        expected = {name for name, (_, _, processes) in known.items() if "replica" in
                    processes.split(", ")}
        self.assertEqual(shown, expected - OF_MIXTURES)

    def test_promtool_finds_no_fault(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        done = subprocess.run(["promtool", "check", "metrics"], input=scrape(self.port),
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_why_tells_times_that_add_up(self):
        tokens = len(self.run_request("asked-for", 5))
        done = subprocess.run([shared.PROGRAM, "why", "asked-for", "--admin",
                               self.replica.admin_address], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("asked-for at %s: ok, max_tokens" % self.replica.admin_address, done.stdout)
        self.assertIn("generated %d in 1 choices" % tokens, done.stdout)
        times = [float(ms) for ms in re.search(
            r"queue ([\d.]+) ms \+ prefill ([\d.]+) ms \+ decode ([\d.]+) ms = ([\d.]+) ms",
            done.stdout).groups()]
        self.assertAlmostEqual(sum(times[:3]), times[3], delta=0.2)  # each is rounded to 0.1

    def test_why_of_an_unknown_request_is_a_clear_error(self):
        done = subprocess.run([shared.PROGRAM, "why", "nobody", "--admin",
                               self.replica.admin_address], capture_output=True, text=True,
                              timeout=60, check=False)
        self.assertEqual(done.returncode, 66, done.stdout)
        self.assertIn('no request "nobody" is remembered here', done.stderr)
        self.assertEqual(subprocess.run([shared.PROGRAM, "why"], capture_output=True, timeout=60,
                                        check=False).returncode, 64)

    def test_logs_hold_no_prompt(self):
        secret = "heliotrope-manuscript"
        stream = shared.Stream(self.replica.public, shared.text_request(self.messages, secret, 3))
        stream.result()
        self.assertNotIn(secret, self.replica.log())

    def test_a_wrong_flag_is_one_clear_line(self):
        for flag, value in (("--log-format", "xml"), ("--log-level", "loud")):
            done = subprocess.run([shared.PROGRAM, "serve", "--model", shared.MODEL, flag, value],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 64, done.stderr)
            self.assertIn('%s is "%s"; wanted one of:' % (flag, value), done.stderr)


if __name__ == "__main__":
    shared.require(mpi=False)
    unittest.main(verbosity=2)
