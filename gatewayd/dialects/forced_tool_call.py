"""A forced tool call for an engine that knows no tools but keeps an answer to a JSON schema; pure.

The request becomes one for an object `{"name": ..., "arguments": {...}}`; the answer becomes a tool call.
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

_OF_TOOLS: Final = frozenset({"tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options"})


def to_form_request(body: Mapping[str, Any]) -> Body | None:
    """Return a request for a whole answer in the form of a call, or None when `body` forces none.

    Forced are `tool_choice` "required" and the choice of one function. Raises invalid_request for a function
    that is not among the tools.
    """
    functions = _forced(body)
    if not functions:
        return None
    schema = _schema(functions)
    told = "\n".join([FORCED_CALL_PROMPT, *(orjson.dumps(function).decode() for function in functions)])
    form = {"type": "json_schema", "json_schema": {"name": "call", "strict": True, "schema": schema}}
    kept = {name: value for name, value in body.items() if name not in _OF_TOOLS}
    return {**kept, "messages": _told(as_sequence(body.get("messages")), told), "response_format": form}


def form_to_tool_calls(completion: Mapping[str, Any], new_id: NewId) -> Body:
    """Return a completion whose answers in the form are tool calls; one that was cut off stays as it is."""
    choices = [_as_call(as_mapping(choice), new_id) for choice in as_sequence(completion.get("choices"))]
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
    """Return the schema of one call; what the functions define for themselves moves to its top."""
    definitions: Body = {}
    forms = [_form(function, definitions) for function in functions]
    schema: Body = forms[0] if len(forms) == 1 else {"anyOf": forms}
    return {**schema, "$defs": definitions} if definitions else schema


def _form(function: Mapping[str, Any], definitions: Body) -> Body:
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


def _told(messages: Sequence[Any], told: str) -> list[Any]:
    """Return the messages with one more sentence for the model, in the system message if it is a text."""
    first = as_mapping(messages[0]) if messages else {}
    if first.get("role") in {"system", "developer"} and isinstance(first.get("content"), str):
        return [{**first, "content": f"{first['content']}\n\n{told}"}, *messages[1:]]
    return [{"role": "system", "content": told}, *messages]


def _as_call(choice: Mapping[str, Any], new_id: NewId) -> Body:
    message = as_mapping(choice.get("message"))
    call = _call(as_text(message.get("content")))
    if call is None:
        return dict(choice)
    function = {"name": call["name"], "arguments": orjson.dumps(call["arguments"]).decode()}
    called = {"id": f"call_{new_id()}", "type": "function", "function": function}
    return {
        **choice,
        "message": {**message, "content": None, "tool_calls": [called]},
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
