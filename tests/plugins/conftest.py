"""Gateways with the whole corpus, for all tests of this folder.

The modules in IN_BOTH also run with each plugin in a process;
`TEST_PLUGIN_ISOLATION=process python -m pytest tests/plugins` runs all of them so.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gatewayd.settings.environment import process_environment
from tests.fakes.daemons.plugin_site import CORPUS, Site, plugged, wait_until

PLACE = process_environment().get("TEST_PLUGIN_ISOLATION", "thread")
SETTINGS = {"PLUGIN_ISOLATION": PLACE, "PLUGIN_PROCESSES": "200"}
IN_BOTH = {"test_filters", "test_pipes"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of some modules in both places."""
    name = Path(str(metafunc.module.__file__)).stem
    if "site" in metafunc.fixturenames and name in IN_BOTH and PLACE == "thread":
        metafunc.parametrize("site", ["thread_site", "process_site"], indirect=True)


def ready(site: Site) -> Site:
    """Wait until every plugin is loaded or has failed to be: processes take a while to start."""
    for family in ("functions", "tools"):
        wait_until(lambda family=family: all(map(_is_settled, site.good("GET", f"/api/v1/{family}/"))), 300)
    return site


def _is_settled(plugin: dict[str, Any]) -> bool:
    return bool(plugin["loaded"] or plugin["error"] or not plugin["is_active"])


@pytest.fixture(scope="session")
def thread_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved once, at their end."""
    with plugged(
        tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="false", **SETTINGS
    ) as running:
        yield ready(running)


@pytest.fixture(scope="session")
def process_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Each plugin lives in a process."""
    settings = {**SETTINGS, "PLUGIN_ISOLATION": "process", "ENABLE_REALTIME_CHAT_SAVE": "false"}
    with plugged(tmp_path_factory.mktemp("s"), CORPUS, **settings) as running:
        yield ready(running)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Site:
    """The gateway of the place that a test runs for."""
    running: Site = request.getfixturevalue(getattr(request, "param", "thread_site"))
    return running


@pytest.fixture(scope="session")
def saving_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved while they are made."""
    with plugged(
        tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="true", **SETTINGS
    ) as running:
        yield ready(running)
