"""The corpus: fetched once into the user's cache, and written where a test can change it."""

from pathlib import Path

import pytest

from tests.conftest import missing
from tests.corpus.fetch import obtain


@pytest.fixture(scope="session")
def fetched() -> None:
    """Have the documents in the cache."""
    problems = obtain()
    if problems:
        missing("the corpus", "; ".join(problems))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for a daemon and what it ingests."""
    return tmp_path_factory.mktemp("k")
