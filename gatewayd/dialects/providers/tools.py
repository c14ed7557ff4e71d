"""Changes the tools of a chat request, and the choice among them, to what a family takes; pure."""

from collections.abc import Mapping
from typing import Any

from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.quotes import quoted
from gatewayd.dialects.providers.reasoning_wish import effective_effort
from gatewayd.dialects.providers.rules import TOOL_FIELDS, Rules
from gatewayd.dialects.providers.schemas import is_strict_schema


def adapt_tools(body: Body, rules: Rules, warnings: list[str], *, is_responses: bool) -> None:
    """Change the tools of a request, a copy, of which the members are copied before they change."""
    if not body.get("tools"):
        if rules.needs_tools:
            _drop_tool_fields(body, rules, warnings)
        return
    if rules.tool_choices is not None and body.get("tool_choice") is not None:
        _adapt_choice(body, rules, rules.tool_choices, warnings)
    if body.get("tools") and (rules.dropped_tool_fields or rules.strict_schemas):
        _adapt_functions(body, rules, warnings)
    if body.get("tools") and not rules.has_tools_with_effort and not is_responses:
        _rest_for_tools(body, rules, warnings)


def _drop_tool_fields(body: Body, rules: Rules, warnings: list[str]) -> None:
    body.pop("tools", None)
    for name in sorted(TOOL_FIELDS & body.keys()):
        del body[name]
        warnings.append(f"left out {name}: {rules.title} takes it only beside tools")


def _adapt_choice(body: Body, rules: Rules, taken: frozenset[str], warnings: list[str]) -> None:
    choice = body["tool_choice"]
    form = choice if isinstance(choice, str) else "named"
    if form == "required" and form in taken:
        body["tool_choice"] = rules.required_word
        return
    if form in taken or form not in {"auto", "none", "required", "named"}:
        return
    del body["tool_choice"]
    if form == "none":
        del body["tools"]
        body.pop("parallel_tool_calls", None)
        warnings.append(f"left out tools: {rules.title} does not take tool_choice 'none'")
    elif form == "required":
        warnings.append(f"left out tool_choice 'required': {rules.title} does not take it")
    elif form == "named":
        _choose_by_list(body, choice, rules, taken, warnings)


def _choose_by_list(
    body: Body, choice: object, rules: Rules, taken: frozenset[str], warnings: list[str]
) -> None:
    """Offer only the tool that the model must call."""
    name = as_mapping(as_mapping(choice).get("function")).get("name")
    chosen = [
        tool
        for tool in as_sequence(body["tools"])
        if name is not None and as_mapping(as_mapping(tool).get("function")).get("name") == name
    ]
    if not chosen:
        warnings.append(f"left out tool_choice: {rules.title} does not take the choice of one tool")
        return
    body["tools"] = chosen
    if "required" in taken:
        body["tool_choice"] = rules.required_word
    else:
        warnings.append(f"left out tool_choice: {rules.title} is offered the chosen tool only")


def _adapt_functions(body: Body, rules: Rules, warnings: list[str]) -> None:
    tools = [_adapt_function(tool, rules, warnings) for tool in as_sequence(body["tools"])]
    if any(new is not old for new, old in zip(tools, body["tools"], strict=True)):
        body["tools"] = tools


def _adapt_function(tool: Any, rules: Rules, warnings: list[str]) -> Any:
    function = as_mapping(as_mapping(tool).get("function"))
    refused = [name for name in rules.dropped_tool_fields if name in function]
    if rules.strict_schemas and function.get("strict") is True and not refused:
        refused = [] if is_strict_schema(function.get("parameters")) else ["strict"]
        if refused:
            _once(warnings, f"left out strict of tools: a schema has more than {rules.title} takes in one")
    elif refused:
        _once(warnings, f"left out {', '.join(refused)} of tools: {rules.title} does not take it")
    if not refused:
        return tool
    return {**tool, "function": _without(function, refused)}


def _rest_for_tools(body: Body, rules: Rules, warnings: list[str]) -> None:
    """Turn reasoning off for a family that takes tools only without it."""
    effort = effective_effort(body, rules)
    if effort == "none" or "none" not in (rules.efforts or ()):
        return
    body["reasoning_effort"] = "none"
    warnings.append(
        f"changed reasoning_effort from {quoted(effort)} to 'none': {rules.title} takes tools only so"
    )


def _without(value: Mapping[str, Any], names: list[str]) -> Body:
    return {name: member for name, member in value.items() if name not in names}


def _once(warnings: list[str], sentence: str) -> None:
    if sentence not in warnings:
        warnings.append(sentence)
