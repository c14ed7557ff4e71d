"""The OpenAI chat-completion dialect, which is also the internal format, plus the gateway's own fields.

`parse_request` checks a request, `render_sources` and `render_error` encode what the gateway adds, and
`render_completion` renders a whole completion as a stream.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd import ids
from gatewayd.completions.choices import choice_to_delta, final_choice
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body, Completion
from gatewayd.errors import GatewayError, invalid
from gatewayd.pipeline.documents.plugin_context import OWN_FIELDS
from gatewayd.pipeline.documents.presets import OWN_PARAMS, parse_custom_params
from gatewayd.pipeline.endpoints import check_names, model_of
from gatewayd.pipeline.records import ChatRequest
from gatewayd.pipeline.runs.request import has_history

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

# Fields that the gateway reads; the provider checks all others.
_FIELD_TYPES: Final[tuple[tuple[str, tuple[type, ...], str], ...]] = (
    ("n", (int,), "a whole number"),
    ("tools", (list,), "a list"),
    ("tool_choice", (str, dict), "a text or an object"),
    ("stream_options", (dict,), "an object"),
    ("response_format", (dict,), "an object"),
)

_TYPED_FIELDS: Final = frozenset(name for name, _, _ in _FIELD_TYPES)

WITHOUT_ID: Final = frozenset({"text", "url", "web_search"})
"""Types of file references that contain what they refer to."""

_CONTENT: Final = (str, list)
_RENDERED_FIELDS: Final = frozenset({"object", "choices", "usage", "sources", "event"})
_HEAD: Final = ("id", "created", "model", "system_fingerprint", "service_tier")


def parse_request(value: Mapping[str, Any]) -> ChatRequest:
    """Parse a chat-completion body; raise invalid_request with the name of a bad field.

    All fields but the gateway's own stay unchanged. `stream_options` without a stream is removed, because
    providers refuse it.
    """
    check_names(value)
    body: Body = dict(value)
    options: dict[str, Any] = {}
    if not OWN_FIELDS.isdisjoint(body):
        options = {name: body.pop(name) for name in OWN_FIELDS & body.keys()}
    model = model_of(body)
    stream = body.get("stream", False)
    if stream is None:
        stream = False
    if not isinstance(stream, bool):
        raise invalid("cannot accept stream: expected true or false", param="stream")
    if body.get("messages") or not has_history(options):
        check_messages(body.get("messages"))
    files: list[dict[str, Any]] = []
    if options:
        files = parse_files(options.pop("files", None))
        _spread_params(body, options.get("params"))
    if not _TYPED_FIELDS.isdisjoint(body):
        _check_field_types(body)
    if not stream:
        body.pop("stream_options", None)
    return ChatRequest(model=model, body=body, stream=stream, files=files, options=options)


def wants_usage(body: Mapping[str, Any]) -> bool:
    """Return True if a chat body asks for a usage frame at the end of its stream."""
    return as_mapping(body.get("stream_options")).get("include_usage") is True


def _check_field_types(body: Mapping[str, Any]) -> None:
    for name, kinds, words in _FIELD_TYPES:
        value = body.get(name)
        if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            raise invalid(f"cannot accept {name}: expected {words}", param=name)
    for index, tool in enumerate(body.get("tools") or ()):
        if not isinstance(tool, dict):
            where = f"tools[{index}]"
            raise invalid(f"cannot accept {where}: expected an object", param=where)


def check_messages(messages: Any) -> None:
    """Raise invalid_request unless the messages are a list of objects with a known role."""
    if not isinstance(messages, list):
        raise invalid("cannot accept messages: expected a list", param="messages")
    if not messages:
        raise invalid("cannot accept messages: the list is empty", param="messages")
    for index, message in enumerate(messages):
        if not _is_message(message):
            raise _refused_message(message, f"messages[{index}]")


def _is_message(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    role, content = message.get("role"), message.get("content")
    return isinstance(role, str) and role in ROLES and (content is None or isinstance(content, _CONTENT))


def _refused_message(message: Any, name: str) -> GatewayError:
    if not isinstance(message, dict):
        return invalid(f"cannot accept {name}: expected an object", param=name)
    role = message.get("role")
    if not isinstance(role, str) or role not in ROLES:
        known = ", ".join(sorted(ROLES))
        return invalid(f"cannot accept {name}.role: expected one of {known}", param=f"{name}.role")
    return invalid(f"cannot accept {name}.content: expected text or a list of parts", param=f"{name}.content")


def parse_files(value: Any) -> list[dict[str, Any]]:
    """Return the file references, a list of objects with a text `type` and a text `id`.

    A reference with its content or with `collection_names` needs no `id`; one with `docs` needs no `type`
    either (gatewayd-documents(7), CHAT REQUESTS).
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid("cannot accept files: expected a list", param="files")
    for index, item in enumerate(value):
        for name in ("type", "id"):
            if not isinstance(item, dict) or not (isinstance(item.get(name), str) or _may_lack(item, name)):
                where = f"files[{index}]"
                raise invalid(f"cannot accept {where}: expected an object with a text {name}", param=where)
    return value


def _may_lack(item: Mapping[str, Any], name: str) -> bool:
    """Return True if a reference may lack a field, because other fields identify its content."""
    if isinstance(item.get("docs"), list):
        return item.get(name) is None
    if name == "type" or item.get(name) is not None:
        return False
    return item.get("type") in WITHOUT_ID or isinstance(item.get("collection_names"), list)


def _spread_params(body: Body, params: Any) -> None:
    if params is None:
        return
    if not isinstance(params, dict):
        raise invalid("cannot accept params: expected an object", param="params")
    custom = params.get("custom_params") or {}
    if not isinstance(custom, dict):
        raise invalid("cannot accept params.custom_params: expected an object", param="params.custom_params")
    for name, value in {**params, **parse_custom_params(custom)}.items():
        if name not in OWN_PARAMS and name not in {"custom_params", "model", "messages", "stream"}:
            body.setdefault(name, value)


def render_sources(sources: list[dict[str, Any]], model: str, request_id: str, created: int) -> bytes:
    """Return the first stream frame, a chunk with the `sources` and, for strict clients, empty `choices`."""
    frame = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [],
        "sources": sources,
    }
    return b"data: " + orjson.dumps(frame) + b"\n\n"


def render_completion(
    completion: Completion,
    *,
    include_usage: bool = False,
    new_id: ids.NewId = ids.new_id,
    clock: ids.Clock = ids.now,
) -> list[bytes]:
    """Return a whole completion as stream frames: sources, each choice's message and finish reason, usage.

    The usage is a frame without choices, sent if the caller asked for it and the source gave it.
    """
    body = completion.body
    head = {"id": body.get("id") or f"chatcmpl-{new_id()}", "object": "chat.completion.chunk"}
    head |= {"created": body.get("created") or clock(), "model": body.get("model") or ""}
    head |= {name: body[name] for name in _HEAD if body.get(name) and name not in head}
    extra = {
        name: value for name, value in body.items() if name not in _HEAD and name not in _RENDERED_FIELDS
    }
    frames: list[Body] = []
    if body.get("sources"):
        frames.append({**head, "choices": [], "sources": body["sources"]})
    for position, choice in enumerate(as_sequence(body.get("choices"))):
        delta = choice_to_delta(as_mapping(choice), position)
        frames += [
            {**head, **extra, "choices": [{**delta, "finish_reason": None}]},
            {**head, "choices": [final_choice(delta)]},
        ]
        extra = {}
    if include_usage and isinstance(body.get("usage"), dict):
        frames.append({**head, "choices": [], "usage": body["usage"]})
    return [b"data: " + orjson.dumps(frame) + b"\n\n" for frame in frames]


def render_error(error: GatewayError, kind_type: str) -> bytes:
    """Return the in-band frame for an error after the first byte; no `[DONE]` follows it."""
    frame = {"error": error_object(error, kind_type), "detail": error.message}
    return b"data: " + orjson.dumps(frame) + b"\n\n"


def error_object(error: GatewayError, kind_type: str) -> Body:
    """Return the `error` of a reply or frame."""
    return {"message": error.message, "type": kind_type, "param": error.param, "code": error.told_code}
