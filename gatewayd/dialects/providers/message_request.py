"""Changes a request of the Anthropic protocol, made from a chat request, to what a family takes; pure.

A request that a client wrote in that protocol is never changed: it goes on as it is.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_sequence, as_text
from gatewayd.completions.native_thoughts import THOUGHTS
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.quotes import quoted
from gatewayd.dialects.providers.reasoning_places import PLACEHOLDER
from gatewayd.dialects.providers.reasoning_wish import BUDGETS, fit_effort
from gatewayd.dialects.providers.rules import EFFORTS, Rules, Sampling

MAX_CACHE_BLOCKS: Final = 4
"""Maximum number of `cache_control` in system, tools and messages; the protocol refuses more."""

MIN_BUDGET: Final = 1024
"""Minimum thinking budget in tokens."""

MIN_THINKING_TOP_P: Final = 0.95
"""Minimum `top_p` beside thinking."""

SAMPLING: Final = ("temperature", "top_p", "top_k")

FORCED: Final = frozenset({"any", "tool"})


def capabilities_of(rules: Rules) -> Mapping[str, Any] | None:
    """Return words of effort and types of thinking of a family in the form of the provider's list.

    None if the rules tell nothing about them.
    """
    if rules.thinking_types is None:
        return None
    types = {name: {"supported": True} for name in rules.thinking_types}
    known: dict[str, Any] = {"thinking": {"supported": True, "types": types}}
    if rules.efforts is not None:
        known["effort"] = {word: {"supported": True} for word in rules.efforts}
    return known


def adapt_message_request(request: Body, rules: Rules, warnings: list[str]) -> None:
    """Change a request, which belongs to the caller, in place."""
    _adapt_choice(request, rules, warnings)
    _adapt_thinking(request, rules, warnings)
    _adapt_effort(request, rules, warnings)
    _adapt_sampling(request, rules, warnings)
    _limit(request, rules, warnings)


def with_demanded_thinking(request: Body) -> Body:
    """Return a request whose turns with calls have thinking, as its maker demands; itself if they do.

    What the model thought is unknown there: it stays with the maker that signed it. Thinking that is turned
    off is not demanded.
    """
    messages = request.get("messages")
    is_off = as_mapping(request.get("thinking")).get("type") == "disabled"
    if is_off or not isinstance(messages, list) or not any(map(_lacks_thinking, messages)):
        return request
    block = {"type": "thinking", "thinking": PLACEHOLDER}
    filled = [
        {**message, "content": [block, *message["content"]]} if _lacks_thinking(message) else message
        for message in messages
    ]
    return {**request, "messages": filled}


def _lacks_thinking(message: Any) -> bool:
    known = as_mapping(message)
    if known.get("role") != "assistant" or not isinstance(known.get("content"), list):
        return False
    kinds = {as_text(as_mapping(block).get("type")) for block in known["content"]}
    return "tool_use" in kinds and kinds.isdisjoint(THOUGHTS)


def _adapt_choice(request: Body, rules: Rules, warnings: list[str]) -> None:
    choice = as_mapping(request.get("tool_choice"))
    if rules.tool_choices is None or as_text(choice.get("type")) not in FORCED:
        return
    request["tool_choice"] = {**{k: v for k, v in choice.items() if k != "name"}, "type": "auto"}
    warnings.append(f"changed tool_choice to 'auto': {rules.title} cannot be made to call a tool")


def _adapt_thinking(request: Body, rules: Rules, warnings: list[str]) -> None:
    thinking = as_mapping(request.get("thinking"))
    kind, types = thinking.get("type"), rules.thinking_types
    if kind is None:
        return
    if kind == "enabled" and as_text(as_mapping(request.get("tool_choice")).get("type")) in FORCED:
        del request["thinking"]
        warnings.append("left out thinking: not beside a tool that the model must call")
        return
    if types is not None and kind not in types:
        _change_thinking(request, thinking, types, rules, warnings)
    if as_mapping(request.get("thinking")).get("type") == "enabled":
        _fit_budget(request, warnings)


def _change_thinking(
    request: Body, thinking: Mapping[str, Any], types: Sequence[str], rules: Rules, warnings: list[str]
) -> None:
    if thinking.get("type") == "enabled" and "adaptive" in types:
        # The display stays: it decides whether the caller sees the thinking.
        kept = {name: value for name, value in thinking.items() if name == "display"}
        request["thinking"] = {"type": "adaptive", **kept}
        warnings.append(f"changed thinking to 'adaptive': {rules.title} takes no budget")
    elif thinking.get("type") == "adaptive" and "enabled" in types:
        effort = as_mapping(request.get("output_config")).get("effort") or "medium"
        budget = BUDGETS.get(effort, BUDGETS["medium"])
        request["thinking"] = {"type": "enabled", "budget_tokens": budget}
        warnings.append(f"changed thinking to a budget of {budget} tokens: {rules.title} knows no 'adaptive'")
    else:
        del request["thinking"]
        warnings.append(f"left out thinking {quoted(thinking.get('type'))}: {rules.title} does not take it")


def _fit_budget(request: Body, warnings: list[str]) -> None:
    """Keep the budget at least at the minimum of the protocol, and below the limit of the answer."""
    thinking, limit = request["thinking"], request.get("max_tokens")
    budget = thinking.get("budget_tokens")
    if type(budget) is not int or type(limit) is not int:
        return
    fitting = max(MIN_BUDGET, min(budget, limit - 1))
    if fitting >= limit:
        del request["thinking"]
        warnings.append(f"left out thinking: max_tokens leaves no room for {MIN_BUDGET} tokens of it")
    elif fitting != budget:
        request["thinking"] = {**thinking, "budget_tokens": fitting}
        warnings.append(f"changed thinking.budget_tokens to {fitting}, below max_tokens")


def _adapt_effort(request: Body, rules: Rules, warnings: list[str]) -> None:
    config = as_mapping(request.get("output_config"))
    given = config.get("effort")
    if not isinstance(given, str):
        return
    word = fit_effort("low" if given == "minimal" else given, rules.efforts)
    is_resting = as_mapping(request.get("thinking")).get("type") == "disabled"
    if is_resting and rules.resting_effort and word in EFFORTS[EFFORTS.index(rules.resting_effort) :]:
        word = rules.resting_effort
    if word == given:
        return
    kept = {name: value for name, value in config.items() if name != "effort"}
    if word is not None:
        kept["effort"] = word
        warnings.append(f"changed effort from {quoted(given)} to {word!r}: {rules.title} takes no other")
    else:
        warnings.append(f"left out effort {quoted(given)}: {rules.title} does not take it")
    if kept:
        request["output_config"] = kept
    else:
        del request["output_config"]


def _adapt_sampling(request: Body, rules: Rules, warnings: list[str]) -> None:
    present = [name for name in SAMPLING if request.get(name) is not None]
    thinks = as_text(as_mapping(request.get("thinking")).get("type")) in {"enabled", "adaptive"}
    if rules.sampling is Sampling.REFUSED:
        refused = dict.fromkeys(present, f"{rules.title} does not take it")
    elif thinks:
        refused = {name: "not beside thinking" for name in present if not _goes_with_thinking(name, request)}
    elif "temperature" in present and "top_p" in present and rules.ranges:
        refused = {"top_p": f"{rules.title} does not take it beside temperature"}
    else:
        refused = {}
    for name, reason in refused.items():
        del request[name]
        warnings.append(f"left out {name}: {reason}")
    for name, (low, high) in rules.ranges.items():
        value = request.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and not low <= value <= high:
            request[name] = low if value < low else high
            warnings.append(f"changed {name} to {request[name]}: that is the limit of {rules.title}")


def _goes_with_thinking(name: str, request: Mapping[str, Any]) -> bool:
    """Return whether a field stays beside thinking; top_p does not stay beside a temperature that does."""
    value = request[name]
    if name == "temperature":
        return bool(value == 1)
    is_high = isinstance(value, int | float) and value >= MIN_THINKING_TOP_P
    return name == "top_p" and is_high and request.get("temperature") != 1


def _limit(request: Body, rules: Rules, warnings: list[str]) -> None:
    limit = request.get("max_tokens")
    if rules.max_output and type(limit) is int and limit > rules.max_output:
        request["max_tokens"] = rules.max_output
        warnings.append(
            f"changed max_tokens from {limit} to {rules.max_output}: that is the limit of {rules.title}"
        )
        if as_mapping(request.get("thinking")).get("type") == "enabled":
            _fit_budget(request, warnings)


def limit_cache(request: Body, warnings: list[str]) -> None:
    """Leave only the last blocks with `cache_control`, which hold the longest prefixes, in place.

    `request` is one of this protocol, or a chat request with such blocks; its lists belong to the caller.
    """
    places = list(_cached(request))
    if len(places) <= MAX_CACHE_BLOCKS:
        return
    for holder, index in places[:-MAX_CACHE_BLOCKS]:
        block = holder[index]
        holder[index] = {name: value for name, value in block.items() if name != "cache_control"}
    warnings.append(f"left out cache_control of all but the last {MAX_CACHE_BLOCKS} blocks")


def _cached(request: Body) -> Iterator[tuple[list[Any], int]]:
    """Yield the lists and places of the blocks with `cache_control`, in the order of the prompt."""
    for name in ("tools", "system"):
        if isinstance(request.get(name), list):
            request[name] = list(request[name])
            yield from _marked(request[name])
    for turn in as_sequence(request.get("messages")):
        if isinstance(turn, dict) and isinstance(turn.get("content"), list):
            yield from _marked(turn["content"])


def _marked(blocks: list[Any]) -> Iterator[tuple[list[Any], int]]:
    for index, block in enumerate(blocks):
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
            blocks[index] = block = {**block, "content": list(block["content"])}
            yield from _marked(block["content"])
        if block.get("cache_control") is not None:
            yield blocks, index
