"""Markers that say what a test starts, given to each test when it is found, and the guard of `unit`.

A test is `clients` in the folder of the clients, `browser` when it drives the page, `database` when it uses a
SQLite file or a PostgreSQL server, `process` in the folders and modules below and with a marker of its own,
else `unit`.
"""

import ipaddress
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]

# Folders and modules, below tests/, whose tests start processes; those of gatewayctl/commands start a whole
# control application instead, which takes about as long.
PROCESSES = (
    "bench/",
    "blackbox/",
    "clients/",
    "cluster/",
    "corpus/",
    "faults/",
    "gatewayctl/commands/",
    "gatewayctl/test_commands_live.py",
    "gatewayctl/test_streams.py",
    "gatewayd/bus/",
    "gatewayd/builtin_model/test_child.py",
    "gatewayd/builtin_model/test_server.py",
    "gatewayd/builtin_model/test_source.py",
    "gatewayd/builtin_model/test_weights.py",
    "gatewayd/extract/formats/test_manual.py",
    "gatewayd/extract/test_child.py",
    "gatewayd/extract/test_mandoc.py",
    "gatewayd/extract/test_pool.py",
    "gatewayd/doctor/test_service_commands.py",
    "gatewayd/doctor/test_state_folder.py",
    "gatewayd/extract/test_reader_process.py",
    "gatewayd/offline/imports/test_killing.py",
    "gatewayd/plugins/isolation/test_child.py",
    "gatewayd/plugins/isolation/test_plugin.py",
    "gatewayd/plugins/isolation/test_process.py",
    "gatewayd/plugins/isolation/test_streams.py",
    "gatewayd/plugins/isolation/test_supervisor.py",
    "gatewayd/plugins/source/test_check_process.py",
    "gatewayd/plugins/source/test_requirements.py",
    "gatewayd/plugins/test_placement.py",
    "gatewayd/sandbox/test_confinement.py",
    "gatewayd/storage/engine/test_lock.py",
    "gatewayd/storage/test_killing.py",
    "gatewayd/test_command.py",
    "gatewayd/test_daemon.py",
    "gatewayd/test_main.py",
    "gatewayd/test_process_memory.py",
    "gatewayd/test_quickstart.py",
    "gatewayd/test_quickstart_manual.py",
    "gatewayd/test_workers.py",
    "gatewayd/upstream/directory/",
    "gatewayd/upstream/objects/",
    "gatewayd/vectors/models/test_build.py",
    "gatewayd/vectors/models/test_reranker.py",
    "gatewayd/vectors/test_local.py",
    "gatewayd/vectors/test_process.py",
    "page/test_chat_modules.py",
    "plugins/",
    "test_backup_documented.py",
    "test_ci_run.py",
    "test_documents_documented.py",
    "test_scim_documented.py",
)

# Fixtures that start a process, or fetch over the network with one.
PROCESS_FIXTURES = {"weights"}

# Fixtures of the tests of the page that start a browser, or the gateway for it.
BROWSER_FIXTURES = {"browser", "site"}

# Folders and modules, and fixtures, that make a database.
DATABASES = ("gatewayd/assembly/", "gatewayd/offline/imports/", "gatewayd/storage/engine/test_migrate.py")
DATABASE_FIXTURES = {"database", "empty", "location", "migrated_copy", "postgres", "stored"}
ENGINES = {"sqlite", "postgres"}

# Markers with which a test is never `unit`: it takes long, breaks something, or needs a program.
OTHER = {"database", "faults", "long", "process", "real", "slow"}


def starts_processes(path: Path) -> bool:
    """Whether all tests of a folder or module start processes."""
    name = str(path.relative_to(TESTS))
    return (name if path.suffix == ".py" else f"{name}/").startswith(PROCESSES)


def kinds_of(item: pytest.Item, path: str) -> set[str]:
    """Return the markers of a test, by its path below tests/, what it uses and what it is marked with."""
    marked = {marker.name for marker in item.iter_markers()}
    fixtures = set(getattr(item, "fixturenames", ()))
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    kinds = set()
    if path.startswith("clients/"):
        kinds.add("clients")
    if path.startswith("page/") and fixtures & BROWSER_FIXTURES:
        kinds |= {"browser", "process"}
    if (
        path.startswith(DATABASES)
        or fixtures & DATABASE_FIXTURES
        or ENGINES & {value for value in parameters.values() if type(value) is str}
    ):
        kinds.add("database")
    if path.startswith(PROCESSES) or fixtures & PROCESS_FIXTURES:
        kinds.add("process")
    return kinds or (set() if marked & OTHER else {"unit"})


class Guard:
    """Notes what a test of the kind `unit` does beyond it; the interpreter tells of it by audit events."""

    def __init__(self) -> None:
        self._found: list[str] = []
        self._is_watching = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._is_watching or event not in WATCHED:
            return
        if event == "socket.connect" and is_local(arguments[1]):
            return
        self._found.append(f"{event} {arguments[1] if event == 'socket.connect' else arguments[:1]}")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        """Watch while a `unit` test and its fixtures run."""
        self._is_watching = item.get_closest_marker("unit") is not None
        try:
            return (yield)
        finally:
            self._is_watching = False
            self._found.clear()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[Any]:
        """Fail a test that went beyond, when it has run."""
        result = yield
        if self._found:
            pytest.fail(f"marked unit, but it used {self._found}: see tests/suite/markers.py", pytrace=False)
        return result


WATCHED = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "socket.connect", "subprocess.Popen"}


def is_local(address: object) -> bool:
    """Whether an address is that of a unix socket or of this machine."""
    if not isinstance(address, tuple):
        return True
    try:
        return ipaddress.ip_address(address[0]).is_loopback
    except ValueError:
        return bool(address[0] == "localhost")


def mark(items: Iterable[pytest.Item], folder: str) -> None:
    """Give each test its markers."""
    for item in items:
        for kind in sorted(kinds_of(item, item.nodeid.removeprefix(f"{folder}/"))):
            item.add_marker(kind)
