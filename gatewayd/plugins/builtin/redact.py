"""
description: Keeps addresses, numbers and keys from the model, and puts them back into its answer.
title: Redact
author: gatewayd
version: 1.0.0
license: Apache-2.0
"""

import ipaddress
import json
import re
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from pydantic import BaseModel, Field, field_validator

METADATA_KEY: Final = "redact"
"""Key in the metadata of a request for the id of its session."""

MAX_SESSIONS: Final = 4096
MAX_SESSION_SECONDS: Final = 3600.0
MAX_HELD_CHARACTERS: Final = 4096
FORCED_TAIL_CHARACTERS: Final = 512
CONTEXT_CHARACTERS: Final = 64
OWN_RULE_WINDOW_CHARACTERS: Final = 100
"""Maximum length of a match of a custom expression."""

MAX_MATCH_WAYS: Final = 10_000
"""Maximum number of combinations of the repetitions in a custom expression."""

PLACEHOLDER: Final = re.compile(r"\[[A-Z][A-Z0-9_]{0,30}_\d{1,6}\]")
FIELDS: Final = ("reasoning_content", "reasoning", "content")

_LETTERS: Final = "".join(map(chr, range(0xC0, 0x250)))
_TOKEN: Final = "".join(map(chr, range(0x21, 0x7F))) + _LETTERS
_SECRET: Final = "".join(one for one in map(chr, range(0x21, 0x7F)) if one.isalnum() or one in "+/=_.~-")
_INCOMPLETE: Final = (
    re.compile(r"\[[A-Z0-9_]*\Z"),
    re.compile(r"-----BEGIN[A-Z0-9 ]*-{0,5}\Z"),
    re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]){0,64} ?\Z"),
    re.compile(r"[+(]?\d[\d ()./\u00a0-]{0,64}\Z"),
)
_END_OF_KEY: Final = re.compile(r"-----END [A-Z0-9 ]{1,60}-----")
_BEARER: Final = re.compile(r"\bbearer\s{0,4}\Z", re.IGNORECASE)

Check = Callable[[str, int, int], int]
"""Returns the real end of a match from its text, start and end; 0 for a false match."""


@dataclass(frozen=True, slots=True)
class RedactionRule:
    """A rule that finds values to hide; the group `it` of its expression, if any, is the hidden part."""

    name: str
    expression: re.Pattern[str]
    check: Check | None = None
    is_own: bool = False

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of each match."""
        group = "it" if "it" in self.expression.groupindex else 0
        for found in self._matches(text):
            start, end = found.span(group)
            if self.check is not None:
                end = self.check(text, start, end)
            if end > start:
                yield start, end

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        if not self.is_own:
            yield from self.expression.finditer(text)
            return
        # Short windows bound the time; each extends to the possible end of a match that starts in it.
        at = 0
        while at < len(text):
            found = self.expression.search(text, at, at + 2 * OWN_RULE_WINDOW_CHARACTERS)
            is_in_piece = found is not None and found.start() < at + OWN_RULE_WINDOW_CHARACTERS
            if found is not None and is_in_piece:
                yield found
            at = (
                max(found.end(), at + 1)
                if found is not None and is_in_piece
                else at + OWN_RULE_WINDOW_CHARACTERS
            )


def _prefix(is_right: Callable[[str], bool]) -> Check:
    """Return a check that accepts the longest valid prefix that ends at the end of a word."""

    def check(text: str, start: int, end: int) -> int:
        for stop in range(end, start, -1):
            inside = stop < len(text) and text[stop].isalnum()
            if not inside and is_right(text[start:stop].replace(" ", "").replace("-", "")):
                return stop
        return 0

    return check


def is_iban(text: str) -> bool:
    """Whether the check digits of an IBAN are valid."""
    if not 15 <= len(text) <= 34 or not text.isascii() or not text.isalnum():
        return False
    digits = "".join(str(int(one, 36)) for one in text[4:] + text[:4])
    return int(digits) % 97 == 1


def is_card(text: str) -> bool:
    """Whether the check digit of a card number is valid (Luhn)."""
    if not 13 <= len(text) <= 19 or not text.isdecimal() or text[0] not in "23456":
        return False
    doubled = [int(one) * 2 if place % 2 else int(one) for place, one in enumerate(reversed(text))]
    return sum(one - 9 if one > 9 else one for one in doubled) % 10 == 0


def _is_ipv6(text: str, start: int, end: int) -> int:
    try:
        ipaddress.IPv6Address(text[start:end])
    except ValueError:
        return 0
    return end


_KEYS: Final = r"""(?<![\w-])(?:
    (?:sk|pk|rk)[-_][\w-]{16,} | gh[oprsu]_\w{30,} | github_pat_\w{20,} | glpat-[\w-]{20,} | hf_\w{30,}
    | npm_\w{30,} | xox[a-z]-[\w-]{10,} | (?:AKIA|ASIA)[0-9A-Z]{16} | AIza[\w-]{35}
    | eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+
)"""
_PHONES: Final = r"""(?<![\w+])(?:
    (?:\+|00)[1-9](?:[ ()./\u00a0-]{0,3}\d){6,14}
    | (?!\d{1,2}[-/]\d{1,2}[-/]\d{2,4}\b) \(?0\d{1,5}\)?[ /-]{1,3}\d(?:[ /-]?\d){4,10}
    | (?:\(\d{3}\)[ ]?|\d{3}[-.])\d{3}[-.]\d{4}
)(?!\w)"""
_LOCAL: Final = rf"[\w.%+{_LETTERS[0]}-{_LETTERS[-1]}-]"
_LABEL: Final = rf"[A-Za-z0-9{_LETTERS[0]}-{_LETTERS[-1]}-]{{1,63}}"
_OCTET: Final = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"

RULES: Final = {
    "private_keys": RedactionRule(
        "PRIVATE_KEY",
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?)-----"
            r".*?(?:-----END (?P=kind)-----|\Z)",
            re.DOTALL,
        ),
    ),
    "api_keys": RedactionRule("API_KEY", re.compile(_KEYS, re.ASCII | re.VERBOSE)),
    "bearer_tokens": RedactionRule(
        "TOKEN", re.compile(r"\b(?i:bearer)\s{1,4}(?P<it>[\w.~+/-]{16,}=*)", re.ASCII)
    ),
    "emails": RedactionRule(
        "EMAIL",
        re.compile(
            rf"(?<!{_LOCAL}){_LOCAL}++@(?:{_LABEL}\.){{1,8}}[A-Za-z]{{2,24}}(?![A-Za-z0-9])", re.ASCII
        ),
    ),
    "ibans": RedactionRule(
        "IBAN",
        re.compile(
            r"(?<![A-Za-z0-9])(?=(?P<it>[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}))", re.ASCII | re.IGNORECASE
        ),
        _prefix(lambda text: is_iban(text.upper())),
    ),
    "credit_cards": RedactionRule(
        "CARD", re.compile(r"(?<![\w])(?=(?P<it>\d(?:[ -]?\d){12,18}))", re.ASCII), _prefix(is_card)
    ),
    "phones": RedactionRule("PHONE", re.compile(_PHONES, re.ASCII | re.VERBOSE)),
    "ipv4": RedactionRule("IP", re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.\d)", re.ASCII)),
    "ipv6": RedactionRule(
        "IP", re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f]*:)[0-9A-Fa-f:]{3,39}(?![\w:])", re.ASCII), _is_ipv6
    ),
}
"""The rules by valve, in the order of their application."""


def read_expression(text: str) -> re.Pattern[str]:
    """Return a compiled custom expression; ValueError when it is invalid or may take long.

    The check reads the expression: groups must not be repeated, back-references are refused, and the product
    of the widths of all repetitions (100 for an open one) is bounded.
    """
    bare = re.sub(r"\[[^\]]*(?:\]|\Z)", "x", re.sub(r"\\[^1-9]", "x", text))
    bare = re.sub(r"\(\?(?::|=|!|<=|<!|i:)", "(", bare)
    if len(text) > 500 or "\\" in bare or "(?" in bare:
        raise ValueError("expected at most 500 characters, plain groups and look-around, no back-references")
    if re.search(r"\)\s*[*+?{]", bare):
        raise ValueError("a group must not be repeated")
    ways = 1
    for sign, least, comma, most in re.findall(r"([*+?])|\{(\d*)(?:(,)(\d*))?\}", bare):
        low = 1 if sign == "+" else int(least or 0)
        high = 1 if sign == "?" else int(most or OWN_RULE_WINDOW_CHARACTERS) if sign or comma else low
        if max(low, high) > OWN_RULE_WINDOW_CHARACTERS:
            raise ValueError(f"a repetition must be of at most {OWN_RULE_WINDOW_CHARACTERS}")
        ways *= max(1, high - low + 1)
    if ways > MAX_MATCH_WAYS:
        raise ValueError("its repetitions can be combined in too many ways; bound them, as in {1,20}")
    try:
        made = re.compile(text)
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from None
    if made.search(""):
        raise ValueError("it must not match the empty text")
    return made


def read_rules(text: str) -> list[RedactionRule]:
    """Return the custom rules of lines such as `EMPLOYEE=E-\\d{6}`; ValueError names the faulty line."""
    rules = []
    for line in filter(None, map(str.strip, text.splitlines())):
        name, _, expression = line.partition("=")
        if not re.fullmatch(r"[A-Z][A-Z0-9_]{0,30}", name) or not expression:
            raise ValueError(f"{line!r} is not NAME=expression with a name in capital letters")
        try:
            rules.append(RedactionRule(name, read_expression(expression), is_own=True))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return rules


def find_matches(text: str, rules: Sequence[RedactionRule]) -> list[tuple[int, int, str]]:
    """Return start, end and rule name of the values to hide, in order of the text."""
    taken = bytearray(len(text))
    spans = []
    for rule in rules:
        for start, end in rule.spans(text):
            if not any(taken[start:end]):
                taken[start:end] = b"\x01" * (end - start)
                spans.append((start, end, rule.name))
    return sorted(spans)


@dataclass(slots=True)
class RedactionSession:
    """Placeholders of one request; `own` maps placeholders to the values of the request."""

    used_at: float = 0.0
    own: dict[str, str] = field(default_factory=dict)
    tails: dict[tuple[int, str | int], "StreamTail"] = field(default_factory=dict)
    _names: dict[tuple[str, str], str] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def avoid(self, text: str) -> str:
        """Reserve the placeholders that occur in a text, and return the text."""
        self._taken.update(PLACEHOLDER.findall(text))
        return text

    def mask(self, text: str, rules: Sequence[RedactionRule], *, is_own: bool = False) -> str:
        """Return a text with its values replaced by placeholders."""
        pieces, at = [], 0
        for start, end, name in find_matches(text, rules):
            pieces += [text[at:start], self._placeholder(name, text[start:end], is_own)]
            at = end
        return "".join([*pieces, text[at:]])

    def restore(self, text: str, *, as_json: bool = False) -> str:
        """Return a text with placeholders replaced by the values of the request."""

        def value(found: re.Match[str]) -> str:
            known = self.own.get(found[0], found[0])
            return json.dumps(known)[1:-1] if as_json else known

        return PLACEHOLDER.sub(value, text) if self.own else text

    def _placeholder(self, name: str, value: str, is_own: bool) -> str:
        made = self._names.get((name, value))
        while made is None:
            self._counts[name] = number = self._counts.get(name, 0) + 1
            made = f"[{name}_{number}]"
            made = None if made in self._taken else made
        self._names[name, value] = made
        if is_own:
            self.own[made] = value
        return made


class StreamTail:
    """A streamed text: returns complete parts, and holds back an end that may become a value to hide."""

    def __init__(self, change: Callable[[str], str], rules: Sequence[RedactionRule]) -> None:
        self._change = change
        self._rules = rules
        self._held = ""
        self._is_passing = ""

    def feed(self, piece: str) -> str:
        """Add a piece; return the text that is complete."""
        self._held += piece
        if self._is_passing and not self._pass():
            return ""
        cut = self._cut()
        text_out, self._held = self._held[:cut], self._held[cut:]
        return self._change(text_out)

    def finish(self) -> str:
        """Return the text held back."""
        text_out, self._held = "" if self._is_passing else self._held, ""
        self._is_passing = ""
        return self._change(text_out)

    def _cut(self) -> int:
        text = self._held
        start = _incomplete_start(text, any(rule.is_own for rule in self._rules), bool(self._rules))
        spans = find_matches(text, self._rules)
        for begin, end, _ in reversed(spans):
            if end > start or end == len(text):
                start = min(start, begin)
        if len(text) - start <= MAX_HELD_CHARACTERS:
            return start
        if spans and spans[-1][1] == len(text):
            self._is_passing = spans[-1][2]
            return len(text)
        forced = len(text) - FORCED_TAIL_CHARACTERS
        return next((end for begin, end, _ in spans if begin < forced < end), forced)

    def _pass(self) -> bool:
        """Drop the rest of a value that is already hidden; return whether it has ended."""
        if self._is_passing == RULES["private_keys"].name:
            found = _END_OF_KEY.search(self._held)
            rest = self._held[found.end() :] if found else None
            self._held = self._held[-CONTEXT_CHARACTERS:] if rest is None else rest
        else:
            rest = self._held.lstrip(_SECRET) or None
            self._held = rest or ""
        if rest is not None:
            self._is_passing = ""
        return rest is not None


def _incomplete_start(text: str, has_own: bool, masks: bool) -> int:
    """Return the position from which the end of a text may be the start of a value to hide."""
    near = max(0, len(text) - CONTEXT_CHARACTERS)
    if not masks:
        found = _INCOMPLETE[0].search(text, near)
        return found.start() if found else len(text)
    start = _word_start(text, len(text))
    bearer = _BEARER.search(text, max(0, start - CONTEXT_CHARACTERS), start)
    starts = [bearer.start()] if bearer else []
    starts += [found.start() for one in _INCOMPLETE if (found := one.search(text, near))]
    if has_own:
        starts.append(max(0, len(text) - OWN_RULE_WINDOW_CHARACTERS))
    return _word_start(text, min([start, *starts]))


def _word_start(text: str, at: int) -> int:
    return len(text[:at].rstrip(_TOKEN))


class Filter:
    """Hides values in the request and the answer, and restores the values of the request in the answer."""

    class Valves(BaseModel):
        """The values to hide, and the treatment of the answer."""

        priority: int = Field(100, description="Filters with lower numbers run first.")
        restore: bool = Field(True, description="Put hidden values back into the answer.")
        restore_tool_calls: bool = Field(
            False, description="Put hidden values back into tool arguments too, which the model may see."
        )
        mask_answers: bool = Field(True, description="Hide values in the answer that are not in the request.")
        private_keys: bool = Field(True, description="Hide private keys (PEM).")
        api_keys: bool = Field(True, description="Hide API keys and tokens of known forms (sk-...).")
        bearer_tokens: bool = Field(True, description="Hide the token after the word Bearer.")
        emails: bool = Field(True, description="Hide e-mail addresses.")
        ibans: bool = Field(True, description="Hide account numbers with valid check digits (IBAN).")
        credit_cards: bool = Field(True, description="Hide card numbers with a valid check digit.")
        phones: bool = Field(True, description="Hide telephone numbers.")
        ipv4: bool = Field(False, description="Hide IPv4 addresses.")
        ipv6: bool = Field(False, description="Hide IPv6 addresses.")
        expressions: str = Field(
            "",
            description="Custom regular expressions, one a line: NAME=expression; up to 100 characters.",
        )

        @field_validator("expressions")
        @classmethod
        def _read(cls, value: str) -> str:
            read_rules(value)
            return value

    def __init__(self) -> None:
        self.valves = self.Valves()
        self.clock = time.monotonic
        self._sessions: OrderedDict[str, RedactionSession] = OrderedDict()

    async def inlet(self, body: dict[str, Any], __metadata__: dict[str, Any]) -> dict[str, Any]:
        """Hide the values in the messages."""
        messages = body["messages"]
        session = self._session(__metadata__)
        for message in messages:
            _each_text(message, session.avoid)
        body["messages"] = [self._masked(message, session) for message in messages]
        return body

    async def stream(self, event: dict[str, Any], __metadata__: dict[str, Any]) -> dict[str, Any]:
        """Change the pieces of an answer; an end that may become a value is held back."""
        session = self._session(__metadata__)
        for choice in event.get("choices") or []:
            if isinstance(choice.get("delta"), dict):
                self._change(choice, session)
        return event

    async def outlet(self, body: dict[str, Any], __metadata__: dict[str, Any]) -> dict[str, Any]:
        """Change a whole answer; values that occur earlier in the conversation are restored."""
        *before, answer = body["messages"]
        session = self._session(__metadata__)
        if not session.own:
            for message in before:
                self._masked(message, session)
        if answer.get("role") == "assistant":
            body["messages"] = [*before, _each_text(answer, lambda text: self._changed_text(session, text))]
        return body

    def _rules(self) -> list[RedactionRule]:
        chosen = [rule for name, rule in RULES.items() if getattr(self.valves, name)]
        return [*read_rules(self.valves.expressions), *chosen]

    def _masked(self, message: dict[str, Any], session: RedactionSession) -> dict[str, Any]:
        rules = self._rules()
        return _each_text(message, lambda text: session.mask(text, rules, is_own=True))

    def _changed_text(self, session: RedactionSession, text: str) -> str:
        if self.valves.mask_answers:
            text = session.mask(text, self._rules())
        return session.restore(text) if self.valves.restore else text

    def _change(self, choice: dict[str, Any], session: RedactionSession) -> None:
        """Change one piece; a text ends at another kind of text, at a tool call, and with the answer."""
        index, delta = choice.get("index", 0), choice["delta"]
        calls = [call for call in delta.get("tool_calls") or [] if isinstance(call, dict)]
        given = [name for name in FIELDS if isinstance(delta.get(name), str) and delta[name]]
        is_over = bool(choice.get("finish_reason"))
        for name in FIELDS:
            text_out = self._tail(session, index, name).feed(delta[name]) if name in given else ""
            if is_over or calls or (given and name not in given):
                text_out += self._tail(session, index, name).finish()
            if text_out or name in given:
                delta[name] = text_out
        if self.valves.restore_tool_calls:
            self._restore_calls(choice, calls, session)

    def _restore_calls(self, choice: dict[str, Any], calls: list[Any], session: RedactionSession) -> None:
        for call in calls:
            function = call.get("function")
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                tail = self._tail(session, choice.get("index", 0), call.get("index", 0))
                function["arguments"] = tail.feed(function["arguments"])
        if choice.get("finish_reason"):
            kept = {at: tail.finish() for (_, at), tail in session.tails.items() if isinstance(at, int)}
            rest = [{"index": at, "function": {"arguments": text}} for at, text in kept.items() if text]
            if rest:
                choice["delta"]["tool_calls"] = [*calls, *rest]

    def _tail(self, session: RedactionSession, index: int, name: str | int) -> StreamTail:
        """Return the tail of a text of a choice by name, or of the arguments of a tool call by index."""
        if (index, name) not in session.tails:
            is_call = isinstance(name, int)
            change = (
                partial(session.restore, as_json=True) if is_call else partial(self._changed_text, session)
            )
            rules = [] if is_call or not self.valves.mask_answers else self._rules()
            session.tails[index, name] = StreamTail(change, rules)
        return session.tails[index, name]

    def _session(self, metadata: dict[str, Any]) -> RedactionSession:
        """Return the session of a request; sessions of others are dropped after an hour."""
        now = self.clock()
        token = metadata.setdefault(METADATA_KEY, uuid.uuid4().hex)
        session = self._sessions.pop(token, None) or RedactionSession()
        session.used_at = now
        self._sessions[token] = session
        while len(self._sessions) > MAX_SESSIONS or self._oldest().used_at < now - MAX_SESSION_SECONDS:
            self._sessions.popitem(last=False)
        return session

    def _oldest(self) -> RedactionSession:
        return next(iter(self._sessions.values()))


def _each_text(message: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a message with its texts and tool call arguments changed."""
    changed = {**message, **{name: change(message[name]) for name in FIELDS if _is_text(message, name)}}
    for name, inner in (("content", None), ("tool_calls", "function")):
        if isinstance(message.get(name), list):
            changed[name] = [_part(part, inner, change) for part in message[name]]
    return changed


def _part(part: Any, inner: str | None, change: Callable[[str], str]) -> Any:
    if inner is None:
        return {**part, "text": change(part["text"])} if _is_text(part, "text") else part
    function = part.get(inner) if isinstance(part, dict) else None
    if not isinstance(function, dict) or not _is_text(function, "arguments"):
        return part
    return {**part, inner: {**function, "arguments": change(function["arguments"])}}


def _is_text(value: Any, name: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(name), str)
