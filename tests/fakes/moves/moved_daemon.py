"""Daemons whose state goes through a backup, or through PostgreSQL and back, before they serve it (again).

A daemon that starts on a state that is there serves what was moved. One that the fixtures of a test have
started and filled is stopped before the test, its state is moved, and it goes on at the same address.
"""

import atexit
import contextlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.daemons import forking
from tests.fakes.daemons.daemon import Daemon, Start, environment, running_alone
from tests.fakes.storage.migrated import NAME
from tests.fakes.storage.postgres import Postgres, start_postgres

PASSPHRASE = "the passphrase of all backups of tests"
OWN = frozenset({"DATABASE_URL", "FILE_STORE", "VECTOR_STORE", "CLUSTER", "REDIS_URL", "BACKUP_DIR"})
SECONDS = 120.0


def is_movable(start: Start) -> bool:
    """Whether the state of a daemon is below its folder, and is the gateway's alone."""
    is_own = OWN & set(start.settings) or start.activated or start.module != "gatewayd"
    return not is_own and "--quickstart" not in start.args


@dataclass(frozen=True)
class StoppedState:
    """The state of a daemon that is stopped."""

    start: Start

    def ctl(self, *words: str, **settings: str) -> Any:
        """Run gatewayctl on the state and return its answer; it must succeed."""
        start = self.start
        files = ["--config", start.args[start.args.index("-f") + 1]] if "-f" in start.args else []
        env = environment(start.state, 0, {**start.settings, **settings})
        done = forking.run("gatewayctl", [*words, *files, "-o", "json"], env, PASSPHRASE, SECONDS)
        assert done.returncode == 0, (words, done.stderr)
        return json.loads(done.stdout)

    def restore_backup(self) -> None:
        """Make a backup, verify it, and replace the state by what it has."""
        place, secrets = ("--directory", f"{self.start.state}-backups"), ("--passphrase-file", "-")
        made = self.ctl("backup", "create", *place, *secrets)
        assert self.ctl("backup", "verify", made["path"])["rows"] == made["rows"]
        self.ctl("backup", "restore", made["path"], "--replace", "--yes", *secrets)
        for left in (*self.start.state.glob("replaced-*"), self.start.state / "restored", Path(place[1])):
            shutil.rmtree(left, ignore_errors=True)

    def copy_to_postgresql_and_back(self) -> None:
        """Copy the database to PostgreSQL, and a copy of that to where it was."""
        url, path = server().create_database(), self.start.state / NAME
        self.ctl("database", "copy", "--to", url, "--yes")
        for former in self.start.state.glob(f"{NAME}*"):
            former.unlink()
        self.ctl("database", "copy", "--to", f"sqlite:///{path}", "--yes", DATABASE_URL=url)


Move = Callable[[StoppedState], None]
MOVES: dict[str, Move] = {
    "backup": StoppedState.restore_backup,
    "postgresql": StoppedState.copy_to_postgresql_and_back,
}


@cache
def server() -> Postgres:
    """Return a server for all copies of this process."""
    folder = tempfile.mkdtemp(prefix="gatewayd-moves-")
    made = start_postgres(Path(folder))

    def end() -> None:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return made


class LivingDaemon:
    """A daemon that can be stopped and go on: the same object, address and log, another process."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self._stack = contextlib.ExitStack()
        self._daemon: Daemon | None = None

    def begin(self) -> Daemon:
        """Start the daemon, where it was if it was started before."""
        former = self._daemon
        if former is None:
            self._daemon = self._stack.enter_context(running_alone(self.start))
            return self._daemon
        settings = {**self.start.settings, "PORT": former.base_url.rpartition(":")[2]}
        begun = running_alone(replace(self.start, settings=settings), former.log)
        former.process = self._stack.enter_context(begun).process
        return former

    def end(self) -> None:
        """Stop the daemon."""
        self._stack.close()

    def is_alive(self) -> bool:
        """Whether the daemon runs and has ended by no signal of its test."""
        return self._daemon is not None and self._daemon.process.poll() is None


class MovedDaemons:
    """Starts daemons of tests on moved states, and moves those that have been filled meanwhile."""

    def __init__(self, move: Move) -> None:
        self._move = move
        self._filled: list[LivingDaemon] = []
        self.count = 0

    @contextlib.contextmanager
    def run(self, start: Start) -> Iterator[Daemon]:
        """Run a daemon, on a state that was moved if there is one."""
        if not is_movable(start):
            with running_alone(start) as daemon:
                yield daemon
            return
        if (start.state / NAME).exists():
            self._moved(start)
        living = LivingDaemon(start)
        try:
            daemon = living.begin()
            self._filled.append(living)
            yield daemon
        finally:
            if living in self._filled:
                self._filled.remove(living)
            living.end()

    def move_filled(self) -> None:
        """Move the state of each daemon that started since, and let the daemon go on with it."""
        filled, self._filled = self._filled, []
        for living in filled:
            if living.is_alive():
                living.end()
                self._moved(living.start)
                living.begin()

    def _moved(self, start: Start) -> None:
        self._move(StoppedState(start))
        self.count += 1
