"""`python -m gatewayd` and `python -m gatewayctl` without their imports: forked from one that made them.

A process of its own, with the given arguments, environment, working directory and standard streams, and with
no thread, task or socket of another. The imports are nine tenths of most of these processes' time, and
the tree of all commands is most of the rest for gatewayctl: it is made before too. A command of gatewayctl
that gives an order to `python -m gatewayd.offline` forks that too.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

ROOT = Path(__file__).parents[3]
# The modules that each process loads which others are forked from: that of the program's `__main__` first.
OFFLINE = "gatewayctl offline"
PROGRAMS: dict[str, tuple[str, ...]] = {
    "gatewayd": ("gatewayd.command",),
    "gatewayctl": ("gatewayctl.main",),
    OFFLINE: ("gatewayctl.main", "gatewayctl.offline.orders", "gatewayd.offline.__main__"),
}
# Nouns whose commands work without the daemon.
OFFLINE_NOUNS = {"backup", "database", "db", "import", "secret"}
MAX_REQUEST_BYTES = 128 * 1024
MAX_DESCRIPTORS = 8


class Forked:
    """A process as `subprocess.Popen` shows one."""

    stdin = stderr = None

    def __init__(self, args: Sequence[str], status: int, stdout: IO[bytes] | None = None) -> None:
        self.args, self.stdout, self.returncode = args, stdout, None
        self._status, self._lock = os.fdopen(status, "rb"), threading.Lock()
        line = self._status.readline()
        assert line, f"there is no process to fork {args} from"
        self.pid = int(line)

    def wait(self, timeout: float | None = None) -> int:
        ends = None if timeout is None else time.monotonic() + timeout
        while not self._lock.acquire(timeout=-1 if timeout is None else timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        try:
            if self.returncode is None:
                self._read(None if ends is None else max(0, ends - time.monotonic()))
        finally:
            self._lock.release()
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def _read(self, seconds: float | None) -> None:
        ready = select.poll()
        ready.register(self._status, select.POLLIN)
        if ready.poll(None if seconds is None else seconds * 1000):
            line = self._status.readline()
            assert line, f"the process that {self.args} was forked from has ended"
            self.returncode = int(line)
            self._status.close()

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            # It may have ended, and its status be on the way.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _loaded(program: str) -> socket.socket:
    """Start a process that has loaded a program, and return the socket on which it is asked to fork."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "VIRTUAL_ENV") if name in os.environ}
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fakes.daemons.forking", program, str(theirs.fileno())],
            env={**kept, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
        )

    def end() -> None:
        ours.close()
        process.wait(10)

    atexit.register(end)
    return ours


def load() -> None:
    """Start the processes that others are forked from, for tests that count their children."""
    for program in PROGRAMS:
        _loaded(program)


def start(program: str, args: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> Forked:
    """Start a program with three file descriptors as its standard streams; they stay the caller's.

    Further ones are sockets that it is activated with (sd_listen_fds(3)); the environment says how many.
    """
    request = json.dumps([list(args), dict(env), str(Path.cwd())]).encode()
    assert len(request) < MAX_REQUEST_BYTES
    reading, writing = os.pipe()
    loaded = OFFLINE if program == "gatewayctl" and OFFLINE_NOUNS & set(args) else program
    try:
        socket.send_fds(_loaded(loaded), [request], [*streams, writing])
    finally:
        os.close(writing)
    return Forked([program, *args], reading)


def start_logged(
    program: str, args: Sequence[str], env: Mapping[str, str], sockets: Sequence[int] = ()
) -> Forked:
    """Start a program without standard input whose two outputs are one pipe, `stdout`."""
    reading, writing = os.pipe()
    with Path(os.devnull).open("rb") as nothing:
        process = start(program, args, env, [nothing.fileno(), writing, writing, *sockets])
    os.close(writing)
    process.stdout = os.fdopen(reading, "rb")
    return process


def run(
    program: str, args: Sequence[str], env: Mapping[str, str], input: str | None, seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as `subprocess.run` does."""
    reading, writing = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(program, args, env, [reading, out.fileno(), err.fileno()])
        os.close(reading)
        with contextlib.suppress(BrokenPipeError), os.fdopen(writing, "wb") as stdin:
            stdin.write((input or "").encode())
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        printed = []
        for stream in (out, err):
            stream.seek(0)
            printed.append(stream.read().decode())
    return subprocess.CompletedProcess(process.args, code, *printed)


# The process that is forked ---------------------------------------------------------------------------------


class Forker:
    """Forks at each request, and tells the pid and then the exit status of what it forked."""

    def __init__(self, asked: socket.socket) -> None:
        self._asked, self._watched = asked, selectors.DefaultSelector()
        self._watched.register(asked, selectors.EVENT_READ, None)

    def serve(self) -> Callable[[], None] | None:
        """Return None when nobody asks any more; in a forked process, what sets it up."""
        while True:
            for key, _ in self._watched.select():
                if key.data is not None:
                    self._end(key.fd, *key.data)
                    continue
                request, descriptors, *_ = socket.recv_fds(self._asked, MAX_REQUEST_BYTES, MAX_DESCRIPTORS)
                if not request:
                    return None
                if (child := os.fork()) == 0:
                    return lambda: self._become(json.loads(request), descriptors)
                self._watch(child, descriptors)

    def _watch(self, child: int, descriptors: list[int]) -> None:
        *streams, status = descriptors
        for stream in streams:
            os.close(stream)
        os.write(status, b"%d\n" % child)
        self._watched.register(os.pidfd_open(child), selectors.EVENT_READ, (child, status))

    def _end(self, watched: int, child: int, status: int) -> None:
        self._watched.unregister(watched)
        os.close(watched)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        # Who asked may be gone.
        with contextlib.suppress(BrokenPipeError):
            os.write(status, b"%d\n" % code)
        os.close(status)

    def _become(self, request: list[Any], descriptors: list[int]) -> None:
        """Leave what belongs to the others, and take what was asked for."""
        for key in list(self._watched.get_map().values()):
            if key.data is not None:
                os.close(key.fd)
                os.close(key.data[1])
        self._watched.close()
        self._asked.close()
        # Out of the way first: what was received may have a number that is to be another's.
        kept = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 64) for descriptor in descriptors[:-1]]
        for descriptor in descriptors:
            os.close(descriptor)
        for number, descriptor in enumerate(kept):
            os.dup2(descriptor, number)
            os.close(descriptor)
        args, env, folder = request
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(env)
        if "LISTEN_FDS" in env:
            os.environ["LISTEN_PID"] = str(os.getpid())
        time.tzset()
        sys.argv[1:] = args


class ForkedOrder:
    """`python -m gatewayd.offline` as `subprocess.Popen` starts it, with two pipes."""

    def __init__(self, command: Sequence[str], *, stdin: int, stdout: int) -> None:
        assert command[1:] == ["-m", "gatewayd.offline"]
        assert stdin == stdout == subprocess.PIPE
        self.returncode: int | None = None
        given, giving = os.pipe()
        taking, taken = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.dup2(given, 0)
            os.dup2(taken, 1)
            _run_order()
        os.close(given)
        os.close(taken)
        self.stdin, self.stdout = os.fdopen(giving, "wb"), os.fdopen(taking, "rb")

    def __enter__(self) -> "ForkedOrder":
        return self

    def __exit__(self, *failed: object) -> None:
        self.stdout.close()
        self.stdin.close()
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _run_order() -> NoReturn:
    """Run the order in the forked process, as a new interpreter would, and end."""
    os.closerange(3, 256)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    status = 1
    try:
        status = import_module("gatewayd.offline.__main__").main()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def main(program: str, descriptor: str) -> NoReturn:
    gc.disable()
    for module in PROGRAMS[program]:
        import_module(module)
    package = program.partition(" ")[0]
    if package == "gatewayctl":
        import_module("gatewayctl.main").root_command()
    entry = import_module(f"{package}.__main__")
    gc.freeze()
    gc.enable()
    become = Forker(socket.socket(fileno=int(descriptor))).serve()
    if become is None:
        sys.exit()
    become()
    if program == OFFLINE:
        orders = import_module("gatewayctl.offline.orders")
        vars(orders)["subprocess"] = SimpleNamespace(Popen=ForkedOrder, PIPE=subprocess.PIPE)
    sys.argv[0] = str(ROOT / package / "__main__.py")
    sys.exit(entry.main())


if __name__ == "__main__":
    main(*sys.argv[1:])
