"""Converts an OpenAI `reasoning_effort` for Anthropic models: to `thinking`, effort, or both; pure.

The `capabilities` in the provider's model list decide which of them a model takes. A model without
capabilities gets the effort only.
"""

from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.anthropic.completion import THOUGHTS
from gatewayd.errors import invalid

LEVELS: Final = ("low", "medium", "high", "xhigh", "max")

BUDGETS: Final = {"low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 32_768}
"""Thinking budgets in tokens, for models that require a number."""

MIN_BUDGET: Final = 1024
"""Minimum thinking budget that the protocol accepts, in tokens."""


def reasoning_fields(body: Mapping[str, Any], request: Mapping[str, Any], capabilities: object) -> Body:
    """Return the fields `thinking`, `effort` and `max_tokens` for a body's `reasoning_effort`.

    `request` is the rest of the messages request. A caller's own `thinking` is kept, and one with a budget is
    sufficient. Thinking is not requested where the protocol refuses it: beside a forced tool, a temperature,
    or in a tool round that started without it. `capabilities` come from the provider's model list. Raises
    invalid_request.
    """
    level = body.get("reasoning_effort")
    if level is None or as_mapping(request.get("thinking")).get("type") == "enabled":
        return {}
    if level == "none":
        return {} if "thinking" in request else {"thinking": {"type": "disabled"}}
    level = "low" if level == "minimal" else level
    if level not in LEVELS:
        known = "none, minimal, low, medium, high, xhigh, max"
        raise invalid(f"cannot read reasoning_effort: it is none of {known}", param="reasoning_effort")
    supported = as_mapping(capabilities)
    effort = _effort(level, supported)
    fields = {} if effort is None else {"effort": effort}
    if "thinking" in request or not _may_think(request):
        return fields
    return {**fields, **_thinking(level, body, request, supported)}


def is_refused_budget(request: Mapping[str, Any]) -> bool:
    """Return True if a request thinks with a budget, but its last calls were made without thinking.

    Providers refuse that until the user speaks again.
    """
    messages = as_sequence(request.get("messages"))
    if as_mapping(request.get("thinking")).get("type") != "enabled" or not messages:
        return False
    last = as_sequence(as_mapping(messages[-1]).get("content"))
    return any(as_mapping(block).get("type") == "tool_result" for block in last) and _continues_calls(request)


def _effort(level: str, supported: Mapping[str, Any]) -> str | None:
    """Return the highest level, up to the requested one, that the model supports."""
    if not supported:
        return level
    known = as_mapping(supported.get("effort"))
    lower_levels = LEVELS[: LEVELS.index(level) + 1]
    return next((name for name in reversed(lower_levels) if _is_supported(known, name)), None)


def _thinking(
    level: str, body: Mapping[str, Any], request: Mapping[str, Any], supported: Mapping[str, Any]
) -> Body:
    types = as_mapping(as_mapping(supported.get("thinking")).get("types"))
    if _is_supported(types, "adaptive"):
        return {"thinking": {"type": "adaptive"}}
    if not _is_supported(types, "enabled") or _continues_calls(request):
        return {}
    budget, limit = BUDGETS[level], request["max_tokens"]
    if body.get("max_tokens") is None and body.get("max_completion_tokens") is None:
        thinking = {"type": "enabled", "budget_tokens": budget}
        return {"thinking": thinking, "max_tokens": limit + budget}
    if type(limit) is not int or limit <= MIN_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": min(budget, limit - 1)}}


def _may_think(request: Mapping[str, Any]) -> bool:
    is_forced = as_text(as_mapping(request.get("tool_choice")).get("type")) in {"any", "tool"}
    return not is_forced and request.get("temperature") in (None, 1) and request.get("top_k") is None


def _continues_calls(request: Mapping[str, Any]) -> bool:
    """Return True if the last turn of the model called tools without the thinking before them."""
    turns = [turn for turn in request["messages"] if turn["role"] == "assistant"]
    kinds = [as_mapping(block).get("type") for block in as_sequence(turns[-1]["content"])] if turns else []
    return "tool_use" in kinds and kinds[0] not in THOUGHTS


def _is_supported(known: Mapping[str, Any], name: str) -> bool:
    return as_mapping(known.get(name)).get("supported") is True
