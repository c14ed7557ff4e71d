"""Two gateways with the whole corpus, for all tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.fakes.plugged import CORPUS, Site, plugged


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved once, at their end."""
    with plugged(tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="false") as running:
        yield running


@pytest.fixture(scope="session")
def saving_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Answers are saved while they are made."""
    with plugged(tmp_path_factory.mktemp("s"), CORPUS, ENABLE_REALTIME_CHAT_SAVE="true") as running:
        yield running
