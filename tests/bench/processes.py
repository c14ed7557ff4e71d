"""Processes that the benchmark starts, each in a session of its own, and what the kernel tells of them."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.daemons.child_processes import command_of as command_of

STOP_SECONDS = 10.0
QUIET_SHARE = 0.05  # of one core: a process that uses less has settled
TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Memory:
    """Resident memory of all processes of a session, in KiB: now, and the most so far."""

    resident: int
    peak: int


class Session:
    """A process that was started in a session of its own, with all that it started."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def pids(self) -> list[int]:
        """Return the processes that live now."""
        return [pid for pid in _all_pids() if _session_of(pid) == self.process.pid]

    def cpu_seconds(self) -> float:
        """Return the processor time of all threads that live now, to the nanosecond."""
        return sum(map(_cpu_ns, self.pids())) / 1e9

    def memory(self) -> Memory:
        """Return the resident memory of all processes together."""
        fields = [_status(pid) for pid in self.pids()]
        return Memory(sum(one.get("VmRSS", 0) for one in fields), sum(one.get("VmHWM", 0) for one in fields))

    def settle(self, limit: float = 5.0) -> None:
        """Wait until the processes rest, `limit` seconds at most."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            before = self.cpu_seconds()
            time.sleep(0.2)
            if self.cpu_seconds() - before < 0.2 * QUIET_SHARE:
                return

    def stop(self) -> None:
        """End all processes of the session: politely, then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@contextlib.contextmanager
def running_session(
    command: list[str], log: Path, *, folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """Start a command with its output in a file; it and all that it started are gone at the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    session = Session(process)
    try:
        follow_priority(process.pid)
        yield session
    finally:
        session.stop()


def follow_priority(pid: int) -> None:
    """Give the scheduler's group of a new session our priority, where the kernel groups by session."""
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness:
        with contextlib.suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text(str(niceness))


def cpu_seconds_of(pid: int) -> float:
    """Return the processor time of the threads that live in one process."""
    return _cpu_ns(pid) / 1e9


def sizes_of(pid: int) -> Memory:
    """Return the resident memory of one process; nothing when it is gone."""
    fields = _status(pid)
    return Memory(fields.get("VmRSS", 0), fields.get("VmHWM", 0))


def reset_peak(pid: int) -> None:
    """Forget how much memory a process has had at most."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def busy_seconds() -> float:
    """Return the processor time that the whole machine has spent so far."""
    user, nice, system, _, _, interrupts, soft, *_ = (
        Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return sum(map(int, (user, nice, system, interrupts, soft))) / TICK


def _all_pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


def _cpu_ns(pid: int) -> int:
    total = 0
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread may end while we look
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += int((thread / "schedstat").read_text().split()[0])
    return total


def _status(pid: int) -> dict[str, int]:
    """Return the fields of /proc/PID/status that are sizes, in KiB."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    sizes = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) for name, size, _ in sizes}
