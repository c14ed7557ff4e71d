"""Incremental JSON decoder: decodes texts of any size in pieces, so that the event loop is never blocked.

orjson cannot be interrupted, so it decodes pieces of some 64 KiB: a scan finds the members of large lists and
objects, and stops at the first limit that is exceeded. The result equals that of decoding at once.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from gatewayd.errors import ErrorKind, GatewayError, invalid
from gatewayd.text import (  # fmt: skip
    MAX_CHAT_DEPTH,
    MAX_INTEGER,
    MAX_JSON_DEPTH,
    MIN_INTEGER,
    JsonText,
    character_bytes,
    escaped_end,
    is_escaped,
    piece_end,
    without_strings,
)
from gatewayd.time_slices import LoopPacer

MAX_NAME_BYTES: Final = 65536
"""Maximum number of bytes of the name of a large member."""

MAX_LIGHT_BYTES: Final = 1024 * 1024
MAX_LIGHT_CONTAINERS: Final = 5_000
MAX_LIGHT_VALUES: Final = 15_000
"""Maxima of a light text, which is decoded at once in a few milliseconds."""

MAX_SHORT_BYTES: Final = MAX_LIGHT_CONTAINERS
"""A text of at most so many bytes is always light."""

SLICE_BYTES: Final = 64 * 1024
MAX_TEXT_SLICE_BYTES: Final = 1024 * 1024
"""Maximum number of bytes of a piece, and of a piece of one long string."""

MAX_TEXT_BYTES: Final = 64 * 1024 * 1024
"""Maximum memory of one string: joining its pieces cannot be interrupted.

A character counts one byte in an ASCII string, four in a string with a character over U+FFFF, and two in any
other (PEP 393, which stores Latin-1 in one byte as well).
"""

MAX_STEP_TOKENS: Final = 1_000
MAX_STRETCH_BYTES: Final = 4096
MIN_STRETCH_BYTES: Final = 128
MAX_PAUSE_TOKENS: Final = 1_000
"""Maximum number of bytes of members that are passed in one step; the number that makes another step worth an
attempt; and the maximum number of tokens between two attempts that were not worth it.

An attempt may read the bytes of a step and pass none, so a text of another kind gets few of them: at the
start of a container, and after a number of tokens that doubles each time.
"""

_TOKEN: Final = re.compile(rb'"[^"\\]{0,256}+"|["\[\]{}]')
_TEXT: Final = rb'"[^"\\]{0,1024}+(?:\\.[^"\\]{0,256}+)*+"'
_PLAIN: Final = rb'[^"\[\]{}]*+'
_FLAT: Final = _PLAIN + rb"(?:" + _TEXT + _PLAIN + rb")*+"
_NESTED: Final = (
    _PLAIN + rb"(?:(?:" + _TEXT + rb"|\[" + _FLAT + rb"\]|\{" + _FLAT + rb"\})" + _PLAIN + rb")*+"
)
_BESIDE: Final = rb'[^"\[\]{},]*+'
_STRETCH: Final = re.compile(
    rb"(?:"
    + _BESIDE
    + rb"(?:(?:"
    + _TEXT
    + rb"|\["
    + _NESTED
    + rb"\]|\{"
    + _NESTED
    + rb"\})"
    + _BESIDE
    + rb")*+,)++",
    re.DOTALL,
)
"""Members with their commas: strings, numbers, literals, and containers with one level of others inside."""
_STRETCH_LEVELS: Final = 2
_NAME: Final = re.compile(rb'[ \t\r\n]*+("(?:[^"\\]|\\.)*+")[ \t\r\n]*+:[ \t\r\n]*+', re.DOTALL)
_LONG_INTEGER: Final = re.compile(rb"(?<![0-9.eE])[0-9]{19,}+(?![.eE])")
_LONG_RUN: Final = b"0" * 19
_AS_ZEROS: Final = bytes(48 if 48 <= byte <= 57 else 32 for byte in range(256))
_BLANKS: Final = b" \t\r\n"
_BLANK: Final = re.compile(rb"[ \t\r\n]*+")
_QUOTE, _OPEN_LIST, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = b'"[]{}'
_CONTAINERS: Final = (dict, list)


class DepthError(GatewayError):
    """A text nests deeper than the limits permit."""


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """Limits of one JSON text.

    `containers` counts lists and objects, `values` the containers and the commas between their members.
    """

    containers: int
    values: int
    depth: int = MAX_JSON_DEPTH
    has_exact_integers: bool = True
    """Whether an integer of more than 64 bits is refused instead of decoded as a float."""


SMALL_LIMITS: Final = JsonLimits(containers=10_000, values=20_000)
"""For the bodies of most routes."""

LARGE_LIMITS: Final = JsonLimits(containers=50_000, values=500_000)
"""For bodies to and from models: embedding requests contain lists of tokens."""

BULK_LIMITS: Final = JsonLimits(containers=250_000, values=1_000_000)
"""For whole chats and long lists, which are processed in slices."""

CHAT_LIMITS: Final = replace(BULK_LIMITS, depth=MAX_CHAT_DEPTH)
"""For stored chats."""


class JsonMembers:
    """The members of a list, each decoded on iteration."""

    def __init__(self, data: JsonText, spans: Sequence[tuple[int, int]], limits: JsonLimits) -> None:
        self._data = data
        self._spans = spans
        self._limits = limits

    def __len__(self) -> int:
        return len(self._spans)

    async def each(self) -> AsyncIterator[Any]:
        """Yield the values in their order; may be called again. Raises the errors of `decode`."""
        pace = LoopPacer()
        for start, end in self._spans:
            await pace.turn()
            if end - start <= MAX_LIGHT_BYTES:
                yield await decode(self._data[start:end], self._limits)
            else:
                # Copying a large member would block the event loop for too long.
                yield await _Scan(self._data, self._limits, None, start, end).run()


@dataclass(frozen=True, slots=True)
class UndecodedMember:
    """Name of the member of the outermost object that stays undecoded if it is a list: JsonMembers, `most` at
    most.

    The limits apply to each of its members, and to the rest of the object.
    """

    name: str
    most: int


async def decode(data: JsonText, limits: JsonLimits, undecoded: UndecodedMember | None = None) -> Any:
    """Return the value of a JSON text.

    Raises too_large over the limits, and invalid_request for text that is no JSON, nests too deep or has an
    integer of more than 64 bits, which would lose digits. NaN and lone surrogates are no JSON.
    """
    if undecoded is None and is_light(data):
        return decode_light(data, limits)
    return await _Scan(data, limits, undecoded, 0, len(data)).run()


def is_light(data: JsonText) -> bool:
    """Return whether a text can be decoded at once, in a few milliseconds."""
    return len(data) <= MAX_SHORT_BYTES or (
        len(data) <= MAX_LIGHT_BYTES
        and data.count(b"[") + data.count(b"{") <= MAX_LIGHT_CONTAINERS
        and data.count(b",") <= MAX_LIGHT_VALUES
    )


def decode_at_once(data: JsonText, limits: JsonLimits = SMALL_LIMITS) -> Any:
    """Return the value of a light JSON text; raises too_large for another, and the errors of `decode`."""
    if not is_light(data):
        raise too_many_error("bytes, lists, objects or values than this request allows")
    return decode_light(data, limits)


def decode_light(data: JsonText, limits: JsonLimits) -> Any:
    """Return the value of a JSON text that is known to be light; raises the errors of `decode`."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _not_json(error, 0) from None
    # Each level takes two bytes at least.
    may_be_deep = len(data) > 2 * limits.depth and data.count(b"[") + data.count(b"{") > limits.depth
    if may_be_deep and _is_deeper(value, limits.depth):
        raise _deeper(limits.depth)
    # Behind the depth, as it recurses.
    if limits.has_exact_integers:
        _check_integers(data)
    return value


class _Frame:
    """One open list or object."""

    __slots__ = ("after", "built", "is_list", "member", "run", "spans", "start")

    def __init__(self, start: int, *, is_list: bool) -> None:
        self.start = start
        self.is_list = is_list
        self.run = start
        """Start of the members that are not decoded yet, -1 directly after a member that is."""
        self.after = start
        """End of the member that was decoded last."""
        self.member = start
        """Start of the current member."""
        self.built: Any = None
        self.spans: list[tuple[int, int]] | None = None


class _Scan:
    """One pass over a text or over a part of it."""

    def __init__(
        self, data: JsonText, limits: JsonLimits, undecoded: UndecodedMember | None, start: int, size: int
    ) -> None:
        self._data = data
        self._start = start
        self._size = size
        """Start and end of the text within the data."""
        self._limits = limits
        self._undecoded = undecoded
        self._pace = LoopPacer()
        self._frames: list[_Frame] = []
        self._containers = 0
        self._commas = 0
        self._beside = (0, 0)
        self._raw_depth = 0
        """Depth of the list that stays undecoded, 0 outside of it."""
        self._root: Any = None
        self._end = -1
        self._wait = self._pause = 0
        """Tokens before the next attempt to pass members in one step; and their number, the last time."""

    async def run(self) -> Any:
        data = self._data
        position = last = self._start
        size = self._size
        tokens = 0
        if data[position : min(position + SLICE_BYTES, size)].lstrip(_BLANKS)[:1] not in (b"[", b"{"):
            return self._scalar()
        while position < size:
            if position - last > MAX_TEXT_SLICE_BYTES:
                raise _bad("a number or a run of blanks is too long", last)
            if self._wait <= 0 and self._is_inside():
                start = await self._stretch(position)
                if start > position:
                    last = position = start
                    continue
            until = min(position + SLICE_BYTES, size)
            found = _TOKEN.search(data, position, until)
            start = until if found is None else found.start()
            if start > position:
                last = await self._between(position, start) or last
            tokens += 1
            self._wait -= 1
            if found is None:
                position = until
                await self._pace.turn()
                continue
            last = position = found.end()
            if position - start == 1:
                last = position = await self._take(data[start], start)
            if tokens >= MAX_STEP_TOKENS:
                tokens = 0
                await self._pace.turn()
        return self._whole()

    def _whole(self) -> Any:
        """Return the value of the text, which is read to its end."""
        if self._frames or self._end < 0:
            raise _bad("it ends too early", self._size)
        self._blank(self._end, self._size)
        return self._root

    def _scalar(self) -> Any:
        """Return a string, number or literal; a long one is refused, as no caller accepts it."""
        if self._size - self._start > SLICE_BYTES:
            raise _bad("expected a list or an object", self._start)
        return _loads(self._data[self._start : self._size], self._start)

    def _is_inside(self) -> bool:
        """Return whether members may be passed whose names and places are of no importance."""
        if not self._frames:
            return False
        frame = self._frames[-1]
        return (
            frame.run >= 0
            and frame.spans is None
            and len(self._frames) + _STRETCH_LEVELS <= self._limits.depth
            and not (self._undecoded is not None and len(self._frames) == 1)
        )

    async def _stretch(self, start: int) -> int:
        """Pass small members with their commas, all that begin here, and return the end of the last."""
        data = self._data
        found = _STRETCH.match(data, start, min(start + MAX_STRETCH_BYTES, self._size))
        end = start if found is None else found.end()
        if end - start >= MIN_STRETCH_BYTES:
            self._pause = 0
        else:
            self._wait = self._pause = min(2 * self._pause + 1, MAX_PAUSE_TOKENS)
        await self._pace.turn()
        if found is None:
            return start
        text = found[0]
        if b'"' in text:
            text = without_strings(text)
        self._containers += text.count(b"[") + text.count(b"{")
        self._commas += text.count(b",")
        self._check()
        frame = self._frames[-1]
        if end - 1 - frame.run >= SLICE_BYTES and not self._raw_depth:
            self._build(frame, end - 1)
            frame.run = end
        frame.member = end
        return end

    async def _take(self, token: int, place: int) -> int:
        """Process one token and return the position after it."""
        if self._end >= 0:
            raise _bad("there is more after its end", place)
        if token == _QUOTE:
            return await self._text(place)
        if token in (_OPEN_LIST, _OPEN_OBJECT):
            self._open(place, is_list=token == _OPEN_LIST)
        elif not self._frames:
            raise _bad("unexpected character", place)
        else:
            await self._close(place, is_list=token == _CLOSE_LIST)
        return place + 1

    async def _between(self, start: int, end: int) -> int:
        """Process the text between two tokens; return the position of its last comma, 0 without one."""
        data = self._data
        first = data.find(b",", start, end)
        if first < 0:
            return 0
        if not self._frames:
            raise _bad("unexpected character", first)
        frame = self._frames[-1]
        place = data.rfind(b",", first, end)
        self._commas += data.count(b",", first, end)
        self._check()
        if frame.spans is not None:
            while first >= 0:
                self._span(frame, first)
                frame.member = first + 1
                first = data.find(b",", first + 1, end)
            return place
        if frame.run < 0:
            self._blank(frame.after, first)
            frame.run = first + 1
        if place - frame.run >= SLICE_BYTES and not self._raw_depth:
            self._build(frame, place)
            frame.run = place + 1
            await self._pace.turn()
        frame.member = place + 1
        return place

    def _open(self, place: int, *, is_list: bool) -> None:
        self._containers += 1
        self._wait = 0
        frame = _Frame(place + 1, is_list=is_list)
        wanted = self._undecoded
        if wanted is not None and is_list and len(self._frames) == 1 and not self._frames[0].is_list:
            parent = self._frames[0]
            if self._name(parent, place) == wanted.name:
                frame.spans = []
                self._raw_depth = 2
                self._beside = (self._containers, self._commas)
                self._containers = self._commas = 0
        self._check()
        self._frames.append(frame)
        if len(self._frames) > self._limits.depth:
            raise _deeper(self._limits.depth)

    async def _close(self, place: int, *, is_list: bool) -> None:
        frame = self._frames.pop()
        if frame.is_list is not is_list:
            raise _bad("unexpected character", place)
        if frame.spans is not None:
            self._end_spans(frame, place)
        elif self._raw_depth:
            return
        elif frame.built is None and place - frame.start < SLICE_BYTES and self._frames:
            # A small container is decoded with the piece of its parent.
            return
        elif frame.run < 0:
            self._blank(frame.after, place)
        else:
            self._build(frame, place, is_last=True)
        self._put(frame.built, frame.start - 1, place + 1)
        await self._pace.turn()

    async def _text(self, start: int) -> int:
        """Skip a string, or decode it if it is long, and return its end."""
        data = self._data
        position = start + 1
        size = self._size
        while True:
            until = min(position + SLICE_BYTES, size)
            quote = data.find(b'"', position, until)
            stop = until if quote < 0 else quote
            if is_escaped(data, position, stop):
                stop, quote = escaped_end(data, position, until, quote)
            if quote >= 0:
                break
            if stop == position or until == size:
                raise _bad("a text does not end", start)
            position = stop
            await self._pace.turn()
        end = quote + 1
        if end - start > MAX_TEXT_SLICE_BYTES and not self._raw_depth and self._frames:
            value = await self._long_text(start, end)
            self._put(value, start, end)
        return end

    async def _long_text(self, start: int, end: int) -> str:
        data = self._data
        parts: list[str] = []
        characters = width = 0
        position = start + 1
        while position < end - 1:
            cut = piece_end(data, position, end - 1, MAX_TEXT_SLICE_BYTES)
            for _ in range(3):  # A character has at most three further bytes (RFC 3629, 3).
                cut += data[cut] & 0xC0 == 0x80
            part: str = _loads(b'"%b"' % bytes(data[position:cut]), position, is_exact=False)
            characters += len(part)
            width = max(width, character_bytes(part))
            if characters * width > MAX_TEXT_BYTES:
                raise _longer(MAX_TEXT_BYTES // width)
            parts.append(part)
            position = cut
            await self._pace.turn()
        return "".join(parts)

    def _build(self, frame: _Frame, place: int, *, is_last: bool = False) -> None:
        """Decode the members of a frame that come before a position."""
        run = bytes(self._data[frame.run : place])
        is_first = frame.run == frame.start
        text = b"[%b]" % run if frame.is_list else b"{%b}" % run
        value = _loads(text, frame.run - 1, is_exact=self._limits.has_exact_integers)
        if not value and not (is_first and is_last):
            raise _bad("a member is missing", place)
        if frame.built is None:
            frame.built = value
        elif frame.is_list:
            frame.built += value
        else:
            frame.built |= value

    def _put(self, value: Any, start: int, end: int) -> None:
        """Add a value that was decoded alone to its parent."""
        if not self._frames:
            self._root = value
            self._end = end
            return
        parent = self._frames[-1]
        if parent.run < 0:
            raise _bad("a comma is missing", start)
        name = "" if parent.is_list else self._name(parent, start)
        if parent.member > parent.run:
            self._build(parent, parent.member - 1)
        elif parent.built is None:
            parent.built = [] if parent.is_list else {}
        if parent.is_list:
            self._blank(parent.member, start)
            parent.built.append(value)
        else:
            parent.built[name] = value
        parent.run = -1
        parent.after = end

    def _name(self, parent: _Frame, start: int) -> str:
        """Return the name of the member whose value starts at `start`."""
        if start - parent.member > MAX_NAME_BYTES:
            raise _bad(f"a name is longer than {MAX_NAME_BYTES} bytes", parent.member)
        found = _NAME.fullmatch(self._data, parent.member, start)
        if found is None:
            raise _bad("a name is missing or too long", start)
        name: str = _loads(found[1], parent.member)
        return name

    def _span(self, frame: _Frame, place: int) -> None:
        """Record the bounds of a member that stays undecoded, whose contents are counted already."""
        wanted = self._undecoded
        if wanted is None or frame.spans is None:
            raise ValueError("the list is not to stay undecoded")
        if self._is_blank(frame.member, place):
            raise _bad("a member is missing", place)
        if len(frame.spans) == wanted.most:
            raise GatewayError(
                ErrorKind.TOO_LARGE,
                f"cannot accept {wanted.name}: there are more than {wanted.most}",
                param=wanted.name,
            )
        frame.spans.append((frame.member, place))
        self._containers = self._commas = 0

    def _end_spans(self, frame: _Frame, place: int) -> None:
        spans = frame.spans or []
        if spans or not self._is_blank(frame.member, place):
            self._span(frame, place)
        self._raw_depth = 0
        self._containers, self._commas = self._beside
        frame.built = JsonMembers(self._data, frame.spans or [], self._limits)

    def _check(self) -> None:
        limits = self._limits
        if self._containers > limits.containers:
            raise too_many_error(f"lists and objects than {limits.containers}")
        if self._containers + self._commas > limits.values:
            raise too_many_error(f"values than {limits.values}")

    def _blank(self, start: int, end: int) -> None:
        if not self._is_blank(start, end):
            raise _bad("unexpected character", start)

    def _is_blank(self, start: int, end: int) -> bool:
        return _BLANK.fullmatch(self._data, start, end) is not None


def too_many_error(what: str) -> GatewayError:
    """Return the error for a text over the limits."""
    return GatewayError(ErrorKind.TOO_LARGE, f"cannot read the body as JSON: it has more {what}")


def _longer(characters: int) -> GatewayError:
    return GatewayError(
        ErrorKind.TOO_LARGE,
        f"cannot read the body as JSON: a string in it has more than {characters} characters",
    )


def _loads(data: JsonText, place: int, *, is_exact: bool = True) -> Any:
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise _not_json(error, place) from None
    if is_exact:
        _check_integers(data)
    return value


def _check_integers(data: JsonText) -> None:
    # The regular expression is slow, and few texts have so many digits in a row.
    if _LONG_RUN in data.translate(_AS_ZEROS) and _LONG_INTEGER.search(data) is not None:
        json.loads(data, parse_int=_exact)


def _not_json(error: orjson.JSONDecodeError, place: int) -> GatewayError:
    return _bad(f"{error.msg} (byte {place + error.pos})", place)


def _bad(reason: str, place: int) -> GatewayError:
    located = reason if "(byte" in reason else f"{reason} (byte {place})"
    return invalid(f"cannot read the body as JSON: {located}", code="json_invalid")


def _deeper(levels: int) -> GatewayError:
    return DepthError(
        ErrorKind.INVALID_REQUEST,
        f"cannot read the body as JSON: it nests deeper than {levels} levels",
        code="json_invalid",
    )


def _exact(digits: str) -> int:
    if len(digits) > len(str(MAX_INTEGER)) + 1 or not MIN_INTEGER <= int(digits) <= MAX_INTEGER:
        raise invalid("cannot read the body as JSON: an integer has more than 64 bits", code="json_invalid")
    return int(digits)


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether a value nests deeper; level by level, which is the fastest way."""
    nested = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(levels):
        nested = [child for item in nested for child in _children(item) if isinstance(child, _CONTAINERS)]
        if not nested:
            return False
    return True


def _children(item: dict[str, Any] | list[Any]) -> Any:
    return item.values() if isinstance(item, dict) else item
