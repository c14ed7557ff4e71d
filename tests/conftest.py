"""Fixtures that many tests share: real components, found or refused; and the order of the modules."""

import gc
import importlib
import os
import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hypothesis
import pytest

from gatewayd.errors import GatewayError
from tests.fakes.providers.weights import obtain_weights
from tests.fakes.storage import migrated
from tests.fakes.storage.postgres import Postgres, start_postgres
from tests.suite import markers
from tests.suite.bytecode import compile_all
from tests.suite.coverage import ExecutedFunctions, is_whole


def missing(component: str, reason: str) -> None:
    """Skip for want of a real component; fail instead when GATEWAYD_REQUIRE_REAL asks for all of them."""
    sentence = f"{component} is not here: {reason}"
    if os.environ.get("GATEWAYD_REQUIRE_REAL") == "1":
        pytest.fail(sentence)
    pytest.skip(sentence)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options of tests/cluster."""
    parser.addoption("--rounds", type=int, default=1, help="Number of rounds of faults of tests/cluster.")
    parser.addoption("--first-round", type=int, default=0, help="Number of the first round, its seed.")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the collector not look at the tests again and again while they are found: they stay to the end.

    Then it seldom looks at all: an application that a test makes and leaves is 35,000 objects.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 10, 2)
        gc.enable()


def pytest_configure(config: pytest.Config) -> None:
    """Note what the tests execute, and watch those that start nothing; a busy machine fails no example."""
    hypothesis.settings.register_profile("suite", deadline=None)
    hypothesis.settings.load_profile("suite")
    # The clients of OpenAI and Anthropic ask a program for the processor, once; no unit test starts it then.
    platform.processor()
    config.pluginmanager.register(ExecutedFunctions(config))
    config.pluginmanager.register(markers.Guard())
    if is_whole(config):
        # Each of its 59 classes looks for its source through all modules and the whole stack, which grow.
        importlib.import_module("scim2_models")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Compile all modules before the workers of a whole run start, which need every one of them."""
    if is_whole(config):
        compile_all(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the modules without unit tests when those alone are asked for."""
    if config.option.markexpr == "unit" and markers.starts_processes(collection_path):
        return True
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test with what it starts, before tests are chosen by markers; see tests/suite/markers.py.

    Modules with slow tests come first, so that no worker ends with one while the others wait.
    """
    markers.mark(items, "tests")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


PROGRAMS = (
    *("buildah", "cc", "dh", "lintian", "mandoc", "mmdebstrap", "nsenter"),
    *("systemd-analyze", "systemd-nspawn", "systemd-socket-activate", "systemd-sysusers"),
)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Answer the marker `real(program)` for programs that a test starts."""
    for marker in item.iter_markers("real"):
        for program in marker.args:
            if program in PROGRAMS and shutil.which(program) is None:
                missing(program, "it is not on the PATH")


@contextmanager
def real_postgres(folder: Path) -> Iterator[Postgres]:
    """Run a real PostgreSQL, from a wheel, that keeps everything in a folder."""
    try:
        server = start_postgres(folder)
    except ImportError as error:
        missing("PostgreSQL", str(error))
        raise
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    """Start a real PostgreSQL for this session."""
    with real_postgres(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def migrated_copy(tmp_path: Path) -> Path:
    """Return an empty SQLite database with this version's schema, of the test's own."""
    return migrated.migrated_copy(tmp_path)


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a private directory for a daemon's state, with a path short enough for a unix socket."""
    folder = tmp_path / "s"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture(scope="session")
def weights() -> Path:
    """Return the real weights of the built-in model, fetched once into the user's cache."""
    try:
        return obtain_weights()
    except GatewayError as error:
        missing("the built-in model", error.message)
        raise
