"""Most gateways of these tests start over a database that has its schema, as they do after the first time."""

from pathlib import Path

import pytest

from tests.fakes.storage.migrated import migrated_copy


@pytest.fixture
def state(state: Path) -> Path:
    """Return a private directory with an empty SQLite database of this version's schema."""
    migrated_copy(state)
    return state
