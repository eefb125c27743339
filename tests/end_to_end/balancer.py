"""What the end-to-end tests of the balancer share: balancers, replicas that come back, and a client
that does what docs/balancer.md tells clients to do when their balancer dies."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time

import replica as shared

grpc = shared.grpc
FRUITLESS_TRIES = 5  # at one balancer, before the next is asked
SERVING = 1  # grpc.health.v1.HealthCheckResponse.ServingStatus


class Balancer:
    """`trireme balance` before replicas ({name: address}); a context manager."""

    def __init__(self, messages, replicas, port=0, flags=()):
        self.messages = messages
        self.folder = tempfile.TemporaryDirectory()
        self.log_path = os.path.join(self.folder.name, "log")
        self.admin_address = "unix:" + os.path.join(self.folder.name, "admin.sock")
        words = [shared.PROGRAM, "balance", "--model", shared.MODEL, "--replicas",
                 ",".join("%s=%s" % pair for pair in sorted(replicas.items())), "--listen",
                 "127.0.0.1:%d" % port, "--admin-listen", self.admin_address] + list(flags)
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            shared.wait_until(self._port, shared.START_SECONDS, "the balancer serves")
        except BaseException:
            self.__exit__()
            raise
        self.port = self._port()
        self.address = "127.0.0.1:%d" % self.port

    def _port(self):
        code = self.process.poll()
        assert code is None, "the balancer ended with %s:\n%s" % (code, self.log())
        match = re.search(r"serving port=(\d+)", self.log())
        return int(match.group(1)) if match else None

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def client(self):
        return shared.Client(self.address, self.messages)

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=10)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=10)
        self.folder.cleanup()


class Fleet:
    """Replicas on fixed ports behind balancers on fixed ports; what dies is started again by hand.

    `layout` is (tensor, stages) of each replica; (1, 1) is one process without mpirun.
    """

    def __init__(self, messages, replicas=2, balancers=2, layout=(2, 1), flags=(),
                 balancer_flags=()):
        self.messages, self.layout, self.flags = messages, layout, list(flags)
        self.balancer_flags = list(balancer_flags)
        self.replica_ports = [shared.free_port() for _ in range(replicas)]
        self.balancer_ports = [shared.free_port() for _ in range(balancers)]
        self.replicas, self.balancers = [None] * replicas, [None] * balancers
        try:
            for index in range(replicas):
                self.start_replica(index, wait=False)
            for index in range(replicas):
                self.replicas[index].wait_until_serving()
            for index in range(balancers):
                self.start_balancer(index)
        except BaseException:
            self.__exit__()
            raise

    def addresses(self):
        return {"r%d" % (index + 1): "127.0.0.1:%d" % port
                for index, port in enumerate(self.replica_ports)}

    def restart_replica(self, index, tries=3):
        """As a supervisor would: a start that fails is tried again."""
        for left in reversed(range(tries)):
            try:
                self.start_replica(index)
                return
            except AssertionError as error:
                if left == 0:
                    raise
                print("the start of a replica failed: %s" % str(error)[:300], flush=True)

    def start_replica(self, index, wait=True):
        if self.replicas[index] is not None:
            self.replicas[index].__exit__()
            self.replicas[index] = None
        self.replicas[index] = shared.Replica(
            self.messages, *self.layout, wait=wait,
            flags=self.flags + ["--listen", "127.0.0.1:%d" % self.replica_ports[index]])

    def start_balancer(self, index):
        if self.balancers[index] is not None:
            self.balancers[index].__exit__()
        self.balancers[index] = Balancer(self.messages, self.addresses(),
                                         self.balancer_ports[index], self.balancer_flags)

    def balancer_addresses(self):
        return ["127.0.0.1:%d" % port for port in self.balancer_ports]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.balancers + self.replicas:
            if process is not None:
                process.__exit__()


class LastingStream(threading.Thread):
    """One request to its end, whatever happens to the balancers at `addresses` or to the
    connection: Resume at the same balancer, or the same request again at another one, where the
    tokens that are here already are checked and skipped. Errors of other kinds are kept."""

    def __init__(self, addresses, messages, request, first=0, seconds=120):
        super().__init__(daemon=True)
        assert request.request_id, "a stream that is to be resumed must name its request_id"
        self.addresses, self.messages, self.request = list(addresses), messages, request
        self.turn, self.end = first, time.monotonic() + seconds
        self.ids, self.text = [], ""
        # Of the answer that is being read: it may begin anew at another balancer.
        self.seq = self.position = self.text_length = 0
        self.finished, self.broken_rule, self.error = None, "", None
        self.resumes = self.restarts = 0
        self.trailers = {}
        self.start()

    def run(self):
        resuming, fruitless = False, 0
        while self.finished is None and not self.broken_rule:
            seq = self.seq
            client = shared.Client(self.addresses[self.turn % len(self.addresses)], self.messages)
            try:
                self._read(client, resuming)
                if self.finished is None:
                    self.broken_rule = self.broken_rule or "status OK without Finished"
            except grpc.RpcError as error:
                reason = client.reason_of(error)
                if time.monotonic() > self.end or not self._may_go_on(error, reason):
                    self.error = error
                    return
                # Without details the connection broke, or nobody is there any more.
                fruitless = 0 if self.seq > seq else fruitless + 1
                resuming = reason in ("", "REQUEST_ID") and fruitless < FRUITLESS_TRIES
                if not resuming:
                    self.turn += 1
                    fruitless = 0
                time.sleep(0.02)
            finally:
                client.close()

    @staticmethod
    def _may_go_on(error, reason):
        if error.code() == grpc.StatusCode.UNAVAILABLE:
            return reason in ("", "DRAINING")
        # Gone at this balancer, or still running at it after a cut.
        return reason in ("REQUEST", "REQUEST_ID")

    def _read(self, client, resuming):
        if resuming:
            self.resumes += 1
            call = client.stream("/trireme.v1.Inference/Resume",
                                 self.messages.inference.ResumeRequest(
                                     request_id=self.request.request_id, after_seq=self.seq),
                                 self.messages.inference.GenerateEvent)
        else:
            self.restarts += self.seq > 0
            call = client.generate(self.request)
            self.seq = self.position = self.text_length = 0
        for event in call:
            if event.seq != self.seq + 1:
                self.broken_rule = "event %d follows %d" % (event.seq, self.seq)
                return
            self.seq = event.seq
            kind = event.WhichOneof("event")
            if kind == "chunk":
                self._take(event.chunk)
            elif kind == "finished":
                self.finished = event.finished
        self.trailers = dict(call.trailing_metadata() or ())

    def _take(self, chunk):
        """What is here already (from another balancer) must come again as it was."""
        ids = list(chunk.token_ids)
        known_ids = self.ids[self.position:self.position + len(ids)]
        known_text = self.text[self.text_length:self.text_length + len(chunk.text)]
        if chunk.first_position != self.position:
            self.broken_rule = "chunk at %d, wanted %d" % (chunk.first_position, self.position)
        elif known_ids != ids[:len(known_ids)] or known_text != chunk.text[:len(known_text)]:
            self.broken_rule = "at %d other tokens or text than before" % self.position
        self.ids += ids[len(known_ids):]
        self.text += chunk.text[len(known_text):]
        self.position += len(ids)
        self.text_length += len(chunk.text)

    def result(self, seconds=180):
        self.join(seconds)
        assert not self.is_alive(), "the stream has not ended after %d s" % seconds
        assert self.error is None, self.error
        assert not self.broken_rule, self.broken_rule
        return self.ids, self.text


class CuttingProxy:
    """A TCP relay that breaks each connection after a random number of bytes from the server."""

    def __init__(self, address, draw, bytes_max=4000):
        host, port = address.rsplit(":", 1)
        self.target, self.draw, self.bytes_max = (host, int(port)), draw, bytes_max
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.cuts, self.cutting = 0, True
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            threading.Thread(target=self._relay, args=(client, server, None), daemon=True).start()
            threading.Thread(target=self._relay, args=(server, client,
                                                       self.draw.randrange(1, self.bytes_max)),
                             daemon=True).start()

    def _relay(self, source, sink, budget):
        try:
            while True:
                data = source.recv(4096)
                if not data:
                    break
                if budget is not None and self.cutting and len(data) >= budget:
                    sink.sendall(data[:budget])
                    self.cuts += 1
                    break
                budget = None if budget is None else max(budget - len(data), 1)
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self):
        self.listener.close()


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False
