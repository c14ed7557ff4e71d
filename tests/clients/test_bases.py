"""Each address under which a client may look for the gateway, with each way to show a key."""

from collections.abc import Sequence
from typing import Any

import anthropic
import openai
import pytest

from tests.clients.askers import AnthropicAsker, OpenAiAsker
from tests.clients.conversation import ANTHROPIC, OPENAI, SAYINGS
from tests.clients.node import Node
from tests.clients.scene import Scene

OPENAI_BASES = ("/api", "/api/v1", "/v1", "/openai", "/openai/v1", "/ollama/v1")
ANTHROPIC_BASES = ("/api", "", "/ollama")
SAID = SAYINGS["text and parallel tool calls"]


def listed(models: Sequence[Any]) -> set[str]:
    return {model.id for model in models}


@pytest.mark.parametrize("base", OPENAI_BASES)
def test_openai(scene: Scene, base: str) -> None:
    with openai.OpenAI(base_url=scene.url + base, api_key=scene.key, max_retries=0) as client:
        for stream in (False, True):
            scene.provider.script(SAID.reply("openai", stream=stream))
            asked = {"model": "o.m", **OPENAI}
            assert OpenAiAsker(client).ask(asked, stream=stream) == SAID.outcome
        assert {"o.m", "a.m", "l.m"} <= listed(list(client.models.list()))
        assert client.models.retrieve("o.m").id == "o.m"
        assert len(client.embeddings.create(model="o.m", input="x").data[0].embedding) == 32


def test_azure(scene: Scene) -> None:
    given: dict[str, Any] = {"api_key": scene.key, "api_version": "2024-10-21", "max_retries": 0}
    with openai.AzureOpenAI(azure_endpoint=scene.url, **given) as client:
        for stream in (False, True):
            scene.provider.script(SAID.reply("openai", stream=stream))
            asked = {"model": "o.m", **OPENAI}
            assert OpenAiAsker(client).ask(asked, stream=stream) == SAID.outcome
        assert len(client.embeddings.create(model="o.m", input="x").data[0].embedding) == 32
        assert client.models.retrieve("o.m").id == "o.m"


@pytest.mark.parametrize("shown", ["api_key", "auth_token"])
@pytest.mark.parametrize("base", ANTHROPIC_BASES)
def test_anthropic(scene: Scene, base: str, shown: str) -> None:
    # What is not given is not taken from the environment either.
    given: dict[str, Any] = {"api_key": None, "auth_token": None, shown: scene.key}
    with anthropic.Anthropic(base_url=scene.url + base, max_retries=0, **given) as client:
        for stream in (False, True):
            scene.provider.script(SAID.reply("anthropic", stream=stream))
            asked = {"model": "a.m", **ANTHROPIC}
            assert AnthropicAsker(client).ask(asked, stream=stream) == SAID.outcome
        assert {"o.m", "a.m", "l.m"} <= listed(list(client.models.list()))


def test_a_session_is_as_good_as_a_key(scene: Scene) -> None:
    hi: Any = [{"role": "user", "content": "hi"}]
    with openai.OpenAI(base_url=f"{scene.url}/api", api_key=scene.session, max_retries=0) as client:
        answer = client.chat.completions.create(model="o.m", messages=hi)
        assert answer.choices[0].message.content == "Hello from m"
    with anthropic.Anthropic(base_url=f"{scene.url}/api", auth_token=scene.session, max_retries=0) as other:
        told = other.messages.create(model="a.m", messages=hi, max_tokens=9)
        assert told.content[0].text == "Hello from m"


@pytest.mark.real("node")
@pytest.mark.parametrize("base", OPENAI_BASES)
def test_openai_for_node(scene: Scene, node: Node, base: str) -> None:
    answer = node.call("openai", "create", scene.url + base, scene.key, {"model": "o.m", **OPENAI})
    assert answer["value"]["choices"][0]["message"]["content"] == "Hello from m"


@pytest.mark.real("node")
@pytest.mark.parametrize("has_token", [False, True], ids=["api_key", "auth_token"])
@pytest.mark.parametrize("base", ANTHROPIC_BASES)
def test_anthropic_for_node(scene: Scene, node: Node, base: str, *, has_token: bool) -> None:
    shown = {"key": None, "token": scene.key} if has_token else {"key": scene.key}
    asked = {"model": "a.m", **ANTHROPIC}
    answer = node.call("anthropic", "create", scene.url + base, body=asked, **shown)
    assert answer["value"]["content"][0]["text"] == "Hello from m"
