"""Several "nodes" on one machine: network, host name and mount namespaces, each with a cable to one
switch (a bridge in a namespace of its own).

Needs root, ip, unshare and nsenter. Nothing outside the namespaces changes, and all of it goes away
with the processes that hold them.
"""

import os
import stat
import subprocess
import sys
import tempfile
import time

CABLE = "cable0"     # of each node
BRIDGE = "bridge0"   # of the switch
SWITCH = "switch"
NOBODY = "02:00:00:00:00:01"  # an address that no cable has


class NodesAbsent(Exception):
    pass


def run(words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20,
                          check=False)
    if done.returncode != 0:
        raise NodesAbsent("%s: %s" % (" ".join(words), done.stdout.decode().strip()))


class Nodes:
    """node-a, node-b, ... with the addresses 10.77.0.1, 10.77.0.2, ...; a context manager.
    `bad_cable` names the node whose cable `worsen` works on."""

    def __init__(self, count, bad_cable=None):
        if os.geteuid() != 0:
            raise NodesAbsent("root is needed")
        self.addresses = {"node-" + chr(ord("a") + index): "10.77.0.%d" % (index + 1)
                          for index in range(count)}
        self.folder = tempfile.TemporaryDirectory()
        self.holders, self.cable = {}, None
        try:
            self._hold(SWITCH)
            self._on_switch("ip", "link", "add", BRIDGE, "type", "bridge")
            self._on_switch("ip", "link", "set", BRIDGE, "up")
            for name, address in self.addresses.items():
                self._hold(name)
                self._plug_in(name, name == bad_cable)
                self._set_up(name, address)
            self._write_agent()
        except (NodesAbsent, FileNotFoundError, subprocess.TimeoutExpired) as error:
            self.__exit__()
            raise NodesAbsent(str(error)) from error

    def _hold(self, name):
        ready = os.path.join(self.folder.name, name)
        self.holders[name] = subprocess.Popen(
            ["unshare", "--net", "--uts", "--mount", "sh", "-c",
             "hostname %s && touch %s && exec sleep 600" % (name, ready)],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 10
        while not os.path.exists(ready):
            if self.holders[name].poll() is not None or time.monotonic() > end:
                raise NodesAbsent("unshare --net --uts --mount does not work")
            time.sleep(0.01)

    def enter(self, name):
        return ["nsenter", "--target", str(self.holders[name].pid), "--net", "--uts", "--mount"]

    def _on_switch(self, *words):
        run(self.enter(SWITCH) + list(words))

    def _plug_in(self, name, is_bad):
        node, switch = str(self.holders[name].pid), str(self.holders[SWITCH].pid)
        if is_bad:
            program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bad_cable.py")
            self.cable = subprocess.Popen(
                [sys.executable, "-B", program, node, CABLE, switch, name], encoding="utf-8",
                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            if self.cable.stdout.readline().strip() != "ready":
                raise NodesAbsent("bad_cable.py cannot make its interfaces")
        else:
            run(["ip", "link", "add", CABLE, "netns", node, "type", "veth", "peer", "name", name,
                 "netns", switch])
        self._on_switch("ip", "link", "set", name, "master", BRIDGE)
        self._on_switch("ip", "link", "set", name, "up")

    def _set_up(self, name, address):
        hosts = os.path.join(self.folder.name, "hosts")
        with open(hosts, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines("%s %s\n" % (ip, host) for host, ip in self.addresses.items())
        for words in (["mount", "--bind", hosts, "/etc/hosts"],
                      ["ip", "link", "set", "lo", "up"],
                      ["ip", "address", "add", address + "/24", "dev", CABLE],
                      ["ip", "link", "set", CABLE, "up"]):
            run(self.enter(name) + words)

    def _write_agent(self):
        """What mpirun calls in place of ssh: AGENT HOST COMMAND..."""
        self.agent = os.path.join(self.folder.name, "agent")
        cases = "".join("%s) exec %s sh -c \"TMPDIR=%s; export TMPDIR; $*\" ;;\n" %
                        (name, " ".join(self.enter(name)), self._temporary(name))
                        for name in self.addresses)
        with open(self.agent, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nhost=$1\nshift\ncase $host in\n%sesac\nexit 1\n" % cases)
        os.chmod(self.agent, stat.S_IRWXU)

    def _temporary(self, name):
        path = os.path.join(self.folder.name, "tmp-" + name)
        os.makedirs(path, exist_ok=True)
        return path

    def mpirun(self, ranks_per_node):
        """The words before the program: a job over all nodes, started on node-a."""
        hosts = ",".join("%s:%d" % (name, ranks_per_node) for name in self.addresses)
        settings = {"plm_rsh_agent": self.agent, "orte_keep_fqdn_hostnames": "1", "pml": "ob1",
                    "btl": "self,vader,tcp", "btl_tcp_if_include": CABLE,
                    "oob_tcp_if_include": CABLE, "oob_tcp_keepalive_time": "2",
                    "oob_tcp_keepalive_intvl": "1", "oob_tcp_keepalive_probes": "3"}
        words = [word for name, value in settings.items() for word in ("--mca", name, value)]
        return (self.enter("node-a") + ["env", "TMPDIR=" + self._temporary("node-a")] +
                ["mpirun", "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", "-n",
                 str(len(self.addresses) * ranks_per_node), "--host", hosts, "--map-by",
                 "ppr:%d:node" % ranks_per_node] + words)

    def worsen(self, how=""):
        """What is wrong with the bad cable from now on (bad_cable.py); nothing without words."""
        self.cable.stdin.write(how + "\n")
        self.cable.stdin.flush()

    def limit_packets(self, name, bytes_max):
        """The node's cable takes packets of at most so many bytes, others of more."""
        run(self.enter(name) + ["ip", "link", "set", CABLE, "mtu", str(bytes_max)])

    def cut(self, name="node-b"):
        """Pulls the node's cable out of the switch."""
        self._on_switch("ip", "link", "set", name, "down")

    def mend(self, name="node-b"):
        self._on_switch("ip", "link", "set", name, "up")

    def cut_one_way(self, sender, receiver):
        """What `sender` sends to `receiver` gets lost from now on; the other way stays whole."""
        run(self.enter(sender) + ["ip", "neighbour", "replace", self.addresses[receiver], "lladdr",
                                  NOBODY, "dev", CABLE, "nud", "permanent"])

    def agent_environment(self):
        """What launcher/node_agent.sh needs to find the nodes."""
        places = os.path.join(self.folder.name, "nodes")
        os.makedirs(places, exist_ok=True)
        for name, holder in self.holders.items():
            with open(os.path.join(places, name), "w", encoding="utf-8") as file:
                file.write(str(holder.pid))
        return {"TRIREME_NODES": places, "TMPDIR": self._temporary("node-a")}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.cable is not None:
            self.cable.kill()
            self.cable.wait(timeout=10)
            self.cable.stdin.close()
            self.cable.stdout.close()
        for holder in self.holders.values():
            holder.kill()
            holder.wait(timeout=10)
        self.folder.cleanup()


class TwoNodes(Nodes):
    def __init__(self, bad_cable=None):
        super().__init__(2, bad_cable)
