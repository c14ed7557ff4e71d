"""How models at Bedrock are asked to think: fields that each maker defines for itself; pure."""

import re
from collections.abc import Mapping
from typing import Any, Final

from gatewayd.completions.records import Body

BUDGETS: Final = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
"""Thinking budgets in tokens, for models of Anthropic that take a number."""

DEFAULT_MAX_TOKENS: Final = 4096
"""Tokens of an answer beside its thinking, if the caller sets no limit."""

_BUDGET_CLAUDE: Final = re.compile(r"claude-(?:3-7|(?:opus|sonnet|haiku)-4(?:-[0-5])?(?:$|-v))")
_PLAIN_CLAUDE: Final = re.compile(r"claude-(?:[12]|3(?!-7)|instant)")


def thinking_fields(body: Mapping[str, Any], family: str, inference: Body, warnings: list[str]) -> Body:
    """Return the fields of the maker for the effort of a request; a budget raises the limit in `inference`.

    `thinking` of a caller of the messages protocol passes as it is. What a family has no field for is told in
    `warnings`.
    """
    given, effort = body.get("thinking"), body.get("reasoning_effort")
    is_claude = family.startswith("claude-")
    if isinstance(given, dict) and is_claude and not _PLAIN_CLAUDE.match(family):
        return {"thinking": given}
    if not isinstance(effort, str) or not effort:
        return {}
    if is_claude and not _PLAIN_CLAUDE.match(family):
        return _claude(effort, family, inference)
    if family.startswith("gpt-oss") and effort != "none":
        return {"reasoning_effort": effort if effort in ("low", "medium", "high") else _clamped(effort)}
    if family.startswith("nova-2"):
        kind = "disabled" if effort == "none" else "enabled"
        level = {} if effort == "none" else {"maxReasoningEffort": _clamped(effort)}
        return {"reasoningConfig": {"type": kind, **level}}
    if effort != "none":
        warnings.append("left out reasoning_effort: this model has no field for it")
    return {}


def _claude(effort: str, family: str, inference: Body) -> Body:
    if effort == "none":
        return {"thinking": {"type": "disabled"}}
    if not _BUDGET_CLAUDE.match(family):
        word = "low" if effort == "minimal" else effort
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": word}}
    # A temperature other than 1 is refused beside thinking.
    if inference.get("temperature") not in (None, 1):
        return {}
    budget = BUDGETS.get(effort, BUDGETS["medium"])
    limit = inference.get("maxTokens")
    if limit is None:
        inference["maxTokens"] = budget + DEFAULT_MAX_TOKENS
    elif type(limit) is not int or limit <= BUDGETS["minimal"]:
        return {}
    else:
        budget = min(budget, limit - 1)
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _clamped(effort: str) -> str:
    """Return the next of low, medium and high."""
    return {"minimal": "low", "xhigh": "high", "max": "high"}.get(effort, effort)
