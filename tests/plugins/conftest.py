"""Two gateways with the whole corpus, for all tests of this folder.

`TEST_PLUGIN_ISOLATION=process python -m pytest tests/plugins` runs them with each plugin in a process.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from gatewayd.settings.environment import process_environment
from tests.fakes.plugged import CORPUS, Site, plugged, wait_until

SETTINGS = {
    "PLUGIN_ISOLATION": process_environment().get("TEST_PLUGIN_ISOLATION", "thread"),
    "PLUGIN_PROCESSES": "200",
}


def ready(site: Site) -> Site:
    """Wait until every plugin is loaded or has failed to be: processes take a while to start."""
    for family in ("functions", "tools"):
        wait_until(lambda family=family: all(map(_is_settled, site.good("GET", f"/api/v1/{family}/"))), 300)
    return site


def _is_settled(plugin: dict[str, Any]) -> bool:
    return bool(plugin["loaded"] or plugin["error"] or not plugin["is_active"])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved once, at their end."""
    with plugged(
        tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="false", **SETTINGS
    ) as running:
        yield ready(running)


@pytest.fixture(scope="session")
def saving_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved while they are made."""
    with plugged(
        tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="true", **SETTINGS
    ) as running:
        yield ready(running)
