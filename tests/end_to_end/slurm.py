"""A Slurm of two "nodes" on one machine for end-to-end tests: slurmctld and two slurmd of the
system's packages, without accounts and with files in a temporary folder. Needs root."""

import os
import re
import shutil
import subprocess
import tempfile

import replica as shared

NODES = ("node1", "node2")


class SlurmAbsent(Exception):
    pass


class Slurm:
    def __init__(self):
        for program in ("slurmctld", "slurmd", "sbatch", "srun", "scancel", "squeue"):
            if shutil.which(program) is None:
                raise SlurmAbsent(program + " is not installed")
        if os.geteuid() != 0:
            raise SlurmAbsent("slurmd needs root")
        self.keeper = tempfile.TemporaryDirectory()
        self.folder = self.keeper.name
        self.daemons, self.slurmds = [], {}
        # Two nodes of one host name: their shared memory segments would have equal names, so MPI
        # must not use it; each slurmd has files of its own.
        self.environment = dict(
            os.environ, SLURM_CONF=os.path.join(self.folder, "slurm.conf"),
            OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo", OMPI_MCA_pml="ob1")
        for name in ("state",) + NODES:
            os.makedirs(os.path.join(self.folder, name))
        self._configure()
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise

    def _configure(self):
        ports = [shared.free_port() for _ in range(3)]
        lines = ["ClusterName=test", "SlurmctldHost=localhost(127.0.0.1)",
                 "SlurmctldPort=%d" % ports[0], "AuthType=auth/none", "CredType=cred/none",
                 "SlurmUser=root", "SlurmdUser=root", "StateSaveLocation=%s/state" % self.folder,
                 "SlurmdSpoolDir=%s/%%n/spool" % self.folder, "TmpFS=%s/%%n" % self.folder,
                 "SlurmctldPidFile=%s/slurmctld.pid" % self.folder,
                 "SlurmdPidFile=%s/%%n/slurmd.pid" % self.folder,
                 "SlurmctldLogFile=%s/slurmctld.log" % self.folder,
                 "SlurmdLogFile=%s/%%n/slurmd.log" % self.folder,
                 "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
                 "SelectType=select/cons_tres", "SelectTypeParameters=CR_CPU",
                 "MpiDefault=none", "ReturnToService=2", "SlurmdParameters=config_overrides",
                 "JobAcctGatherType=jobacct_gather/none", "KillWait=30", "MailProg=/bin/true"]
        lines += ["NodeName=%s NodeHostname=localhost NodeAddr=127.0.0.1 Port=%d CPUs=4" %
                  (name, port) for name, port in zip(NODES, ports[1:])]
        lines.append("PartitionName=all Nodes=%s Default=YES State=UP" % ",".join(NODES))
        with open(self.environment["SLURM_CONF"], "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def _start(self):
        conf = self.environment["SLURM_CONF"]
        self._start_daemon("slurmctld", "-D", "-f", conf)
        for name in NODES:
            self.start_daemon(name)
        shared.wait_until(lambda: self.run("sinfo", "-h", "-o", "%T").split() == ["idle"], 30,
                          "both nodes are idle")

    def _start_daemon(self, *command):
        with open(os.path.join(self.folder, "daemons.log"), "ab") as log:
            self.daemons.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                                 stderr=log, env=self.environment))
        return self.daemons[-1]

    def start_daemon(self, node):
        """The slurmd of a node."""
        self.slurmds[node] = self._start_daemon("slurmd", "-D", "-f",
                                                self.environment["SLURM_CONF"], "-N", node)

    def kill_daemon(self, node):
        self.slurmds[node].kill()
        self.slurmds[node].wait(timeout=10)

    def run(self, *words, check=False):
        done = subprocess.run(list(words), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment, timeout=60, check=False, cwd=self.folder)
        text = done.stdout.decode(errors="replace")
        if check and done.returncode != 0:
            raise AssertionError("%s: %s" % (" ".join(words), text))
        return text

    def submit(self, script, *words, options=(), environment=None):
        """(job id, path of its output)"""
        output = tempfile.NamedTemporaryFile(dir=self.folder, suffix=".out", delete=False).name
        self.environment.update(environment or {})
        text = self.run("sbatch", "--output", output, *options, script, *words, check=True)
        return int(re.search(r"Submitted batch job (\d+)", text).group(1)), output

    def state(self, job):
        """PENDING, RUNNING, COMPLETING, or empty when the job is over."""
        return self.run("squeue", "-h", "-j", str(job), "-o", "%T").strip()

    def is_over(self, job):
        return self.state(job) not in ("PENDING", "RUNNING", "COMPLETING")

    def logs(self):
        text = ""
        for path, _, names in os.walk(self.folder):
            for name in names:
                if name.endswith((".log", ".out")):
                    with open(os.path.join(path, name), encoding="utf-8",
                              errors="replace") as file:
                        text += "---- %s\n%s" % (name, file.read()[-4000:])
        return text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pids = []
        for daemon in self.daemons:
            pids += shared.descendants(daemon.pid)
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        # slurmstepd leaves its daemon's tree; all it starts carries the configuration's path.
        mark = ("SLURM_CONF=" + self.environment["SLURM_CONF"]).encode()
        for name in os.listdir("/proc"):
            try:
                with open("/proc/%s/environ" % name, "rb") as file:
                    if name.isdigit() and mark in file.read().split(b"\0"):
                        pids.append(int(name))
            except OSError:
                continue
        shared.end_processes(pids)
        self.keeper.cleanup()
