"""What the list of models of a provider tells about a model, which goes before the tables; pure.

Read are the capabilities and limits of Anthropic's list, `supported_parameters` and `top_provider` of
OpenRouter's, `max_completion_tokens` of Groq's, and `capabilities.vision` of Mistral's.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping
from gatewayd.dialects.providers.rules import EFFORTS, ImageForm, Rules, ThinkingForm

MAX_OUTPUT_TOKENS: Final = 100_000_000
"""Maximum of a limit that is believed."""

CLAIMED_FIELDS: Final = frozenset(
    {"temperature", "top_p", "top_k", "min_p", "top_a", "presence_penalty", "frequency_penalty"}
    | {"repetition_penalty", "seed", "stop", "logit_bias", "logprobs", "top_logprobs"}
    | {"parallel_tool_calls", "verbosity"}
)
"""Fields that a list with `supported_parameters` names where a model takes them."""

_WORDS: Final = {"reasoning", "reasoning_effort", "include_reasoning"}


def add_live_rules(rules: Rules, listed: object) -> Rules:
    """Return rules with what the object of a list of models tells."""
    item = as_mapping(listed)
    if not item:
        return rules
    capabilities = as_mapping(item.get("capabilities"))
    if capabilities:
        rules = _add_capabilities(rules, capabilities)
    parameters = item.get("supported_parameters")
    if isinstance(parameters, list) and parameters:
        rules = _add_parameters(rules, {word for word in parameters if isinstance(word, str)})
    limit = _limit(item, is_messages="capabilities" in item and "max_input_tokens" in item)
    return replace(rules, max_output=limit) if limit else rules


def _add_capabilities(rules: Rules, capabilities: Mapping[str, Any]) -> Rules:
    effort = capabilities.get("effort")
    if isinstance(effort, dict):
        rules = replace(rules, efforts=tuple(word for word in EFFORTS if _is_supported(effort, word)))
    types = as_mapping(capabilities.get("thinking")).get("types")
    if isinstance(types, dict):
        found = tuple(name for name in ("adaptive", "enabled") if _is_supported(types, name))
        rules = replace(rules, thinking_types=(*found, "disabled"))
    if capabilities.get("vision") is False:
        rules = replace(rules, images=ImageForm.NONE)
    return rules


def _add_parameters(rules: Rules, taken: set[str]) -> Rules:
    dropped = (rules.dropped | CLAIMED_FIELDS) - taken
    if _WORDS.isdisjoint(taken) and rules.thinking in {ThinkingForm.OBJECT, ThinkingForm.EFFORT}:
        rules = replace(rules, efforts=(), default_effort="none")
    return replace(rules, dropped=dropped)


def _limit(item: Mapping[str, Any], *, is_messages: bool) -> int:
    candidates = [
        as_mapping(item.get("top_provider")).get("max_completion_tokens"),
        item.get("max_completion_tokens"),
        item.get("max_tokens") if is_messages else None,
    ]
    found = (value for value in candidates if type(value) is int and 0 < value <= MAX_OUTPUT_TOKENS)
    return next(found, 0)


def _is_supported(known: Mapping[str, Any], name: str) -> bool:
    return as_mapping(known.get(name)).get("supported") is True
