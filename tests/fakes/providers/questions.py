"""One question in every dialect, and what its answers and refusals look like there."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.http.raw_http import Reply

TURNS = [{"role": "user", "content": "hi"}]


@dataclass(frozen=True)
class Dialect:
    """How a dialect frames a stream and says what failed.

    `frames` splits the bytes of a stream into what is decoded, `failure` finds the sentence in a body or an
    event (None if it is no failure), `text` what an event says.
    """

    name: str
    frames: Callable[[bytes], list[Any]]
    failure: Callable[[Any], str | None]
    text: Callable[[Any], str]
    content_type: str


@dataclass(frozen=True)
class Question:
    """A row that asks a model: `body` is without the model and `stream`."""

    path: str
    dialect: Dialect
    body: dict[str, Any] = field(default_factory=dict)

    def asked(self, model: str, *, stream: bool) -> bytes:
        """Return the body of a request."""
        return json.dumps({"model": model, "stream": stream, **self.body}).encode()


def _openai_frames(body: bytes) -> list[Any]:
    frames = body.decode().removesuffix("\n\n").split("\n\n")
    assert all(frame.startswith("data: ") for frame in frames), frames
    return [frame[6:] if frame == "data: [DONE]" else json.loads(frame[6:]) for frame in frames]


def _named_frames(body: bytes) -> list[Any]:
    """Return events that begin with a line `event:`; the last may be an error without one."""
    found = []
    for frame in body.decode().removesuffix("\n\n").split("\n\n"):
        lines = frame.split("\n")
        event = json.loads(lines[-1].removeprefix("data: "))
        assert lines[-1].startswith("data: "), frame
        if len(lines) == 2:
            assert lines[0] == f"event: {event['type']}", frame
        else:
            assert len(lines) == 1, frame
            assert "error" in event, frame
        found.append(event)
    return found


def _lines(body: bytes) -> list[Any]:
    assert body.endswith(b"\n")
    return [json.loads(line) for line in body.splitlines()]


def _openai_failure(value: Any) -> str | None:
    if not isinstance(value, dict) or "error" not in value:
        return None
    assert value["detail"] == value["error"]["message"]
    assert value["error"].keys() == {"message", "type", "param", "code"}
    return str(value["detail"])


def _responses_failure(value: Any) -> str | None:
    """Find the sentence in an event of the Responses protocol, or in a body."""
    if value.get("type") != "error":
        return _openai_failure(value)
    assert value.keys() >= {"sequence_number", "message", "code", "param", "error"}
    assert value["error"]["message"] == value["message"]
    return str(value["message"])


def _anthropic_failure(value: Any) -> str | None:
    if value.get("type") != "error":
        assert "error" not in value
        return None
    assert value["error"].keys() == {"type", "message"}
    return str(value["error"]["message"])


def _ollama_failure(value: Any) -> str | None:
    if "error" not in value:
        return None
    assert value.keys() == {"error", "detail"}
    assert value["error"] == value["detail"]
    return str(value["error"])


def _openai_text(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    if "delta" in value and isinstance(value["delta"], str):
        return str(value["delta"])
    return "".join(
        choice.get("delta", choice).get("content") or choice.get("text") or ""
        for choice in value.get("choices", ())
    )


def _anthropic_text(value: Any) -> str:
    return str(value["delta"].get("text", "")) if value["type"] == "content_block_delta" else ""


def _ollama_text(value: Any) -> str:
    return str(value.get("response", "") or value.get("message", {}).get("content", ""))


EVENTS = "text/event-stream"
OPENAI = Dialect("openai", _openai_frames, _openai_failure, _openai_text, EVENTS)
RESPONSES = Dialect("responses", _named_frames, _responses_failure, _openai_text, EVENTS)
ANTHROPIC = Dialect("anthropic", _named_frames, _anthropic_failure, _anthropic_text, EVENTS)
OLLAMA = Dialect("ollama", _lines, _ollama_failure, _ollama_text, "application/x-ndjson")

CHAT = Question("/v1/chat/completions", OPENAI, {"messages": TURNS})
MESSAGE = Question("/v1/messages", ANTHROPIC, {"messages": TURNS, "max_tokens": 5})
RUNTIME_CHAT = Question("/ollama/api/chat", OLLAMA, {"messages": TURNS})
RUNTIME_GENERATE = Question("/ollama/api/generate", OLLAMA, {"prompt": "hi"})
COMPLETION = Question("/v1/completions", OPENAI, {"prompt": "hi"})
RESPONSE = Question("/v1/responses", RESPONSES, {"input": "hi"})
EMBEDDING = Question("/v1/embeddings", OPENAI, {"input": "hi"})
RUNTIME_EMBED = Question("/ollama/api/embed", OLLAMA, {"input": "hi"})


def texts(dialect: Dialect, reply: Reply) -> str:
    """Return what a stream says."""
    return "".join(map(dialect.text, dialect.frames(reply.body)))


def failures(dialect: Dialect, reply: Reply) -> Sequence[str | None]:
    """Return the failure in each event of a stream."""
    return [dialect.failure(event) for event in dialect.frames(reply.body)]
