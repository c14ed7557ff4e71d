"""Converts tools of the Responses protocol to chat functions, and the names of calls back; pure.

A custom tool becomes a function with one text, `input`. The tools of a namespace become functions whose names
begin with the namespace.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from gatewayd import ids
from gatewayd.completions.records import Body
from gatewayd.completions.tool_call_assembler import parse_object
from gatewayd.dialects.responses.fields import (
    LeftOutParts,
    optional_flag,
    optional_list,
    optional_object,
    optional_text,
    read_text,
    wrong,
)
from gatewayd.errors import invalid

MAX_TOOLS: Final = 2000
"""Maximum number of tools of a request, those of namespaces included."""

MAX_EARLIER_TOOLS: Final = 20_000
"""Maximum number of tools that the items of a continued conversation offer, repeated ones included."""

CUSTOM_INPUT: Final = "input"
"""The only parameter of the function that stands for a custom tool."""

ADDITIONAL_TOOLS: Final = "additional_tools"
"""Type of an input item that offers tools, as Codex sends all of its tools."""

PREVIOUS: Final = "previous_response_id"
"""Field that a bad tool of an earlier item is reported for."""

_SEPARATOR: Final = "__"
_VALID_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INVALID_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_-]")
_KEPT_CHARACTERS: Final = 55
_DIGEST_CHARACTERS: Final = 8

_CHOICES: Final = ("auto", "none", "required")


class ToolIdentity(NamedTuple):
    """A tool as the caller knows it."""

    name: str
    namespace: str | None = None
    is_custom: bool = False


class ToolNames:
    """The functions of one request, by the names that the model sees."""

    def __init__(self) -> None:
        self._by_function: dict[str, ToolIdentity] = {}
        self._functions: dict[tuple[str, str | None], str] = {}

    def add(self, tool: ToolIdentity) -> str:
        """Return the name of the function that stands for a tool; a taken name gets a suffix.

        A tool that is added again keeps its first form.
        """
        known_name = self._functions.get((tool.name, tool.namespace))
        if known_name is not None:
            return known_name
        name = function_name(tool.name, tool.namespace)
        if name in self._by_function:
            name = _shortened(name, f"{tool.namespace}\0{tool.name}")
        self._by_function[name] = tool
        self._functions[tool.name, tool.namespace] = name
        return name

    def function(self, name: str, namespace: str | None = None) -> str:
        """Return the function name of a tool, even of one that the request no longer has."""
        return self._functions.get((name, namespace)) or function_name(name, namespace)

    def has(self, name: str, namespace: str | None = None) -> bool:
        """Return True if the request has the tool."""
        return (name, namespace) in self._functions

    def tool(self, function: str) -> ToolIdentity:
        """Return the tool that a function stands for."""
        return self._by_function.get(function) or ToolIdentity(function)


def function_name(name: str, namespace: str | None = None) -> str:
    """Return a name that every provider accepts: at most 64 letters, digits, `_` and `-` for a namespace."""
    if namespace is None:
        return name
    joined = f"{namespace}{_SEPARATOR}{name}"
    return joined if _VALID_NAME.fullmatch(joined) else _shortened(joined, joined)


def custom_arguments(given: str) -> str:
    """Return the arguments of the function that stands for a custom tool."""
    return orjson.dumps({CUSTOM_INPUT: given}).decode()


def custom_input(arguments: str) -> str:
    """Return the input of a custom tool; arguments in another form are the input themselves."""
    parsed = parse_object(arguments)
    if parsed is None:
        return arguments
    found = parsed.get(CUSTOM_INPUT)
    if isinstance(found, str):
        return found
    return "" if not parsed else arguments


def convert_tools(
    value: Mapping[str, Any], names: ToolNames, left_out: LeftOutParts, earlier: Sequence[Any] = ()
) -> list[Body]:
    """Return the functions of a request; tools that only a provider can run are left out.

    `earlier` are the items of the conversation that the request continues, whose latest tools go before
    older ones. As at OpenAI the field `tools` of an earlier request is no part of the conversation.
    """
    converted: dict[str, Body] = {}
    for tools, where in _tool_lists(value, earlier):
        made: list[Body] = []
        for index, tool in enumerate(tools):
            _check_number(index)
            made += _convert(tool, f"{where}[{index}]", None, names, left_out)
            _check_number(len(made) - 1)
        for tool in made:
            # A conversation offers its tools again after a change of the model.
            converted.setdefault(tool["function"]["name"], tool)
        _check_number(len(converted) - 1)
    return list(converted.values())


def _tool_lists(value: Mapping[str, Any], earlier: Sequence[Any]) -> Iterator[tuple[list[Any], str]]:
    """Yield the tools of the request, of items of its input, and of earlier items, with their places."""
    yield optional_list(value, "tools"), "tools"
    items = value.get("input")
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if offers_tools(item):
            where = f"input[{index}]"
            yield optional_list(item, "tools", where), f"{where}.tools"
    number = 0
    for item in reversed(earlier):
        if offers_tools(item):
            found = optional_list(item, "tools", PREVIOUS)
            number += len(found)
            if number > MAX_EARLIER_TOOLS:
                raise invalid(
                    f"cannot continue the response: it offers over {MAX_EARLIER_TOOLS} tools", param=PREVIOUS
                )
            yield found, f"{PREVIOUS}.tools"


def offers_tools(item: object) -> bool:
    """Return True for an input item that offers tools."""
    return isinstance(item, dict) and item.get("type") == ADDITIONAL_TOOLS


def convert_choice(
    value: Mapping[str, Any], tools: list[Body], names: ToolNames, left_out: LeftOutParts
) -> tuple[list[Body], str | Body | None]:
    """Return the tools that the choice allows, and the choice for a chat request."""
    choice = value.get("tool_choice")
    if choice is None or choice in _CHOICES:
        return tools, choice if tools else None
    if not isinstance(choice, dict):
        raise wrong("tool_choice", "auto, none, required or an object")
    kind = read_text(choice, "type", "tool_choice")
    if kind == "allowed_tools":
        return _allowed(choice, tools, names)
    if kind not in ("function", "custom"):
        left_out.add(f"tool_choice of type {kind!r:.80}")
        return tools, None
    return tools, {"type": "function", "function": {"name": _chosen(choice, "tool_choice", names)}}


def _check_number(last: int) -> None:
    if last >= MAX_TOOLS:
        raise invalid(f"cannot accept tools: they are more than {MAX_TOOLS}", param="tools")


def _allowed(choice: Body, tools: list[Body], names: ToolNames) -> tuple[list[Body], str]:
    mode = choice.get("mode", "auto")
    if mode not in ("auto", "required"):
        raise wrong("tool_choice.mode", "auto or required")
    allowed = set()
    for index, tool in enumerate(optional_list(choice, "tools", "tool_choice")):
        where = f"tool_choice.tools[{index}]"
        if not isinstance(tool, dict):
            raise wrong(where, "an object")
        if tool.get("type") in ("function", "custom"):
            allowed.add(_chosen(tool, where, names))
    return [tool for tool in tools if tool["function"]["name"] in allowed], mode


def _chosen(choice: Mapping[str, Any], where: str, names: ToolNames) -> str:
    name, namespace = read_text(choice, "name", where), optional_text(choice, "namespace", where)
    if not names.has(name, namespace):
        raise invalid(f"cannot accept {where}.name: {name!r:.80} is none of the tools", param=f"{where}.name")
    return names.function(name, namespace)


def _convert(
    tool: Any, where: str, namespace: str | None, names: ToolNames, left_out: LeftOutParts
) -> list[Body]:
    if not isinstance(tool, dict):
        raise wrong(where, "an object")
    kind = tool.get("type", "function")
    match kind:
        case "function":
            return [_function(tool, where, namespace, names)]
        case "custom":
            return [_custom(tool, where, namespace, names)]
        case "namespace" if namespace is None:
            named = read_text(tool, "name", where, is_empty_allowed=False)
            made: list[Body] = []
            for index, inner in enumerate(optional_list(tool, "tools", where)):
                _check_number(index)
                made += _convert(inner, f"{where}.tools[{index}]", named, names, left_out)
            return made
        case str():
            left_out.add(f"tools of type {kind!r:.80}")
            return []
        case _:
            raise wrong(f"{where}.type", "text")


def _function(tool: Body, where: str, namespace: str | None, names: ToolNames) -> Body:
    name = read_text(tool, "name", where, is_empty_allowed=False)
    parameters = optional_object(tool, "parameters", where) or {"type": "object", "properties": {}}
    function: Body = {"name": names.add(ToolIdentity(name, namespace)), "parameters": parameters}
    description = optional_text(tool, "description", where)
    if description:
        function["description"] = description
    if optional_flag(tool, "strict", where):
        function["strict"] = True
    return {"type": "function", "function": function}


def _custom(tool: Body, where: str, namespace: str | None, names: ToolNames) -> Body:
    name = read_text(tool, "name", where, is_empty_allowed=False)
    description = optional_text(tool, "description", where) or ""
    form = optional_object(tool, "format", where)
    if form.get("type") == "grammar":
        syntax = f" ({form['syntax']})" if isinstance(form.get("syntax"), str) else ""
        definition = read_text(form, "definition", f"{where}.format")
        lines = [description, f"The input follows this grammar{syntax}:", definition]
        description = "\n\n".join(line for line in lines if line)
    given = {"type": "string", "description": "The whole input of the tool, as plain text."}
    function: Body = {
        "name": names.add(ToolIdentity(name, namespace, is_custom=True)),
        "parameters": {
            "type": "object",
            "properties": {CUSTOM_INPUT: given},
            "required": [CUSTOM_INPUT],
            "additionalProperties": False,
        },
    }
    if description:
        function["description"] = description
    return {"type": "function", "function": function}


def _shortened(name: str, told_apart_by: str) -> str:
    digest = ids.digest(told_apart_by)[:_DIGEST_CHARACTERS]
    return f"{_INVALID_CHARACTERS.sub('_', name)[:_KEPT_CHARACTERS]}_{digest}"
