"""One gateway for all tests of clients, and the clients, which are closed at the end."""

from collections.abc import Iterator
from contextlib import ExitStack

import anthropic
import ollama
import openai
import pytest

from tests.clients.askers import ASKERS, Asker, Clients, opened_clients
from tests.clients.node import Node, NodeMissingError, running_node
from tests.clients.scene import Scene, opened_scene
from tests.conftest import missing


@pytest.fixture(scope="session")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with opened_scene(tmp_path_factory.mktemp("c")) as made:
        yield made


@pytest.fixture(scope="session")
def node() -> Iterator[Node]:
    """Return the process of the Node clients."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(running_node())
        except NodeMissingError as error:
            missing("node", str(error))
            raise
        yield made


@pytest.fixture(scope="session")
def clients(scene: Scene) -> Iterator[Clients]:
    with opened_clients(scene.url, scene.key) as made:
        yield made


@pytest.fixture(scope="session")
def openai_client(clients: Clients) -> openai.OpenAI:
    return clients.openai


@pytest.fixture(scope="session")
def anthropic_client(clients: Clients) -> anthropic.Anthropic:
    return clients.anthropic


@pytest.fixture(scope="session")
def ollama_client(clients: Clients) -> ollama.Client:
    return clients.ollama


@pytest.fixture(params=[pytest.param(name, marks=marks) for name, marks in ASKERS.items()])
def asker(request: pytest.FixtureRequest, clients: Clients) -> Asker:
    """Return each client in turn."""
    node = request.getfixturevalue("node") if request.param.startswith("node") else None
    return clients.asker(request.param, node)
