"""Reads how much reasoning a request asks for, in any protocol, and writes it for a family; pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gatewayd.completions.json_access import as_mapping, as_text
from gatewayd.completions.records import Body
from gatewayd.dialects.providers.quotes import quoted
from gatewayd.dialects.providers.rules import EFFORTS, REASONING_FIELDS, Rules, ThinkingForm

MEDIUM_BUDGET: Final = 4_096
HIGH_BUDGET: Final = 16_384
"""Thinking budgets, in tokens, at which the effort becomes medium and high."""

BUDGETS: Final = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 24_576,
    "max": 32_768,
}
"""Thinking budgets in tokens for the words, where a family takes a number."""

OWN_FIELDS: Final = {
    ThinkingForm.EFFORT: frozenset({"reasoning_effort"}),
    ThinkingForm.TYPE: frozenset({"reasoning_effort", "thinking"}),
    ThinkingForm.SWITCH: frozenset({"enable_thinking", "thinking_budget"}),
    ThinkingForm.OBJECT: frozenset({"reasoning"}),
    ThinkingForm.TEMPLATE: frozenset({"reasoning_effort"}),
}
"""The fields of each form that a caller may have written themselves."""


@dataclass(frozen=True, slots=True)
class ReasoningWish:
    """How much reasoning a request asks for.

    `effort` is a word, or None if it leaves that to the model; `budget` a number of tokens, or None; `field`
    the field that says so.
    """

    effort: str | None
    budget: int | None
    field: str


def read_wish(body: Mapping[str, Any]) -> ReasoningWish | None:
    """Return what a request asks for, or None if it asks for nothing, or for nothing known.

    `thinking` that is disabled goes before a word of effort, all other fields after it.
    """
    thinking = as_mapping(body.get("thinking"))
    kind, budget = as_text(thinking.get("type")), _tokens(thinking.get("budget_tokens"))
    if kind == "disabled":
        return ReasoningWish("none", None, "thinking")
    own = as_mapping(body.get("reasoning"))
    for field, word in (
        ("reasoning_effort", body.get("reasoning_effort")),
        ("reasoning", own.get("effort")),
        ("output_config", as_mapping(body.get("output_config")).get("effort")),
    ):
        if isinstance(word, str) and word:
            return ReasoningWish(word, budget, field)
    if own.get("enabled") is False or body.get("enable_thinking") is False:
        return ReasoningWish("none", None, "reasoning" if own else "enable_thinking")
    budget = budget or _tokens(own.get("max_tokens")) or _tokens(body.get("thinking_budget"))
    if budget is not None:
        return ReasoningWish(word_of_budget(budget), budget, "thinking" if kind else "reasoning")
    if kind in {"adaptive", "enabled", "auto"} or body.get("enable_thinking") is True or own.get("enabled"):
        return ReasoningWish(None, None, "thinking")
    return None


def write_wish(body: Body, wish: ReasoningWish | None, rules: Rules, warnings: list[str]) -> None:
    """Replace the reasoning fields of a request, a copy, by those of a family."""
    for name in (REASONING_FIELDS - OWN_FIELDS[rules.thinking]) & body.keys():
        del body[name]
        if wish is None:
            warnings.append(f"left out {name}: {rules.title} does not take it")
    word = None if wish is None else fit_effort(wish.effort, rules.efforts)
    if wish is None or (wish.effort is None and rules.default_effort not in {"", "none"}):
        _drop_unknown(body, wish, rules, warnings)
        return
    if wish.effort is not None and word != wish.effort:
        _warn(wish, word, rules, warnings)
    WRITERS[rules.thinking](body, wish, word, rules)


def fit_effort(word: str | None, efforts: tuple[str, ...] | None) -> str | None:
    """Return the word of a family next to a word: itself, else the next lower one, else the next higher one.

    A word that nobody knows stays. None stands for no word, and for a family without words.
    """
    if word is None or efforts is None or word in efforts:
        return word
    if not efforts:
        return None
    if word not in EFFORTS:
        return None
    place = EFFORTS.index(word)
    words = [known for known in efforts if known != "none"]
    lower = [known for known in words if known in EFFORTS[:place]]
    return lower[-1] if lower else next(iter(words), None)


def word_of_budget(budget: int) -> str:
    """Return the word of effort for a thinking budget in tokens."""
    if budget < MEDIUM_BUDGET:
        return "low"
    return "medium" if budget < HIGH_BUDGET else "high"


def effective_effort(body: Mapping[str, Any], rules: Rules) -> str:
    """Return the word of effort that a family works with for an adapted request."""
    return body.get("reasoning_effort") or rules.default_effort


def _drop_unknown(body: Body, wish: ReasoningWish | None, rules: Rules, warnings: list[str]) -> None:
    """Leave out words that nobody knows; a family that thinks anyway needs no word."""
    effort = body.get("reasoning_effort")
    if wish is None and effort is not None and rules.efforts == ():
        del body["reasoning_effort"]
        warnings.append(f"left out reasoning_effort: {rules.title} does not take it")


def _warn(wish: ReasoningWish, word: str | None, rules: Rules, warnings: list[str]) -> None:
    if wish.effort == "none" and (rules.default_effort == "none" or _can_rest(rules)):
        return
    if wish.effort == "none" and rules.efforts == () and rules.thinking is ThinkingForm.EFFORT:
        warnings.append(f"left out {wish.field}: the effort of {rules.title} cannot be set")
    elif word is None:
        warnings.append(f"left out {wish.field} {quoted(wish.effort)}: {rules.title} does not take it")
    else:
        warnings.append(
            f"changed {wish.field} from {quoted(wish.effort)} to {word!r}: {rules.title} takes only"
            f" {', '.join(rules.efforts or ())}"
        )


def _can_rest(rules: Rules) -> bool:
    """Return True if a family is told to rest by another field than the word."""
    forms = {ThinkingForm.TYPE, ThinkingForm.SWITCH, ThinkingForm.TEMPLATE}
    return rules.thinking in forms and not rules.always_thinks


def _default_word(wish: ReasoningWish, rules: Rules) -> str | None:
    """Return the word for reasoning of a family that does not reason by itself."""
    if wish.effort is not None or rules.default_effort != "none":
        return None
    return fit_effort("medium", rules.efforts)


def _write_effort(body: Body, wish: ReasoningWish, word: str | None, rules: Rules) -> None:
    _put(body, "reasoning_effort", word or _default_word(wish, rules))


def _write_type(body: Body, wish: ReasoningWish, word: str | None, rules: Rules) -> None:
    kind = "disabled" if wish.effort == "none" and not rules.always_thinks else "enabled"
    own = as_mapping(body.get("thinking"))
    if own.get("type") != kind or "budget_tokens" in own or "display" in own:
        body["thinking"] = {"type": kind}
    _put(body, "reasoning_effort", None if kind == "disabled" else word)


def _write_switch(body: Body, wish: ReasoningWish, _word: str | None, _rules: Rules) -> None:
    body["enable_thinking"] = wish.effort != "none"
    _put(body, "thinking_budget", wish.budget if body["enable_thinking"] else None)


def _write_object(body: Body, wish: ReasoningWish, word: str | None, rules: Rules) -> None:
    if wish.field == "reasoning" and word == wish.effort:
        return
    if wish.budget is not None and wish.field != "reasoning_effort":
        body["reasoning"] = {"max_tokens": wish.budget}
    elif word is not None:
        body["reasoning"] = {"effort": word}
    elif rules.efforts != ():
        body["reasoning"] = {"enabled": wish.effort != "none"}
    else:
        body.pop("reasoning", None)


def _write_template(body: Body, wish: ReasoningWish, word: str | None, _rules: Rules) -> None:
    if wish.effort == "none":
        body.pop("reasoning_effort", None)
        kwargs = as_mapping(body.get("chat_template_kwargs"))
        body["chat_template_kwargs"] = {"enable_thinking": False, **kwargs}
    else:
        _put(body, "reasoning_effort", word)


def _put(body: Body, name: str, value: object) -> None:
    if value is None:
        body.pop(name, None)
    else:
        body[name] = value


def _tokens(value: object) -> int | None:
    return value if type(value) is int and value > 0 else None


WRITERS: Final[Mapping[ThinkingForm, Callable[[Body, ReasoningWish, str | None, Rules], None]]] = {
    ThinkingForm.EFFORT: _write_effort,
    ThinkingForm.TYPE: _write_type,
    ThinkingForm.SWITCH: _write_switch,
    ThinkingForm.OBJECT: _write_object,
    ThinkingForm.TEMPLATE: _write_template,
}
"""How each form is written; a source with its own form converts the fields itself."""
