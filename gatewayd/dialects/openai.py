"""The OpenAI chat-completion dialect: the internal language itself, checked and stripped of our own fields.

`parse_request` for what comes in, `render_sources` and `render_error` for what the gateway itself adds.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gatewayd.catalog.replies import Body, Completion
from gatewayd.chat.records import ChatRequest
from gatewayd.errors import GatewayError, invalid

ROLES: Final = frozenset({"system", "developer", "user", "assistant", "tool", "function"})

# Fields of this API family that the gateway consumes; a provider never sees them (peer-compatible names).
OWN_FIELDS: Final = (
    "files",
    "chat_id",
    "id",
    "message_ids",
    "session_id",
    "parent_id",
    "user_message",
    "parent_message",
    "assistant_message_id",
    "regeneration_prompt",
    "background_tasks",
    "features",
    "variables",
    "chat_variables",
    "filter_ids",
    "tool_ids",
    "tool_servers",
    "skill_ids",
    "terminal_id",
    "folder_id",
    "params",
    "model_item",
    "new_chat",
)
OWN_PARAMS: Final = frozenset(
    {
        "stream_response",
        "stream_delta_chunk_size",
        "function_calling",
        "reasoning_tags",
        "compact_token_threshold",
        "system",
        "note_id",
    }
)


def parse_request(value: Mapping[str, Any]) -> ChatRequest:
    """Return the request in a chat-completion body; invalid_request names the field that is wrong.

    Every field that is not the gateway's own is kept untouched.
    """
    body: Body = dict(value)
    options: dict[str, Any] = {name: body.pop(name) for name in OWN_FIELDS if name in body}
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise invalid("cannot accept model: expected the id of a model as text", param="model")
    stream = body.get("stream", False)
    if stream is None:
        stream = False
    if not isinstance(stream, bool):
        raise invalid("cannot accept stream: expected true or false", param="stream")
    check_messages(body.get("messages"))
    files = parse_files(options.pop("files", None))
    _spread_params(body, options.get("params"))
    return ChatRequest(model=model, body=body, stream=stream, files=files, options=options)


def check_messages(messages: Any) -> None:
    """Raise invalid_request unless the messages are a list of objects with a known role."""
    if not isinstance(messages, list):
        raise invalid("cannot accept messages: expected a list", param="messages")
    if not messages:
        raise invalid("cannot accept messages: the list is empty", param="messages")
    for index, message in enumerate(messages):
        name = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot accept {name}: expected an object", param=name)
        role = message.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise invalid(
                f"cannot accept {name}.role: expected one of {', '.join(sorted(ROLES))}", param=f"{name}.role"
            )
        content = message.get("content")
        if content is not None and not isinstance(content, str | list):
            raise invalid(
                f"cannot accept {name}.content: expected text or a list of parts", param=f"{name}.content"
            )


def parse_files(value: Any) -> list[dict[str, Any]]:
    """Return the file references (4.2): a list of objects with a text `type` and a text `id`."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise invalid("cannot accept files: expected a list", param="files")
    for index, item in enumerate(value):
        for name in ("type", "id"):
            if not isinstance(item, dict) or not isinstance(item.get(name), str):
                where = f"files[{index}]"
                raise invalid(f"cannot accept {where}: expected an object with a text {name}", param=where)
    return value


def _spread_params(body: Body, params: Any) -> None:
    if params is None:
        return
    if not isinstance(params, dict):
        raise invalid("cannot accept params: expected an object", param="params")
    custom = params.get("custom_params") or {}
    if not isinstance(custom, dict):
        raise invalid("cannot accept params.custom_params: expected an object", param="params.custom_params")
    for name, value in {**params, **custom}.items():
        if name not in OWN_PARAMS and name not in {"custom_params", "model", "messages", "stream"}:
            body.setdefault(name, value)


def render_sources(sources: list[dict[str, Any]], model: str, request_id: str, created: int) -> bytes:
    """Return the first stream frame with the sources (2.4), a chunk without choices for strict clients."""
    frame = {
        "id": f"chatcmpl-{request_id}",
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
        "choices": [],
        "sources": sources,
    }
    return b"data: " + orjson.dumps(frame) + b"\n\n"


def render_completion(completion: Completion) -> list[bytes]:
    """Return a finished answer as stream frames: the message, then the finish reason."""
    body = completion.body
    head = {"id": body.get("id"), "object": "chat.completion.chunk", "created": body.get("created")}
    head["model"] = body.get("model")
    frames = []
    for choice in body.get("choices") or ():
        index = choice.get("index", 0)
        delta = {"index": index, "delta": choice.get("message") or {}, "finish_reason": None}
        last = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason")}
        frames += [{**head, "choices": [delta]}, {**head, "choices": [last]}]
    return [b"data: " + orjson.dumps(frame) + b"\n\n" for frame in frames]


def render_error(error: GatewayError, kind_type: str) -> bytes:
    """Return the in-band frame for a failure after the first byte; no `[DONE]` follows it."""
    structured = {
        "message": error.message,
        "type": kind_type,
        "param": error.param,
        "code": error.code or error.kind.value,
    }
    return b"data: " + orjson.dumps({"error": structured, "detail": error.message}) + b"\n\n"
