"""The built-in model through every client: the real engine, in the dialect of each."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.askers import ASKERS, Asker, Clients, opened_clients
from tests.clients.scene import sign_up
from tests.fakes.daemons.daemon import running_daemon

# Each dialect both ways; the helpers and the clients for Node read the same streams.
VOICES = [
    *((name, stream) for name in ("openai", "anthropic", "ollama") for stream in (False, True)),
    ("node-openai", True),
    ("node-anthropic", True),
]

pytestmark = [
    pytest.mark.real("built-in model"),
    pytest.mark.parametrize(
        ("voice", "stream"),
        [
            pytest.param(name, stream, marks=ASKERS[name], id=f"{name}-{'streamed' if stream else 'whole'}")
            for name, stream in VOICES
        ],
        indirect=["voice"],
    ),
]

MODEL = "smollm2-135m-instruct"
SEVEN = {
    "type": "object",
    "properties": {"x": {"type": "integer", "enum": [7]}},
    "required": ["x"],
    "additionalProperties": False,
}
"""A schema with one instance."""

PROMPT = "Continue: one, two, three, four,"


@pytest.fixture(scope="module")
def builtin_clients(tmp_path_factory: pytest.TempPathFactory, weights: Path) -> Iterator[Clients]:
    """Run a gateway that has the built-in model alone, on one processor, and open the clients."""
    settings = {
        "ENABLE_API_KEYS": "true",
        "ENABLE_BUILTIN_MODEL": "true",
        "BUILTIN_MODEL_PATH": str(weights),
        "BUILTIN_MODEL_THREADS": "1",
    }
    with running_daemon(tmp_path_factory.mktemp("b"), **settings) as daemon:
        key, _ = sign_up(daemon)
        with opened_clients(daemon.base_url, key) as clients:
            yield clients


@pytest.fixture
def voice(request: pytest.FixtureRequest, builtin_clients: Clients) -> Asker:
    """Return each client of this gateway in turn."""
    node = request.getfixturevalue("node") if request.param.startswith("node") else None
    return builtin_clients.asker(request.param, node)


def question(dialect: str, limit: int = 8, stop: list[str] | None = None) -> dict[str, Any]:
    """Return a request that has the same answer each time."""
    body: dict[str, Any] = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}
    stops = stop or []
    if dialect == "ollama":
        return {**body, "options": {"temperature": 0, "num_predict": limit, "stop": stops}}
    named = {"stop_sequences": stops} if dialect == "anthropic" else {"stop": stops}
    return {**body, "temperature": 0, "max_tokens": limit, **(named if stops else {})}


def test_all_are_heard_and_answered(builtin_clients: Clients, voice: Asker, *, stream: bool) -> None:
    told = voice.ask(question(voice.dialect), stream=stream)
    assert told.failure is None
    assert told.text.strip()
    assert told.reason in {"stop", "length"}
    assert told.usage is not None
    assert 0 < told.usage[1] <= 8
    # The wording may differ from slot to slot; what is asked is the same to the last token.
    first = builtin_clients.asker("openai", None).ask(question("openai", limit=1), stream=False)
    assert first.usage is not None
    assert told.usage[0] == first.usage[0] > 5


def test_the_limit_of_tokens(voice: Asker, *, stream: bool) -> None:
    told = voice.ask(question(voice.dialect, limit=3), stream=stream)
    assert told.reason == "length"
    assert told.usage is not None
    assert told.usage[1] == 3


def test_a_stop_sequence(voice: Asker, *, stream: bool) -> None:
    told = voice.ask(question(voice.dialect, limit=32, stop=["e", "a", "o"]), stream=stream)
    assert told.failure is None
    assert told.reason == "stop"
    assert not {"e", "a", "o"} & set(told.text)
    assert told.usage is not None
    assert told.usage[1] < 20


def test_a_forced_tool_call(voice: Asker, *, stream: bool) -> None:
    offered: dict[str, Any] = {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": SEVEN}}]
    }
    forced: dict[str, Any] = {"tool_choice": "required"}
    if voice.dialect == "anthropic":
        offered = {"tools": [{"name": "f", "input_schema": SEVEN}]}
        forced = {"tool_choice": {"type": "any"}}
    if voice.dialect == "ollama":
        # The runtimes' protocol has no word for it: the tool is offered, and the answer is free.
        told = voice.ask({**question("ollama"), **offered}, stream=stream)
        assert told.failure is None
        assert told.text or told.calls
        return
    told = voice.ask({**question(voice.dialect, limit=64), **offered, **forced}, stream=stream)
    assert told.failure is None
    assert told.calls == (("f", {"x": 7}),)
    assert told.reason == "tool_calls"
    assert told.usage is not None
    assert told.usage[1] > 0


def test_the_form_of_a_schema(voice: Asker, *, stream: bool) -> None:
    form: dict[str, Any] = {
        "openai": {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SEVEN}}},
        "anthropic": {"output_config": {"format": {"type": "json_schema", "schema": SEVEN}}},
        "ollama": {"format": SEVEN},
    }[voice.dialect]
    told = voice.ask({**question(voice.dialect, limit=64), **form}, stream=stream)
    assert told.failure is None
    assert "".join(told.text.split()) == '{"x":7}'
    assert told.reason == "stop"
