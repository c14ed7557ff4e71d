"""The clients for Node beyond what every client is tried with: their helpers and other resources."""

from typing import Any

import pytest

from tests.clients import outcome
from tests.clients.conversation import ANTHROPIC, OPENAI, SAYINGS
from tests.clients.node import Node
from tests.clients.scene import PREFIXES, Scene, model_of
from tests.fakes.providers.upstream import CUT, Reply, json_reply, openai_chunk, sse

pytestmark = pytest.mark.real("node")

HI: Any = [{"role": "user", "content": "hi"}]
KINDS = tuple(PREFIXES)
SAID = SAYINGS["text and parallel tool calls"]


@pytest.fixture
def openai(scene: Scene, node: Node) -> Any:
    def call(operation: str, body: Any = None) -> Any:
        return node.call("openai", operation, f"{scene.url}/v1", scene.key, body)

    return call


@pytest.fixture
def anthropic(scene: Scene, node: Node) -> Any:
    def call(operation: str, body: Any = None) -> Any:
        return node.call("anthropic", operation, f"{scene.url}/api", scene.key, body)

    return call


def value(answer: Any) -> Any:
    """Return what an operation returned; it must not have failed."""
    assert answer["error"] is None
    return answer["value"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_helper_of_openai(scene: Scene, openai: Any, kind: str) -> None:
    scene.provider.script(SAID.reply(kind, stream=True))
    asked = {"model": model_of(kind), **OPENAI, "stream_options": {"include_usage": True}}
    answer = openai("helper", asked)
    assert outcome.openai_whole(value(answer)) == SAID.outcome
    assert outcome.openai_chunks(answer["items"]) == SAID.outcome


@pytest.mark.parametrize("kind", KINDS)
def test_the_helper_of_anthropic(scene: Scene, anthropic: Any, kind: str) -> None:
    scene.provider.script(SAID.reply(kind, stream=True))
    answer = anthropic("helper", {"model": model_of(kind), **ANTHROPIC})
    assert outcome.anthropic_whole(value(answer)) == SAID.outcome
    assert outcome.anthropic_events(answer["items"]) == SAID.outcome


def test_the_helpers_fail_in_the_middle(scene: Scene, openai: Any, anthropic: Any) -> None:
    broken = Reply(steps=[sse(openai_chunk(content="Hel")), CUT])
    scene.provider.script(broken)
    answer = openai("helper", {"model": "o.m", "messages": HI})
    assert outcome.openai_chunks(answer["items"]).text == "Hel"
    assert "'hosted'" in answer["error"]["message"]
    scene.provider.script(broken)
    answer = anthropic("helper", {"model": "o.m", "messages": HI, "max_tokens": 9})
    assert outcome.anthropic_events([*answer["items"]]).text == "Hel"
    assert "'hosted'" in answer["error"]["message"]


def test_models(openai: Any, anthropic: Any) -> None:
    listed = openai("models")["items"]
    assert {"o.m", "a.m", "l.m"} <= {model["id"] for model in listed}
    assert value(openai("retrieve", {"model": "o.m"}))["id"] == "o.m"
    pages = anthropic("models", {"limit": 2})["items"]
    assert [model["id"] for model in pages] == [model["id"] for model in listed]
    shown = value(anthropic("retrieve", {"model": "o.m"}))
    assert (shown["type"], shown["id"]) == ("model", "o.m")
    missing = anthropic("retrieve", {"model": "nope"})["error"]
    assert (missing["name"], missing["status"]) == ("NotFoundError", 404)


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_vectors(openai: Any, kind: str) -> None:
    asked = {"model": model_of(kind), "input": ["a", "b"]}
    # The client asks for base64 unless it is told, and decodes.
    packed = value(openai("embeddings", asked))["data"]
    plain = value(openai("embeddings", {**asked, "encoding_format": "float"}))["data"]
    assert [len(item["embedding"]) for item in packed] == [32, 32]
    for one, other in zip(packed, plain, strict=True):
        assert one["embedding"] == pytest.approx(other["embedding"], rel=1e-6)


def test_tokens_are_counted(anthropic: Any) -> None:
    counted = value(anthropic("countTokens", {"model": "o.m", "messages": HI}))
    assert counted["input_tokens"] > 0


def test_the_raw_answers(openai: Any, anthropic: Any) -> None:
    raw = value(openai("raw", {"model": "o.m", "messages": HI}))
    assert (raw["status"], raw["data"]["choices"][0]["message"]["content"]) == (200, "Hello from m")
    assert raw["requestId"]
    raw = value(anthropic("raw", {"model": "o.m", "messages": HI, "max_tokens": 9}))
    assert (raw["status"], raw["data"]["content"][0]["text"]) == (200, "Hello from m")
    assert raw["requestId"]


def test_retry_after_is_passed_on(scene: Scene, openai: Any) -> None:
    scene.provider.script(json_reply({"error": {"message": "slow down"}}, 429, Retry_After="7"))
    answer = openai("create", {"model": "o.m", "messages": HI})
    assert (answer["error"]["name"], answer["headers"]["retry-after"]) == ("RateLimitError", "7")


def test_completions_and_responses(scene: Scene, openai: Any) -> None:
    choice = {"index": 0, "text": " world", "logprobs": None, "finish_reason": "stop"}
    scene.provider.script(json_reply({"object": "text_completion", "choices": [choice]}))
    assert value(openai("completions", {"model": "o.m", "prompt": "Hello"}))["choices"] == [choice]
    events = [{"type": "response.created", "sequence_number": 0}, {"type": "response.completed"}]
    steps = [b"event: %s\n" % event["type"].encode() + sse(event) for event in events]
    scene.provider.script(Reply(steps=steps))
    assert openai("responsesStream", {"model": "o.m", "input": "hi"})["items"] == events
