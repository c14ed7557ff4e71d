"""Converts OpenAI chat bodies to requests of the Anthropic messages protocol; pure.

Fields without a counterpart (`logprobs`, `seed`, penalties, `logit_bias`, `metadata` other than `user_id`,
thinking without a signature) are omitted. `n` above 1 is refused, because it would change the format of the
answer. `response_format: json_object`, which the protocol lacks, becomes a sentence of the system prompt. The
text of a tool message is passed as the tool wrote it: "Error: ..." does not set `is_error`.
"""

from collections.abc import Mapping
from typing import Any

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.reasoning_marks import is_signed
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.completion import THOUGHTS
from gatewayd.dialects.anthropic.effort import reasoning_fields
from gatewayd.dialects.fields import check_arguments, json_schema, parse_arguments, parse_data_url, read_list
from gatewayd.dialects.message_turns import split_messages
from gatewayd.errors import GatewayError, invalid

DEFAULT_MAX_TOKENS = 4096
"""Limit of an answer whose caller gives none, for a model whose own limit is unknown."""
"""Maximum tokens of an answer if the caller sets no limit; the protocol requires one."""

JSON_ONLY = "Answer with one JSON object and nothing else: no text around it, no code fence."
"""Instruction that replaces `response_format: json_object`."""

_UNCHANGED_FIELDS = ("temperature", "top_p", "top_k", "stream", "thinking")

_SERVICE_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}

_ANTHROPIC_PARTS = frozenset({*THOUGHTS, "image", "document", "search_result"})


def default_limit(max_output: int) -> int:
    """Return the limit of an answer whose caller gives none, by that of the model; 0 stands for unknown.

    A quarter leaves room for the largest thinking budget, which is added to it.
    """
    return max(min(DEFAULT_MAX_TOKENS, max_output), max_output // 4) if max_output else DEFAULT_MAX_TOKENS


def to_request(
    body: Mapping[str, Any],
    capabilities: object = None,
    max_output: int = 0,
    *,
    sends_reasoning: bool = False,
) -> Body:
    """Return the messages request for an OpenAI chat body; raise invalid_request for a bad field.

    `capabilities` come from the provider's model list, `max_output` is the limit of the model's answers. With
    `sends_reasoning` the `reasoning_content` of earlier answers becomes unsigned thinking, which only makers
    without signatures take.
    """
    if body.get("n") not in (None, 1):
        raise invalid("cannot ask an Anthropic model for more than one choice", param="n")
    given = read_list(body, "messages")
    check_arguments(given)
    assistant = _thinking_assistant if sends_reasoning else _assistant
    system, messages = split_messages(given, _instructions, assistant, _user)
    if as_mapping(body.get("response_format")).get("type") == "json_object":
        system.append({"type": "text", "text": JSON_ONLY})
    request: Body = {
        "model": body.get("model"),
        "messages": messages,
        "max_tokens": _max_tokens(body, max_output),
    }
    if system:
        request["system"] = _system(system)
    for name in _UNCHANGED_FIELDS:
        if body.get(name) is not None:
            request[name] = body[name]
    _add_account(request, body)
    stop = body.get("stop")
    if stop:
        request["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    _add_tools(request, body)
    _add_output(request, body, capabilities)
    return request


def _instructions(message: Mapping[str, Any], where: str) -> list[Body]:
    return _text_blocks(message.get("content"), f"{where}.content")


def _user(message: Mapping[str, Any], where: str) -> list[Body]:
    role = message.get("role")
    content = message.get("content")
    if role == "user":
        return _blocks(content, f"{where}.content")
    if role != "tool":
        raise invalid(f"cannot send role {role!r:.80} to an Anthropic model", param=f"{where}.role")
    blocks = _blocks(content, f"{where}.content")
    result: Body = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": blocks}
    if len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
        result["content"] = blocks[0]["text"]
    return [result]


def _assistant(message: Mapping[str, Any], where: str) -> list[Body]:
    blocks = [block for block in as_sequence(message.get("thinking_blocks")) if is_signed(block)]
    blocks += [block for block in as_sequence(message.get("server_tool_blocks")) if isinstance(block, dict)]
    content_blocks = _blocks(message.get("content"), f"{where}.content")
    blocks += [
        block for block in content_blocks if as_text(block.get("type")) not in THOUGHTS or is_signed(block)
    ]
    for index, call in enumerate(read_list(message, "tool_calls", f"{where}.tool_calls")):
        blocks.append(_tool_use(call, f"{where}.tool_calls[{index}]"))
    return blocks


def _thinking_assistant(message: Mapping[str, Any], where: str) -> list[Body]:
    text = as_text(message.get("reasoning_content"))
    thoughts: list[Body] = [{"type": "thinking", "thinking": text}] if text else []
    return thoughts + _assistant(message, where)


def _tool_use(call: Any, where: str) -> Body:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise invalid(f"cannot read {where}: it has no function", param=where)
    return {
        "type": "tool_use",
        "id": call.get("id"),
        "name": function.get("name"),
        "input": parse_arguments(function.get("arguments"), f"{where}.function.arguments"),
    }


def _blocks(content: Any, where: str) -> list[Body]:
    """Return the blocks of a message's content without empty texts, which the protocol refuses."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        raise invalid(f"cannot read {where}: it is neither text nor a list of parts", param=where)
    blocks = [_block(part, f"{where}[{index}]") for index, part in enumerate(content)]
    return [block for block in blocks if block.get("type") != "text" or block.get("text")]


def _block(part: Any, where: str) -> Body:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if not isinstance(part, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    kind = part.get("type")
    if not isinstance(kind, str):
        raise _refused_part(kind, where)
    if kind in _ANTHROPIC_PARTS:
        return part
    if kind in {"text", "refusal"}:
        block: Body = {"type": "text", "text": _part_text(part, kind, where)}
    elif kind == "image_url":
        block = {"type": "image", "source": _source(_image_url(part), where)}
    elif kind == "file":
        block = {"type": "document", "source": _source(_file_data(part), where)}
    else:
        raise _refused_part(kind, where)
    if "cache_control" in part:
        block["cache_control"] = part["cache_control"]
    return block


def _part_text(part: Mapping[str, Any], kind: str, where: str) -> str:
    value = part.get(kind)
    if value is not None and not isinstance(value, str):
        raise invalid(f"cannot read {where}.{kind}: it is not a text", param=f"{where}.{kind}")
    return value or ""


def _refused_part(kind: object, where: str) -> GatewayError:
    return invalid(f"cannot send a part of type {kind!r:.80} to an Anthropic model", param=f"{where}.type")


def _image_url(part: Mapping[str, Any]) -> object:
    image = part.get("image_url")
    return image.get("url") if isinstance(image, dict) else image


def _file_data(part: Mapping[str, Any]) -> object:
    file = part.get("file")
    return file.get("file_data") if isinstance(file, dict) else None


def _source(url: object, where: str) -> Body:
    if isinstance(url, str) and url.startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    media_type, data = parse_data_url(url, where)
    return {"type": "base64", "media_type": media_type, "data": data}


def _text_blocks(content: Any, where: str) -> list[Body]:
    blocks = _blocks(content, where)
    if any(block.get("type") != "text" for block in blocks):
        raise invalid(f"cannot send {where}: a system message holds text only", param=where)
    return blocks


def _system(blocks: list[Body]) -> str | list[Body]:
    """Return one text, or the blocks if one of them has `cache_control`."""
    if any("cache_control" in block for block in blocks):
        return blocks
    return "\n\n".join(block["text"] for block in blocks)


def _max_tokens(body: Mapping[str, Any], max_output: int) -> Any:
    for name in ("max_completion_tokens", "max_tokens"):
        if body.get(name) is not None:
            return body[name]
    return default_limit(max_output)


def _add_account(request: Body, body: Mapping[str, Any]) -> None:
    """Set the user id and the service tier, if the protocol has a value for them."""
    for user in (as_mapping(body.get("metadata")).get("user_id"), body.get("user")):
        if isinstance(user, str) and user:
            request["metadata"] = {"user_id": user}
            break
    tier = body.get("service_tier")
    if isinstance(tier, str) and tier in _SERVICE_TIERS:
        request["service_tier"] = _SERVICE_TIERS[tier]


def _add_output(request: Body, body: Mapping[str, Any], capabilities: object) -> None:
    """Set the effort, the caller's own first, and the JSON schema of the answer."""
    config = {}
    effort = as_mapping(body.get("output_config")).get("effort")
    if effort is not None:
        config["effort"] = effort
    else:
        asked = reasoning_fields(body, request, capabilities)
        if "effort" in asked:
            config["effort"] = asked.pop("effort")
        request.update(asked)
    schema = json_schema(body.get("response_format"))
    if schema is not None:
        config["format"] = {"type": "json_schema", "schema": schema}
    if config:
        request["output_config"] = config


def _add_tools(request: Body, body: Mapping[str, Any]) -> None:
    if not body.get("tools"):
        return
    request["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(read_list(body, "tools"))]
    choice = _tool_choice(body.get("tool_choice"))
    if body.get("parallel_tool_calls") is False and (choice is None or choice["type"] != "none"):
        choice = {**(choice or {"type": "auto"}), "disable_parallel_tool_use": True}
    if choice is not None:
        request["tool_choice"] = choice


def _tool(tool: Any, where: str) -> Body:
    if not isinstance(tool, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    if tool.get("type") != "function":
        return tool
    function = tool.get("function")
    if not isinstance(function, dict):
        raise invalid(f"cannot read {where}: it has no function", param=where)
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    converted: Body = {"name": function.get("name"), "input_schema": schema}
    if function.get("description"):
        converted["description"] = function["description"]
    if "cache_control" in tool:
        converted["cache_control"] = tool["cache_control"]
    return converted


def _tool_choice(choice: Any) -> Body | None:
    match choice:
        case None:
            return None
        case "auto" | "none":
            return {"type": choice}
        case "required":
            return {"type": "any"}
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "tool", "name": name}
        case _:
            raise invalid(
                "cannot read tool_choice: it is none of auto, none, required, a function", param="tool_choice"
            )
