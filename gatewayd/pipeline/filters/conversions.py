"""Requests for a model that are no chats, shown to filters as messages and taken back from them; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid
from gatewayd.pipeline.documents.presets import apply_params
from gatewayd.pipeline.records import Endpoint

Messages = Sequence[Mapping[str, Any]]


class RequestConversion(Protocol):
    """One kind of request: what a record and filters do to it, and filters of streams to its answer."""

    @property
    def endpoint(self) -> Endpoint:
        """What is asked for."""
        ...

    @property
    def path(self) -> str:
        """Where sources have it, for example `/completions`."""
        ...

    @property
    def texts(self) -> frozenset[str]:
        """The fields that are shown as messages."""
        ...

    def with_system(self, body: Body, system: str) -> Body:
        """Return a request with a record's system prompt; invalid_request where none can be."""
        ...

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with a record's parameters in place of the caller's."""
        ...

    def to_messages(self, body: Body) -> list[Body]:
        """Return the texts as messages; invalid_request for what is no text and names no message."""
        ...

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of messages that filters have changed.

        Raises invalid_request when the request has no place for them.
        """
        ...

    def to_chunk(self, event: Body) -> Body | None:
        """Return an event of an answer as a chat.completion.chunk, None for one that holds no text."""
        ...

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the events that an event becomes with the text of a chunk."""
        ...


class LegacyCompletions:
    """Continuations of a prompt: each prompt is a message of the user, a suffix one before the first."""

    endpoint: Final = Endpoint.COMPLETIONS
    path: Final = "/completions"
    texts: Final = frozenset({"prompt", "suffix"})

    def with_system(self, body: Body, system: str) -> Body:
        """Refuse: a continued text has no place for instructions."""
        raise unsupported_parameter(self.path, "model", "its system prompt holds for chats")

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters under their own names."""
        return _with(body, params)

    def to_messages(self, body: Body) -> list[Body]:
        """Return a message for the suffix, and one for each prompt."""
        suffix = body.get("suffix")
        return [
            *([_said(suffix)] if isinstance(suffix, str) and suffix else []),
            *(_said(prompt) for prompt in _prompts(body.get("prompt"), "prompt", self.path)),
        ]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of as many messages of the user."""
        texts = _texts(messages, len(self.to_messages(body)), self.path)
        changed = dict(body)
        if body.get("suffix"):
            changed["suffix"], *texts = texts
        if texts:
            changed["prompt"] = texts if isinstance(body["prompt"], list) else texts[0]
        return changed

    def to_chunk(self, event: Body) -> Body | None:
        """Return the choices with `as_text` as content of their deltas."""
        choices = [item for item in as_sequence(event.get("choices")) if isinstance(item, dict)]
        if not choices:
            return None
        shown = [
            {**_without(choice, "text"), "delta": {"content": as_text(choice.get("text"))}}
            for choice in choices
        ]
        return {**event, "object": "chat.completion.chunk", "choices": shown}

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the chunk's choices with the content of their deltas as `as_text`."""
        choices = [
            {**_without(choice, "delta"), "text": as_text(as_mapping(choice.get("delta")).get("content"))}
            for choice in map(as_mapping, as_sequence(chunk.get("choices")))
        ]
        return [{**chunk, "object": event.get("object"), "choices": choices}]


class EmbeddingInputs:
    """Inputs of embeddings: each text is a message of the user; an answer holds no text."""

    endpoint: Final = Endpoint.EMBEDDINGS
    path: Final = "/embeddings"
    texts: Final = frozenset({"input"})
    params: Final = frozenset({"dimensions", "user", "truncate", "keep_alive", "options"})
    """Parameters of a record that mean something here; the others are about the writing of text."""

    def with_system(self, body: Body, system: str) -> Body:
        """Refuse: a vector obeys no instructions."""
        raise unsupported_parameter(self.path, "model", "its system prompt holds for chats")

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with those parameters that vectors have."""
        return _with(body, {name: value for name, value in params.items() if name in self.params})

    def to_messages(self, body: Body) -> list[Body]:
        """Return a message for each input."""
        return [_said(given) for given in _prompts(body.get("input"), "input", self.path)]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of as many messages of the user."""
        return {**body, "input": _texts(messages, len(body["input"]), self.path)}

    def to_chunk(self, event: Body) -> Body | None:
        """Return None."""
        return None

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the event."""
        return [event]


def unsupported_parameter(path: str, param: str, reason: str) -> GatewayError:
    """Return the refusal of a request that cannot have what a record or a filter gives to it."""
    return invalid(f"cannot use {path} with this model: {reason}", param=param, code="not_expressible")


def content_text(content: object, path: str) -> str:
    """Return the text of a message's content; invalid_request when it is more than text."""
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_sequence(content)]
    texts = [
        part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if not parts or len(texts) < len(parts):
        raise unsupported_parameter(path, "model", "a filter made a message of something that is no text")
    return "".join(texts)


def content_deltas(chunk: Mapping[str, Any]) -> str:
    """Return the content of all deltas of a chunk."""
    deltas = (as_mapping(as_mapping(choice).get("delta")) for choice in as_sequence(chunk.get("choices")))
    return "".join(as_text(delta.get("content")) for delta in deltas)


def _prompts(given: object, param: str, path: str) -> list[str]:
    if given is None:
        return []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise unsupported_parameter(
            path, param, f"filters run for it, and they read {param} as text, not as tokens"
        )
    return texts


def _texts(messages: Messages, count: int, path: str) -> list[str]:
    if len(messages) != count or any(message.get("role") != "user" for message in messages):
        raise unsupported_parameter(
            path, "model", "a filter adds or removes messages, which this endpoint has not"
        )
    return [content_text(message.get("content"), path) for message in messages]


def _said(given: str) -> Body:
    return {"role": "user", "content": given}


def _with(body: Body, params: Mapping[str, Any]) -> Body:
    changed = dict(body)
    apply_params(changed, params)
    return changed


def _without(choice: Mapping[str, Any], name: str) -> Body:
    return {key: value for key, value in choice.items() if key != name}
