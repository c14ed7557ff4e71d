"""Each official client as one way to ask: a request in the client's dialect, an `Outcome` back."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import anthropic
import ollama
import openai
import pytest

from tests.clients import outcome
from tests.clients.node import Node
from tests.clients.outcome import Failure, Json, Outcome

SECONDS = 30.0
ASKERS = {
    "openai": (),
    "openai-helper": (),
    "anthropic": (),
    "anthropic-helper": (),
    "ollama": (),
    "node-openai": pytest.mark.real("node"),
    "node-anthropic": pytest.mark.real("node"),
}
"""The clients by name, with the marks of tests that use them."""

# What the protocol sends; the helper adds events of its own.
EVENTS = {"message_start", "content_block_start", "content_block_delta", "message_delta"}


class Asker(Protocol):
    """Asks in one dialect, whole or streamed, and never raises for an answer that fails."""

    @property
    def dialect(self) -> str:
        """The dialect that the request must be in: openai, anthropic or ollama."""
        ...

    def ask(self, body: Json, *, stream: bool) -> Outcome:
        """Send a request and return what came of it."""
        ...


@dataclass(frozen=True)
class Clients:
    """The clients for Python of one gateway, none of which tries anything twice."""

    url: str
    key: str
    openai: openai.OpenAI
    anthropic: anthropic.Anthropic
    ollama: ollama.Client

    def asker(self, name: str, node: Node | None) -> Asker:
        """Return the asker of this name in `ASKERS`; those for Node need the process."""
        match name:
            case "openai" | "openai-helper":
                return OpenAiAsker(self.openai, has_helper=name != "openai")
            case "anthropic" | "anthropic-helper":
                return AnthropicAsker(self.anthropic, has_helper=name != "anthropic")
            case "ollama":
                return OllamaAsker(self.ollama)
        assert node is not None
        dialect = name.removeprefix("node-")
        path = {"openai": "/api/v1", "anthropic": "/api"}[dialect]
        return NodeAsker(node, self.url + path, self.key, dialect)


@contextlib.contextmanager
def opened_clients(url: str, key: str) -> Iterator[Clients]:
    """Open the clients of a gateway."""
    common: dict[str, Any] = {"api_key": key, "max_retries": 0, "timeout": SECONDS}
    headers = {"Authorization": f"Bearer {key}"}
    with (
        openai.OpenAI(base_url=f"{url}/api/v1", **common) as hosted,
        anthropic.Anthropic(base_url=f"{url}/api", **common) as native,
        ollama.Client(f"{url}/ollama", headers=headers, timeout=SECONDS) as runtime,
    ):
        yield Clients(url, key, hosted, native, runtime)


@dataclass(frozen=True)
class OpenAiAsker:
    """The Python client of OpenAI, chunk by chunk or by its streaming helper."""

    client: openai.OpenAI
    has_helper: bool = False
    dialect: str = "openai"

    def ask(self, body: Json, *, stream: bool) -> Outcome:
        if not stream:
            return _whole(lambda: self.client.chat.completions.create(**body), outcome.openai_whole)
        body = {**body, "stream_options": {"include_usage": True}}
        chunks: list[Json] = []
        with _raising(openai.APIError) as caught:
            if self.has_helper:
                with self.client.chat.completions.stream(**body) as events:
                    chunks.extend(event.chunk.to_dict() for event in events if event.type == "chunk")
                    return outcome.openai_whole(_final(events))
            with self.client.chat.completions.create(**body, stream=True) as parts:
                chunks.extend(part.to_dict() for part in parts)
        return outcome.openai_chunks(chunks).failed(caught[0] if caught else None)


@dataclass(frozen=True)
class AnthropicAsker:
    """The Python client of Anthropic, event by event or by its streaming helper."""

    client: anthropic.Anthropic
    has_helper: bool = False
    dialect: str = "anthropic"

    def ask(self, body: Json, *, stream: bool) -> Outcome:
        # The client has no name for it any more; the protocol has.
        extra = {"temperature": body["temperature"]} if "temperature" in body else {}
        named = {name: value for name, value in body.items() if name not in extra}
        body = {**named, "extra_body": extra}
        if not stream:
            return _whole(lambda: self.client.messages.create(**body), outcome.anthropic_whole)
        events: list[Json] = []
        with _raising(anthropic.APIError) as caught:
            if self.has_helper:
                with self.client.messages.stream(**body) as told:
                    events.extend(event.to_dict() for event in told if event.type in EVENTS)
                    return outcome.anthropic_whole(told.get_final_message().to_dict())
            with self.client.messages.create(**body, stream=True) as parts:
                events.extend(part.to_dict() for part in parts)
        return outcome.anthropic_events(events).failed(caught[0] if caught else None)


@dataclass(frozen=True)
class OllamaAsker:
    """The Python client of the runtimes."""

    client: ollama.Client
    errors: tuple[type[Exception], ...] = (ollama.ResponseError,)
    dialect: str = "ollama"

    def ask(self, body: Json, *, stream: bool) -> Outcome:
        if not stream:
            return _whole(lambda: self.client.chat(**body), outcome.ollama_whole)
        lines: list[Json] = []
        with _raising(*self.errors) as caught:
            lines.extend(part.model_dump() for part in self.client.chat(**body, stream=True))
        return outcome.ollama_parts(lines).failed(caught[0] if caught else None)


@dataclass(frozen=True)
class NodeAsker:
    """A client for Node, in another process; streams are read by its helper too, which must say the same."""

    node: Node
    url: str
    key: str
    dialect: str

    def ask(self, body: Json, *, stream: bool) -> Outcome:
        if self.dialect == "openai" and stream:
            body = {**body, "stream_options": {"include_usage": True}}
        operation = "stream" if stream else "create"
        answer = self.node.call(self.dialect, operation, self.url, self.key, body)
        whole, parts = _READERS[self.dialect]
        failure = Failure(**answer["error"]) if answer["error"] else None
        if not stream:
            return (whole(answer["value"]) if answer["value"] else Outcome()).failed(failure)
        return parts(answer["items"]).failed(failure)


_READERS: dict[str, tuple[Callable[[Json], Outcome], Callable[[list[Json]], Outcome]]] = {
    "openai": (outcome.openai_whole, outcome.openai_chunks),
    "anthropic": (outcome.anthropic_whole, outcome.anthropic_events),
}


def _final(events: Any) -> Json:
    """Return the completion that the helper gathered, which raises for one that was cut at its limit."""
    try:
        completion = events.get_final_completion()
    except openai.LengthFinishReasonError as error:
        completion = error.completion
    gathered: Json = completion.to_dict()
    return gathered


def _whole(ask: Callable[[], Any], read: Callable[[Json], Outcome]) -> Outcome:
    with _raising(openai.APIError, anthropic.APIError, ollama.ResponseError) as caught:
        answer = ask()
        return read(answer.model_dump())
    return Outcome(failure=caught[0])


@contextlib.contextmanager
def _raising(*errors: type[Exception]) -> Iterator[list[Failure]]:
    """Note what a client raises of its own classes; everything else is a defect and goes through."""
    caught: list[Failure] = []
    try:
        yield caught
    except errors as error:
        caught.append(failure_of(error))


def failure_of(error: Any) -> Failure:
    """Describe what a client raised."""
    message = getattr(error, "message", None) or getattr(error, "error", None) or str(error)
    status = getattr(error, "status_code", None)
    return Failure(type(error).__name__, str(message), None if status == -1 else status)
