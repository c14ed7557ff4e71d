"""Requests with and without one thing, for the tables of gatewayd-dialects(7)."""

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

PNG: Final = "iVBORw0KGgo="
LINK: Final = "https://x.example/a"
SCHEMA: Final[Json] = {"type": "object", "properties": {}}
CACHED: Final = {"type": "ephemeral"}
TEXT: Final = {"type": "text", "text": "x"}
HI: Final = {"role": "user", "content": "hi"}


@dataclass(frozen=True)
class Sample:
    """A request with what a row is about, and the same one without it.

    `piece` is the part of `request` in question: it passes as it is when an object of what the provider gets
    holds all of it, with `is_deep` any object, else the request itself.
    """

    request: Json
    without: Json
    piece: Json
    is_deep: bool = False


def field(base: Json | None = None, /, **fields: Any) -> Sample:
    """Return fields of a request, beside those of `base`."""
    before = base or {}
    return Sample({**before, **fields}, before, fields)


def deep(request: Json, without: Json, **piece: Any) -> Sample:
    """Return something inside a request."""
    return Sample(request, without, piece, is_deep=True)


def turns(*messages: Json) -> Json:
    """Return a request's messages."""
    return {"messages": list(messages)}


def turn(message: Json, *before: Json) -> Sample:
    """Return a message after others."""
    return deep(turns(HI, *before, message), turns(HI, *before), **message)


def first(message: Json) -> Sample:
    """Return a message before the first of the user's."""
    return deep(turns(message, HI), turns(HI), **message)


def part(part: Json) -> Sample:
    """Return a part of what the user says."""
    with_it, without = ({"role": "user", "content": content} for content in ([TEXT, part], [TEXT]))
    return deep(turns(with_it), turns(without), **part)


def said(block: Json) -> Sample:
    """Return a block of what the model said before."""
    with_it, without = ({"role": "assistant", "content": content} for content in ([block, TEXT], [TEXT]))
    return deep(turns(HI, with_it, HI), turns(HI, without, HI), **block)


def reply(**fields: Any) -> Sample:
    """Return fields of what the model said before."""
    before = {"role": "assistant", "content": "yes"}
    return deep(turns(HI, {**before, **fields}, HI), turns(HI, before, HI), **fields)
