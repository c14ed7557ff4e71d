"""A world of collections for each test."""

from pathlib import Path

import pytest

from tests.fakes.documents.collections import World, build_world


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return services over an empty database."""
    return build_world(tmp_path)
