"""`trireme up` for end-to-end tests: a fleet from a topology file made here, its supervisor, its
processes and its clients. Needs what replica.py needs."""

import os
import re
import signal
import subprocess
import tempfile
import time

import replica as shared

TAG = b"TRIREME_RUN="


def topology(folder, replicas=1, ranks=2, launcher="mpirun", defaults="", balancers=0, nodes=None,
             stages=None, name="test", listen_host="127.0.0.1"):
    """The text of a file, and the ports of its replicas and balancers. `stages` is of all replicas,
    or a list for each; a replica listens on `listen_host`, or on its own of a list."""
    ports = [shared.free_port() for _ in range(replicas)]
    doors = [shared.free_port() for _ in range(balancers)]
    lines = ["version: 1", "name: " + name,
             "model: {id: small, path: \"%s\", context: 2048}" % shared.MODEL, "nodes:"]
    lines += ["  %s: {host: %s}" % node for node in (nodes or {"here": "localhost"}).items()]
    lines += ["defaults:", "  launcher: " + launcher,
              "  drain: {announce: 100ms, deadline: 60s}"]
    lines += ["  " + line for line in defaults.splitlines() if line.strip()]
    lines.append("replicas:")
    hosts = [listen_host] * replicas if isinstance(listen_host, str) else listen_host
    stages = stages or [("here", ranks)]
    for index, port in enumerate(ports):
        own_stages = stages[index] if isinstance(stages[0], list) else stages
        lines += ["  r%d:" % (index + 1), "    stages:"]
        lines += ["      - {node: %s, ranks: %d, threads: 1}" % stage for stage in own_stages]
        lines.append("    engine: {listen: \"%s:%d\"}" % (hosts[index], port))
    if balancers:
        lines.append("balancer: {listen: {grpc: [%s]}}" % ", ".join(
            "\"%s:%d\"" % (hosts[0], port) for port in doors))
    lines.append("observe: {admin: \"unix:%s/run/admin.sock\"}" % folder)
    return "\n".join(lines) + "\n", ports, doors


def tagged(folder):
    """{process id: environment tag} of living processes of the fleet in `folder`."""
    found = {}
    prefix = TAG + os.path.join(folder, "run").encode() + b":"
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as file:
                words = file.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        for word in words:
            if word.startswith(prefix) and shared.is_alive(int(name)):
                found[int(name)] = word[len(prefix):].decode()
    return found


class Fleet:
    """A running `trireme up`; a context manager. `before` stands before the program."""
    flags = ()

    def __init__(self, messages, wait=True, before=(), environment=None, **options):
        self.messages = messages
        self.keeper = tempfile.TemporaryDirectory()
        self.folder = self.keeper.name
        self.path = os.path.join(self.folder, "fleet.yaml")
        text, self.ports, self.doors = topology(self.folder, **options)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write(text)
        self.log_path = os.path.join(self.folder, "up.log")
        self.before, self.environment = list(before), environment
        self.admin_address = "unix:%s/run/admin.sock" % self.folder
        self.admin = shared.Client(self.admin_address, messages)
        self.process, self.clients = None, [self.admin]
        self.start(wait)

    def start(self, wait=True):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.before + [shared.PROGRAM, "up", "--plain", self.path] + list(self.flags),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, **(self.environment or {})))
        if wait:
            try:
                self.wait_until_serving()
            except BaseException:
                self.__exit__()
                raise

    def log(self, child=None):
        path = self.log_path if child is None else os.path.join(self.folder, "run", child + ".log")
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def logs(self):
        run = os.path.join(self.folder, "run")
        names = [name[:-4] for name in sorted(os.listdir(run) if os.path.isdir(run) else [])
                 if name.endswith(".log")]
        return self.log() + "".join("---- %s\n%s" % (name, self.log(name)) for name in names)

    def status(self):
        """The children by name, or None when no supervisor answers."""
        messages = self.messages.fleet
        try:
            fleet = self.admin.unary("/trireme.v1.Fleet/GetFleet", messages.GetFleetRequest(),
                                     messages.FleetStatus, timeout=5)
        except shared.grpc.RpcError:
            return None
        return {child.name: {
            "state": child.state, "epoch": child.epoch, "running": child.load.running_sequences,
            "ranks": [{"host": rank.host, "process": rank.process_id} for rank in child.ranks]}
                for child in fleet.children}

    def child(self, name):
        fleet = self.status()
        return fleet[name] if fleet else {"state": "", "epoch": 0, "running": 0, "ranks": []}

    def command(self, *words):
        return subprocess.run([shared.PROGRAM] + list(words), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=20, check=False)

    def drain(self, name, restart=False):
        done = self.command("drain", "--admin", self.admin_address, name,
                            *(["--restart"] if restart else []))
        assert done.returncode == 0, done.stderr

    def wait_for_state(self, name, state, epoch=0, seconds=shared.START_SECONDS):
        """Waits for a state, of at least this epoch."""
        def reached():
            time.sleep(0.05)
            assert self.process.poll() is None, "the supervisor has ended:\n" + self.logs()
            child = self.child(name)
            return child["state"] == state and child["epoch"] >= epoch
        try:
            shared.wait_until(reached, seconds, "%s is %s in epoch %d" % (name, state, epoch))
        except AssertionError as error:
            raise AssertionError("%s\n%s" % (error, self.logs())) from error

    def wait_until_serving(self):
        for index in range(len(self.ports)):
            self.wait_for_state("r%d" % (index + 1), "serving")
        for index in range(len(self.doors)):
            self.wait_for_state("balancer%d" % (index + 1), "serving")

    def client(self, port):
        self.clients.append(shared.Client("127.0.0.1:%d" % port, self.messages))
        return self.clients[-1]

    def balancer_addresses(self):
        return ["127.0.0.1:%d" % port for port in self.doors]

    def replica_client(self, index=0):
        return self.client(self.ports[index])

    def ranks(self, name="r1"):
        """{rank: process id} of the running epoch."""
        return {rank: place["process"]
                for rank, place in enumerate(self.child(name)["ranks"])}

    def launcher(self, name="r1"):
        """The process id of the mpirun of a replica."""
        for pid, tag in tagged(self.folder).items():
            with open("/proc/%d/comm" % pid, encoding="utf-8") as file:
                if tag.startswith(name + ":") and file.read().strip() in ("mpirun", "orterun"):
                    return pid
        raise AssertionError("no mpirun of %s runs" % name)

    def orphans(self):
        return tagged(self.folder)

    def stop(self, number=signal.SIGTERM, seconds=60):
        self.process.send_signal(number)
        return self.process.wait(timeout=seconds)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            shared.end_processes([self.process.pid])
            self.process.wait(timeout=10)
        shared.end_processes(list(self.orphans()))
        for client in self.clients:
            client.close()
        self.keeper.cleanup()


def epoch_of(log, name):
    return [int(text) for text in re.findall(r"replica=%s starts epoch=(\d+)" % name, log)]
