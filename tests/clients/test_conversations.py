"""The same conversation in three dialects through each kind of source: the same is asked, and heard."""

import json
import re
from typing import Any

import pytest

from tests.clients.askers import Asker
from tests.clients.conversation import CONVERSATION, SAYINGS
from tests.clients.scene import PREFIXES, Scene, model_of

KINDS = tuple(PREFIXES)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SAYINGS)
def test_the_same_is_heard(scene: Scene, asker: Asker, kind: str, name: str, *, stream: bool) -> None:
    said = SAYINGS[name]
    scene.provider.script(said.reply(kind, stream=stream))
    body = {"model": model_of(kind), **CONVERSATION[asker.dialect]}
    assert asker.ask(body, stream=stream) == said.outcome


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_is_asked(scene: Scene, asker: Asker, kind: str, *, stream: bool) -> None:
    scene.provider.script(SAYINGS["text"].reply(kind, stream=stream))
    asker.ask({"model": model_of(kind), **CONVERSATION[asker.dialect]}, stream=stream)
    sent = scene.provider.last().json
    assert bool(sent.get("stream")) is stream
    assert asked(sent) == {"model": "m", **asked(CONVERSATION[kind])}


def asked(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request without the forms in which the same can be said, and what only a stream has."""
    kept = {key: value for key, value in body.items() if key not in {"stream", "stream_options"}}
    kept["messages"] = [_message(message) for message in body["messages"]]
    kept["tools"] = [_tool(tool) for tool in body["tools"]]
    if "system" in kept:
        kept["system"] = _parts(kept["system"])
    return _numbered(kept)


def _numbered(body: dict[str, Any]) -> dict[str, Any]:
    """Replace the ids of tool calls, which not every dialect has, by their order."""
    text = json.dumps(body)
    for number, name in enumerate(dict.fromkeys(re.findall(r'"((?:toolu_|call)\w+)"', text))):
        text = text.replace(f'"{name}"', f'"#{number}"')
    numbered: dict[str, Any] = json.loads(text)
    return numbered


def _message(message: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in message.items() if value not in (None, [])}
    kept["content"] = _parts(message["content"])
    if "tool_name" in message:
        # Runtimes know results by the tool's name and their order.
        kept.pop("tool_call_id", None)
    if "tool_calls" in message:
        has_ids = message["tool_calls"][0].get("type") == "function"
        kept["tool_calls"] = [_call(call, has_ids=has_ids) for call in message["tool_calls"]]
    return kept


def _parts(content: Any) -> Any:
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [{**part, "content": _parts(part["content"])} if "content" in part else part for part in parts]


def _call(call: dict[str, Any], *, has_ids: bool) -> Any:
    arguments = call["function"]["arguments"]
    if isinstance(arguments, str):
        arguments = json.loads(arguments)
    return [call["id"] if has_ids else None, call["function"]["name"], arguments]


def _tool(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool.items() if value is not None}
