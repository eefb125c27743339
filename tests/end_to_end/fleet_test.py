#!/usr/bin/python3
"""What `trireme up` does when processes of its fleet die, stop, hang or are told things.

A replica that was lost is back by itself in a higher epoch; no process of an ended epoch or fleet is
left 5 s later, whoever was killed; the culprit of a late start or a stop is named. Rows of the fault
list stand in the names (test_E5_...).
"""

import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import replica as shared  # noqa: E402
from fleet import Fleet, epoch_of, tagged  # noqa: E402
from network_nodes import CABLE, NodesAbsent, TwoNodes  # noqa: E402

ORPHAN_SECONDS = 5.0
STOP_SECONDS = 3.0
MOVE_SECONDS = 6.0  # 3 s until it is noticed, and a prefill elsewhere on a busy machine
TAKEN, FAILED_SYSTEM, STALLED = 73, 71, 75
# One process without MPI: it starts within a second.
ALONE = {"launcher": "none", "ranks": 1}


def wait_gone(fleet, since):
    shared.wait_until(lambda: not fleet.orphans(), since + ORPHAN_SECONDS - time.monotonic(),
                      "no process of the fleet is left")
    return time.monotonic() - since


class FleetCase(unittest.TestCase):
    messages = None

    def fleet(self, **options):
        return Fleet(self.messages, **options)

    def answer(self, fleet, tokens=8):
        stream = shared.Stream(fleet.replica_client(), shared.text_request(
            self.messages, "Once upon a time", tokens))
        return stream.result()[0]


class KilledTest(FleetCase):
    def test_E2_a_killed_rank_0_costs_an_epoch_and_the_replica_is_back_by_itself(self):
        with self.fleet() as fleet:
            expected = self.answer(fleet)
            epoch = fleet.child("r1")["epoch"]
            for rank in (0, 1):
                streams = [shared.Stream(fleet.replica_client(), shared.text_request(
                    self.messages, "Once upon a time %d" % index, 1500)) for index in range(4)]
                for stream in streams:
                    stream.wait_for_tokens(3)
                since = time.monotonic()
                os.kill(fleet.ranks()[rank], signal.SIGKILL)
                for stream in streams:
                    stream.join(5)
                    self.assertEqual(stream.error.code().name, "UNAVAILABLE")
                took = time.monotonic() - since
                epoch += 1
                fleet.wait_for_state("r1", "serving", epoch)
                print("SIGKILL of rank %d: streams ended after %.3f s, serving again after %.2f s" %
                      (rank, took, time.monotonic() - since), flush=True)
                self.assertLess(took, 1.0)
                self.assertEqual(self.answer(fleet), expected)
            self.assertEqual(fleet.stop(), 0, fleet.logs())

    def test_E5_killed_launcher_and_supervisor_leave_no_orphans(self):
        with self.fleet() as fleet:
            epoch = fleet.child("r1")["epoch"]
            old = fleet.ranks()
            os.kill(fleet.launcher(), signal.SIGKILL)
            fleet.wait_for_state("r1", "serving", epoch + 1)
            self.assertFalse([pid for pid in old.values() if shared.is_alive(pid)])

            # The supervisor alone: its children go with it, and the next start is clean.
            since = time.monotonic()
            fleet.process.kill()
            fleet.process.wait()
            print("SIGKILL of the supervisor: all gone after %.2f s" % wait_gone(fleet, since),
                  flush=True)
            last = fleet.folder + "/run/epoch"
            with open(last, encoding="utf-8") as file:
                last_epoch = int(file.read())
            fleet.start()
            self.assertGreater(fleet.child("r1")["epoch"], last_epoch)

            # All at once.
            pids = [fleet.process.pid, fleet.launcher(), fleet.ranks()[0]]
            since = time.monotonic()
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            fleet.process.wait()
            print("SIGKILL of supervisor, mpirun and rank 0: all gone after %.2f s" %
                  wait_gone(fleet, since), flush=True)
            fleet.start()
            self.assertEqual(fleet.stop(), 0, fleet.logs())
            self.assertFalse(fleet.orphans())

    def test_E5_what_was_stopped_when_its_supervisor_died_is_gone_before_the_next_start(self):
        with self.fleet() as fleet:
            stopped = fleet.ranks()[1]
            os.kill(stopped, signal.SIGSTOP)
            fleet.process.kill()
            fleet.process.wait()
            fleet.start()
            self.assertFalse(shared.is_alive(stopped))
            self.assertEqual(set(fleet.orphans().values()),
                             {"r1:%d" % fleet.child("r1")["epoch"]})


class PlannedTest(FleetCase):
    def test_up_runs_word_for_word_what_plan_prints(self):
        with self.fleet(balancers=1) as fleet:
            self.assertEqual(fleet.stop(), 0, fleet.logs())
            done = fleet.command("plan", fleet.path, "--nomeasure", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            commands = json.loads(done.stdout)["commands"]
            self.assertEqual(len(commands), 2)
            fleet.start()
            running = []
            for pid in tagged(fleet.folder):
                with open("/proc/%d/cmdline" % pid, encoding="utf-8") as file:
                    running.append(file.read().rstrip("\0").split("\0"))
            for command in commands:
                words = shlex.split(command)
                self.assertEqual(words[0], "env")
                self.assertIn(words[2:], running)  # env has become the program after it
            self.assertEqual(fleet.stop(), 0, fleet.logs())


class StoppedTest(FleetCase):
    def stop_forever(self, fleet, pid, words):
        epoch = fleet.child("r1")["epoch"]
        since = time.monotonic()
        os.kill(pid, signal.SIGSTOP)
        shared.wait_until(lambda: any(re.search(word, fleet.log()) for word in words), 10,
                          "the log names the culprit by one of %s" % words)
        took = time.monotonic() - since
        fleet.wait_for_state("r1", "serving", epoch + 1)
        self.assertFalse(shared.is_alive(pid))
        print("SIGSTOP: named after %.2f s, serving again after %.2f s" %
              (took, time.monotonic() - since), flush=True)
        self.assertLess(took, STOP_SECONDS)

    def test_E3_a_stopped_rank_is_named_and_replaced_and_its_epoch_is_refused(self):
        with self.fleet() as fleet:
            old_epoch = fleet.child("r1")["epoch"]
            self.stop_forever(fleet, fleet.ranks()[1], ["lost reason=\"rank=1 "])
            self.stop_forever(fleet, fleet.ranks()[0], ["lost reason=\"rank=0 "])
            # A request that is meant for the old epoch is not answered by the new one.
            engine = self.messages.engine
            request = engine.ExecuteRequest(request_id="old", attempt=1, epoch=old_epoch)
            request.token_ids.extend([1])
            request.stopping.max_tokens = 1
            call = fleet.replica_client().stream("/trireme.v1.Engine/Execute", request,
                                                 engine.ExecuteEvent)
            with self.assertRaises(shared.grpc.RpcError) as caught:
                list(call)
            self.assertEqual(fleet.clients[-1].reason_of(caught.exception), "RESUME_MISMATCH")

    def test_E3_E4_pauses_stopped_bystanders_and_false_alarms_disturb_nobody(self):
        with self.fleet() as fleet:
            epoch = fleet.child("r1")["epoch"]
            client = fleet.replica_client()
            request = shared.text_request(self.messages, "Once upon a time", 300)
            expected = shared.Stream(client, request).result()[0]
            stream = shared.Stream(client, request)
            stream.wait_for_tokens(3)
            ranks = fleet.ranks()
            for victim in list(ranks.values()) + [fleet.launcher()]:
                os.kill(victim, signal.SIGSTOP)
                time.sleep(0.5)
                os.kill(victim, signal.SIGCONT)
            os.kill(ranks[0], signal.SIGCONT)  # E4: a false alarm
            # The supervisor, for longer than any heartbeat.
            fleet.process.send_signal(signal.SIGSTOP)
            time.sleep(6)
            fleet.process.send_signal(signal.SIGCONT)
            self.assertEqual(stream.result()[0], expected)
            time.sleep(1)
            self.assertEqual(fleet.child("r1")["epoch"], epoch, fleet.logs())
            self.assertEqual(fleet.child("r1")["state"], "serving")

    def test_E3_a_stopped_replica_of_one_process_is_replaced(self):
        with self.fleet(**ALONE) as fleet:
            self.stop_forever(fleet, fleet.ranks()[0], ["is killed reason=\"no sign of life"])


    def test_E3_a_stopped_balancer_pauses_its_streams_and_is_replaced(self):
        with self.fleet(balancers=1, **ALONE) as fleet:
            request = shared.text_request(self.messages, "Once upon a time", 100)
            expected = shared.Stream(fleet.client(fleet.doors[0]), request).result()[0]
            epoch = fleet.child("balancer1")["epoch"]
            pid = next(pid for pid, tag in tagged(fleet.folder).items()
                       if tag.startswith("balancer1:"))
            stream = shared.Stream(fleet.client(fleet.doors[0]), request)
            stream.wait_for_tokens(3)
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.5)
            os.kill(pid, signal.SIGCONT)
            self.assertEqual(stream.result()[0], expected)
            self.assertEqual(fleet.child("balancer1")["epoch"], epoch)
            os.kill(pid, signal.SIGSTOP)
            fleet.wait_for_state("balancer1", "serving", epoch + 1)
            self.assertFalse(shared.is_alive(pid))
            self.assertEqual(shared.Stream(fleet.client(fleet.doors[0]), request).result()[0],
                             expected)


class SignalTest(FleetCase):
    def test_E6_a_balancer_and_a_replica_of_one_process_drain_and_are_started_again(self):
        quick = "restart: {backoff: [100ms, 200ms], give_up: {failures: 100, within: 10min}}"
        with self.fleet(balancers=1, defaults=quick, **ALONE) as fleet:
            for name in ("balancer1", "r1"):
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP,
                               signal.SIGQUIT):
                    if (name, number) == ("balancer1", signal.SIGHUP):
                        continue  # reads its file again: F15
                    with self.subTest(name=name, signal=number):
                        epoch = fleet.child(name)["epoch"]
                        pid = next(pid for pid, tag in tagged(fleet.folder).items()
                                   if tag.startswith(name + ":"))
                        stream = shared.Stream(
                            fleet.client(fleet.doors[0]) if name == "balancer1" else
                            fleet.replica_client(),
                            shared.text_request(self.messages, "Once upon a time", 40))
                        stream.wait_for_tokens(3)
                        os.kill(pid, signal.SIGPIPE)  # ignored
                        os.kill(pid, number)
                        stream.join(60)
                        if number == signal.SIGQUIT:
                            self.assertEqual(stream.error.code().name, "UNAVAILABLE")
                        else:
                            self.assertEqual(len(stream.result()[0]), 40)
                        fleet.wait_for_state(name, "serving", epoch + 1)
            self.assertEqual(len(self.answer(fleet)), 8)

    def test_E6_the_supervisor_drains_for_term_int_hup_and_usr1(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            with self.subTest(signal=number), self.fleet(**ALONE) as fleet:
                stream = shared.Stream(fleet.replica_client(), shared.text_request(
                    self.messages, "Once upon a time", 60))
                stream.wait_for_tokens(3)
                fleet.process.send_signal(signal.SIGPIPE)  # ignored
                self.assertEqual(fleet.stop(number), 0, fleet.logs())
                self.assertEqual(len(stream.result()[0]), 60)
                self.assertFalse(fleet.orphans())

    def test_E6_a_second_signal_ends_now_and_so_does_quit(self):
        for numbers in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGQUIT,)):
            with self.subTest(signals=numbers), self.fleet(**ALONE) as fleet:
                stream = shared.Stream(fleet.replica_client(), shared.text_request(
                    self.messages, "Once upon a time", 2000))
                stream.wait_for_tokens(3)
                since = time.monotonic()
                for number in numbers:
                    fleet.process.send_signal(number)
                    time.sleep(0.3)
                self.assertEqual(fleet.process.wait(timeout=20), 0, fleet.logs())
                self.assertLess(time.monotonic() - since, 8)
                stream.join(5)
                self.assertEqual(stream.error.code().name, "UNAVAILABLE")
                self.assertFalse(fleet.orphans())

    def test_E6_mpirun_and_ranks_that_are_told_to_end_are_started_again(self):
        with self.fleet(defaults="restart: {backoff: [500ms, 1s], "
                                 "give_up: {failures: 100, within: 10min}}") as fleet:
            epoch = fleet.child("r1")["epoch"]
            # USR1 to mpirun drains the replica; TERM ends it; TERM to rank 0 too.
            for find, number in ((fleet.launcher, signal.SIGUSR1),
                                 (fleet.launcher, signal.SIGTERM),
                                 (lambda: fleet.ranks()[0], signal.SIGTERM),
                                 (lambda: fleet.ranks()[1], signal.SIGQUIT)):
                os.kill(find(), number)
                epoch += 1
                fleet.wait_for_state("r1", "serving", epoch)
            # What is ignored: PIPE anywhere, TERM to a rank without a door.
            os.kill(fleet.ranks()[0], signal.SIGPIPE)
            os.kill(fleet.ranks()[1], signal.SIGPIPE)
            os.kill(fleet.ranks()[1], signal.SIGTERM)
            time.sleep(1)
            self.assertEqual(len(self.answer(fleet)), 8)
            self.assertEqual(fleet.child("r1")["epoch"], epoch)


class OperatorTest(FleetCase):
    def test_drained_replicas_stay_down_and_restart_one_after_the_other(self):
        with self.fleet(replicas=2, **ALONE) as fleet:
            fleet.drain("r1")
            fleet.wait_for_state("r1", "stopped")
            self.assertEqual(len(shared.Stream(fleet.replica_client(1), shared.text_request(
                self.messages, "Once", 4)).result()[0]), 4)
            self.assertNotEqual(fleet.command("status", fleet.path).returncode, 0)
            fleet.drain("r1", restart=True)
            fleet.wait_for_state("r1", "serving", 3)
            fleet.drain("all", restart=True)
            fleet.wait_for_state("r1", "serving", 4)
            fleet.wait_for_state("r2", "serving", 5)
            self.assertEqual(fleet.command("status", fleet.path).returncode, 0)
            top = fleet.command("top", fleet.path, "--rounds", "1")
            self.assertIn(b"DECODE/s", top.stdout)
            self.assertIn(b"FIRST p50", top.stdout)
            unknown = fleet.command("drain", fleet.path, "r9")
            self.assertEqual(unknown.returncode, 64)
            self.assertIn(b"r1, r2", unknown.stderr)
            done = fleet.command("drain", fleet.path, "all")
            self.assertEqual(done.returncode, 0)
            self.assertEqual(fleet.process.wait(timeout=30), 0)
        gone = fleet.command("status", "--admin", "unix:/nowhere/admin.sock")
        self.assertEqual(gone.returncode, 69)

    def test_E9_a_second_supervisor_is_refused(self):
        with self.fleet(**ALONE) as fleet:
            second = fleet.command("up", "--plain", fleet.path)
            self.assertEqual(second.returncode, TAKEN)
            self.assertIn(b"process %d" % fleet.process.pid, second.stderr)
            # The same ports under another name: the replica cannot listen, and says which port.
            with open(fleet.path, encoding="utf-8") as file:
                text = file.read()
            other = os.path.join(fleet.folder, "other.yaml")
            with open(other, "w", encoding="utf-8") as file:
                file.write(text.replace("name: test", "name: other").replace(
                    "/run/admin", "/other/admin").replace(
                        "  launcher:", "  restart: {give_up: {failures: 1, within: 1min}}\n"
                        "  launcher:"))
            third = fleet.command("up", "--plain", other)
            self.assertEqual(third.returncode, TAKEN, third.stderr)
            self.assertIn(b":%d" % fleet.ports[0], third.stderr)
            self.assertEqual(len(self.answer(fleet)), 8)

    def test_an_unusable_model_starts_nothing(self):
        with self.fleet(wait=False, **ALONE) as fleet:
            shared.end_processes([fleet.process.pid])
            fleet.process.wait()
            bad = os.path.join(fleet.folder, "bad.gguf")
            with open(bad, "wb") as file:
                file.write(b"GGUF" + b"\0" * 64)
            with open(fleet.path, encoding="utf-8") as file:
                text = file.read()
            with open(fleet.path, "w", encoding="utf-8") as file:
                file.write(text.replace(shared.MODEL, bad))
            since = time.monotonic()
            done = fleet.command("up", "--plain", fleet.path)
            self.assertEqual(done.returncode, 65, done.stderr)
            self.assertIn(b"bad.gguf", done.stderr)
            self.assertEqual(epoch_of(done.stderr.decode(), "r1"), [])  # nothing was started
            self.assertLess(time.monotonic() - since, 10)


class LimitTest(FleetCase):
    def test_E15_too_few_open_files_are_refused_by_name(self):
        with self.fleet(wait=False, before=["sh", "-c", "ulimit -n 64; exec \"$@\"", "sh"],
                        **ALONE) as fleet:
            self.assertEqual(fleet.process.wait(timeout=20), FAILED_SYSTEM)
            self.assertIn("RLIMIT_NOFILE) is 64", fleet.log())
            self.assertIn("ulimit -n ", fleet.log())

    def test_E15_a_full_shared_memory_is_named(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("needs root and unshare, to make a small /dev/shm")
        before = ["unshare", "--mount", "sh", "-c",
                  "mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"$@\"", "sh"]
        with self.fleet(wait=False, before=before, defaults="restart: {give_up: {failures: 1, "
                        "within: 1min}}") as fleet:
            self.assertNotEqual(fleet.process.wait(timeout=60), 0)
            self.assertIn("/dev/shm", fleet.log(), fleet.logs())

    def test_E15_a_full_run_folder_is_named(self):
        if os.geteuid() != 0 or shutil.which("unshare") is None:
            self.skipTest("needs root and unshare, to make a small folder")
        # The topology file is the last word; the run folder stands beside it.
        before = ["unshare", "--mount", "sh", "-c",
                  "for last; do :; done; run=$(dirname \"$last\")/run; mkdir -p \"$run\" && "
                  "mount -t tmpfs -o size=4k tmpfs \"$run\" && exec \"$@\"", "sh"]
        with self.fleet(wait=False, before=before, defaults="restart: {give_up: {failures: 1, "
                        "within: 1min}}", **ALONE) as fleet:
            self.assertEqual(fleet.process.wait(timeout=60), FAILED_SYSTEM, fleet.logs())
            self.assertRegex(fleet.log(), r"/run/epoch\S*: .*No space left on device")

    def test_E21_a_closed_or_full_pipe_for_the_log_stops_nothing(self):
        for reader in ("closed", "full"):
            with self.subTest(reader=reader), self.fleet(wait=False, **ALONE) as fleet:
                shared.end_processes([fleet.process.pid])
                fleet.process.wait()
                read_end, write_end = os.pipe()
                if reader == "closed":
                    os.close(read_end)
                else:
                    os.set_blocking(write_end, False)
                    try:
                        while True:
                            os.write(write_end, b"x" * 4096)
                    except BlockingIOError:
                        os.set_blocking(write_end, True)
                fleet.process = subprocess.Popen(
                    [shared.PROGRAM, "up", fleet.path], stdin=None if reader == "full" else
                    subprocess.DEVNULL, stdout=write_end, stderr=write_end,
                    start_new_session=True)
                os.close(write_end)
                fleet.wait_until_serving()
                self.assertEqual(len(self.answer(fleet)), 8)
                self.assertEqual(fleet.stop(), 0)
                if reader == "full":
                    os.close(read_end)


class LateStartTest(FleetCase):
    """A rank that stops as soon as it has reached a phase."""

    SHORT = ("timeouts: {launch: 4s, connect: 4s, load: 20s, warmup: 20s}\n"
             "restart: {give_up: {failures: 1, within: 1min}}\n")

    def freeze(self, phase, rank, words):
        with self.fleet(wait=False, defaults=self.SHORT) as fleet:
            reached = re.compile(r"rank=%d start phase=%s" % (rank, phase))
            place = re.compile(r"rank=%d start phase=launch host=\S+ process=(\d+)" % rank)
            shared.wait_until(lambda: reached.search(fleet.log("r1")), 20,
                              "rank %d reaches %s" % (rank, phase))
            os.kill(int(place.search(fleet.log("r1")).group(1)), signal.SIGSTOP)
            self.assertIn(fleet.process.wait(timeout=40), (STALLED, 69), fleet.logs())
            log = fleet.log()
            self.assertRegex(log, words)
            self.assertFalse(fleet.orphans())
            print("rank %d stopped in %s: %s" % (rank, phase, re.search(words, log).group(0)),
                  flush=True)

    def test_E19_a_rank_that_stops_in_the_launch_is_named(self):
        for rank in (0, 1):
            self.freeze("launch", rank, r"phase=launch is late: rank=%d .*is stopped" % rank)

    def test_E19_a_rank_that_stops_while_it_loads_is_named(self):
        for rank in (0, 1):
            self.freeze("load", rank, r"rank=%d .*" % rank)


class NodesTest(FleetCase):
    """Two nodes, a stage of two tensor ranks on each, behind launcher/node_agent.sh; the supervisor
    runs on the first."""

    def two_nodes(self, nodes, **options):
        agent = os.path.join(shared.ROOT, "launcher", "node_agent.sh")
        options = dict({"stages": [("n1", 2), ("n2", 2)], "listen_host": "10.77.0.1"}, **options)
        return self.fleet(
            before=nodes.enter("node-a"), environment=nodes.agent_environment(),
            nodes={"n1": "node-a", "n2": "node-b"},
            defaults="remote: {agent: \"%s\"}\ninterfaces: {control: %s, fabric: [%s]}\n"
                     "timeouts: {launch: 20s}\n"
                     "restart: {backoff: [500ms, 1s], give_up: {failures: 100, within: 10min}}" %
                     (agent, CABLE, CABLE), **options)

    def test_E7_streams_of_a_node_that_is_cut_off_go_on_at_another(self):
        """A replica on each node, the balancer beside the first."""
        try:
            nodes = TwoNodes()
        except NodesAbsent as reason:
            self.skipTest("no network namespaces here: %s" % reason)
        requests = [shared.text_request(self.messages, "Number %d. The story of the sea" % index,
                                        120, seed=None if index % 2 == 0 else index)
                    for index in range(6)]
        with nodes, self.two_nodes(nodes, replicas=2, balancers=1,
                                   stages=[[("n1", 2)], [("n2", 2)]],
                                   listen_host=["10.77.0.1", "10.77.0.2"]) as fleet:
            client = shared.Client("unix:%s/run/balancer1.sock" % fleet.folder, self.messages)
            try:
                wanted = [stream.result() for stream in
                          [shared.Stream(client, request) for request in requests]]
                # The balancer may find the other node better for a while.
                streams = []
                while len(streams) < 10 * len(requests) and (
                        not streams or fleet.child("r2")["running"] == 0):
                    streams += [shared.Stream(client, request) for request in requests]
                    for stream in streams[-len(requests):]:
                        stream.wait_for_tokens(3)
                nodes.cut()
                gaps = []
                for stream, answer in zip(streams, itertools.cycle(wanted)):
                    self.assertEqual(stream.result(), answer)
                    gaps += [disruption.gap.seconds + disruption.gap.nanos / 1e9
                             for disruption in stream.disruptions]
            finally:
                client.close()
            print("cut link: %d of %d streams moved, longest gap %.2f s" %
                  (len(gaps), len(streams), max(gaps, default=0)), flush=True)
            self.assertGreater(len(gaps), 0, "no stream ran on the node that was cut off")
            self.assertLess(max(gaps), MOVE_SECONDS)

    def answer_here(self, fleet):
        """Over the replica's Unix socket: TCP ports of nodes are not reachable from here."""
        client = shared.Client("unix:%s/run/r1.sock" % fleet.folder, self.messages)
        try:
            return shared.Stream(client, shared.text_request(
                self.messages, "Once upon a time", 8)).result()[0]
        finally:
            client.close()

    def test_the_file_for_two_nodes_answers_over_two_nodes(self):
        """deploy/topologies/two_nodes.yaml as it stands; its agent comes from the environment."""
        try:
            nodes = TwoNodes()
        except NodesAbsent as reason:
            self.skipTest("no network namespaces here: %s" % reason)
        with nodes, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(shared.ROOT, "deploy", "topologies", "two_nodes.yaml")
            environment = dict(
                os.environ, TRIREME_MODEL=shared.MODEL,
                OMPI_MCA_plm_rsh_agent=os.path.join(shared.ROOT, "launcher", "node_agent.sh"),
                **nodes.agent_environment())
            log_path = os.path.join(folder, "up.log")
            with open(log_path, "wb") as log:
                fleet = subprocess.Popen(
                    nodes.enter("node-a") + [shared.PROGRAM, "up", "--plain", path],
                    stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)

            def served():
                with open(log_path, encoding="utf-8") as file:
                    text = file.read()
                self.assertIsNone(fleet.poll(), text)
                return "fleet serving" in text
            try:
                shared.wait_until(served, shared.START_SECONDS, "the fleet serves")
                answer = subprocess.run(
                    nodes.enter("node-a") + [
                        shared.PROGRAM, "generate", "--endpoint", "127.0.0.1:8080", "--chat",
                        "What is the capital of France?", "--system",
                        "You answer in one short sentence.", "--temperature", "0",
                        "--max-tokens", "64"],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
                self.assertIn(b"Paris", answer.stdout)
                fleet.send_signal(signal.SIGTERM)
                self.assertEqual(fleet.wait(60), 0)
            finally:
                shared.end_processes([fleet.pid] + shared.descendants(fleet.pid))
                fleet.wait()

    def test_E5_E7_E8_nodes_lose_their_daemon_and_their_link(self):
        try:
            nodes = TwoNodes()
        except NodesAbsent as reason:
            self.skipTest("no network namespaces here: %s" % reason)
        with nodes, self.two_nodes(nodes) as fleet:
            expected = self.answer_here(fleet)
            self.assertEqual([place["host"] for place in fleet.child("r1")["ranks"]],
                             ["node-a", "node-a", "node-b", "node-b"])

            # E5: the daemon of the other node.
            epoch = fleet.child("r1")["epoch"]
            old = fleet.ranks()
            for pid in tagged(fleet.folder):
                with open("/proc/%d/comm" % pid, encoding="utf-8") as file:
                    if file.read().strip() == "orted":
                        os.kill(pid, signal.SIGKILL)
            fleet.wait_for_state("r1", "serving", epoch + 1)
            self.assertFalse([pid for pid in old.values() if shared.is_alive(pid)])
            self.assertEqual(self.answer_here(fleet), expected)

            # E7: the link is cut for good; mpirun would stay for minutes, and is ended.
            launcher, old = fleet.launcher(), fleet.ranks()
            epoch = fleet.child("r1")["epoch"]
            since = time.monotonic()
            nodes.cut()
            shared.wait_until(lambda: re.search("lost reason=.*host=node-b", fleet.log()), 10,
                              "the log names the node behind the cut")
            named = time.monotonic() - since
            shared.wait_until(
                lambda: not [pid for pid in list(old.values()) + [launcher]
                             if shared.is_alive(pid)], 20, "nothing of the old epoch is left")
            gone = time.monotonic() - since
            nodes.mend()
            fleet.wait_for_state("r1", "serving", epoch + 1)
            self.assertEqual(self.answer_here(fleet), expected)
            print("cut link: named after %.2f s, all of its epoch gone after %.2f s" %
                  (named, gone), flush=True)
            self.assertLess(named, STOP_SECONDS)

            # E8: the link flaps.
            epoch = fleet.child("r1")["epoch"]
            for _ in range(4):
                nodes.cut()
                time.sleep(1)
                nodes.mend()
                time.sleep(1)
            fleet.wait_for_state("r1", "serving", epoch)
            time.sleep(3)
            fleet.wait_for_state("r1", "serving", epoch)
            self.assertEqual(self.answer_here(fleet), expected)
            starts = [start for start in epoch_of(fleet.log(), "r1") if start > epoch]
            print("link that flaps 4 times: %d restarts" % len(starts), flush=True)
            self.assertLessEqual(len(starts), 4)
            self.assertEqual(fleet.stop(), 0, fleet.logs())
            self.assertFalse(fleet.orphans())


class ClockTest(FleetCase):
    def test_E16_a_step_of_the_clock_ends_nothing(self):
        library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
        if not os.path.exists(library):
            self.skipTest("libfaketime is not installed")
        with self.fleet(wait=False) as fleet:
            shared.end_processes([fleet.process.pid])
            fleet.process.wait()
            clock = os.path.join(fleet.folder, "clock")

            def set_clock(offset):
                with open(clock + ".new", "w", encoding="utf-8") as file:
                    file.write(offset)
                os.rename(clock + ".new", clock)
            set_clock("+0")
            fleet.environment = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": clock,
                                 "FAKETIME_CACHE_DURATION": "1",
                                 "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
            fleet.start()
            epoch = fleet.child("r1")["epoch"]
            request = shared.text_request(self.messages, "Once upon a time", 200)
            expected = shared.Stream(fleet.replica_client(), request).result()[0]
            for offset in ("+3600", "-3600"):
                stream = shared.Stream(fleet.replica_client(), request)
                stream.wait_for_tokens(3)
                set_clock(offset)
                self.assertEqual(stream.result()[0], expected)
                time.sleep(3)  # longer than heartbeats and silence
            self.assertEqual(fleet.child("r1")["epoch"], epoch, fleet.logs())
            self.assertEqual(fleet.child("r1")["state"], "serving")

    def test_E16_a_pause_of_the_whole_host_ends_nothing(self):
        with self.fleet() as fleet:
            epoch = fleet.child("r1")["epoch"]
            request = shared.text_request(self.messages, "Once upon a time", 200)
            expected = shared.Stream(fleet.replica_client(), request).result()[0]
            stream = shared.Stream(fleet.replica_client(), request)
            stream.wait_for_tokens(3)
            processes = [fleet.process.pid, *tagged(fleet.folder)]
            for pid in processes:
                os.kill(pid, signal.SIGSTOP)
            time.sleep(8)  # longer than every silence that is a fault
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
            self.assertEqual(stream.result()[0], expected)
            time.sleep(3)
            self.assertEqual(fleet.child("r1")["epoch"], epoch, fleet.logs())
            self.assertEqual(fleet.child("r1")["state"], "serving")


if __name__ == "__main__":
    shared.require()
    FleetCase.messages = shared.Messages()
    unittest.main(verbosity=2)
