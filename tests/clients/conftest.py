"""One gateway for all tests of clients, and the clients, which are closed at the end."""

from collections.abc import Callable, Iterator

import anthropic
import ollama
import openai
import pytest

from tests.clients.askers import ASKERS, SECONDS, AnthropicAsker, Asker, NodeAsker, OllamaAsker, OpenAiAsker
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
    try:
        running = running_node()
        with running as made:
            yield made
    except NodeMissingError as error:
        missing("node", str(error))


@pytest.fixture(scope="session")
def openai_client(scene: Scene) -> Iterator[openai.OpenAI]:
    url = f"{scene.url}/api/v1"
    with openai.OpenAI(base_url=url, api_key=scene.key, max_retries=0, timeout=SECONDS) as client:
        yield client


@pytest.fixture(scope="session")
def anthropic_client(scene: Scene) -> Iterator[anthropic.Anthropic]:
    url = f"{scene.url}/api"
    with anthropic.Anthropic(base_url=url, api_key=scene.key, max_retries=0, timeout=SECONDS) as client:
        yield client


@pytest.fixture(scope="session")
def ollama_client(scene: Scene) -> Iterator[ollama.Client]:
    headers = {"Authorization": f"Bearer {scene.key}"}
    with ollama.Client(f"{scene.url}/ollama", headers=headers, timeout=SECONDS) as client:
        yield client


@pytest.fixture(params=[pytest.param(name, marks=marks) for name, marks in ASKERS.items()])
def asker(request: pytest.FixtureRequest) -> Asker:
    """Return each client in turn."""
    made: dict[str, Callable[[], Asker]] = {
        "openai": lambda: OpenAiAsker(request.getfixturevalue("openai_client")),
        "openai-helper": lambda: OpenAiAsker(request.getfixturevalue("openai_client"), has_helper=True),
        "anthropic": lambda: AnthropicAsker(request.getfixturevalue("anthropic_client")),
        "anthropic-helper": lambda: AnthropicAsker(
            request.getfixturevalue("anthropic_client"), has_helper=True
        ),
        "ollama": lambda: OllamaAsker(request.getfixturevalue("ollama_client")),
        "node-openai": lambda: _node_asker(request, "openai", "/api/v1"),
        "node-anthropic": lambda: _node_asker(request, "anthropic", "/api"),
    }
    return made[request.param]()


def _node_asker(request: pytest.FixtureRequest, dialect: str, path: str) -> NodeAsker:
    scene: Scene = request.getfixturevalue("scene")
    node: Node = request.getfixturevalue("node")
    return NodeAsker(node, scene.url + path, scene.key, dialect)
