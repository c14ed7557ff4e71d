import importlib.util
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gatewayd.tasks import TaskRegistry
from gatewayd.vectors.models import catalogue
from gatewayd.vectors.models.build import build
from tests.conftest import missing


@pytest.fixture(scope="session")
def minilm_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory in which the default model is ready."""
    state = tmp_path_factory.mktemp("minilm")
    build(state, catalogue.MINILM)
    return state


@pytest.fixture(scope="session")
def minilm(minilm_state: Path) -> Path:
    """Return the folder of the default model."""
    return catalogue.model_folder(minilm_state, catalogue.MINILM)


@pytest.fixture(scope="session")
def e5_state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state directory in which the multilingual model is ready."""
    if importlib.util.find_spec(catalogue.E5_SMALL.package) is None:
        missing("the multilingual model", f"{catalogue.E5_SMALL.distribution} is not installed")
    state = tmp_path_factory.mktemp("e5")
    build(state, catalogue.E5_SMALL)
    return state


@pytest.fixture
async def tasks() -> AsyncIterator[TaskRegistry]:
    tasks = TaskRegistry()
    yield tasks
    await tasks.close()
