"""One gateway with the whole corpus, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.fakes.plugged import CORPUS, Site, plugged

CALL_SECONDS = 4
"""How long a call waits for an answer here."""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved once, at their end; calls end soon."""
    settings = {"ENABLE_REALTIME_CHAT_SAVE": "false", "WEBSOCKET_EVENT_CALLER_TIMEOUT": str(CALL_SECONDS)}
    with plugged(tmp_path_factory.mktemp("s"), CORPUS, **settings) as running:
        yield running


@pytest.fixture(scope="session")
def saving_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved while they are made; calls wait as long as they do by default."""
    with plugged(tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="true") as running:
        yield running
