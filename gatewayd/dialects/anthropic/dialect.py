"""The Anthropic messages dialect for clients: parses requests, renders replies and errors; pure.

`gatewayd.dialects.anthropic.stream` renders streams. A converted body may keep fields of the messages
protocol for sources that speak it; `without_foreign` removes them for all other sources.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import first_choices, usage_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.completions.refusal_reasons import RefusalReason, reason_of
from gatewayd.dialects.anthropic.blocks import ContentBlockQueue
from gatewayd.dialects.anthropic.content import OmittedFields, check_turns, system_messages, to_messages
from gatewayd.dialects.anthropic.reply import message_id, render_usage, stop_reason_of
from gatewayd.dialects.anthropic.request import add_fields
from gatewayd.dialects.openai import parse_files
from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.ids import NewId
from gatewayd.pipeline.documents.plugin_context import CHAT_FIELDS, OWN_FIELDS
from gatewayd.pipeline.endpoints import check_names, model_of
from gatewayd.pipeline.records import ChatRequest

TOO_LONG: Final = "prompt is too long"
NO_CREDIT: Final = "credit balance is too low"
"""First words of errors without a code in this dialect; its clients look for them."""

_WORDS: Final = {RefusalReason.TOO_LONG: TOO_LONG, RefusalReason.NO_CREDIT: NO_CREDIT}

OPTIONS: Final = OWN_FIELDS - CHAT_FIELDS
"""Fields of the gateway that count in a request."""

FOREIGN_FIELDS: Final = ("thinking", "top_k", "metadata", "service_tier", "output_config")
"""Fields of a converted body that OpenAI lacks, or defines differently."""

FOREIGN_MESSAGE_FIELDS: Final = ("thinking_blocks",)
"""Fields of a converted body's messages that OpenAI lacks."""

FOREIGN_PART_FIELDS: Final = ("cache_control",)
"""Fields of a converted body's parts and tools that OpenAI lacks."""

FOREIGN_PARTS: Final = frozenset({"image", "document"})
"""Parts of a converted body without an OpenAI form: a document by URL, a file stored at the provider."""


def parse_request(value: Mapping[str, Any]) -> ChatRequest:
    """Parse a messages body; raise invalid_request with the name of a bad field.

    `native` is the body without the gateway's own fields, whose values only the provider checks. `warnings`
    names the fields that only a provider of this protocol receives. What cannot be converted (unknown blocks,
    roles and values) is `unconvertible`, the refusal for every other provider; `body` then lacks it.
    """
    request = parse_unconverted(value)
    convert(request)
    return request


def parse_unconverted(value: Mapping[str, Any]) -> ChatRequest:
    """Parse a messages body as `parse_request` does, but for what `convert` adds."""
    check_names(value)
    native = {name: field for name, field in value.items() if name not in OWN_FIELDS}
    # These requests are not stored: a named chat is neither looked up nor passed to plugins.
    options = {name: value[name] for name in OPTIONS.intersection(value)}
    model = model_of(value)
    stream = value.get("stream", False)
    if not isinstance(stream, bool | None):
        raise invalid("cannot accept stream: expected true or false", param="stream")
    check_turns(native.get("messages"))
    files = parse_files(options.pop("files", None))
    return ChatRequest(model=model, body={}, stream=bool(stream), files=files, options=options, native=native)


def convert(request: ChatRequest) -> None:
    """Add the `body`, the `warnings` and the refusal `unconvertible` to a request without them."""
    native, omitted = request.native or {}, OmittedFields()
    body = request.body = {"model": request.model, "messages": []}
    try:
        body["messages"] = system_messages(native.get("system"), "system") + to_messages(
            native["messages"], omitted
        )
        add_fields(body, native, omitted)
    except GatewayError as refusal:
        request.unconvertible = refusal
    if request.stream:
        body.update(stream=True, stream_options={"include_usage": True})
    request.warnings = omitted.sentences()


def without_foreign(body: Mapping[str, Any], *, keeps_cache: bool = False) -> Body:
    """Return a copy of a converted body for a provider of the OpenAI protocol.

    System, assistant and tool messages that consist of text parts become one text, because many providers
    take no parts there. With `keeps_cache` those with `cache_control` stay parts. Raises invalid_request for
    a block that OpenAI has no form for.
    """
    plain = {name: value for name, value in body.items() if name not in FOREIGN_FIELDS}
    if isinstance(body.get("messages"), list):
        dropped = () if keeps_cache else FOREIGN_PART_FIELDS
        plain["messages"] = [_plain_message(message, dropped) for message in body["messages"]]
    if isinstance(body.get("tools"), list):
        plain["tools"] = list(body["tools"])
        if not keeps_cache:
            plain["tools"] = [_without(tool, FOREIGN_PART_FIELDS) for tool in body["tools"]]
    return plain


def render_completion(
    body: Body,
    model: str,
    new_id: NewId,
    *,
    input_tokens: int = 0,
    stop_sequences: Collection[str] | None = None,
    mark: str = "",
    used_ids: Collection[str] = (),
) -> Body:
    """Return the message of a completion: thinking, then text, then tool_use blocks.

    `model` is the id that the caller sent, `input_tokens` the estimate if the source gives no usage. If
    `stop_sequences` is given, a stop sequence named by the source must be one of them. `mark` and `used_ids`
    are as in `ContentBlockQueue`. Raises upstream_failed for a completion without a choice.
    """
    choice = next(first_choices(body), None)
    if choice is None:
        raise GatewayError(ErrorKind.UPSTREAM_FAILED, "cannot convert the answer: it has no choice")
    blocks = ContentBlockQueue(new_id, mark, used_ids)
    blocks.add(_with_indices(as_mapping(choice.get("message"))))
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
    """Return the `error` of a reply or event.

    The dialect has no code for a too long request and for an account without credit; its clients recognise
    a sentence.
    """
    message = error.message
    reason = reason_of(error.provider_code)
    if reason in _WORDS and _WORDS[reason] not in message:
        message = f"{_WORDS[reason]}: {message}"
    return {"type": kind_type, "message": message}


def render_error_event(error: GatewayError, kind_type: str) -> bytes:
    """Return the in-band event for an error after the first byte; nothing follows it.

    A code of the gateway's own is an additional member of its error: no status tells it.
    """
    described = error_object(error, kind_type)
    if error.code is not None:
        described["code"] = error.code
    event = {"type": "error", "error": described}
    return b"event: error\ndata: " + orjson.dumps(event) + b"\n\n"


def _with_indices(message: Mapping[str, Any]) -> Body:
    """Number the calls of a whole message, whatever indices the provider gave."""
    calls = [call for call in as_sequence(message.get("tool_calls")) if isinstance(call, dict)]
    return {**message, "tool_calls": [{**call, "index": index} for index, call in enumerate(calls)]}


def _plain_message(message: Any, dropped: Collection[str]) -> Any:
    if not isinstance(message, dict):
        return message
    plain = _without(message, FOREIGN_MESSAGE_FIELDS)
    parts = message.get("content")
    if not isinstance(parts, list):
        return plain
    for part in parts:
        if isinstance(part, dict) and as_text(part.get("type")) in FOREIGN_PARTS:
            refused = f"{part['type']} of source type {as_mapping(part.get('source')).get('type')!r:.80}"
            raise invalid(
                f"cannot send messages: the provider of this model takes no {refused}", param="messages"
            )
    parts = [_without(part, dropped) for part in parts]
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    plain["content"] = parts
    if any("cache_control" in part for part in parts if isinstance(part, dict)):
        return plain
    if len(texts) == len(parts) and (len(parts) == 1 or message.get("role") != "user"):
        plain["content"] = "\n".join(texts)
    return plain


def _without(value: Any, names: Collection[str]) -> Any:
    if not isinstance(value, dict):
        return value
    return {name: field for name, field in value.items() if name not in names}
