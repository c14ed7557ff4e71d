"""Changes a chat request to what a family of models takes; pure.

A field that only has another name, and a role, keep their meaning; all other changes are told to the caller.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gatewayd.completions.records import Body
from gatewayd.dialects.providers.formats import adapt_format
from gatewayd.dialects.providers.parts import adapt_messages
from gatewayd.dialects.providers.quotes import quoted
from gatewayd.dialects.providers.reasoning_wish import effective_effort, read_wish, write_wish
from gatewayd.dialects.providers.rules import (
    CONVERTED_RULES,
    LIMIT_FIELDS,
    NO_RULES,
    REASONING_FIELDS,
    RESTING_FIELDS,
    SAMPLING_FIELDS,
    Rules,
    Sampling,
    ThinkingForm,
)
from gatewayd.dialects.providers.tools import adapt_tools


def adapt(
    body: Body, rules: Rules, *, is_converted: bool = False, is_responses: bool = False
) -> tuple[Body, Sequence[str]]:
    """Return the request for a family, and a sentence for each part that was left out or changed.

    `body` is a chat completion request, and is returned itself if nothing has to be changed; it is never
    modified. With `is_converted` a client of another protocol sent it; with `is_responses` it goes to the
    family in the Responses protocol, which takes tools beside any effort.
    """
    if rules is NO_RULES:
        if not is_converted or REASONING_FIELDS.isdisjoint(body):
            return body, ()
        rules = CONVERTED_RULES
    warnings: list[str] = []
    adapted = adapt_messages(body, rules, warnings) if rules.changes_messages else body
    if rules.may_change_fields(body):
        adapted = _adapt_fields(adapted, rules, warnings, is_responses=is_responses)
    return adapted, warnings


def _adapt_fields(body: Body, rules: Rules, warnings: list[str], *, is_responses: bool) -> Body:
    adapted = dict(body)
    _rename(adapted, rules)
    if rules.thinking is not ThinkingForm.NATIVE and not REASONING_FIELDS.isdisjoint(adapted):
        write_wish(adapted, read_wish(adapted), rules, warnings)
    if rules.thinks_in_streams and adapted.get("stream") is not True:
        _rest(adapted, rules, warnings)
    if "tools" in rules.touched:
        adapt_tools(adapted, rules, warnings, is_responses=is_responses)
    if "response_format" in adapted:
        adapt_format(adapted, rules, warnings)
    _drop(adapted, rules, warnings)
    _limit(adapted, rules, warnings)
    return adapted if adapted != body else body


def _rename(body: Body, rules: Rules) -> None:
    for name in rules.renames.keys() & body.keys():
        value = body.pop(name)
        # The caller's field of that name is the newer one of the two.
        if value is not None and body.get(rules.renames[name]) is None:
            body[rules.renames[name]] = value


def _rest(body: Body, rules: Rules, warnings: list[str]) -> None:
    """Turn thinking off in a request for a whole answer."""
    if body.get("enable_thinking") is True:
        warnings.append(f"changed enable_thinking to False: {rules.title} thinks in streams only")
    body.pop("thinking_budget", None)
    body["enable_thinking"] = False


def _drop(body: Body, rules: Rules, warnings: list[str]) -> None:
    refused = rules.dropped & body.keys()
    if rules.known:
        refused |= body.keys() - rules.known
    refused |= _refused_sampling(body, rules)
    for name, values in rules.values.items():
        if name in body and not any(body[name] == value for value in values):
            refused |= {name}
    for name in sorted(refused):
        value = body.pop(name)
        if value is not None:
            warnings.append(_left_out(name, value, rules))


def _refused_sampling(body: Mapping[str, Any], rules: Rules) -> frozenset[str] | set[str]:
    if rules.sampling is Sampling.TAKEN:
        return frozenset()
    rests = rules.sampling is Sampling.WITHOUT_EFFORT and effective_effort(body, rules) == "none"
    return (SAMPLING_FIELDS - RESTING_FIELDS if rests else SAMPLING_FIELDS) & body.keys()


def _left_out(name: str, value: object, rules: Rules) -> str:
    if name in rules.values:
        shown = ", ".join(map(repr, rules.values[name]))
        return f"left out {name} {quoted(value)}: {rules.title} takes only {shown}"
    if name in SAMPLING_FIELDS and rules.sampling is Sampling.WITHOUT_EFFORT and name in RESTING_FIELDS:
        return f"left out {name}: {rules.title} takes it only while reasoning_effort is 'none'"
    return f"left out {name}: {rules.title} does not take it"


def _limit(body: Body, rules: Rules, warnings: list[str]) -> None:
    limits = dict.fromkeys(LIMIT_FIELDS, (0, rules.max_output)) if rules.max_output else {}
    for name, (low, high) in {**limits, **rules.ranges}.items():
        value = body.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or low <= value <= high:
            continue
        body[name] = low if value < low else high
        warnings.append(
            f"changed {name} from {quoted(value)} to {body[name]}: that is the limit of {rules.title}"
        )
    stop = body.get("stop")
    if rules.max_stop and isinstance(stop, list) and len(stop) > rules.max_stop:
        body["stop"] = stop[: rules.max_stop]
        warnings.append(f"left out stop[{rules.max_stop}] and later: {rules.title} takes {rules.max_stop}")
