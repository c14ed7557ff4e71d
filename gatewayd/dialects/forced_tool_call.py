"""Forced tool calls for engines without tools that support JSON schemas; pure.

The request asks for an object `{"name": ..., "arguments": {...}}`; the answer becomes a tool call.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from gatewayd.completions.embedded_json import has_too_many_values
from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.errors import invalid
from gatewayd.ids import NewId

FORCED_CALL_PROMPT: Final = (
    "Call one of the functions below. Answer with nothing but a JSON object that has its name and its"
    ' arguments: {"name": "...", "arguments": {...}}. Functions, one a line:'
)

_TOOL_FIELDS: Final = frozenset({"tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options"})


def to_form_request(body: Mapping[str, Any]) -> Body | None:
    """Return a request for an answer that has the format of a call; None if `body` forces no call.

    A call is forced by `tool_choice` "required" or by the choice of one function. Raises invalid_request for
    a function that is not among the tools.
    """
    functions = _forced(body)
    if not functions:
        return None
    schema = _schema(functions)
    instruction = "\n".join(
        [FORCED_CALL_PROMPT, *(orjson.dumps(function).decode() for function in functions)]
    )
    form = {"type": "json_schema", "json_schema": {"name": "call", "strict": True, "schema": schema}}
    kept = {name: value for name, value in body.items() if name not in _TOOL_FIELDS}
    return {
        **kept,
        "messages": _with_instruction(as_sequence(body.get("messages")), instruction),
        "response_format": form,
    }


def form_to_tool_calls(completion: Mapping[str, Any], new_id: NewId) -> Body:
    """Convert answers in the format of a call to tool calls; a truncated answer stays unchanged."""
    choices = [_to_tool_call(as_mapping(choice), new_id) for choice in as_sequence(completion.get("choices"))]
    return {**completion, "choices": choices}


def _forced(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    tools = [as_mapping(tool) for tool in as_sequence(body.get("tools"))]
    functions = [
        as_mapping(tool.get("function")) for tool in tools if as_mapping(tool.get("function")).get("name")
    ]
    choice = body.get("tool_choice")
    if choice == "required":
        return functions
    name = as_text(as_mapping(as_mapping(choice).get("function")).get("name"))
    if not name:
        return []
    named = [function for function in functions if function["name"] == name]
    if not named:
        raise invalid(f"cannot accept tool_choice: no tool is named {name!r:.80}", param="tool_choice")
    return named


def _schema(functions: Sequence[Mapping[str, Any]]) -> Body:
    """Return the schema of one call; the `$defs` of the functions move to its top level."""
    definitions: Body = {}
    schemas = [_call_schema(function, definitions) for function in functions]
    schema: Body = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {**schema, "$defs": definitions} if definitions else schema


def _call_schema(function: Mapping[str, Any], definitions: Body) -> Body:
    parameters = {"type": "object", **as_mapping(function.get("parameters"))}
    for name, value in as_mapping(parameters.pop("$defs", None)).items():
        if definitions.setdefault(name, value) != value:
            raise invalid(f"cannot force one of these tools: two of them define {name!r:.80}", param="tools")
    return {
        "type": "object",
        "properties": {"name": {"const": function["name"]}, "arguments": parameters},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _with_instruction(messages: Sequence[Any], instruction: str) -> list[Any]:
    """Append an instruction to the system message, or add a system message with it."""
    first = as_mapping(messages[0]) if messages else {}
    if first.get("role") in {"system", "developer"} and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]


def _to_tool_call(choice: Mapping[str, Any], new_id: NewId) -> Body:
    message = as_mapping(choice.get("message"))
    call = _call(as_text(message.get("content")))
    if call is None:
        return dict(choice)
    function = {"name": call["name"], "arguments": orjson.dumps(call["arguments"]).decode()}
    tool_call = {"id": f"call_{new_id()}", "type": "function", "function": function}
    return {
        **choice,
        "message": {**message, "content": None, "tool_calls": [tool_call]},
        "finish_reason": "tool_calls",
    }


def _call(content: str) -> Mapping[str, Any] | None:
    if has_too_many_values(content):
        return None
    try:
        call = as_mapping(orjson.loads(content))
    except orjson.JSONDecodeError:
        return None
    return call if as_text(call.get("name")) and isinstance(call.get("arguments"), dict) else None
