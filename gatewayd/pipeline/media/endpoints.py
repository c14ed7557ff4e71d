"""Endpoints of images, audio, moderations and reranking: their texts for filters, and their parameters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping
from gatewayd.completions.records import Body
from gatewayd.pipeline.documents.presets import apply_params
from gatewayd.pipeline.filters.conversions import Messages, content_text, unsupported_parameter
from gatewayd.pipeline.records import Endpoint

Texts = list[str]


@dataclass(frozen=True, slots=True)
class MediaEndpoint:
    """A `RequestConversion` of one endpoint: the texts in its fields are user messages for filters.

    `fields` are read in order: a text, a list of texts, or a list of parts with a `text`. `params` are the
    parameters of a record that apply; all others control text generation. `permission` is the section and
    the name of the permission that the caller needs.
    """

    path: str
    endpoint: Endpoint
    fields: tuple[str, ...]
    params: frozenset[str]
    permission: tuple[str, str] | None = None

    @property
    def texts(self) -> frozenset[str]:
        """Fields that become messages."""
        return frozenset(self.fields)

    def with_system(self, body: Body, system: str) -> Body:
        """Raise invalid_request: such a request has no system prompt."""
        raise unsupported_parameter(self.path, "model", "its system prompt applies to chats only")

    def with_params(self, body: Body, params: Mapping[str, Any]) -> Body:
        """Return a request with the parameters that apply to the endpoint."""
        changed = dict(body)
        apply_params(changed, {name: value for name, value in params.items() if name in self.params})
        return changed

    def to_messages(self, body: Body) -> list[Body]:
        """Return one message for each text."""
        return [
            {"role": "user", "content": text}
            for name in self.fields
            for text in _texts_of(body.get(name), name, self.path)
        ]

    def from_messages(self, body: Body, messages: Messages) -> Body:
        """Return a request with the texts of the same number of user messages."""
        if len(messages) != len(self.to_messages(body)) or any(
            message.get("role") != "user" for message in messages
        ):
            reason = "a filter added or removed messages, which this endpoint does not support"
            raise unsupported_parameter(self.path, "model", reason)
        texts = [content_text(message.get("content"), self.path) for message in messages]
        texts.reverse()
        changed = {name: _with_texts(body[name], texts) for name in self.fields if body.get(name) is not None}
        return {**body, **changed}

    def to_chunk(self, event: Body) -> Body | None:
        """Return None: filters do not read such answers."""
        return None

    def from_chunk(self, event: Body, chunk: Mapping[str, Any]) -> list[Body]:
        """Return the event unchanged."""
        return [event]


def _texts_of(value: object, name: str, path: str) -> Texts:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    found: Texts = []
    for item in value if isinstance(value, list) else [None]:
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, Mapping):
            found += [item["text"]] if isinstance(item.get("text"), str) else []
        else:
            raise unsupported_parameter(path, name, f"filters apply, and they read {name} as text")
    return found


def _with_texts(value: Any, texts: Texts) -> Any:
    """Return the value of a field with the last of `texts`, which are taken from the list."""
    if isinstance(value, str):
        return texts.pop()
    return [_with_text(item, texts) for item in value]


def _with_text(item: Any, texts: Texts) -> Any:
    if isinstance(item, str):
        return texts.pop()
    return {**item, "text": texts.pop()} if isinstance(as_mapping(item).get("text"), str) else item


def _names(*lists: str) -> frozenset[str]:
    return frozenset(" ".join(lists).split())


_IMAGES: Final = _names(
    "background moderation n output_compression output_format partial_images quality response_format",
    "size style user input_fidelity aspect_ratio seed negative_prompt steps guidance_scale",
)
_AUDIO: Final = _names("language response_format temperature chunking_strategy user")

IMAGE_GENERATION: Final = MediaEndpoint(
    "/images/generations", Endpoint.IMAGES, ("prompt",), _IMAGES, permission=("features", "image_generation")
)
IMAGE_EDIT: Final = MediaEndpoint(
    "/images/edits", Endpoint.IMAGES, ("prompt",), _IMAGES, permission=("features", "image_generation")
)
SPEECH: Final = MediaEndpoint(
    "/audio/speech",
    Endpoint.SPEECH,
    ("input", "instructions"),
    _names("voice response_format speed stream_format user"),
    permission=("chat", "tts"),
)
TRANSCRIPTION: Final = MediaEndpoint(
    "/audio/transcriptions", Endpoint.TRANSCRIPTIONS, ("prompt",), _AUDIO, permission=("chat", "stt")
)
TRANSLATION: Final = MediaEndpoint(
    "/audio/translations", Endpoint.TRANSCRIPTIONS, ("prompt",), _AUDIO, permission=("chat", "stt")
)
MODERATION: Final = MediaEndpoint("/moderations", Endpoint.MODERATIONS, ("input",), frozenset({"user"}))
RERANK: Final = MediaEndpoint(
    "/rerank",
    Endpoint.RERANK,
    ("query", "documents"),
    _names("top_n max_tokens_per_doc max_chunks_per_doc priority truncation"),
)

MEDIA_ENDPOINTS: Final[Sequence[MediaEndpoint]] = (
    IMAGE_GENERATION,
    IMAGE_EDIT,
    SPEECH,
    TRANSCRIPTION,
    TRANSLATION,
    MODERATION,
    RERANK,
)
