"""Converts completions and embeddings requests to chat messages for filters, and back; pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import GatewayError, invalid
from gatewayd.pipeline.documents.presets import apply_params
from gatewayd.pipeline.records import Endpoint

Messages = Sequence[Mapping[str, Any]]


class RequestConversion(Protocol):
    """Conversion of one kind of request for filters: applies records, and converts requests and answers."""

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the request."""
        ...

    @property
    def path(self) -> str:
        """Path of the endpoint at sources, such as `/completions`."""
        ...

    @property
    def texts(self) -> frozenset[str]:
        """Fields that become messages."""
        ...

    def with_system(self, body: Body, system: str) -> Body:
        """Return a request with a record's system prompt; raise invalid_request if it cannot hold one."""
        ...

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with a record's parameters in place of the caller's."""
        ...

    def to_messages(self, body: Body) -> list[Body]:
        """Return the texts as messages; raise invalid_request for input that is no text."""
        ...

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of messages that filters changed.

        Raises invalid_request if the request cannot hold them.
        """
        ...

    def to_chunk(self, event: Body) -> Body | None:
        """Return an event of an answer as a chat.completion.chunk; None if it holds no text."""
        ...

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the events that replace an event, with the text of a chunk."""
        ...


class LegacyCompletions:
    """The legacy completions endpoint: each prompt is a user message, a suffix comes first."""

    endpoint: Final = Endpoint.COMPLETIONS
    path: Final = "/completions"
    texts: Final = frozenset({"prompt", "suffix"})

    def with_system(self, body: Body, system: str) -> Body:
        """Raise invalid_request: a text completion has no system prompt."""
        raise unsupported_parameter(self.path, "model", "its system prompt applies to chats only")

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters under their own names."""
        return _with_params(body, params)

    def to_messages(self, body: Body) -> list[Body]:
        """Return one message for the suffix and one for each prompt."""
        suffix = body.get("suffix")
        return [
            *([_user_message(suffix)] if isinstance(suffix, str) and suffix else []),
            *(_user_message(prompt) for prompt in _prompts(body.get("prompt"), "prompt", self.path)),
        ]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of the same number of user messages."""
        texts = _texts(messages, len(self.to_messages(body)), self.path)
        changed = dict(body)
        if body.get("suffix"):
            changed["suffix"], *texts = texts
        if texts:
            changed["prompt"] = texts if isinstance(body["prompt"], list) else texts[0]
        return changed

    def to_chunk(self, event: Body) -> Body | None:
        """Return the choices with their `text` as content of their deltas."""
        choices = [item for item in as_sequence(event.get("choices")) if isinstance(item, dict)]
        if not choices:
            return None
        converted = [
            {**_without(choice, "text"), "delta": {"content": as_text(choice.get("text"))}}
            for choice in choices
        ]
        return {**event, "object": "chat.completion.chunk", "choices": converted}

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the chunk's choices with the content of their deltas as `text`."""
        choices = [
            {**_without(choice, "delta"), "text": as_text(as_mapping(choice.get("delta")).get("content"))}
            for choice in map(as_mapping, as_sequence(chunk.get("choices")))
        ]
        return [{**chunk, "object": event.get("object"), "choices": choices}]


class EmbeddingInputs:
    """The embeddings endpoint: each text is a user message; an answer holds no text."""

    endpoint: Final = Endpoint.EMBEDDINGS
    path: Final = "/embeddings"
    texts: Final = frozenset({"input"})
    params: Final = frozenset({"dimensions", "user", "truncate", "keep_alive", "options"})
    """Parameters of a record that apply to embeddings; all others control text generation."""

    def with_system(self, body: Body, system: str) -> Body:
        """Raise invalid_request: embeddings have no system prompt."""
        raise unsupported_parameter(self.path, "model", "its system prompt applies to chats only")

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters that apply to embeddings."""
        return _with_params(body, {name: value for name, value in params.items() if name in self.params})

    def to_messages(self, body: Body) -> list[Body]:
        """Return one message for each input."""
        return [_user_message(given) for given in _prompts(body.get("input"), "input", self.path)]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of the same number of user messages."""
        return {**body, "input": _texts(messages, len(body["input"]), self.path)}

    def to_chunk(self, event: Body) -> Body | None:
        """Return None, because events hold no text."""
        return None

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the event unchanged."""
        return [event]


def unsupported_parameter(path: str, param: str, reason: str) -> GatewayError:
    """Return the error for a request that cannot hold a change by a record or a filter."""
    return invalid(f"cannot use {path} with this model: {reason}", param=param, code="not_expressible")


def content_text(content: object, path: str) -> str:
    """Return the text of a message's content; raise invalid_request if it has other parts."""
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_sequence(content)]
    texts = [
        part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if not parts or len(texts) < len(parts):
        raise unsupported_parameter(path, "model", "a filter returned a message with content other than text")
    return "".join(texts)


def content_deltas(chunk: Mapping[str, Any]) -> str:
    """Return the joined content of all deltas of a chunk."""
    deltas = (as_mapping(as_mapping(choice).get("delta")) for choice in as_sequence(chunk.get("choices")))
    return "".join(as_text(delta.get("content")) for delta in deltas)


def _prompts(given: object, param: str, path: str) -> list[str]:
    if given is None:
        return []
    texts = [given] if isinstance(given, str) else given
    if not isinstance(texts, list) or not all(isinstance(item, str) for item in texts):
        raise unsupported_parameter(
            path, param, f"filters apply, and they read {param} as text, not as tokens"
        )
    return texts


def _texts(messages: Messages, count: int, path: str) -> list[str]:
    if len(messages) != count or any(message.get("role") != "user" for message in messages):
        raise unsupported_parameter(
            path, "model", "a filter added or removed messages, which this endpoint does not support"
        )
    return [content_text(message.get("content"), path) for message in messages]


def _user_message(given: str) -> Body:
    return {"role": "user", "content": given}


def _with_params(body: Body, params: Mapping[str, Any]) -> Body:
    changed = dict(body)
    apply_params(changed, params)
    return changed


def _without(choice: Mapping[str, Any], name: str) -> Body:
    return {key: value for key, value in choice.items() if key != name}
