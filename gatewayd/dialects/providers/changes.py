"""Changes of rules by settings and model records, by the names of the table PROVIDER_RULES; pure.

Both write `{"drop": ["seed"], "efforts": ["low", "high"], ...}`; see gatewayd-dialects(7), PROVIDER RULES.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from gatewayd.completions.call_ids import CallIdForm
from gatewayd.dialects.providers.message_rules import LastTurn, ReasoningPlace, SystemPlace
from gatewayd.dialects.providers.rules import (
    EFFORTS,
    ImageForm,
    Protocol,
    Rules,
    Sampling,
    ThinkingForm,
)
from gatewayd.errors import invalid

MAX_CHANGED_NAMES: Final = 100
"""Maximum number of names in a list, or of entries in a table, of a change."""

MAX_NAME_CHARACTERS: Final = 100

TOOL_CHOICES: Final = ("auto", "none", "required", "named")
FORMATS: Final = ("text", "json_object", "json_schema")
ROLES: Final = ("", "system", "developer", "user")


def change_rules(rules: Rules, changes: Mapping[str, Any], where: str = "provider_rules") -> Rules:
    """Return rules with changes; raise invalid_request that names a bad one below `where`."""
    for name, value in changes.items():
        change = CHANGES.get(name)
        if change is None:
            known = ", ".join(CHANGES)
            raise invalid(f"cannot accept {where}.{name:.80}: expected one of {known}", param=where)
        try:
            rules = change(rules, value)
        except ValueError as error:
            raise invalid(
                f"cannot accept {where}.{name}: expected {error}", param=f"{where}.{name}"
            ) from error
    return rules


def check_changes(changes: object, where: str) -> None:
    """Raise invalid_request unless `changes` can be applied to rules."""
    if not isinstance(changes, dict):
        raise invalid(f"cannot accept {where}: expected an object", param=where)
    change_rules(Rules(), changes, where)


def _drop(rules: Rules, value: Any) -> Rules:
    names = _names(value)
    return replace(rules, dropped=rules.dropped | names, known=rules.known - names)


def _keep(rules: Rules, value: Any) -> Rules:
    names = _names(value)
    return replace(
        rules, dropped=rules.dropped - names, known=rules.known | names if rules.known else rules.known
    )


def _rename(rules: Rules, value: Any) -> Rules:
    return replace(rules, renames={**rules.renames, **_table(value, _name)})


def _values(rules: Rules, value: Any) -> Rules:
    return replace(rules, values={**rules.values, **_table(value, _allowed)})


def _ranges(rules: Rules, value: Any) -> Rules:
    return replace(rules, ranges={**rules.ranges, **_table(value, _range)})


def _setter(field: str, parse: Callable[[Any], Any]) -> Callable[[Rules, Any], Rules]:
    return lambda rules, value: replace(rules, **{field: parse(value)})


def _message_setter(field: str, parse: Callable[[Any], Any]) -> Callable[[Rules, Any], Rules]:
    return lambda rules, value: replace(rules, messages=replace(rules.messages, **{field: parse(value)}))


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("a list of texts")
    if len(value) > MAX_CHANGED_NAMES or any(len(item) > MAX_NAME_CHARACTERS for item in value):
        raise ValueError(f"at most {MAX_CHANGED_NAMES} texts of {MAX_NAME_CHARACTERS} characters")
    return list(value)


def _names(value: Any) -> frozenset[str]:
    return frozenset(_texts(value))


def _name(value: Any) -> str:
    return _texts([value])[0]


def _table(value: Any, parse: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, dict) or len(value) > MAX_CHANGED_NAMES:
        raise ValueError(f"a table of at most {MAX_CHANGED_NAMES} fields")
    return {_name(name): parse(item) for name, item in value.items()}


def _allowed(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple) or len(value) > MAX_CHANGED_NAMES:
        raise ValueError("lists of values")
    if not all(isinstance(item, str | int | float | bool) for item in value):
        raise ValueError("lists of texts, numbers and switches")
    return tuple(value)


def _range(value: Any) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2 or not all(map(_is_number, value)):
        raise ValueError("two numbers, the smallest and the largest")
    if value[0] > value[1]:
        raise ValueError("the smaller number first")
    return value[0], value[1]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a whole number, 0 for no limit")
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def _word(words: Iterable[str]) -> Callable[[Any], str]:
    known = tuple(words)

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in known:
            raise ValueError(f"one of {', '.join(map(repr, known))}")
        return value

    return parse


def _words(words: tuple[str, ...]) -> Callable[[Any], tuple[str, ...]]:
    def parse(value: Any) -> tuple[str, ...]:
        given = _texts(value)
        if not set(given) <= set(words):
            raise ValueError(f"a list of {', '.join(words)}")
        return tuple(word for word in words if word in given)

    return parse


CHANGES: Final[Mapping[str, Callable[[Rules, Any], Rules]]] = {
    "drop": _drop,
    "keep": _keep,
    "rename": _rename,
    "values": _values,
    "ranges": _ranges,
    "drop_tool_fields": _setter("dropped_tool_fields", _names),
    "max_output_tokens": _setter("max_output", _whole),
    "max_stop": _setter("max_stop", _whole),
    "efforts": _setter("efforts", _words(EFFORTS)),
    "default_effort": _setter("default_effort", _word(("", *EFFORTS))),
    "always_thinks": _setter("always_thinks", _flag),
    "thinking": _setter("thinking", lambda value: ThinkingForm(_word(ThinkingForm)(value))),
    "sampling": _setter("sampling", lambda value: Sampling(_word(Sampling)(value))),
    "tools_with_effort": _setter("has_tools_with_effort", _flag),
    "tool_choices": _setter("tool_choices", lambda value: frozenset(_words(TOOL_CHOICES)(value))),
    "response_formats": _setter("response_formats", lambda value: frozenset(_words(FORMATS)(value))),
    "strict_schemas": _setter("strict_schemas", _flag),
    "instructions": _setter("instructions", _word(ROLES)),
    "images": _setter("images", lambda value: ImageForm(_word(ImageForm)(value))),
    "protocol": _setter("protocol", lambda value: Protocol(_word(Protocol)(value))),
    "system_messages": _message_setter("system", lambda value: SystemPlace(_word(SystemPlace)(value))),
    "call_ids": _message_setter("call_ids", lambda value: CallIdForm(_word(CallIdForm)(value))),
    "last_message": _message_setter("last", lambda value: LastTurn(_word(LastTurn)(value))),
    "own_reasoning": _message_setter("reasoning", lambda value: ReasoningPlace(_word(ReasoningPlace)(value))),
    "demand_reasoning": _message_setter("demands_reasoning", _flag),
    "reasoning_details": _message_setter("takes_details", _flag),
    "pair_calls": _message_setter("pairs_calls", _flag),
    "earlier_calls": _message_setter("takes_calls", _flag),
    "calls_need_tools": _message_setter("needs_tools", _flag),
    "drop_empty_texts": _message_setter("drops_empty", _flag),
    "alternate_roles": _message_setter("alternates", _flag),
    "separate_results": _message_setter("separates_results", _flag),
    "split_calls": _message_setter("splits_calls", _flag),
    "message_members": _message_setter("members", _names),
    "call_members": _message_setter("call_members", _names),
}
"""What a change may contain, in the order of the page."""
