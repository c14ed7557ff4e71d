"""Converts OpenAI chat bodies to requests of the Converse protocol of Bedrock; pure.

The requests are those of the operation of the client library: pictures, documents and redacted thoughts are
bytes. Thinking goes back with its signature only.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.deltas import text_or_refusal_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.source import JSON_ONLY
from gatewayd.dialects.bedrock.thinking_fields import thinking_fields
from gatewayd.dialects.content_parts import media_url, read_parts, refused_address, refused_part
from gatewayd.dialects.fields import check_arguments, json_schema, parse_arguments, parse_data_url, read_list
from gatewayd.dialects.message_turns import split_messages
from gatewayd.errors import invalid

READ_FIELDS: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"}
    | {"temperature", "top_p", "top_k", "stop", "tools", "tool_choice", "response_format"}
    | {"reasoning_effort", "thinking"}
)
"""Fields that have a part in the request; others give a warning."""

IMAGE_FORMATS: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
DOCUMENT_FORMATS: Final = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}
"""Formats of pictures and documents by their media types."""

FORMER_TOOL: Final = "This tool is not available any more."
"""Description of a tool that earlier turns called and the request does not offer."""


def to_request(body: Mapping[str, Any], family: str, warnings: list[str]) -> Body:
    """Return the parameters of the operation for an OpenAI chat body; raise invalid_request for a bad field.

    `family` is the canonical id of the model. Sentences about what was left out are added to `warnings`.
    """
    if body.get("n") not in (None, 1):
        raise invalid("cannot ask this model for more than one choice", param="n")
    given = read_list(body, "messages")
    check_arguments(given)
    system, messages = split_messages(given, _instructions, _assistant, _user)
    if as_mapping(body.get("response_format")).get("type") == "json_object":
        system.append({"text": JSON_ONLY})
    request: Body = {"modelId": body.get("model"), "messages": messages}
    if system:
        request["system"] = system
    inference = _inference(body, warnings)
    extra = thinking_fields(body, family, inference, warnings)
    if body.get("top_k") is not None:
        extra["top_k"] = body["top_k"]
    if inference:
        request["inferenceConfig"] = inference
    if extra:
        request["additionalModelRequestFields"] = extra
    _add_format(request, body)
    _add_tools(request, body, warnings)
    lost = sorted(name for name in body.keys() - READ_FIELDS if body[name] not in (None, [], {}))
    if lost:
        warnings.append(f"left out, as Bedrock does not have it: {', '.join(lost)}")
    return request


def _instructions(message: Mapping[str, Any], where: str) -> list[Body]:
    return _texts(message.get("content"), f"{where}.content")


def _texts(content: Any, where: str) -> list[Body]:
    blocks = _blocks(content, where)
    if any("text" not in block for block in blocks):
        raise invalid(f"cannot send {where}: a system message holds text only", param=where)
    return blocks


def _user(message: Mapping[str, Any], where: str) -> list[Body]:
    role = message.get("role")
    blocks = _blocks(message.get("content"), f"{where}.content")
    if role == "user":
        return blocks
    if role != "tool":
        raise invalid(f"cannot send role {role!r:.80} to this model", param=f"{where}.role")
    content = blocks or [{"text": "(empty)"}]
    return [{"toolResult": {"toolUseId": as_text(message.get("tool_call_id")), "content": content}}]


def _assistant(message: Mapping[str, Any], where: str) -> list[Body]:
    blocks = [_thought(block) for block in map(as_mapping, as_sequence(message.get("thinking_blocks")))]
    found: list[Body] = [block for block in blocks if block is not None]
    text = text_or_refusal_of(message)
    if text.strip():
        found.append({"text": text})
    for index, call in enumerate(read_list(message, "tool_calls", f"{where}.tool_calls")):
        place = f"{where}.tool_calls[{index}]"
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict):
            raise invalid(f"cannot read {place}: it has no function", param=place)
        arguments = parse_arguments(function.get("arguments"), f"{place}.function.arguments")
        use = {
            "toolUseId": as_text(call.get("id")),
            "name": as_text(function.get("name")),
            "input": arguments,
        }
        found.append({"toolUse": use})
    return found


def _thought(block: Mapping[str, Any]) -> Body | None:
    """Return a signed or redacted thought, None for any other."""
    signature, data = as_text(block.get("signature")), as_text(block.get("data"))
    if block.get("type") == "redacted_thinking" and data:
        return {"reasoningContent": {"redactedContent": _decoded(data, "thinking_blocks")}}
    if not signature:
        return None
    thought = {"text": as_text(block.get("thinking")), "signature": signature}
    return {"reasoningContent": {"reasoningText": thought}}


def _blocks(content: Any, where: str) -> list[Body]:
    """Return the blocks of a content without blank texts, which the protocol refuses."""
    blocks = read_parts(content, where, _media_block)
    return [block for block in blocks if "text" not in block or block["text"].strip()]


def _media_block(part: Mapping[str, Any], where: str) -> Body:
    match part.get("type"):
        case "image_url":
            found, data = _media(media_url(part), IMAGE_FORMATS, where)
            return {"image": {"format": found, "source": {"bytes": data}}}
        case "file":
            found, data = _media(media_url(part), DOCUMENT_FORMATS, where)
            return {"document": {"format": found, "name": "document", "source": {"bytes": data}}}
        case kind:
            raise refused_part(kind, where)


def _media(url: object, formats: Mapping[str, str], where: str) -> tuple[str, bytes]:
    if isinstance(url, str) and url.startswith(("http://", "https://")):
        raise refused_address(where)
    media_type, data = parse_data_url(url, where)
    if media_type not in formats:
        raise invalid(f"cannot send {where}: the provider takes no {media_type!r:.80}", param=where)
    return formats[media_type], _decoded(data, where)


def _decoded(data: str, where: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid(f"cannot read {where}: its data is no base64", param=where) from error


def _inference(body: Mapping[str, Any], warnings: list[str]) -> Body:
    config: Body = {}
    for name in ("max_completion_tokens", "max_tokens"):
        if body.get(name) is not None:
            config["maxTokens"] = body[name]
            break
    temperature = body.get("temperature")
    if isinstance(temperature, int | float) and temperature > 1:
        warnings.append(f"temperature was lowered from {temperature:g} to 1, the most of this provider")
        temperature = 1
    for name, value in (("temperature", temperature), ("topP", body.get("top_p"))):
        if value is not None:
            config[name] = value
    stop = body.get("stop")
    if stop:
        config["stopSequences"] = [stop] if isinstance(stop, str) else stop
    return config


def _add_format(request: Body, body: Mapping[str, Any]) -> None:
    schema = json_schema(body.get("response_format"))
    if schema is None:
        return
    name = as_text(as_mapping(as_mapping(body["response_format"]).get("json_schema")).get("name")) or "answer"
    structure = {"jsonSchema": {"schema": orjson.dumps(schema).decode(), "name": name}}
    request["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}


def _add_tools(request: Body, body: Mapping[str, Any], warnings: list[str]) -> None:
    """Set the tools; earlier calls need some, and there is no choice of none."""
    tools = [_spec(tool, f"tools[{index}]") for index, tool in enumerate(read_list(body, "tools"))]
    called = _called_names(request["messages"])
    choice = _tool_choice(body.get("tool_choice")) if tools else None
    if tools and body.get("tool_choice") == "none":
        if not called:
            return
        warnings.append("tool_choice none was left out: earlier turns have calls, for which tools are needed")
    offered = {tool["toolSpec"]["name"] for tool in tools}
    if not tools:
        former = {"description": FORMER_TOOL, "inputSchema": {"json": {"type": "object"}}}
        tools = [{"toolSpec": {"name": name, **former}} for name in called if name not in offered]
    if tools:
        request["toolConfig"] = {"tools": tools, **({} if choice is None else {"toolChoice": choice})}


def _called_names(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    blocks = (block for message in messages for block in message["content"])
    return list(dict.fromkeys(block["toolUse"]["name"] for block in blocks if "toolUse" in block))


def _spec(tool: Any, where: str) -> Body:
    function = tool.get("function") if isinstance(tool, dict) else None
    if not isinstance(function, dict):
        raise invalid(f"cannot send {where}: it is not a function", param=where)
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    spec: Body = {"name": function.get("name"), "inputSchema": {"json": schema}}
    if as_text(function.get("description")):
        spec["description"] = function["description"]
    return {"toolSpec": spec}


def _tool_choice(choice: Any) -> Body | None:
    match choice:
        case None | "none":
            return None
        case "auto":
            return {"auto": {}}
        case "required":
            return {"any": {}}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"tool": {"name": name}}
        case _:
            raise invalid(
                "cannot read tool_choice: it is none of auto, none, required, a function", param="tool_choice"
            )
