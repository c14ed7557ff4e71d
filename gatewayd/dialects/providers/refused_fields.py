"""Reads which harmless field of a request a provider refused, and what to do about it; pure.

Harmless are fields without which the answer is still an answer to the request: never messages, tools or a
schema. The shapes of refusals are those of OpenAI, Azure, Anthropic, Fireworks, Groq, Cerebras, Gemini, xAI,
Kimi, DashScope, Mistral and LM Studio.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from gatewayd.completions.deltas import error_message_in
from gatewayd.completions.json_access import as_mapping, as_sequence
from gatewayd.dialects.providers.field_changes import (
    HARMLESS,
    LIMITS,
    NESTED,
    RefusedField,
    has_field,
    value_key,
    value_of,
    values_of,
)
from gatewayd.dialects.providers.reasoning_wish import fit_effort
from gatewayd.dialects.providers.rules import EFFORTS

MAX_EXAMINED_CHARACTERS: Final = 4_000
"""Maximum number of characters of a refusal that are searched for names of fields."""

MAX_FIELDS: Final = 8
"""Maximum number of fields that one refusal is taken to name."""

MAX_VALUES: Final = 1_000
"""Maximum number of values of a request that are searched for in a refusal."""

MIN_QUOTED_CHARACTERS: Final = 16
"""Number of characters at the start of a text by which a quotation is found; providers shorten them."""

MAX_COMPARED_CHARACTERS: Final = 20_000
"""Maximum length of all texts of a request that are compared with a refusal; more count as quoted."""

NEIGHBOURS: Final = 8
MIN_NEIGHBOURS: Final = 4
"""Number of letters on one side of a name that are compared; fewer than the smaller say nothing."""

_WORD: Final = r"[`'\"\u2018\u2019\u201c\u201d]?([A-Za-z_][\w.\[\]-]{0,99})[`'\"\u2018\u2019\u201c\u201d]?"
_QUOTED: Final = r"[`'\"\u2018\u201c]([A-Za-z_][\w.\[\]-]{0,99})[`'\"\u2019\u201d]"

_NAMES: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"unrecognized request arguments? supplied: {_WORD}",
        rf"unknown name {_QUOTED}",
        rf"not permitted, field: {_QUOTED}",
        rf"property {_QUOTED} is unsupported",
        rf"(?:unsupported|unrecognized|unknown|unexpected) (?:parameter|field|argument|value|key)s?:?"
        rf" {_WORD}",
        rf"does not support (?:the )?(?:parameter|argument|field) {_WORD}",
        rf"argument not supported(?: on this model)?: {_WORD}",
        rf"{_WORD}: extra inputs are not permitted",
        rf"extra inputs are not permitted:? {_QUOTED}",
        rf"{_QUOTED} (?:is|are) (?:deprecated|unsupported|not (?:supported|allowed|enabled|permitted))",
        r"\b([a-z_]{3,40}) is not (?:enabled|supported) (?:for|with|by) this model",
        r"\binvalid ([a-z_]{3,40}): only .{1,80} (?:is|are) allowed",
        r"\bparameter\.([a-z_]{3,40}) must be",
        r"'loc': \('body', '([a-z_]{1,40})'\)",
        r"\binvalid (think|reasoning)(?:_effort)? value",
        r"does not support (think)ing\b",
        rf"does not (?:accept|support|take) {_QUOTED}",
    )
)
"""Where a sentence names the field, the surest first."""

_PAIR: Final = re.compile(rf"{_QUOTED} and {_QUOTED} cannot both be", re.IGNORECASE)
"""A sentence that refuses a field beside another one only."""

_LIMIT: Final = re.compile(
    r"\[\s*1\s*,\s*(\d{1,9})\s*\]"
    r"|at most (\d{1,9})"
    r"|> (\d{1,9}), which is the maximum"
    r"|less than or equal to [`'\"]?(\d{1,9})"
    r"|max(?:imum)?(?: value| allowed| limit)?(?: is| of|:|=)? [`'\"]?(\d{1,9})",
    re.IGNORECASE,
)
_LIMIT_FIELD: Final = re.compile("|".join(LIMITS[::-1]))
_VALUE: Final = re.compile(
    r"unsupported value|does not support ['\"`]|only .{1,80} (?:is|are) allowed"
    r"|must be (?:one of|in\b|set to)|invalid (?:\w{1,20} )?value"
    r"|literal_error|input should be|supported values are",
    re.IGNORECASE,
)
"""What says that only this value is refused."""

_UNSUPPORTED: Final = re.compile(
    r"unsupported|unrecognized|unknown (?:name|parameter|field|argument|key)|unexpected (?:parameter|keyword)"
    r"|extra inputs|extra_forbidden|not permitted|not support|deprecated|not enabled|cannot both be",
    re.IGNORECASE,
)
"""What says that a field is refused, whatever its value."""

_UNSUPPORTED_CODES: Final = frozenset({"unsupported_parameter", "unknown_parameter", "extra_forbidden"})
_CALLER_CODES: Final = re.compile(r"_type$|_above_|_below_|_parsing|than_equal|too_long|too_short|missing")
"""Codes of values that no provider takes."""

_VALUE_CODES: Final = frozenset({"unsupported_value", "invalid_value", "literal_error", "enum"})
_SUPPORTED: Final = re.compile(
    r"(?:supported values are|must be(?: one of)?|input should be):?([^.\]]{1,200})", re.IGNORECASE
)
WORDS: Final = frozenset({"reasoning_effort", "think"})
"""Fields whose refused word becomes one that the refusal lists."""

_TOOLS_WITH_EFFORT: Final = re.compile(r"tools with reasoning_effort are not supported", re.IGNORECASE)
HELD_PATHS: Final = (["output_config", "effort"], ["reasoning", "effort"], ["reasoning", "summary"])
"""Paths of fields in objects that a request may lose."""

_PLAIN: Final = re.compile(r"[\w.-]{1,64}")
_OTHERS: Final = re.compile(r"[^a-z0-9]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")
_INDEX: Final = re.compile(r"\[[^\[\]]*\]")


def read_refusal(answer: object, text: str, body: Mapping[str, Any]) -> list[RefusedField]:
    """Return the harmless fields of `body` that a refusal names.

    `text` is the body of the refusal, `answer` the same as JSON, or None.
    """
    sentence = _sentence_of(answer, text)
    if _TOOLS_WITH_EFFORT.search(sentence):
        return [RefusedField("reasoning_effort", replacement="none", beside_tools=True)]
    limited = _limited(sentence, body)
    if limited is not None:
        return [limited]
    pair = _PAIR.search(sentence)
    if pair is not None:
        return _one_of(field_of(pair[1]), field_of(pair[2]), body)
    found: dict[str, RefusedField] = {}
    is_any = _is_any(answer, sentence)
    for path in _paths(answer, sentence) if is_any is not None else ():
        name = field_of(path)
        if name not in found and has_field(body, name):
            field = _refused(name, sentence, body, is_any=is_any is True)
            if field is not None:
                found[name] = field
        if len(found) >= MAX_FIELDS:
            break
    return list(found.values())


def quotes_caller(answer: object, text: str, body: Mapping[str, Any], names: Collection[str] = ()) -> bool:
    """Return whether a refusal quotes a text of its caller that reads like a refusal, or may.

    `names` are the fields that it is taken to name: a provider may quote any part of a text, or escape it,
    and the letters at a name stay. Such a text may name fields that the provider takes. Texts of messages and
    tools do not matter: a request with a refused one is refused again.
    """
    sentence = _sentence_of(answer, text)
    letters, wanted = _letters(sentence), [_letters(name) for name in names]
    stack = list(islice(values_of(body), MAX_VALUES))
    left = MAX_COMPARED_CHARACTERS
    for _ in range(MAX_VALUES):
        if not stack:
            return False
        value = stack.pop()
        if isinstance(value, dict):
            stack += [*islice(value, MAX_VALUES), *islice(value.values(), MAX_VALUES)]
        elif isinstance(value, list):
            stack += value[:MAX_VALUES]
        elif isinstance(value, str) and value:
            left -= len(value)
            if left < 0 or _is_quoted(value, sentence) or _is_quoted_in_part(value, letters, wanted):
                return True
    return True


def _is_quoted(value: str, sentence: str) -> bool:
    if _PLAIN.fullmatch(value) and field_of(value) not in HARMLESS.union(LIMITS):
        return False
    return value[:MIN_QUOTED_CHARACTERS] in sentence


def _is_quoted_in_part(value: str, letters: str, names: Sequence[str]) -> bool:
    """Return whether the letters beside a name in a text stand beside it in a sentence, too."""
    told = _letters(value)
    for name in names:
        place = told.find(name)
        while place >= 0:
            end = place + len(name)
            before = told[max(0, place - NEIGHBOURS) : end]
            behind = told[place : end + NEIGHBOURS]
            for part in (before, behind):
                if len(part) - len(name) >= MIN_NEIGHBOURS and part in letters:
                    return True
            place = told.find(name, place + 1)
    return False


def _letters(text: str) -> str:
    """Return the letters and digits of a text in lower case, whatever stands between them."""
    return _OTHERS.sub("", text.lower())


def _sentence_of(answer: object, text: str) -> str:
    return (error_message_in(answer) or text)[:MAX_EXAMINED_CHARACTERS]


def _one_of(first: str, second: str, body: Mapping[str, Any]) -> list[RefusedField]:
    """Return the second of two fields that exclude each other, or the first if only that is harmless."""
    for name, other in ((second, first), (first, second)):
        if name in HARMLESS and has_field(body, name) and other in body:
            return [RefusedField(name, beside=other)]
    return []


def field_of(path: str) -> str:
    """Return the name of the field that a path ends in, in snake_case.

    "" stands for a path into messages or a schema.
    """
    parts = [part for part in _INDEX.sub("", path).split(".") if part and not part.isdecimal()]
    if not parts:
        return ""
    name = _CAMEL.sub(r"_\1", parts[-1]).lower()
    if parts == ["reasoning"]:
        # Ollama calls the word of effort so in its refusals.
        return "reasoning_effort"
    if name in NESTED or len(parts) == 1 or parts in HELD_PATHS:
        return name
    return name if parts[0] in {"body", "parameter", "generation_config"} else ""


def _is_any(answer: object, sentence: str) -> bool | None:
    """Return whether a refusal is about a field with any value; None if it says neither.

    A value of a wrong type or size is the caller's own error, which they are told.
    """
    outer = as_mapping(answer[0] if isinstance(answer, list) and answer else answer)
    details = [as_mapping(item).get("type") for item in _details(outer)]
    codes = {code for code in (as_mapping(outer.get("error")).get("code"), *details) if isinstance(code, str)}
    if any(map(_CALLER_CODES.search, codes)):
        return None
    if codes & _VALUE_CODES or (_VALUE.search(sentence) and not codes & _UNSUPPORTED_CODES):
        return False
    if codes & _UNSUPPORTED_CODES or _UNSUPPORTED.search(sentence) or _violations(outer):
        return True
    return None


def _refused(name: str, sentence: str, body: Mapping[str, Any], *, is_any: bool) -> RefusedField | None:
    if name in LIMITS:
        other = "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
        is_renamed = is_any and name != "max_output_tokens" and other not in body
        return RefusedField(name, rename=other) if is_renamed else None
    value = None if is_any or name in NESTED else value_key(value_of(body, name))
    if name in WORDS and value is not None:
        word = _supported_word(sentence, body[name])
        if word:
            return RefusedField(name, value, replacement=word)
    return RefusedField(name, value)


def _supported_word(sentence: str, given: object) -> str:
    match = _SUPPORTED.search(sentence)
    if match is None or not isinstance(given, str):
        return ""
    words = set(re.findall(r"[a-z]+", match[1].lower()))
    word = fit_effort(given, tuple(known for known in EFFORTS if known in words))
    return "" if word in (None, given) else str(word)


def _limited(sentence: str, body: Mapping[str, Any]) -> RefusedField | None:
    """Return the clamp for a sentence about the longest answer."""
    # A limit by the rest of the context holds for this request only.
    is_about_answers = "token" in sentence and "context" not in sentence.lower()
    if not (is_about_answers and _LIMIT_FIELD.search(sentence)):
        return None
    name = next((known for known in LIMITS if type(body.get(known)) is int), "")
    match = _LIMIT.search(sentence)
    if not name or match is None:
        return None
    limit = int(next(group for group in match.groups() if group))
    return RefusedField(name, limit=limit) if 0 < limit < body[name] else None


def _paths(answer: object, sentence: str) -> Iterator[str]:
    outer = as_mapping(answer[0] if isinstance(answer, list) and answer else answer)
    inner = as_mapping(outer.get("error"))
    for error in (inner, outer):
        if isinstance(error.get("param"), str):
            yield error["param"]
    for detail in _details(outer):
        where = as_sequence(as_mapping(detail).get("loc"))
        if where:
            yield ".".join(map(str, where[:20]))
    yield from _violations(outer)
    for pattern in _NAMES:
        for match in pattern.finditer(sentence):
            yield match[match.lastindex or 1]


def _details(outer: Mapping[str, Any]) -> list[Any]:
    """Return the details of Mistral and of servers that check as it does."""
    inner = as_mapping(outer.get("error"))
    lists = [outer.get("detail"), as_mapping(outer.get("message")).get("detail"), inner.get("detail")]
    return [item for items in lists for item in as_sequence(items)[:MAX_FIELDS]]


def _violations(outer: Mapping[str, Any]) -> list[str]:
    """Return the fields of the violations of Gemini."""
    return [
        field
        for detail in as_sequence(as_mapping(outer.get("error")).get("details"))[:MAX_FIELDS]
        for violation in as_sequence(as_mapping(detail).get("fieldViolations"))[:MAX_FIELDS]
        if isinstance(field := as_mapping(violation).get("field"), str)
    ]
