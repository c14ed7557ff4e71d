from pathlib import Path

import pytest

from tests.fakes.plugins.isolated import Isolating


@pytest.fixture
def isolating(tmp_path: Path) -> Isolating:
    return Isolating(tmp_path)
