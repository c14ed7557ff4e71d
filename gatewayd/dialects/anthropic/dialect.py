"""The Anthropic-style messages dialect (interface specification 4.3) at the edge; pure.

`parse_request` for what comes in; `render_completion` and `render_error_event` for what goes
out (streams: `gatewayd.dialects.anthropic.stream`). A converted body may hold what only the messages protocol
knows, so that a source that speaks it gets it back; `without_foreign` takes it out for all others.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import first_choices, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.provider_errors import OVERFLOW
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.blocks import ContentBlockQueue
from gatewayd.dialects.anthropic.content import OmittedFields, system_messages, to_messages
from gatewayd.dialects.anthropic.reply import message_id, render_usage, stop_reason_of
from gatewayd.dialects.anthropic.request import add_fields
from gatewayd.dialects.openai import parse_files
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.ids import NewId
from gatewayd.pipeline.documents.plugin_context import CHAT_FIELDS, OWN_FIELDS
from gatewayd.pipeline.endpoints import check_names, model_of
from gatewayd.pipeline.records import ChatRequest

TOO_LONG: Final = "prompt is too long"
"""How an error of this dialect begins whose request is longer than its model can take."""

FOREIGN_FIELDS: Final = ("thinking", "top_k", "metadata", "service_tier", "output_config")
"""Fields of a converted body that OpenAI does not know, or knows with another meaning."""

FOREIGN_MESSAGE_FIELDS: Final = ("thinking_blocks",)
"""Fields of a converted body's messages that OpenAI does not know."""

FOREIGN_PART_FIELDS: Final = ("cache_control",)
"""Fields of a converted body's parts and tools that OpenAI does not know."""

FOREIGN_PARTS: Final = frozenset({"image", "document"})
"""Parts of a converted body that OpenAI has no form for: a document by URL, a file of the provider's."""


def parse_request(value: Mapping[str, Any]) -> ChatRequest:
    """Return the request in a messages body; invalid_request names the field that is wrong.

    `native` is the body without the gateway's own fields, `warnings` says what only a provider that speaks
    this protocol will see.
    """
    check_names(value)
    native = {name: field for name, field in value.items() if name not in OWN_FIELDS}
    # Nothing is kept of these requests: a chat that one names is neither looked up nor told to plugins.
    options = {name: value[name] for name in OWN_FIELDS - CHAT_FIELDS if name in value}
    model = model_of(value)
    stream = value.get("stream", False)
    if not isinstance(stream, bool | None):
        raise invalid("cannot accept stream: expected true or false", param="stream")
    omitted = OmittedFields()
    messages = system_messages(value.get("system"), "system") + to_messages(value.get("messages"), omitted)
    body: Body = {"model": model, "messages": messages}
    add_fields(body, native, omitted)
    if stream:
        body.update(stream=True, stream_options={"include_usage": True})
    files = parse_files(options.pop("files", None))
    return ChatRequest(
        model=model,
        body=body,
        stream=bool(stream),
        files=files,
        options=options,
        warnings=omitted.sentences(),
        native=native,
    )


def without_foreign(body: Mapping[str, Any]) -> Body:
    """Return a converted body as a provider of the OpenAI protocol takes it; `body` is left as it is.

    System, assistant and tool messages made of nothing but texts become one text each, as many such
    providers take no parts there. Raises invalid_request for a block that OpenAI has no form for.
    """
    plain = {name: value for name, value in body.items() if name not in FOREIGN_FIELDS}
    if isinstance(body.get("messages"), list):
        plain["messages"] = [_plain_message(message) for message in body["messages"]]
    if isinstance(body.get("tools"), list):
        plain["tools"] = [_without(tool, FOREIGN_PART_FIELDS) for tool in body["tools"]]
    return plain


def render_completion(
    body: Body,
    model: str,
    new_id: NewId,
    *,
    input_tokens: int = 0,
    stop_sequences: Collection[str] | None = None,
) -> Body:
    """Return the message for a completion: thinking, then text, then tool_use blocks.

    `model` is the id that the caller asked for, `input_tokens` the estimate for an answer without usage. A
    stop sequence that the source names counts when it is one of `stop_sequences`, if those are given.
    Raises upstream_failed for a completion without an answer.
    """
    choice = next(first_choices(body), None)
    if choice is None:
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot convert the answer: it has no choice")
    blocks = ContentBlockQueue(new_id)
    blocks.add(_numbered(as_mapping(choice.get("message"))))
    stop_reason, stop_sequence = stop_reason_of(choice, blocks.calls_tools, stop_sequences)
    return {
        "id": message_id(body.get("id"), new_id),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks.whole(),
        "stop_reason": stop_reason,
        "stop_sequence": stop_sequence,
        "usage": render_usage(usage_of(body), input_tokens, blocks.characters),
    }


def error_object(error: GatewayError, kind_type: str) -> Body:
    """Return the `error` of an answer or event.

    Clients of this dialect know by one sentence that a request is too long: it has no codes.
    """
    message = error.message
    if error.provider_code == OVERFLOW and TOO_LONG not in message:
        message = f"{TOO_LONG}: {message}"
    return {"type": kind_type, "message": message}


def render_error_event(error: GatewayError, kind_type: str) -> bytes:
    """Return the in-band event for a failure after the first byte; nothing follows it."""
    event = {"type": "error", "error": error_object(error, kind_type)}
    return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"


def _numbered(message: Mapping[str, Any]) -> Body:
    """Give each call of a whole message a number of its own, whatever the provider says."""
    calls = [call for call in as_sequence(message.get("tool_calls")) if isinstance(call, dict)]
    return {**message, "tool_calls": [{**call, "index": index} for index, call in enumerate(calls)]}


def _plain_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    plain = _without(message, FOREIGN_MESSAGE_FIELDS)
    parts = message.get("content")
    if not isinstance(parts, list):
        return plain
    for part in parts:
        if isinstance(part, dict) and as_text(part.get("type")) in FOREIGN_PARTS:
            told = f"{part['type']} of source type {as_mapping(part.get('source')).get('type')!r:.80}"
            raise invalid(
                f"cannot send messages: the provider of this model takes no {told}", param="messages"
            )
    parts = [_without(part, FOREIGN_PART_FIELDS) for part in parts]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    plain["content"] = parts
    if len(texts) == len(parts) and (len(parts) == 1 or message.get("role") != "user"):
        plain["content"] = "\n".join(texts)
    return plain


def _without(value: Any, names: Collection[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: field for name, field in value.items() if name not in names}
