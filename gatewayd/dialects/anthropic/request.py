"""Converts the fields of a messages request, apart from its messages, to OpenAI fields; pure."""

from collections.abc import Mapping
from types import UnionType
from typing import Any, Final

from gatewayd import ids
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.content import OmittedFields
from gatewayd.errors import invalid

UNCHANGED_FIELDS: Final[Mapping[str, type | UnionType]] = {
    "temperature": int | float,
    "top_p": int | float,
    "top_k": int,
    "service_tier": str,
    "thinking": dict,
    "metadata": dict,
    "reasoning_effort": str,
}
"""Fields kept unchanged, with their types; `dialect.FOREIGN_FIELDS` lists those that OpenAI lacks."""

OTHER_FIELDS: Final = frozenset(
    {"model", "max_tokens", "messages", "system", "stream", "stop_sequences", "tools", "tool_choice"}
    | {"output_config", "output_format", "cache_control", "betas", "anthropic_beta", "anthropic_version"}
)
"""Fields that other functions parse, or that only save the provider work."""

MEDIUM_BUDGET: Final = 4_096
HIGH_BUDGET: Final = 16_384
"""Values of `thinking.budget_tokens` at which the effort becomes medium and high."""

MAX_USER_CHARACTERS: Final = 64
"""Maximum length of OpenAI's `user`; a longer one becomes its SHA-256, which is as long."""

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")
_TOOL_FIELDS: Final = frozenset({"type", "name", "description", "input_schema", "cache_control"})


def add_fields(body: Body, value: Mapping[str, Any], omitted: OmittedFields) -> None:
    """Add the fields of `value` except its messages to `body`; raise invalid_request for a bad field."""
    body["max_tokens"] = _max_tokens(value)
    for name, expected in UNCHANGED_FIELDS.items():
        field = value.get(name)
        if isinstance(field, bool) or not isinstance(field, expected | None):
            raise invalid(f"cannot accept {name}: {field!r:.40} has the wrong type", param=name)
        if field is not None:
            body[name] = field
    stop = _texts(value, "stop_sequences")
    if stop:
        body["stop"] = stop
    user = _object(value, "metadata").get("user_id")
    if isinstance(user, str) and user:
        body["user"] = user if len(user) <= MAX_USER_CHARACTERS else ids.digest(user)
    _add_effort(body, value)
    _add_format(body, value)
    _add_tools(body, value, omitted)
    for name in value:
        if name not in OTHER_FIELDS and name not in UNCHANGED_FIELDS:
            omitted.add(name)


def _max_tokens(value: Mapping[str, Any]) -> int:
    limit = value.get("max_tokens")
    if type(limit) is not int or limit < 1:
        raise invalid("cannot accept max_tokens: expected a whole number of 1 or more", param="max_tokens")
    return limit


def _add_effort(body: Body, value: Mapping[str, Any]) -> None:
    """Set the effort by `output_config.effort`, else by the thinking budget; `thinking` itself stays."""
    thinking = _object(value, "thinking")
    effort = _object(value, "output_config").get("effort")
    if effort is not None:
        if not isinstance(effort, str) or effort not in _EFFORTS:
            name = "output_config.effort"
            raise invalid(f"cannot accept {name}: expected one of {', '.join(_EFFORTS)}", param=name)
        body["output_config"] = {"effort": effort}
        body["reasoning_effort"] = effort
        return
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled" or "reasoning_effort" in body:
        return
    if type(budget) is not int or budget < 1:
        name = "thinking.budget_tokens"
        raise invalid(f"cannot accept {name}: expected a whole number of 1 or more", param=name)
    if budget < MEDIUM_BUDGET:
        body["reasoning_effort"] = "low"
    else:
        body["reasoning_effort"] = "medium" if budget < HIGH_BUDGET else "high"


def _add_format(body: Body, value: Mapping[str, Any]) -> None:
    for name, form in (
        ("output_config.format", _object(value, "output_config").get("format")),
        ("output_format", value.get("output_format")),
    ):
        match form:
            case None:
                continue
            case {"type": "json_schema", "schema": dict(schema)}:
                wrapped = {"name": "answer", "schema": schema}
                body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
                return
            case {"type": "json_object"}:
                body["response_format"] = {"type": "json_object"}
                return
            case _:
                raise invalid(f"cannot accept {name}: expected a json_schema with a schema", param=name)


def _add_tools(body: Body, value: Mapping[str, Any], omitted: OmittedFields) -> None:
    tools = value.get("tools")
    if tools is not None and not isinstance(tools, list):
        raise invalid("cannot accept tools: expected a list", param="tools")
    converted = [_tool(tool, f"tools[{index}]", omitted) for index, tool in enumerate(tools or ())]
    kept = [tool for tool in converted if tool is not None]
    choice = _tool_choice(value)
    if not kept:
        return
    body["tools"] = kept
    names = {tool["function"]["name"] for tool in kept}
    if isinstance(choice, dict) and choice["function"]["name"] not in names and len(kept) < len(converted):
        omitted.add("tool_choice")
    elif choice is not None:
        body["tool_choice"] = choice
    if _object(value, "tool_choice").get("disable_parallel_tool_use") is True:
        body["parallel_tool_calls"] = False


def _tool(tool: Any, where: str, omitted: OmittedFields) -> Body | None:
    """Return the function, or None for a tool that the provider runs or defines."""
    if not isinstance(tool, dict):
        raise invalid(f"cannot accept {where}: expected an object", param=where)
    kind = tool.get("type")
    if kind not in (None, "custom"):
        omitted.add(f"{where} of type {kind!r:.80}")
        return None
    name, description = tool.get("name"), tool.get("description")
    if not isinstance(name, str) or not name:
        raise invalid(f"cannot accept {where}.name: expected text", param=f"{where}.name")
    if description is not None and not isinstance(description, str):
        raise invalid(f"cannot accept {where}.description: expected text", param=f"{where}.description")
    schema = tool.get("input_schema")
    if schema is not None and not isinstance(schema, dict):
        raise invalid(
            f"cannot accept {where}.input_schema: expected an object", param=f"{where}.input_schema"
        )
    function: Body = {"name": name, "parameters": schema or {"type": "object", "properties": {}}}
    if description:
        function["description"] = description
    for other in tool:
        if other not in _TOOL_FIELDS:
            omitted.add(f"{other} of tools")
    converted: Body = {"type": "function", "function": function}
    if tool.get("cache_control") is not None:
        converted["cache_control"] = tool["cache_control"]
    return converted


def _tool_choice(value: Mapping[str, Any]) -> str | Body | None:
    choice = _object(value, "tool_choice")
    match choice.get("type"):
        case None if not choice:
            return None
        case "auto" | "none" as kind:
            return str(kind)
        case "any":
            return "required"
        case "tool" if isinstance(choice.get("name"), str):
            return {"type": "function", "function": {"name": choice["name"]}}
        case "tool":
            raise invalid("cannot accept tool_choice.name: expected text", param="tool_choice.name")
        case _:
            raise invalid(
                "cannot accept tool_choice.type: expected auto, any, tool or none", param="tool_choice.type"
            )


def _object(value: Mapping[str, Any], name: str) -> Body:
    found = value.get(name)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise invalid(f"cannot accept {name}: expected an object", param=name)
    return found


def _texts(value: Mapping[str, Any], name: str) -> list[str]:
    found = value.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise invalid(f"cannot accept {name}: expected a list of texts", param=name)
    return found
