"""One gateway with the whole corpus, for all tests of this folder."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.plugged import CORPUS, Site, plugged

CALL_SECONDS = 2
"""How long a call waits for an answer here."""


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    """Answers are saved once, at their end; calls end soon."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {"ENABLE_REALTIME_CHAT_SAVE": "false", "WEBSOCKET_EVENT_CALLER_TIMEOUT": str(CALL_SECONDS)}
        with plugged(Path(folder) / "s", CORPUS, **settings) as running:
            yield running


@pytest.fixture(scope="session")
def saving_site() -> Iterator[Site]:
    """Answers are saved while they are made; calls wait as long as they do by default."""
    with tempfile.TemporaryDirectory() as folder:
        with plugged(Path(folder) / "s", CORPUS, ENABLE_REALTIME_CHAT_SAVE="true") as running:
            yield running
