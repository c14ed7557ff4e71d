"""Converts OpenAI chat bodies to requests of the Responses protocol; pure.

The provider keeps nothing (`store` is false), so its reasoning comes back encrypted and is sent again with
the next turn, see the module `reasoning_details`. `strict` of a function is false unless the caller asks for
it: in this protocol a missing value means true.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.deltas import text_or_refusal_of
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.fields import read_list
from gatewayd.dialects.responses.reasoning_details import ENCRYPTED, held_items
from gatewayd.errors import GatewayError, invalid

MIN_OUTPUT_TOKENS: Final = 16
"""Minimum of `max_output_tokens` that the protocol accepts."""

SAME_FIELDS: Final = (
    "temperature",
    "top_p",
    "parallel_tool_calls",
    "metadata",
    "user",
    "safety_identifier",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "moderation",
)
"""Fields that both protocols have."""

READ_FIELDS: Final = frozenset(
    {"model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "verbosity"}
    | {"response_format", "reasoning", "reasoning_effort", "logprobs", "top_logprobs", "tools", "tool_choice"}
    | {"store", *SAME_FIELDS}
)
"""Fields that have a part in the request; others give a warning."""

LOGPROBS: Final = "message.output_text.logprobs"

_CHOICE_WORDS: Final = frozenset({"auto", "none", "required"})


@dataclass(frozen=True, slots=True)
class ResponsesOptions:
    """What a model takes: `reasons` asks for its reasoning, `has_summary` for a summary of it as well.

    `keeps_reasoning` sends the reasoning of earlier turns that `origin` has encrypted.
    """

    origin: str
    reasons: bool = True
    has_summary: bool = True
    keeps_reasoning: bool = True


def to_request(body: Mapping[str, Any], options: ResponsesOptions, warnings: list[str]) -> Body:
    """Return the request for an OpenAI chat body, with `stream` as given; raise invalid_request for a bad
    field. Sentences about what was left out or changed are added to `warnings`.
    """
    if body.get("n") not in (None, 1):
        raise invalid("cannot ask this model for more than one choice", param="n")
    request: Body = {"model": body.get("model"), "store": False}
    request["input"] = input_items(read_list(body, "messages"), options)
    for name in SAME_FIELDS:
        if body.get(name) is not None:
            request[name] = body[name]
    if body.get("stream") is True:
        request["stream"] = True
    _add_limit(request, body, warnings)
    _add_text(request, body)
    _add_reasoning(request, body, options)
    _add_logprobs(request, body)
    _add_tools(request, body)
    lost = sorted(name for name in body.keys() - READ_FIELDS if body[name] not in (None, [], {}))
    if lost:
        warnings.append(f"left out, as the Responses protocol does not have it: {', '.join(lost)}")
    return request


def input_items(messages: Sequence[Any], options: ResponsesOptions) -> list[Body]:
    """Return the messages as items, in their order."""
    items: list[Body] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise invalid(f"cannot read {where}: it is not an object", param=where)
        match message.get("role"):
            case "system" | "developer" | "user":
                content = _content(message.get("content"), f"{where}.content")
                if content:
                    items.append({"role": message["role"], "content": content})
            case "assistant":
                items += _assistant(message, where, options)
            case "tool":
                output = _content(message.get("content"), f"{where}.content")
                items.append(_output(message.get("tool_call_id"), output, items))
            case role:
                raise invalid(f"cannot send role {role!r:.80} to this model", param=f"{where}.role")
    return items


def _assistant(message: Mapping[str, Any], where: str, options: ResponsesOptions) -> list[Body]:
    """Return reasoning, text and calls of a turn; each piece of reasoning stands before the same call as
    when it came."""
    reasoning: list[tuple[int, Body]] = []
    if options.keeps_reasoning:
        reasoning = held_items(message.get("reasoning_details"), options.origin)
    calls = [
        _call(call, f"{where}.tool_calls[{index}]")
        for index, call in enumerate(read_list(message, "tool_calls", f"{where}.tool_calls"))
    ]
    text = text_or_refusal_of(message)
    items = [item for before, item in reasoning if before <= 0 or before > len(calls) - 1]
    if text:
        items.append({"role": "assistant", "content": text})
    elif not calls:
        # The protocol refuses reasoning that nothing follows.
        return []
    for number, call in enumerate(calls):
        items += [item for before, item in reasoning if before == number > 0]
        items.append(call)
    return items


def _call(call: Any, where: str) -> Body:
    known = as_mapping(call)
    if isinstance(known.get("custom"), dict):
        custom = known["custom"]
        return {
            "type": "custom_tool_call",
            "call_id": known.get("id"),
            "name": custom.get("name"),
            "input": as_text(custom.get("input")),
        }
    function = known.get("function")
    if not isinstance(function, dict):
        raise invalid(f"cannot read {where}: it has no function", param=where)
    arguments = function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        place = f"{where}.function.arguments"
        raise invalid(f"cannot read {place}: it is not a text", param=place)
    return {
        "type": "function_call",
        "call_id": known.get("id"),
        "name": function.get("name"),
        "arguments": arguments or "{}",
    }


def _output(call_id: Any, output: str | list[Body], items: Sequence[Body]) -> Body:
    """Return the result of a call, of the same kind as the call itself."""
    is_custom = any(
        item.get("call_id") == call_id and item.get("type") == "custom_tool_call" for item in reversed(items)
    )
    kind = "custom_tool_call_output" if is_custom else "function_call_output"
    return {"type": kind, "call_id": call_id, "output": output}


def _content(content: Any, where: str) -> str | list[Body]:
    """Return a text, or the parts of a list."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise invalid(f"cannot read {where}: it is neither text nor a list of parts", param=where)
    parts = [_part(part, f"{where}[{index}]") for index, part in enumerate(content)]
    return [part for part in parts if part.get("type") != "input_text" or part.get("text")]


def _part(part: Any, where: str) -> Body:
    if isinstance(part, str):
        return {"type": "input_text", "text": part}
    if not isinstance(part, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    match part.get("type"):
        case "text":
            text = part.get("text")
            if not isinstance(text, str):
                raise invalid(f"cannot read {where}.text: it is not a text", param=f"{where}.text")
            return {"type": "input_text", "text": text}
        case "image_url":
            return _image(part.get("image_url"), where)
        case "file":
            file = as_mapping(part.get("file"))
            names = ("file_id", "file_data", "filename", "file_url")
            return {"type": "input_file", **{name: file[name] for name in names if file.get(name)}}
        case kind:
            raise _refused_part(kind, where)


def _image(image: object, where: str) -> Body:
    known = image if isinstance(image, dict) else {"url": image}
    if not isinstance(known.get("url"), str):
        raise invalid(f"cannot read {where}.image_url: it has no url", param=f"{where}.image_url")
    return {"type": "input_image", "image_url": known["url"], "detail": known.get("detail") or "auto"}


def _refused_part(kind: object, where: str) -> GatewayError:
    return invalid(f"cannot send a part of type {kind!r:.80} to this model", param=f"{where}.type")


def _add_limit(request: Body, body: Mapping[str, Any], warnings: list[str]) -> None:
    for name in ("max_completion_tokens", "max_tokens"):
        limit = body.get(name)
        if limit is None:
            continue
        if type(limit) is int and 0 < limit < MIN_OUTPUT_TOKENS:
            warnings.append(f"{name} was raised from {limit} to {MIN_OUTPUT_TOKENS}, the least of this model")
            limit = MIN_OUTPUT_TOKENS
        request["max_output_tokens"] = limit
        return


def _add_text(request: Body, body: Mapping[str, Any]) -> None:
    """Set the format of the answer and its verbosity."""
    text: Body = {}
    wanted = as_mapping(body.get("response_format"))
    if wanted.get("type") == "json_schema":
        schema = as_mapping(wanted.get("json_schema"))
        names = ("name", "description", "schema", "strict")
        given = {name: schema[name] for name in names if schema.get(name) is not None}
        text["format"] = {"type": "json_schema", "name": "answer", "strict": False, **given}
    elif wanted.get("type") not in (None, "text"):
        text["format"] = dict(wanted)
    if body.get("verbosity") is not None:
        text["verbosity"] = body["verbosity"]
    if text:
        request["text"] = text


def _add_reasoning(request: Body, body: Mapping[str, Any], options: ResponsesOptions) -> None:
    given = body.get("reasoning")
    reasoning: Body = dict(given) if isinstance(given, dict) else {}
    if body.get("reasoning_effort") is not None:
        reasoning["effort"] = body["reasoning_effort"]
    if options.reasons and reasoning.get("effort") != "none":
        request["include"] = [ENCRYPTED]
        if options.has_summary:
            reasoning.setdefault("summary", "auto")
    if reasoning:
        request["reasoning"] = reasoning


def _add_logprobs(request: Body, body: Mapping[str, Any]) -> None:
    if body.get("logprobs") is True:
        request["include"] = [*request.get("include", ()), LOGPROBS]
        if body.get("top_logprobs") is not None:
            request["top_logprobs"] = body["top_logprobs"]


def _add_tools(request: Body, body: Mapping[str, Any]) -> None:
    tools = read_list(body, "tools")
    if not tools:
        request.pop("parallel_tool_calls", None)
        return
    request["tools"] = [_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools)]
    choice = body.get("tool_choice")
    if choice is not None:
        request["tool_choice"] = _tool_choice(choice)


def _tool(tool: Any, where: str) -> Body:
    if not isinstance(tool, dict):
        raise invalid(f"cannot read {where}: it is not an object", param=where)
    kind = tool.get("type")
    inner = tool.get(kind) if kind in ("function", "custom") else None
    if kind == "function" and not isinstance(inner, dict):
        raise invalid(f"cannot read {where}: it has no function", param=where)
    if not isinstance(inner, dict):
        return tool
    if kind == "custom":
        return {"type": "custom", **inner, **_grammar(inner)}
    parameters = inner.get("parameters") or {"type": "object", "properties": {}}
    strict = inner.get("strict") is True
    kept = {name: inner[name] for name in ("name", "description") if inner.get(name)}
    return {"type": "function", **kept, "parameters": parameters, "strict": strict}


def _grammar(custom: Mapping[str, Any]) -> Body:
    """Return the format of a custom tool without the object that only chat completions has around it."""
    given = as_mapping(custom.get("format"))
    inner = given.get("grammar")
    return {"format": {"type": "grammar", **inner}} if isinstance(inner, dict) else {}


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str) and choice in _CHOICE_WORDS:
        return choice
    known = as_mapping(choice)
    kind = known.get("type")
    if kind == "allowed_tools" and isinstance(known.get("allowed_tools"), dict):
        allowed = known["allowed_tools"]
        tools = [_named(tool) for tool in as_sequence(allowed.get("tools"))]
        return {"type": kind, "mode": allowed.get("mode") or "auto", "tools": tools}
    named = _named(known)
    is_nameless = kind in ("function", "custom") and not isinstance(named.get("name"), str)
    if is_nameless or not isinstance(kind, str):
        raise invalid(
            "cannot read tool_choice: it is none of auto, none, required, a tool", param="tool_choice"
        )
    return named


def _named(choice: Any) -> Body:
    known = as_mapping(choice)
    inner = known.get(as_text(known.get("type")))
    return {"type": known["type"], "name": inner.get("name")} if isinstance(inner, dict) else dict(known)
