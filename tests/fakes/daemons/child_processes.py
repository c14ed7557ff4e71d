"""What becomes of the processes of a process that is killed: they become ours, and must end by themselves."""

import ctypes
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.fakes.daemons import forking

PR_SET_CHILD_SUBREAPER = 36


class Orphans:
    """The processes that became children of this one since the block was entered."""

    def __init__(self) -> None:
        self._known = children_of(os.getpid())

    def wait(self, seconds: float = 15.0) -> None:
        """Wait until all have ended; those that live on are a failure.

        The caller has no children of its own that were started since.
        """
        deadline = time.monotonic() + seconds
        while living := children_of(os.getpid()) - self._known:
            for pid in living:
                os.waitpid(pid, os.WNOHANG)
            if time.monotonic() > deadline:
                told = {pid: command_of(pid) for pid in living}
                for pid in living:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                raise AssertionError(f"processes outlive the one that started them: {told}")
            time.sleep(0.005)


@contextmanager
def adopting() -> Iterator[Orphans]:
    """Be the parent of what is left behind by the processes that are started inside."""
    forking.load()
    _adopt(1)
    try:
        yield Orphans()
    finally:
        _adopt(0)


def children_of(parent: int) -> set[int]:
    """Return the processes that a process has started, with ended ones that it did not ask about."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == parent:
            found.add(int(path.parent.name))
    return found


def find_child(parent: int, module: str) -> int | None:
    """Return a process that a process runs a module of Python in."""
    return next((pid for pid in children_of(parent) if module in command_of(pid).split()), None)


def command_of(pid: int) -> str:
    """Return the command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _adopt(flag: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(PR_SET_CHILD_SUBREAPER, flag, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
